"""Predictions for every row by a model that did not see it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import is_classifier

from skdice._checks import check_has, checked, shown
from skdice._types import Data, Rows
from skdice.estimators.before_folds import check_rows, with_pos_label
from skdice.estimators.fold_fits import aligned, fitted_on, group_folds, probabilities_of
from skdice.inputs.labels import as_labels
from skdice.inputs.rows import check_given, take
from skdice.model_selection.checks import folds_of


class OutOfFold(NamedTuple):
    """The result of `out_of_fold`, in the order of the rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,) or (n, n_labels)
        As ``predict`` gives them.
    probabilities : ndarray or None
        As ``predict_proba`` gives them: a column for each class, in the order of ``classes_`` of an
        estimator fitted on all rows, and for a tagger an array (n_tokens, n_classes) a sentence. A
        class that was not in a fold's training rows has probability 0 there. None for an estimator
        that gives no probabilities.
    folds : ndarray of int, shape (n,)
        The number of the fold in which a row was held out.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import out_of_fold
    >>> X, y = make_classification(60, random_state=0)
    >>> held_out = out_of_fold(DiceClassifier(max_epochs=1, random_state=0), X, y, cv=3)
    >>> held_out.predictions.shape, held_out.probabilities.shape
    ((60,), (60, 2))
    >>> sorted(set(held_out.folds.tolist()))
    [0, 1, 2]
    """

    predictions: np.ndarray
    probabilities: np.ndarray | None
    folds: np.ndarray


@checked
def out_of_fold(
    estimator: Any,
    X: Data,
    y: Data,
    cv: Any = 5,
    groups: Rows | None = None,
    *,
    params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> OutOfFold:
    """Predict every row with a clone of the estimator that was fitted on other rows.

    It is as `sklearn.model_selection.cross_val_predict`, and takes sentences, spans and answers,
    and gives predictions and probabilities at once.

    Parameters
    ----------
    estimator : classifier, tagger or reader
        Of skdice or of scikit-learn, also a pipeline or a search. It is cloned for each fold.
    X, y : as in its `fit`
    cv : int, splitter or iterable of (train, test), default=5
        Each row must be held out once. A number makes folds as in scikit-learn: stratified for
        classifiers, and of neighbouring rows for all others. With `groups` it makes folds of whole
        groups.
    groups : array of shape (n,) or None, default=None
        The group of each row, such as the document of a sentence. Given to `cv`.
    params : dict or None, default=None
        Parameters of `fit`, such as ``{"sample_weight": weights}``; arrays with a value for each
        row are split too.
    n_jobs : int or None, default=None
        Folds to fit at the same time, as in joblib; None is one.

    Returns
    -------
    OutOfFold
        A named tuple ``(predictions, probabilities, folds)``.

    Raises
    ------
    ValueError, TypeError
        If `cv` does not hold out each row once, or X, y and `groups` do not match, before anything
        is fitted.

    Examples
    --------
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import out_of_fold
    >>> X, y = [[0.0], [0.1], [0.2], [0.9], [1.0], [1.1]], ["a", "a", "a", "b", "b", "b"]
    >>> found = out_of_fold(DiceClassifier(max_epochs=1, random_state=0), X, y, cv=3)
    >>> found.predictions.shape, found.probabilities.shape, found.folds.tolist()
    ((6,), (6, 2), [0, 1, 2, 0, 1, 2])
    """
    params = dict(params or {})
    check_has("estimator", estimator, "fit", "predict", "get_params")
    check_given(y, "a target for each row")
    check_rows(estimator, X, y)
    classifies = is_classifier(estimator)
    if groups is not None:
        cv = group_folds(cv, classifies and as_labels(y, missing=True).ndim == 1)
    splits = folds_of(cv, X, y, classifies, groups=groups)
    tests = [test for _, test in splits]
    if not np.array_equal(np.sort(np.concatenate(tests)), np.arange(len(y))):
        raise ValueError(
            f"cv={shown(cv)} leaves rows out or repeats them: each row must be held out once, as "
            "by KFold"
        )
    estimator = with_pos_label(estimator, y)
    jobs = (delayed(_held_out)(estimator, X, y, fold, params) for fold in splits)
    parts: list[Any] = list(Parallel(n_jobs=n_jobs)(jobs))
    predictions, tables, classes = map(list, zip(*parts, strict=True))
    order = np.argsort(np.concatenate(tests), kind="stable")
    folds = np.repeat(np.arange(len(tests)), list(map(len, tests)))
    if classes[0] is not None:
        tables = aligned(tables, classes)
        if predictions[0].ndim == 2:  # a column for each label
            predictions = aligned(predictions, classes)
    probabilities = None if tables[0] is None else np.concatenate(tables)[order]
    return OutOfFold(np.concatenate(predictions)[order], probabilities, folds[order])


def _held_out(estimator: Any, X: Any, y: Any, fold: Any, params: Any) -> tuple[Any, Any, Any]:
    """Predictions and probabilities of the rows of one fold, and the classes of their model."""
    train, test = fold
    held, model = take(X, test), fitted_on(estimator, X, y, train, params)
    classes, table = None, None
    if hasattr(model, "predict_proba"):
        classes, table = probabilities_of(model, held)
    return np.asarray(model.predict(held)), table, classes
