"""Folds that cannot be scored, said before anything is trained."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_classes", "check_tags"]


def check_classes(labels: np.ndarray, splits: list[Any]) -> None:
    """Refuse labels of one class, and folds that train without a class.

    Of 0/1 rows each column is looked at, save those that are the same in every row: no fold can do
    without what `y` does not have.
    """
    if labels.ndim not in (1, 2):
        return
    columns = np.atleast_2d(labels.T)
    several = len(columns) > 1
    for number, column in enumerate(columns):
        classes = set(np.unique(column).tolist())
        if len(classes) < 2 and not several:
            raise ValueError(
                f"y holds one class only {sorted(classes)}: a classifier needs 2 classes or more"
            )
        for fold, (train, _) in enumerate(splits):
            if missing := classes - set(np.unique(column[train]).tolist()):
                value = sorted(missing, key=str)[0]
                what = f"value {value!r} of column {number} of y" if several else f"class {value!r}"
                raise ValueError(
                    f"cv leaves the {what} out of the training rows of fold {fold}: use fewer "
                    f"folds, or {'KFold(shuffle=True)' if several else 'StratifiedKFold'}"
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
