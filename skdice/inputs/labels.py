"""Labels in any container that users have, checked in one way for estimators and metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Set
from numbers import Complex, Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import type_of_target

from skdice._checks import check_lengths, shown
from skdice.inputs.rows import check_given, is_missing, is_ordered, plain_values

_KINDS: dict[str, Any] = {"bool": (bool, np.bool_), "int": Integral, "float": Real, "str": str}

UNKNOWN = -100  # of one of several labels, where the user gave NaN or None; losses ignore it

_WRITTEN = re.compile(r"\s*\[\s*([\'\"\[\d].*)?\]\s*", re.DOTALL)  # a list in a string


def first(labels: list[Any]) -> str:
    """The first 20 labels in brackets, and how many more there are."""
    more = f" and {len(labels) - 20} more" if len(labels) > 20 else ""
    return f"{labels[:20]}{more}"


class Labels(NamedTuple):
    """Labels in one form, whatever the user gave.

    Attributes
    ----------
    values : ndarray of shape (n,) or of int, shape (n, n_labels)
        One label a row, or 0 and 1 for each of several labels, and `UNKNOWN` where it is missing.
    classes : ndarray
        The sorted labels that occur, or the names of the columns.
    given : {"labels", "table", "columns", "lists"}
        One label a row; 0/1 rows without names; with names, as in a frame; lists of names.
    """

    values: np.ndarray
    classes: np.ndarray
    given: Literal["labels", "table", "columns", "lists"]

    @property
    def multilabel(self) -> bool:
        """True if a row may have several labels."""
        return self.given != "labels"

    def take(self, rows: np.ndarray) -> Labels:
        """Some rows by position; one label a row that none of them has is no class."""
        values = self.values[rows]
        return Labels(values, self.classes if self.multilabel else np.unique(values), self.given)

    def joined(self, more: Any) -> Labels:
        """The same with all labels that will ever be seen, as `partial_fit` is told them."""
        if not is_ordered(more):
            raise TypeError(f"classes={shown(more)} must be a list of labels")
        if self.given == "labels":
            every = read_labels([*self.classes.tolist(), *more], name="classes")
            return self._replace(classes=in_type_of(self.classes, every.classes))
        names = list(more)
        if self.given == "table":
            if len(names) != len(self.classes):
                raise ValueError(
                    f"classes={shown(more)} holds {len(names)} names and y has {len(self.classes)} "
                    "columns: give a name for each"
                )
            for label in names if isinstance(names[0], str) else ():
                _check_name(label, "classes holds the label", "str(label)")
            return self._replace(classes=np.array(names))
        for label in names:
            _check_name(label, "classes holds the label", "str(label)")
        names = [*self.classes.tolist(), *(n for n in names if n not in self.classes)]
        names = sorted(names) if self.given == "lists" else names
        values = self._replace(given="lists").among(names)  # new columns are 0
        return self._replace(values=values, classes=np.array(names))

    def among(self, classes: Any, name: str = "y") -> np.ndarray:
        """0/1 rows with a column for each of `classes`; refuses other names."""
        known = np.asarray(classes).tolist()
        if self.given == "table":
            if self.values.shape[1] != len(known):
                raise ValueError(
                    f"{name} has shape {self.values.shape}, and fit saw 0/1 rows of {len(known)} "
                    f"labels {known[:20]}: give a column for each"
                )
            return self.values
        names = self.classes.tolist()
        if unseen := sorted(set(names) - set(known), key=str):
            raise ValueError(
                f"{name} names labels that fit did not see: {first(unseen)} (classes_ = "
                f"{first(known)}): leave them out, or fit with a frame of 0 and 1 that has a "
                "column for each"
            )
        lacking = [label for label in known if label not in names]
        if self.given == "columns" and lacking:
            raise ValueError(
                f"{name} has no columns {lacking[:20]}: give a column for each of {known[:20]}"
            )
        rows = np.zeros((len(self.values), len(known)), dtype=int)
        rows[:, [known.index(label) for label in names]] = self.values
        return rows


class PartLabels(list[str]):
    """The names of the labels of a row, of which some are not known.

    Attributes
    ----------
    unknown : set of str
        The names of labels of which it is not known whether the row has them.
    """

    def __init__(self, names: Iterable[str], unknown: Iterable[str]) -> None:
        super().__init__(names)
        self.unknown = set(unknown)


def places_of(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among `classes`, which holds them all in any order.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.inputs.labels import places_of
    >>> places_of(np.array(["b", "c"]), np.array(["c", "a", "b"])).tolist()
    [2, 0]
    """
    order = np.argsort(classes)
    places: np.ndarray = order[np.searchsorted(classes, labels, sorter=order)]
    return places


def read_labels(
    y: Any, n_rows: int | None = None, name: str = "y", missing: bool = False
) -> Labels:
    """Labels in any container, checked.

    Parameters
    ----------
    y : labels of shape (n,); 0/1 rows of shape (n, n_labels), dense or sparse; a frame of such \
columns; or a list, tuple or set of names for each row
    n_rows : int or None, default=None
        How many there must be.
    name : str, default="y"
        Of the parameter, for messages.
    missing : bool, default=False
        Whether 0/1 rows may hold NaN or None for a label that is not known.

    Returns
    -------
    Labels

    Raises
    ------
    TypeError, ValueError
        For another form; the message names the row and the way out.

    Examples
    --------
    >>> from skdice.inputs.labels import read_labels
    >>> labels = read_labels([["toxic", "threat"], [], ["toxic"]])
    >>> labels.classes.tolist(), labels.values.tolist()
    (['threat', 'toxic'], [[1, 1], [0, 0], [0, 1]])
    """
    labels = _read(y, n_rows, name, missing)
    if not labels.values.size and len(labels.values):
        raise ValueError(f"{name} names no label in any row: at least one is needed")
    return labels


def _read(y: Any, n_rows: int | None, name: str, missing: bool) -> Labels:
    """The same, also if no row has a label."""
    check_given(y, "labels")
    columns = _column_names(y, name)
    y = plain_values(y, name)
    lists = _lists_of_names(y, name, missing)
    values = _table(y, name, missing) if lists is None else np.empty(len(lists))
    if n_rows is not None:
        check_lengths(X=range(n_rows), **{name: values})
    if values.dtype.kind == "U" and values.size and all(map(_WRITTEN.fullmatch, values.tolist())):
        raise ValueError(
            f"{name}[0] is {values[0].item()!r}, a list that was written as a string, as pandas "
            "reads it back from a CSV file: make it one by ast.literal_eval, as in "
            f"[literal_eval(row) for row in {name}]"
        )
    if lists is not None:
        unknown_of = [getattr(row, "unknown", ()) for row in y]
        names = sorted(set().union(*lists, *unknown_of))
        held = [[label in row for label in names] for row in lists]
        table = np.array(held, dtype=int).reshape(len(held), len(names))
        for i, unknown_names in enumerate(unknown_of):
            table[i, [names.index(label) for label in unknown_names]] = UNKNOWN
        return Labels(table, np.array(names, dtype=str), "lists")
    if values.ndim == 2 and values.size:
        unknown = ((values != values) | (values == UNKNOWN)) & missing
        _check_indicator(np.where(unknown, 0, values), columns, name)
        if len(empty := np.flatnonzero(unknown.all(axis=1))):
            raise ValueError(f"{name}[{empty[0]}] has no known label: leave out such rows")
        values = np.where(unknown, UNKNOWN, values).astype(int)
        if columns is None:
            return Labels(values, np.arange(values.shape[1]), "table")
        return Labels(values, np.array(columns), "columns")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        _check_label(values[row], f"{name}[{row}]")
    kind = type_of_target(values)
    if kind.startswith("continuous"):
        raise ValueError(f"Unknown label type: {kind}. {name} must hold classes, not measurements")
    if kind == "unknown" or values.ndim != 1:
        raise ValueError(f"Unknown label type: {name} has shape {values.shape}: give one a row")
    return Labels(values, np.unique(values), "labels")


def as_labels(
    y: Any, n_rows: int | None = None, name: str = "y", missing: bool = False
) -> np.ndarray:
    """Labels of shape (n,) in their own type, or 0/1 rows of shape (n, n_labels).

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.inputs.labels import as_labels
    >>> as_labels(np.array([0, 1], dtype=object))
    array([0, 1])
    """
    return read_labels(y, n_rows, name, missing).values


def known_labels(
    y: Any,
    classes: Any,
    multilabel: bool | None = None,
    name: str = "y",
    missing: bool = False,
) -> np.ndarray:
    """Labels as in `as_labels`, all of them among `classes`; `multilabel` None is what `y` is.

    0/1 rows have a column for each of `classes`, in their order.

    Raises
    ------
    ValueError
        If `y` holds a label that is not among them, such as the string "1" beside the class 1, or
        is multi-label where the classes are not, or the other way round.
    """
    labels, known = _read(y, None, name, missing), np.asarray(classes).tolist()
    if multilabel is None:
        multilabel = labels.multilabel
    if multilabel and len(known) == 1 and set(labels.classes.tolist()) <= {0, 1}:
        labels = Labels(labels.values.reshape(-1, 1).astype(int), labels.classes, "table")
    if multilabel != labels.multilabel:
        wanted = "one label a row"
        if multilabel:
            wanted = f"0/1 rows of {len(known)} labels, or lists of their names"
        what = {"lists": "holds lists of names"}.get(labels.given)
        what = what or f"has shape {labels.values.shape}"
        raise ValueError(f"{name} {what}, and fit saw {wanted}: give the same")
    if multilabel:
        return labels.among(known, name)
    unseen = sorted(set(labels.classes.tolist()) - set(known), key=str)
    if unseen:
        raise ValueError(
            f"{name} holds labels that fit did not see: {first(unseen)} (classes_ = "
            f"{first(known)}): give labels of the type that fit saw, leave these rows out, or "
            "score predictions with sklearn.metrics (in a search, with scoring='f1_macro')"
        )
    return labels.values


def in_type_of(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whole numbers in the type of those that are known, such as int8, if it holds them."""
    if known.dtype.kind not in "iu" or labels.dtype.kind not in "iu":
        return labels
    narrow = labels.astype(known.dtype)
    return narrow if np.array_equal(narrow, labels) else labels


def is_indicator(y: Any) -> bool:
    """Return True if `y` is a table of 0 and 1 with two columns or more, or holds sets of names."""
    rows = plain_values(y, "y")
    if sparse.issparse(rows) or (isinstance(rows, np.ndarray) and rows.ndim > 1):
        return bool(rows.ndim == 2 and rows.shape[1] > 1)
    if not is_ordered(rows):
        return False
    rows = list(rows)
    if rows and all(isinstance(row, Set) for row in rows):
        return True
    widths = {len(row) if is_ordered(row) else 0 for row in rows}
    if len(widths) != 1 or max(widths) < 2:
        return False
    return all(isinstance(value, Real) and value in (0, 1) for row in rows for value in row)


def label_table(probabilities: Any) -> Any:
    """Probabilities of labels of shape (n, n_labels), also from a table (n, 2) for each label.

    A random forest gives such a list of tables.
    """
    if not isinstance(probabilities, list):
        return probabilities
    return np.column_stack([of_label[:, 1] for of_label in probabilities])


def single_labels(y: Any) -> np.ndarray:
    """One label a row: of several the rarest, as in `rarest_labels`."""
    labels = read_labels(y, missing=True)
    if labels.multilabel:
        return rarest_labels(labels.values, labels.classes)
    return labels.values


def rarest_labels(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """One label for each of the 0/1 rows: the rarest that it has; "" (or -1) where it has none.

    So what draws or splits by one label a row does it by the rare ones of several.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.inputs.labels import rarest_labels
    >>> rarest_labels(np.array([[1, 1], [1, 0], [0, 0]]), np.array(["toxic", "threat"])).tolist()
    ['threat', 'toxic', '']
    """
    held = values == 1
    order = np.argsort(held.sum(axis=0), kind="stable")
    first = held[:, order].argmax(axis=1)
    none = "" if classes.dtype.kind == "U" else -1
    return np.where(held.any(axis=1), classes[order][first], none)


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


def _table(y: Any, name: str, missing: bool) -> np.ndarray:
    """An array of labels of one type, or a table of numbers."""
    if sparse.issparse(y):
        y = y.toarray()
    if hasattr(y, "__array__"):
        y = np.asarray(y)
    if not is_ordered(y):
        raise TypeError(f"{name} is {shown(y)}: give a list or array with a label for each row")
    if isinstance(y, np.ndarray) and y.dtype.kind in "biufU":
        if y.ndim > 1 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim > 1 and y.dtype.kind == "U":
            raise ValueError(f"{name} is a table of strings: for names of labels, {name}.tolist()")
        return y
    rows = list(y)
    nested = [i for i, row in enumerate(rows) if is_ordered(row)]
    if len(nested) == len(rows) and all(len(row) == 1 for row in rows):
        rows, nested = [row[0] for row in rows], []
    if nested:
        row = rows[nested[0]]
        try:
            table = np.array(
                [[np.nan if missing and is_missing(v) else v for v in row] for row in rows]
            )
        except (ValueError, TypeError, OverflowError):  # rows of several lengths, or other values
            table = np.array([None])
        if table.dtype.kind not in "biuf":
            for i in nested:
                for j, value in enumerate(rows[i]):
                    if is_missing(value):
                        _check_label(value, f"{name}[{i}][{j}]")
            raise ValueError(
                f"{name}[{nested[0]}] is {shown(row)}: give one label a row, or for a multi-label "
                "problem a list of names (strings) a row, or 0/1 rows of numbers, as sklearn's "
                f"MultiLabelBinarizer().fit_transform({name}) makes"
            )
        return table
    kinds = sorted({_check_label(value, f"{name}[{i}]") for i, value in enumerate(rows)})
    if len(kinds) > 1 and ("str" in kinds or isinstance(y, np.ndarray)):
        raise TypeError(f"{name} holds labels of several types ({', '.join(kinds)}): give one type")
    return np.array(rows, dtype=float if "float" in kinds else None)


def _column_names(y: Any, name: str) -> list[str] | None:
    """The names of a frame's columns; None without names, and for one column."""
    columns = list(getattr(y, "columns", [])) if hasattr(y, "to_numpy") else []
    if len(columns) < 2 or columns == list(range(len(columns))):
        return None
    for i, column in enumerate(columns):
        where = f"column {i} of {name}"
        _check_name(column, f"{where} has the name", f"{name}.columns = {name}.columns.astype(str)")
        if column in columns[:i]:
            raise ValueError(f"{where} has the name {column!r} of another: give each its own")
    return columns


def _lists_of_names(y: Any, name: str, missing: bool) -> list[set[str]] | None:
    """The names in each row, if `y` holds lists or sets of them; None if it has another form."""
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]  # a frame of one column
    if not is_ordered(y) or (isinstance(y, np.ndarray) and (y.ndim != 1 or y.dtype != object)):
        return None
    rows = list(y)
    nested = [is_ordered(row) or isinstance(row, Set) for row in rows]
    if not any(nested):
        return None
    members = (value for row, has in zip(rows, nested, strict=True) if has for value in row)
    if not isinstance(next(members, ""), str) and not any(isinstance(row, Set) for row in rows):
        return None
    for i, row in enumerate(rows):
        where = f"{name}[{i}]"
        if is_missing(row):
            raise ValueError(f"{where} is missing (NaN or None): give [] for a row without labels")
        if not nested[i]:
            raise TypeError(
                f"{where} is {shown(row)}, and other rows are lists of names: give a list for each "
                "row, [] for one without labels"
            )
        if not missing and (unknown := sorted(getattr(row, "unknown", ()))):
            _check_label(None, f"the label {unknown[0]!r} of {where}")
        for value in row:
            _check_name(value, f"{where} holds the label", "str(label)")
    return [set(map(str, row)) for row in rows]


def _check_name(value: Any, where: str, remedy: str) -> None:
    """Refuse a name of a label that is no string, or an empty one."""
    if not isinstance(value, str):
        raise TypeError(f"{where} {shown(value)}: names of labels are strings, as in {remedy}")
    if not value.strip() or "\x00" in value:
        raise ValueError(f"{where} {value!r}: a name must not be empty or hold a null character")


def _check_indicator(table: np.ndarray, columns: list[str] | None, name: str) -> None:
    """Refuse a table that holds other numbers than 0 and 1."""
    wrong = np.argwhere(~np.isin(table, (0, 1)))
    if not len(wrong):
        return
    row, column = wrong[0].tolist()
    value = table[row, column].item()
    where = f"{name}[{row}][{column if columns is None else repr(columns[column])}]"
    if value != value:
        _check_label(value, where)
    threshold = 0.5 if ((table >= 0) & (table <= 1)).all() else 0
    raise ValueError(
        f"{where} is {value!r}: a multi-label problem needs 0/1 rows, as in ({name} > {threshold})"
        ".astype(int), or a list of names a row"
    )


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
