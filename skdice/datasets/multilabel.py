"""Several labels a row of a table: lists of names, or a column of 0 and 1 for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdice._checks import KINDS, shown
from skdice.datasets.reading import fault
from skdice.inputs.labels import PartLabels
from skdice.inputs.rows import as_row_list

_FLAGS = {"0": False, "1": True, "false": False, "true": True}


def label_columns_of(one: Any, several: Any) -> list[tuple[str, Any]]:
    """The columns of labels that were asked for, each with the parameter that named it."""
    if one is not None and several is not None:
        raise ValueError("label_column and label_columns are both given: give one of them")
    if several is None:
        return [] if one is None else [("label_column", one)]
    columns = as_row_list("label_columns", several)
    kinds = KINDS["str"], KINDS["int"]
    for column in columns:
        if not any(kind.is_satisfied_by(column) for kind in kinds):
            problem = f"holds {shown(column)}, which is no name or index of a column"
            raise TypeError(f"label_columns={shown(several)} {problem}")
    if not columns or len({str(column) for column in columns}) < len(columns):
        raise ValueError(f"label_columns={shown(several)} must name columns, each once")
    return [("label_columns", column) for column in columns]


def is_empty(cell: Any) -> bool:
    """Return True if nobody gave a label: an empty cell, null of JSON, or NaN of pandas."""
    return not cell.strip() if isinstance(cell, str) else cell is None or cell != cell


def lists_of_names(path: Path, cells: Sequence[tuple[Any, Any]]) -> list[list[str]] | None:
    """The names in a column of lists; None if it holds other values.

    A cell comes with its place in the file.
    """
    if not any(isinstance(value, list) for _, value in cells):
        return None
    for place, value in cells:
        names = value if isinstance(value, list) else [None]
        numbers = value and all(type(name) is int for name in names)
        if numbers and all(name in (0, 1) for name in names) and len(names) > 1:
            problem = f"{value!r:.60} holds 0 and 1 for labels without names: write the names of "
            raise fault(path, place, problem + "those that hold, or a column for each label")
        if not numbers and not all(isinstance(n, str) and n.strip() for n in names):
            problem = f"{value!r:.60} is no list of names, as the other rows hold: give "
            spans = any(isinstance(name, (list, dict)) for name in names)
            problem += '["a", "b"], or [] for a row without labels'
            remedy = "; texts with entities are read with task='entities'" if spans else ""
            raise fault(path, place, problem + remedy)
    return [[str(name).strip() for name in value] for _, value in cells]


def names_of_columns(
    path: Path, rows: Sequence[tuple[str, Sequence[Any]]], columns: dict[int, str]
) -> list[list[str]]:
    """The names of the `columns`, from index to name, that hold 1 in each row.

    An empty cell is a label that is not known. Of one column it is a fault, since the row would
    tell nothing.
    """
    # A frame of one column holds classes, so a single label is read by its lists of names.
    names: list[list[str]] = NamedRows(columns.values()) if len(columns) > 1 else []
    for place, cells in rows:
        here, unknown = [], []
        for i, name in columns.items():
            flag = str(cells[i]).strip().lower().removesuffix(".0")
            if is_empty(cells[i]) and len(columns) > 1:
                unknown.append(name)
                continue
            if flag not in _FLAGS:
                problem = f"{name!r} is {cells[i]!r:.60}, and a column of a label holds 0 or 1: "
                raise fault(path, place, problem + "check label_columns")
            if _FLAGS[flag]:
                here.append(name)
        names.append(PartLabels(here, unknown) if unknown else here)
    return names


class NamedRows(list[list[str]]):
    """Lists of names that know all columns, as a frame of 0 and 1 does.

    Attributes
    ----------
    columns : list of str
        Also of those that no row names.
    """

    def __init__(self, columns: Iterable[str], rows: Iterable[list[str]] = ()) -> None:
        super().__init__(rows)
        self.columns = list(columns)

    def __getitem__(self, at: Any) -> Any:  # a slice knows the columns, too
        found = super().__getitem__(at)
        return NamedRows(self.columns, found) if isinstance(at, slice) else found

    def to_numpy(self) -> np.ndarray:
        """Rows of 0 and 1, and NaN for labels that are not known."""
        table = np.array([[name in row for name in self.columns] for row in self], dtype=float)
        table = table.reshape(len(self), len(self.columns))
        for i, row in enumerate(self):
            table[i, [self.columns.index(name) for name in getattr(row, "unknown", ())]] = np.nan
        return table


def split_cells(labels: list[str], separator: str | None) -> list[Any]:
    """Labels of cells, of which each may hold several, with a separator between them."""
    if not separator:
        return labels
    return [[part for each in label.split(separator) if (part := each.strip())] for label in labels]


def check_separator(path: Path, labels: list[str]) -> None:
    """Refuse cells that look like several labels, of which other cells hold some alone."""
    whole = set(labels)
    for separator in ",;|#":
        several = [label for label in labels if separator in label]
        rows = [[part.strip() for part in label.split(separator)] for label in several]
        parts = {part for row in rows for part in row}
        alone = whole - set(several)
        if several and all(parts) and parts & alone and len(parts | alone) <= len(whole):
            raise ValueError(
                f"{str(path)!r}: is {several[0]!r} one label, or several? Other cells hold a part "
                f"of it alone: give label_separator={separator!r}, or label_separator='' if each "
                "cell is one label"
            )
