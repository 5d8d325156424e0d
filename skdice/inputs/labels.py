"""Labels in any container that users have, checked in one way for estimators and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from itertools import chain
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from skdice._checks import check_lengths, shown
from skdice.inputs._label_forms import UNKNOWN as UNKNOWN
from skdice.inputs._label_forms import (
    check_name,
    check_not_written,
    check_single,
    column_names,
    label_array,
    rows_of_names,
    table_of_names,
    zero_one_rows,
)
from skdice.inputs.rows import check_given, is_missing, is_ordered, plain_values


def first(labels: list[Any]) -> str:
    """The first 20 labels in brackets, and how many more there are."""
    more = f" and {len(labels) - 20} more" if len(labels) > 20 else ""
    return f"{labels[:20]}{more}"


def refuse_new(labels: list[Any], known: list[Any]) -> None:
    """Refuse labels for which a fitted model has no output."""
    if new := [label for label in labels if label not in known]:
        raise ValueError(
            f"the labels {first(new)} are new to the fitted model, which knows {first(known)}: "
            "name all labels in the first partial_fit(classes=...), or fit a new model. It may "
            "start from the encoder of this one: save_pretrained(folder), then backbone=folder"
        )


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
        if self.given == "table" and len(names) != len(self.classes):
            raise ValueError(
                f"classes={shown(more)} holds {len(names)} names and y has {len(self.classes)} "
                "columns: give a name for each"
            )
        if self.given != "table" or isinstance(names[0], str):
            for label in names:
                check_name(label, "classes holds the label", "str(label)")
        if self.given == "table":
            return self._replace(classes=np.array(names))
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
        self.unknown: set[str] = set(unknown)

    def __repr__(self) -> str:
        return f"PartLabels({[*self]}, unknown={sorted(self.unknown)})"


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
    columns = column_names(y, name)
    y = plain_values(y, name)
    if (rows := rows_of_names(y)) is not None:
        table, names = table_of_names(rows, name, missing)
        labels = Labels(table, np.array(names, dtype=str), "lists")
        _check_n_rows(labels.values, n_rows, name)
        return labels
    values = label_array(y, name, missing)
    _check_n_rows(values, n_rows, name)
    check_not_written(values, name)
    if values.ndim == 2 and values.size:
        table = zero_one_rows(values, columns, name, missing)
        if columns is None:
            return Labels(table, np.arange(table.shape[1]), "table")
        return Labels(table, np.array(columns), "columns")
    check_single(values, name)
    return Labels(values, np.unique(values), "labels")


def _check_n_rows(values: np.ndarray, n_rows: int | None, name: str) -> None:
    if n_rows is not None:
        check_lengths(X=range(n_rows), **{name: values})


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
    labels = _of_same_kind(y, classes, multilabel, name, missing)
    if labels.multilabel:
        return labels.among(classes, name)
    if unseen := _unseen(labels, classes):
        raise ValueError(
            f"{name} holds labels that fit did not see: {first(unseen)} (classes_ = "
            f"{first(np.asarray(classes).tolist())}): give labels of the type that fit saw, or "
            "leave these rows out"
        )
    return labels.values


def labels_to_score(y: Any, classes: Any, multilabel: bool | None = None) -> Labels:
    """Labels as in `known_labels`, and others of their type, which no prediction can find.

    Their `classes` are those of the model and, behind them, the others; 0/1 rows have a column for
    each.

    Examples
    --------
    >>> from skdice.inputs.labels import labels_to_score
    >>> labels = labels_to_score([["toxic"], ["spite"]], ["threat", "toxic"], True)
    >>> labels.classes.tolist(), labels.values.tolist()
    (['threat', 'toxic', 'spite'], [[0, 1, 0], [0, 0, 1]])
    """
    labels, known = _of_same_kind(y, classes, multilabel, "y", True), np.asarray(classes)
    unseen = [] if labels.given == "table" else _unseen(labels, known)
    if unseen and isinstance(unseen[0], str) != isinstance(known.tolist()[0], str):
        raise ValueError(
            f"y holds labels of a type that fit did not see: {first(unseen)} (classes_ = "
            f"{first(known.tolist())}): give labels of the type that fit saw"
        )
    every = np.append(known, np.array(unseen, dtype=labels.classes.dtype)) if unseen else known
    values = labels.among(every) if labels.multilabel else labels.values
    return labels._replace(values=values, classes=every)


def _unseen(labels: Labels, classes: Any) -> list[Any]:
    """The labels that are not among `classes`."""
    return sorted(set(labels.classes.tolist()) - set(np.asarray(classes).tolist()), key=str)


def _of_same_kind(
    y: Any, classes: Any, multilabel: bool | None, name: str, missing: bool
) -> Labels:
    """Labels, one a row or several as `multilabel` says; None is what `y` is."""
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
    return labels


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
    return _is_table(rows)


def _is_table(rows: list[Any]) -> bool:
    """Return True for rows of one length, two or more, of 0, 1 and what is not known."""
    widths = {len(row) if is_ordered(row) else 0 for row in rows}
    if len(widths) != 1 or max(widths) < 2:
        return False
    known = [value for value in chain.from_iterable(rows) if not is_missing(value)]
    return bool(known) and all(isinstance(value, Real) and value in (0, 1) for value in known)


def holds_tags(y: Any) -> bool:
    """Tell if the rows of `y` are lists of tags, and not labels, one or several in 0/1 rows."""
    if is_indicator(y):
        return False
    rows = plain_values(y, "y")
    if not is_ordered(rows) or not len(rows):
        return False
    first = next(iter(rows))
    return isinstance(first, (list, tuple, Mapping, Set)) or np.ndim(first) == 1


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
