"""Predictions for data beyond the memory, row by row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from skdice._types import Model
from skdice.inputs.rows import as_row_list

# Methods of which each estimator has some.
_PREDICTIONS = (
    *("predict", "predict_labels", "predict_proba", "decision_function"),
    *("predict_spans", "predict_tagged"),
)


def iter_blocks(model: Model, X: Any, method: str, block_size: int) -> Iterator[Any]:
    """Yield what a method of `model` gives for each row; see `iter_predict` of the estimators."""
    known = [name for name in _PREDICTIONS if hasattr(model, name)]
    if method not in known:
        raise ValueError(f"method={method!r} is unknown: give one of {known}")
    if block_size < 1:
        raise ValueError(f"block_size={block_size!r} must be 1 or more")
    endless = hasattr(X, "__iter__") and not hasattr(X, "__len__")
    rows = iter(X if endless else as_row_list("X", X))
    return _by_blocks(rows, getattr(model, method), min(int(block_size), sys.maxsize))


def _by_blocks(rows: Iterator[Any], predict: Any, size: int) -> Iterator[Any]:
    first = 0
    while block := list(islice(rows, size)):
        try:
            predictions = predict(block)
        except (TypeError, ValueError) as error:
            error.add_note(f"X[0] is row {first} of the rows given to iter_predict")
            raise
        yield from predictions
        first += len(block)
