"""The forms in which users have labels: one a row, tables of 0 and 1, lists of names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence, Set
from numbers import Complex, Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from skdice._checks import shown
from skdice.inputs.rows import is_missing, is_ordered

UNKNOWN = -100  # of one of several labels, where the user gave NaN or None; losses ignore it

_KINDS: dict[str, Any] = {"bool": (bool, np.bool_), "int": Integral, "float": Real, "str": str}
_WRITTEN = re.compile(r"\s*\[\s*([\'\"\[\d].*)?\]\s*", re.DOTALL)  # a list in a string


# ---- one label a row, or a table


def label_array(y: Any, name: str, missing: bool) -> np.ndarray:
    """An array of labels of one type, or a table of numbers."""
    if sparse.issparse(y):
        y = y.toarray()
    if hasattr(y, "__array__"):
        y = np.asarray(y)
    if not is_ordered(y):
        raise TypeError(f"{name} is {shown(y)}: give a list or array with a label for each row")
    if isinstance(y, np.ndarray) and y.dtype.kind in "biufU":
        return _of_array(y, name)
    rows = list(y)
    nested = [i for i, row in enumerate(rows) if is_ordered(row)]
    if len(nested) == len(rows) and all(len(row) == 1 for row in rows):
        rows, nested = [row[0] for row in rows], []
    if nested:
        return _of_nested(rows, nested, name, missing)
    kinds = sorted({check_label(value, f"{name}[{i}]") for i, value in enumerate(rows)})
    if len(kinds) > 1 and ("str" in kinds or isinstance(y, np.ndarray)):
        raise TypeError(f"{name} holds labels of several types ({', '.join(kinds)}): give one type")
    return np.array(rows, dtype=float if "float" in kinds else None)


def _of_array(y: np.ndarray, name: str) -> np.ndarray:
    if y.ndim > 1 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim > 1 and y.dtype.kind == "U":
        raise ValueError(f"{name} is a table of strings: for names of labels, {name}.tolist()")
    return y


def _of_nested(rows: list[Any], nested: list[int], name: str, missing: bool) -> np.ndarray:
    """A table of numbers; refuses rows of several lengths, and other values."""
    try:
        table = np.array([[np.nan if missing and is_missing(v) else v for v in r] for r in rows])
    except (ValueError, TypeError, OverflowError):
        table = np.array([None])
    if table.dtype.kind in "biuf":
        return table
    for i in nested:
        for j, value in enumerate(rows[i]):
            if is_missing(value):
                check_label(value, f"{name}[{i}][{j}]")
    raise ValueError(
        f"{name}[{nested[0]}] is {shown(rows[nested[0]])}: give one label a row, or for a "
        "multi-label problem a list of names (strings) a row, or 0/1 rows of numbers, as sklearn's "
        f"MultiLabelBinarizer().fit_transform({name}) makes"
    )


def check_single(values: np.ndarray, name: str) -> None:
    """Refuse an array that does not hold one label a row."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        check_label(values[row], f"{name}[{row}]")
    kind = type_of_target(values)
    if kind.startswith("continuous"):
        raise ValueError(f"Unknown label type: {kind}. {name} must hold classes, not measurements")
    if kind == "unknown" or values.ndim != 1:
        raise ValueError(f"Unknown label type: {name} has shape {values.shape}: give one a row")


def check_not_written(values: np.ndarray, name: str) -> None:
    """Refuse lists that pandas wrote as strings."""
    if values.dtype.kind == "U" and values.size and all(map(_WRITTEN.fullmatch, values.tolist())):
        raise ValueError(
            f"{name}[0] is {values[0].item()!r}, a list that was written as a string, as pandas "
            "reads it back from a CSV file: make it one by ast.literal_eval, as in "
            f"[literal_eval(row) for row in {name}]"
        )


def check_label(value: Any, where: str) -> str:
    """The name of a label's type, one for Python's and numpy's; refuses what is no label."""
    if is_missing(value):
        raise ValueError(f"{where} is missing (NaN or None): drop the row or label it")
    kind = next((kind for kind, types in _KINDS.items() if isinstance(value, types)), None)
    if kind is None or isinstance(value, np.timedelta64):  # which numpy counts among the integers
        remedy = "label.decode()" if isinstance(value, bytes) else "str(label)"
        if kind is None and isinstance(value, Complex):
            remedy += ". Complex data not supported"  # scikit-learn's words
        raise ValueError(
            f"Unknown label type: {type(value).__name__} ({where} is {shown(value)}). Labels are "
            f"strings, integers or bools: convert each with {remedy}"
        )
    if kind == "str" and "\x00" in value:  # numpy would drop it at the end of a string
        raise ValueError(f"{where} is {value!r}: a tag or label must not hold a null character")
    if kind == "int" and not -(2**63) <= value < 2**63:
        raise ValueError(f"{where} has more than 64 bits: give such labels as strings")
    if kind == "float" and not math.isfinite(value):
        raise ValueError(f"{where} is {float(value)}: labels are strings, integers or bools")
    return kind


# ---- 0/1 rows


def column_names(y: Any, name: str) -> list[str] | None:
    """The names of a frame's columns; None without names, and for one column."""
    columns = list(getattr(y, "columns", [])) if hasattr(y, "to_numpy") else []
    if len(columns) < 2 or columns == list(range(len(columns))):
        return None
    for i, column in enumerate(columns):
        where = f"column {i} of {name}"
        check_name(column, f"{where} has the name", f"{name}.columns = {name}.columns.astype(str)")
        if column in columns[:i]:
            raise ValueError(f"{where} has the name {column!r} of another: give each its own")
    return columns


def zero_one_rows(
    values: np.ndarray, columns: list[str] | None, name: str, missing: bool
) -> np.ndarray:
    """A table of 0 and 1, and `UNKNOWN` where a label is missing and may be."""
    unknown = ((values != values) | (values == UNKNOWN)) & missing
    _check_zero_one(np.where(unknown, 0, values), columns, name)
    if len(empty := np.flatnonzero(unknown.all(axis=1))):
        raise ValueError(f"{name}[{empty[0]}] has no known label: leave out such rows")
    return np.where(unknown, UNKNOWN, values).astype(int)


def _check_zero_one(table: np.ndarray, columns: list[str] | None, name: str) -> None:
    """Refuse a table that holds other numbers than 0 and 1."""
    wrong = np.argwhere(~np.isin(table, (0, 1)))
    if not len(wrong):
        return
    row, column = wrong[0].tolist()
    value = table[row, column].item()
    where = f"{name}[{row}][{column if columns is None else repr(columns[column])}]"
    if value != value:
        check_label(value, where)
    threshold = 0.5 if ((table >= 0) & (table <= 1)).all() else 0
    raise ValueError(
        f"{where} is {value!r}: a multi-label problem needs 0/1 rows, as in ({name} > {threshold})"
        ".astype(int), or a list of names a row"
    )


# ---- lists of names


def rows_of_names(y: Any) -> list[Any] | None:
    """The rows of `y`, if it holds lists or sets of names; None if it has another form."""
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]  # a frame of one column
    if not is_ordered(y) or (isinstance(y, np.ndarray) and (y.ndim != 1 or y.dtype != object)):
        return None
    rows = list(y)
    held = [row for row in rows if _has_names(row)]
    if not held:
        return None
    first = next((value for row in held for value in row), "")
    return rows if isinstance(first, str) or any(isinstance(row, Set) for row in rows) else None


def _has_names(row: Any) -> bool:
    return is_ordered(row) or isinstance(row, Set)


def table_of_names(rows: Sequence[Any], name: str, missing: bool) -> tuple[np.ndarray, list[str]]:
    """0/1 rows, and the sorted names of their columns, from the names of each row."""
    for i, row in enumerate(rows):
        _check_names(row, f"{name}[{i}]", missing)
    lists = [set(map(str, row)) for row in rows]
    unknown_of: list[Iterable[str]] = [getattr(row, "unknown", ()) for row in rows]
    names = sorted(set().union(*lists, *unknown_of))
    held = [[label in row for label in names] for row in lists]
    table = np.array(held, dtype=int).reshape(len(held), len(names))
    for i, unknown in enumerate(unknown_of):
        table[i, [names.index(label) for label in unknown]] = UNKNOWN
    return table, names


def _check_names(row: Any, where: str, missing: bool) -> None:
    """Refuse a row that is no list of names."""
    if is_missing(row):
        raise ValueError(f"{where} is missing (NaN or None): give [] for a row without labels")
    if not _has_names(row):
        raise TypeError(
            f"{where} is {shown(row)}, and other rows are lists of names: give a list for each "
            "row, [] for one without labels"
        )
    if not missing and (unknown := sorted(getattr(row, "unknown", ()))):
        check_label(None, f"the label {unknown[0]!r} of {where}")
    for value in row:
        check_name(value, f"{where} holds the label", "str(label)")


def check_name(value: Any, where: str, remedy: str) -> None:
    """Refuse a name of a label that is no string, or an empty one."""
    if not isinstance(value, str):
        raise TypeError(f"{where} {shown(value)}: names of labels are strings, as in {remedy}")
    if not value.strip() or "\x00" in value:
        raise ValueError(f"{where} {value!r}: a name must not be empty or hold a null character")
