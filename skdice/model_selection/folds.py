"""Folds that cannot be scored, said before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_classes", "check_tags"]


def check_classes(labels: np.ndarray, splits: list[Any]) -> None:
    """Refuse folds that train without a class."""
    if labels.ndim != 1:
        return
    classes = set(np.unique(labels).tolist())
    for fold, (train, _) in enumerate(splits):
        missing = classes - set(np.unique(labels[train]).tolist())
        if missing:
            raise ValueError(
                f"cv leaves the class {sorted(missing, key=str)[0]!r} out of the training rows of "
                f"fold {fold}: use fewer folds, or StratifiedKFold"
            )


def check_tags(estimator: Any, y: Any, splits: list[Any]) -> None:
    """Refuse folds that train without a type: a tagger's own score refuses what it has not seen."""
    from skdice.estimators import DiceTokenClassifier

    if not isinstance(estimator, DiceTokenClassifier):
        return
    held = [{tag.partition("-")[2] or tag for tag in row} for row in y]
    for fold, (train, test) in enumerate(splits):
        known, asked = (set().union(*(held[i] for i in rows)) for rows in (train, test))
        if missing := sorted(asked - known - {"O"}):
            raise ValueError(
                f"cv leaves the tag {missing[0]!r} out of the training rows of fold {fold}, which "
                "the tagger's own score refuses: use fewer folds, or scoring="
                "skdice.metrics.span_f1_scorer, which counts it as missed"
            )
