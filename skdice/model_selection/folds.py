"""Predictions for every row by a model that did not see it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length
from torch.serialization import safe_globals

from skdice._checks import check_has, checked, shown
from skdice._digest import digest
from skdice._types import Data, Rows
from skdice.engine.checkpoints import Checkpoints, check_folder
from skdice.estimators.before_folds import check_rows, with_pos_label
from skdice.estimators.fold_fits import aligned, fitted_on, group_folds, probabilities_of
from skdice.inputs.entities import Entity
from skdice.inputs.labels import as_labels
from skdice.inputs.rows import check_given, object_array, plain_values, take
from skdice.model_selection.checks import folds_of
from skdice.model_selection.comparison import environment
from skdice.tags.spans import ScoredSpan

NAMED: list[Any] = [ScoredSpan, Entity]  # tuples that predictions hold


class OutOfFold(NamedTuple):
    """The result of `out_of_fold`, in the order of the rows.

    Attributes
    ----------
    predictions : ndarray of shape (n,) or (n, n_labels)
        As ``predict`` gives them.
    probabilities : ndarray or None
        As ``predict_proba`` gives them: a column for each class, in the order of ``classes_`` of an
        estimator fitted on all rows, and for a tagger an array (n_tokens, n_classes) a sentence. A
        class that was not in a fold's training rows has probability 0 there. For a reader of
        answers the probability of each answer, for `DiceMRCTagger` the rows of ``predict_spans``,
        and None for an estimator that gives no probabilities.
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
    checkpoint_dir: str | Path | None = None,
) -> OutOfFold:
    """Predict every row with a clone of the estimator that was fitted on other rows.

    It is as `sklearn.model_selection.cross_val_predict`, and takes sentences, spans and answers,
    gives predictions and probabilities at once, and goes on where it was interrupted.

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
    checkpoint_dir : str, Path or None, default=None
        Folder for the predictions of finished folds, made if missing. Called again with the same
        data, estimator and folds, only the missing folds are fitted.

    Returns
    -------
    OutOfFold
        A named tuple ``(predictions, probabilities, folds)``.

    Raises
    ------
    ValueError, TypeError
        If `cv` does not hold out each row once, X, y and `groups` do not match, `fit` has no such
        `params`, or `n_jobs` is no number of processes, before anything is fitted.

    Examples
    --------
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import out_of_fold
    >>> X, y = [[0.0], [0.1], [0.2], [0.9], [1.0], [1.1]], ["a", "a", "a", "b", "b", "b"]
    >>> found = out_of_fold(DiceClassifier(max_epochs=1, random_state=0), X, y, cv=3)
    >>> found.predictions.shape, found.probabilities.shape, found.folds.tolist()
    ((6,), (6, 2), [0, 1, 2, 0, 1, 2])
    """
    check_has("estimator", estimator, "fit", "predict", "get_params")
    check_given(y, "a target for each row")
    params = dict(params or {})
    try:
        inspect.signature(estimator.fit).bind(X, y, **params)
    except TypeError as error:
        raise TypeError(
            f"params={shown(params)} is not for the fit of {type(estimator).__name__}: {error}"
        ) from None
    if n_jobs is not None and (n_jobs == 0 or not -(2**31) <= n_jobs < 2**31):
        raise ValueError(
            f"n_jobs={shown(n_jobs)} must be a number of processes, None, or -1 for all processors"
        )
    check_consistent_length(X, y)
    check_rows(estimator, X, y)
    classifies = is_classifier(estimator)
    if groups is not None:
        cv = group_folds(cv, classifies and as_labels(y, missing=True).ndim == 1)
    splits = folds_of(cv, X, y, classifies, groups=groups)
    n, tests = len(y), [np.arange(len(y))[test] for _, test in splits]
    if not np.array_equal(np.sort(np.concatenate(tests)), np.arange(n)):
        raise ValueError(
            f"cv={shown(cv)} leaves rows out or repeats them: each row must be held out once, as "
            "by KFold"
        )
    if checkpoint_dir is not None:
        check_folder(checkpoint_dir)
    if classifies:
        estimator = with_pos_label(estimator, y)
    jobs = (delayed(_held_out)(estimator, X, y, *split, params, checkpoint_dir) for split in splits)
    parts: list[Any] = list(Parallel(n_jobs=n_jobs)(jobs))
    predictions, tables, classes = map(list, zip(*parts, strict=True))
    order = np.argsort(np.concatenate(tests), kind="stable")
    folds = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    if predictions[0].ndim == 2 and classes[0] is not None:  # a column for each label
        predictions = aligned(predictions, classes)
    probabilities = None
    if tables[0] is not None:
        tables = tables if classes[0] is None else aligned(tables, classes)
        probabilities = np.concatenate(tables)[order]
    return OutOfFold(np.concatenate(predictions)[order], probabilities, folds[order])


def _held_out(
    estimator: Any,
    X: Any,
    y: Any,
    train: np.ndarray,
    test: np.ndarray,
    params: dict[str, Any],
    checkpoint_dir: Any,
) -> tuple[Any, Any, Any]:
    """Predictions and probabilities of the rows of one fold, and the classes of their model."""
    checkpoints = None
    if checkpoint_dir is not None:
        data = [plain_values(values) for values in (X, y)]
        versions = {name: value for name, value in environment().items() if name != "date"}
        identity = digest("out_of_fold", *data, estimator, params, train, test, versions)
        checkpoints = Checkpoints(checkpoint_dir, identity)
        with safe_globals(NAMED):
            if (state := checkpoints.last()) is not None:
                return tuple(map(_unpacked, state["parts"]))  # type: ignore[return-value]
    train, held = (np.arange(len(y))[part] for part in (train, test))
    held, model = take(X, held), fitted_on(estimator, X, y, train, params)
    classes, table = None, None
    if hasattr(model, "predict_proba"):
        classes, table = probabilities_of(model, held)
    elif getattr(_task_of(model), "judged", "") == "answers":
        table = np.array([row[0]["probability"] for row in model.predict_spans(held)])
    elif hasattr(model, "predict_spans"):
        table = model.predict_spans(held)
    parts = (np.asarray(model.predict(held)), table, classes)
    if checkpoints is not None:
        checkpoints.write(1, {"parts": list(map(_packed, parts))})
    return parts


# ---- values that torch reads without running code


def _packed(values: np.ndarray | None) -> Any:
    if values is None:
        return None
    if values.dtype == object:
        return [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
    return tuple(values.tolist()) if values.dtype.kind == "U" else torch.from_numpy(values)


def _unpacked(values: Any) -> np.ndarray | None:
    if isinstance(values, list):
        return object_array([v.numpy() if isinstance(v, torch.Tensor) else v for v in values])
    if isinstance(values, tuple):
        return np.array(values, dtype=str)
    return None if values is None else values.numpy()


def _task_of(model: Any) -> Any:
    """The task of an estimator of skdice, also in a search; None of others."""
    return getattr(getattr(model, "best_estimator_", model), "task", None)
