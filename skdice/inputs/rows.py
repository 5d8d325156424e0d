"""Rows in any container: lists, arrays, tensors, Series, frames, columns of arrow or polars."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence, Set
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from skdice._checks import as_numbers, check_lengths, check_unmasked, counted, shown
from skdice._compat import safe_indexing


def plain_values(X: Any, name: str = "X") -> Any:
    """A column or frame of arrow, pandas or polars as a list or array; none is imported."""
    check_unmasked(name, X)
    if hasattr(X, "to_pylist"):
        return X.to_pylist()
    if hasattr(X, "detach"):  # a tensor, whose rows would be tensors
        return X.numpy(force=True)
    return X.to_numpy() if hasattr(X, "to_numpy") else X


def is_ordered(row: Any) -> bool:
    """Return True if it is a list, tuple, array or the like, and not a string, a set or a dict."""
    unordered = isinstance(row, (str, bytes, bytearray, memoryview, Mapping, Set, type))
    return hasattr(row, "__len__") and getattr(row, "ndim", 1) != 0 and not unordered


def check_ordered(values: Any, where: str, wanted: str) -> None:
    """Refuse what has no order, and a string, which would be read letter by letter."""
    if not is_ordered(values):
        raise TypeError(f"{where} is {shown(values)}: it must be {wanted}")


def as_row_list(name: str, values: Any, *, may_be_empty: bool = True) -> list[Any]:
    """The rows of any container of this module; a string, a set or a dict has none."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} is a single string: put it in a list, as in [{name}]")
    values = plain_values(values, name)
    check_ordered(values, name, "a list with one entry for each row, an array, a Series or a frame")
    rows = list(values.tolist() if hasattr(values, "tolist") else values)
    if not rows and not may_be_empty:  # in scikit-learn's words
        raise ValueError(f"{name} is empty (0 samples): at least 1 sample is required")
    return rows


def check_given(y: Any, wanted: str) -> None:
    """Refuse a missing target, in scikit-learn's words."""
    if y is None:
        raise ValueError(
            f"This estimator requires y to be passed, but the target y is None: pass {wanted}"
        )


def target_rows(y: Any, n_rows: int, wanted: str, rows_of_x: str = "rows") -> list[Any]:
    """The rows of y, as many as those of X."""
    check_given(y, wanted)
    rows = as_row_list("y", y, may_be_empty=False)
    check_lengths(rows_of_x, X=range(n_rows), y=rows)
    return rows


def is_missing(value: Any) -> bool:
    """Return True for None, NaN and pandas' NA; pandas is not imported for it."""
    if value is None or isinstance(value, Real):
        return value is None or bool(value != value)
    return value is getattr(sys.modules.get("pandas"), "NA", None)


def object_array(rows: Sequence[Any]) -> np.ndarray:
    """A 1-D object array of `rows`, also when all rows have the same length."""
    return np.fromiter(rows, dtype=object, count=len(rows))


def take(X: Any, indices: np.ndarray) -> Any:
    """Rows of `X` by position, in a container of the same kind; frames get a fresh index."""
    if isinstance(X, (list, tuple)):
        return [X[i] for i in indices]
    rows = safe_indexing(X, indices)
    return rows.reset_index(drop=True) if hasattr(rows, "reset_index") else rows


def row_keys(X: Any) -> list[Any]:
    """A key for each row; equal rows have equal keys.

    Examples
    --------
    >>> from skdice.inputs.rows import row_keys
    >>> a, b, c = row_keys([["no", "war"], ("no", "war"), ["no war"]])
    >>> a == b, a == c
    (True, False)
    """
    if sparse.issparse(X):
        rows = sparse.csr_array(X, copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        parts = [slice(*ends) for ends in pairwise(rows.indptr)]
        return [(rows.indices[part].tobytes(), rows.data[part].tobytes()) for part in parts]
    return [_key(row) for row in plain_values(X)]


def _key(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return (value + value.dtype.type(0)).tobytes()  # -0.0 becomes 0.0
    if is_ordered(value):
        return tuple(map(_key, value))
    # Missing values, and what has no hash, are equal if they look alike.
    return repr(value) if is_missing(value) or not isinstance(value, Hashable) else value


def check_groups(groups: Any, n_rows: int) -> None:
    """Refuse groups that are not one value for each row; a missing one would be a group."""
    as_row_list("groups", groups)
    rows = list(plain_values(groups, "groups"))  # with dates, which a list of numbers hides
    check_lengths(groups=rows, y=range(n_rows))
    for i, group in enumerate(rows):
        if is_ordered(group) or is_missing(group) or group != group:  # NaT, too
            raise ValueError(
                f"groups[{i}] is {shown(group)}: give each row a value, such as the number of its "
                "document; a row without a document needs a group of its own"
            )


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """`sample_weight` as a float array of shape (n_rows,), or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = [sample_weight] * n_rows
    weights = as_numbers("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, but X holds "
            f"{counted(n_rows, 'row')}: give one weight for each row"
        )
    if not np.isfinite(weights.sum()) or (weights < 0).any() or not weights.any():
        raise ValueError("sample_weight must have a finite sum, not be negative or all zero")
    return weights
