"""Rows that a model has not seen: how `out_of_fold` and tuned decisions get them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from skdice._compat import check_method_params
from skdice._types import Data, Model
from skdice.estimators.evaluation import outputs_of
from skdice.inputs.labels import label_table
from skdice.inputs.rows import object_array, take


def fitted_on(estimator: Model, X: Data, y: Data, rows: np.ndarray, params: dict[str, Any]) -> Any:
    """A clone of the estimator that was fitted on some rows; `params` of each row are split too."""
    chosen = check_method_params(X, params, rows)
    return clone(estimator).fit(take(X, rows), take(y, rows), **chosen)


def group_folds(cv: object, stratified: bool) -> Any:
    """A splitter that keeps groups together, for a number of folds; any other `cv` as it is."""
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        return cv
    return (StratifiedGroupKFold if stratified else GroupKFold)(int(cv))


def probabilities_of(model: Model, X: Data) -> tuple[np.ndarray, Any]:
    """The labels of the columns of ``predict_proba``, and what it gives."""
    classes = outputs_of(getattr(model, "best_estimator_", model))
    table = model.predict_proba(X)
    if isinstance(classes, list):  # as a random forest has: classes and a table for each label
        table = label_table(table)
        classes = np.arange(table.shape[1])
    elif isinstance(table, list):  # of sentences
        table = object_array(table)
    return classes, table


def aligned(
    tables: Sequence[Any], classes: Sequence[Any], every: np.ndarray | None = None
) -> list[Any]:
    """Tables of all folds with the columns of all classes, 0 where a fold lacked a class.

    Parameters
    ----------
    tables : sequence of ndarray
        Of each fold: rows, or an array of rows for each sentence.
    classes : sequence of ndarray
        Of each fold, the labels of the columns.
    every : ndarray or None, default=None
        The labels of the columns of the result; None is all that any fold has.
    """
    if every is None:
        same = all(np.array_equal(classes[0], others) for others in classes)
        every = classes[0] if same else np.unique(np.concatenate(classes))
    place = {label: i for i, label in enumerate(every.tolist())}

    def widened(table: np.ndarray, columns: list[int]) -> np.ndarray:
        if table.dtype == object:
            return object_array([widened(row, columns) for row in table])
        wide = np.zeros((len(table), len(every)), dtype=table.dtype)
        wide[:, columns] = table
        return wide

    columns = ([place[label] for label in known.tolist()] for known in classes)
    return [widened(*pair) for pair in zip(tables, columns, strict=True)]
