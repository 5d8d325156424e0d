"""Labels in any container that users have, checked in one way for estimators and metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from numbers import Complex, Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from skdice._checks import check_lengths, shown
from skdice._compat import is_pandas_na, is_scalar_nan

_KINDS: dict[str, Any] = {"bool": (bool, np.bool_), "int": Integral, "float": Real, "str": str}


def plain_values(X: Any) -> Any:
    """A column or frame of arrow, pandas or polars as a list or array; none is imported."""
    if hasattr(X, "to_pylist"):
        return X.to_pylist()
    if hasattr(X, "detach"):  # a tensor, whose rows would be tensors
        return X.numpy(force=True)
    return X.to_numpy() if hasattr(X, "to_numpy") else X


def check_given(y: Any, wanted: str) -> None:
    """Refuse a missing target, in scikit-learn's words."""
    if y is None:
        raise ValueError(
            f"This estimator requires y to be passed, but the target y is None: pass {wanted}"
        )


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN or pandas' NA."""
    return value is None or is_scalar_nan(value) or is_pandas_na(value)


def is_ordered(row: Any) -> bool:
    """Whether it is a list, tuple, array or the like, and not a string, a set or a dict."""
    return hasattr(row, "__len__") and not isinstance(row, (str, bytes, Mapping, Set))


def as_labels(y: Any, n_rows: int | None = None, name: str = "y") -> np.ndarray:
    """Labels of shape (n,), or 0/1 rows of shape (n, n_labels), in an array of their own type.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.metrics.labels import as_labels
    >>> as_labels(np.array([0, 1], dtype=object))
    array([0, 1])
    """
    check_given(y, "labels")
    y = plain_values(y)
    labels = _table(y, name)
    if n_rows is not None:
        check_lengths(X=range(n_rows), **{name: labels})
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = np.argwhere(~np.isfinite(labels))[0, 0]
        _check_label(labels[row] if labels.ndim == 1 else np.nan, f"{name}[{row}]")
    kind = type_of_target(labels)
    if labels.ndim == 2 and kind != "multilabel-indicator":
        raise ValueError(
            f"{name} has shape {labels.shape} and is {kind}: give one label a row, or 0/1 rows for "
            "a multi-label problem"
        )
    if labels.ndim == 2 and not np.isin(labels, (0, 1)).all():
        raise ValueError(
            f"{name} holds the values {np.unique(labels).tolist()}: a multi-label problem needs "
            f"0/1 rows, as in ({name} > 0).astype(int)"
        )
    if kind.startswith("continuous"):
        raise ValueError(f"Unknown label type: {kind}. {name} must hold classes, not measurements")
    if kind == "unknown":
        raise ValueError(f"Unknown label type: {name} has shape {labels.shape}: give one a row")
    return labels


def known_labels(
    y: Any, classes: Any, multilabel: bool | None = None, name: str = "y"
) -> np.ndarray:
    """Labels as in `as_labels`, all of them among `classes`; `multilabel` None is what `y` is.

    Raises
    ------
    ValueError
        If `y` holds a label that is not among them, such as the string "1" beside the class 1, or
        is multi-label where the classes are not, or the other way round.
    """
    labels, known = as_labels(y, name=name), np.asarray(classes).tolist()
    multilabel = labels.ndim == 2 if multilabel is None else multilabel
    if multilabel != (labels.ndim == 2) or (multilabel and labels.shape[1] != len(known)):
        wanted = f"0/1 rows of {len(known)} labels" if multilabel else "one label a row"
        raise ValueError(f"{name} has shape {labels.shape}, and fit saw {wanted}: give the same")
    unseen = [] if multilabel else sorted(set(labels.tolist()) - set(known), key=str)
    if unseen:
        raise ValueError(
            f"{name} holds labels that fit did not see: {unseen[:20]} (classes_ = {known[:20]}): "
            "give labels of the type that fit saw and leave other ones out, score the predictions "
            "with sklearn.metrics, or give a search over folds a scorer, as in scoring='f1_macro'"
        )
    return labels


def paired_labels(y_true: Any, y_pred: Any) -> tuple[list[Any], list[Any]]:
    """True and predicted labels as lists of one type; refuses strings beside numbers."""
    true, pred = as_labels(y_true, name="y_true"), as_labels(y_pred, name="y_pred")
    if len(true) and len(pred) and (true.dtype.kind == "U") != (pred.dtype.kind == "U"):
        raise TypeError(
            f"y_true holds labels such as {true.tolist()[0]!r} and y_pred {pred.tolist()[0]!r}: "
            "give both in the same type"
        )
    if true.shape[1:] != pred.shape[1:]:
        raise ValueError(f"y_true has shape {true.shape} and y_pred {pred.shape}: give the same")
    both = np.concatenate([true, pred]).tolist()
    return both[: len(true)], both[len(true) :]


def _table(y: Any, name: str) -> np.ndarray:
    """An array of labels of one type, or a table of numbers."""
    if sparse.issparse(y):
        return y.toarray()
    if hasattr(y, "__array__"):
        y = np.asarray(y)
    if not is_ordered(y) or getattr(y, "ndim", 1) == 0:
        raise TypeError(f"{name} is {shown(y)}: give a list or array with a label for each row")
    if isinstance(y, np.ndarray) and y.dtype.kind in "biufU":
        return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    rows = list(y)
    nested = [i for i, row in enumerate(rows) if is_ordered(row)]
    if len(nested) == len(rows) and all(len(row) == 1 for row in rows):
        rows, nested = [row[0] for row in rows], []
    if nested:
        try:
            table = np.array([list(row) for row in rows])
        except (ValueError, TypeError, OverflowError):  # rows of several lengths, or other values
            table = np.array([None])
        if table.dtype.kind not in "biuf":
            row = rows[nested[0]]
            raise ValueError(
                f"{name}[{nested[0]}] is {shown(row)}: give one label a row, or for a multi-label "
                f"problem 0/1 rows, as sklearn's MultiLabelBinarizer().fit_transform({name}) makes"
            )
        return table
    kinds = sorted({_check_label(value, f"{name}[{i}]") for i, value in enumerate(rows)})
    if len(kinds) > 1 and ("str" in kinds or isinstance(y, np.ndarray)):
        raise TypeError(f"{name} holds labels of several types ({', '.join(kinds)}): give one type")
    return np.array(rows, dtype=float if "float" in kinds else None)


def _check_label(value: Any, where: str) -> str:
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
