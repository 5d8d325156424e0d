"""What searches, folds and comparisons ask of an estimator before they fit it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from skdice._types import Data, Model
from skdice.inputs.labels import read_labels
from skdice.inputs.rows import as_row_list, is_missing
from skdice.inputs.texts import as_texts
from skdice.losses.base import check_classes, has_factors
from skdice.metrics.decisions.positive import positive_class


def check_estimator(estimator: Model) -> None:
    """Refuse bad parameters of an estimator of skdice, as its `fit` would."""
    estimator._check_params()


def check_rows(estimator: Model, X: Data, y: Data = None) -> None:
    """Refuse texts and their targets by the numbers of their rows, before folds have their own.

    Those of estimators of skdice are checked, and texts that are missing for any that reads text.
    """
    part: Any = estimator
    while hasattr(part, "get_params"):  # what reads X, in a search or at the start of a pipeline
        estimator = part
        steps = getattr(part, "steps", None) or getattr(part, "transformer_list", None)
        part = steps[0][1] if steps else getattr(part, "estimator", None)
    if not hasattr(estimator, "__sklearn_tags__") or not get_tags(estimator).input_tags.string:
        return
    task = getattr(estimator, "task", None)
    if task is not None and y is not None:
        task.read(estimator, X, y)
    elif task is not None:
        as_row_list("X", X, may_be_empty=False)  # one at least
        task.inputs(X)
    elif any(map(is_missing, as_row_list("X", X, may_be_empty=False))):
        as_texts(X)


def with_pos_label(estimator: Model, y: Data) -> Any:
    """The estimator with its positive class fixed by all rows, before folds and samplers."""
    name, last = "", estimator
    while steps := getattr(last, "steps", None):  # the last step of a pipeline
        step, last = steps[-1]
        name += f"{step}__"
    if not hasattr(last, "get_params") or "pos_label" not in last.get_params(deep=False):
        return estimator
    labels = read_labels(y, missing=True)
    if labels.multilabel or len(labels.classes) != 2:
        return estimator
    classes, counts = np.unique(labels.values, return_counts=True)
    label = classes.tolist()[positive_class(classes, counts, last.pos_label)]
    return clone(estimator).set_params(**{f"{name}pos_label": label})


def check_factors(estimator: Model, losses: Iterable[Any], X: Data, y: Data) -> None:
    """Refuse losses whose factors do not fit the classes of y, before anything is fitted.

    What a pipeline does to X before the estimator is not known yet: there, the first fit refuses.
    """
    known = [loss for loss in losses if has_factors(loss)]
    while not hasattr(estimator, "task") and hasattr(estimator, "estimator"):
        estimator = estimator.estimator
    task = getattr(estimator, "task", None)
    if not known or task is None or not (task.has_classes and task.has_words):
        return
    draft = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fits warn
        task.learn(draft, task.examples(draft, X, y), None, "fresh", None)
    classes, several = getattr(draft, task.outputs), getattr(draft, "multilabel_", False)
    for loss in known:
        check_classes(loss, classes, several)
