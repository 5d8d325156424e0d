"""The scorer of a search, its sample weights, and folds that cannot be scored."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from skdice._checks import shown
from skdice._compat import accepts_sample_weight
from skdice._warn import warn
from skdice.exceptions import DecisionWarning
from skdice.inputs.labels import UNKNOWN, as_labels, holds_tags, read_labels
from skdice.inputs.rows import check_groups, plain_values
from skdice.resampling.stratification import MultilabelStratifiedKFold


def check_scores(scoring: Any, y: Any) -> None:
    """Refuse a name of scikit-learn's scorers that fails on these labels, as after every fit.

    What is scored is a `DummyClassifier`, before any work.
    """
    if not isinstance(scoring, str):
        return
    try:
        if holds_tags(y):
            raise ValueError("it holds lists")
        true = np.asarray(plain_values(y, "y"))
        rows = np.zeros((len(true), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            get_scorer(scoring)(DummyClassifier().fit(rows, true), rows, true)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"scoring={scoring!r} cannot score y ({error}): leave scoring out, or give a scorer of "
            "skdice.metrics, class_f1_scorer or for tags span_f1_scorer, or a name such as "
            "'f1_macro'"
        ) from error


def weights_of(scorer: Any, sample_weight: Any) -> dict[str, Any]:
    """``sample_weight`` for a scorer that takes it, as in `GridSearchCV` without routing."""
    if sample_weight is None:
        return {}
    if accepts_sample_weight(scorer):
        return {"sample_weight": sample_weight}
    warn(f"{scorer!r} takes no sample_weight: rows weigh alike", DecisionWarning)
    return {}


def folds_of(cv: Any, X: Any, y: Any, classifier: bool, groups: Any = None) -> list[Any]:
    """The folds of `cv`, pairs of row numbers."""
    indexable(X, y)  # refuses rows that are none, so that what is left is due to cv
    if groups is not None:
        check_groups(groups, len(y))
    cv = 5 if cv is None else cv
    try:
        if classifier:  # scikit-learn reads no lists of names
            y = as_labels(y, missing=True)
            if y.ndim == 2 and isinstance(cv, Integral):
                cv = MultilabelStratifiedKFold(int(cv))
        splits, rows = check_cv(cv, y, classifier=classifier), np.arange(len(y))
        folds = [
            (rows[np.asarray(train)], rows[np.asarray(test)])  # refuses other rows
            for train, test in splits.split(X, y, groups=groups)
        ]
    except (TypeError, AttributeError, ValueError, IndexError) as error:
        raise ValueError(f"cv={shown(cv)} does not split X and y: {error}") from error
    if not folds:
        raise ValueError(
            f"cv={shown(cv)} has no folds: give a splitter or a list of (train, test), as a "
            "generator is empty after its first use"
        )
    return folds


def check_classes(y: Any, splits: list[Any]) -> None:
    """Refuse labels of one class, and folds that train without a class."""
    labels = read_labels(y, missing=True)
    several = labels.multilabel
    names = labels.classes.tolist() if several else [0]
    for name, column in zip(names, np.atleast_2d(labels.values.T), strict=True):
        classes = set(np.unique(column).tolist()) - ({UNKNOWN} if several else set())
        if len(classes) < 2 and not several:  # a constant column of several passes
            raise ValueError(f"y holds one class only {sorted(classes)}: a classifier needs two")
        for fold, (train, _) in enumerate(splits):
            if missing := classes - set(np.unique(column[train]).tolist()):
                value = sorted(missing, key=str)[0]
                what = f"value {value!r} of column {name!r} of y" if several else f"class {value!r}"
                raise ValueError(
                    f"cv leaves the {what} out of the training rows of fold {fold}: use fewer "
                    f"folds, or {'Multilabel' if several else ''}StratifiedKFold"
                )
