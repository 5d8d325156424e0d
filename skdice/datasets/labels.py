"""Labels of texts: a name, several names, or a column of 0 and 1 for each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdice.datasets.cells import parsed
from skdice.datasets.source import fault
from skdice.inputs.labels import PartLabels

_FLAGS = {"0": False, "1": True, "false": False, "true": True}


def is_empty(cell: Any) -> bool:
    """Return True if nobody gave a label: an empty cell, null of JSON, or NaN of pandas."""
    return not cell.strip() if isinstance(cell, str) else cell is None or cell != cell


def read_labels(
    path: Path, name: Any, cells: Iterable[tuple[Any, Any]], separator: str | None
) -> list[Any]:
    """The label of each row, or the list of its labels, of the cells of a column.

    A cell comes with its place in the file.
    """
    cells = [(place, parsed(cell)) for place, cell in cells]
    if str(name).lower() != "tag" and any(isinstance(value, list) for _, value in cells):
        lists = [_names(path, name, place, value) for place, value in cells]
        return [row[0] for row in lists] if all(len(row) == 1 for row in lists) else lists
    labels = [_label(path, name, place, value) for place, value in cells]
    if separator is None:
        _check_separator(path, labels)
    return [_split(label, separator) for label in labels] if separator else labels


def _split(label: str, separator: str) -> list[str]:
    return [part.strip() for part in label.split(separator) if part.strip()]


def _label(path: Path, name: Any, place: Any, value: Any) -> str:
    is_finite = isinstance(value, (int, float)) and abs(value) < math.inf
    label = str(value).strip()
    if not (isinstance(value, str) or is_finite) or re.match(r"https?://", label):
        raise refusal(path, place, name, value, "a label")
    # 1.0 is 1, from JSON as from CSV.
    return label.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", label) else label


def _names(path: Path, column: Any, place: Any, value: Any) -> list[str]:
    """The names of a list."""
    names = value if isinstance(value, list) else [None]
    are_numbers = {*map(type, names)} == {int}
    if are_numbers and len(names) > 1 and set(names) <= {0, 1}:
        problem = f"{value!r:.60} holds 0 and 1 for labels without names: write the names of "
        raise fault(path, place, problem + "those that hold, or a column for each label")
    if not are_numbers and not all(isinstance(name, str) and name.strip() for name in names):
        raise refusal(path, place, column, value, "a list of names")
    return [str(name).strip() for name in value]


def _check_separator(path: Path, labels: list[str]) -> None:
    """Refuse cells that look like several labels, of which other cells hold some alone."""
    whole = set(labels)
    for separator in ",;|#":
        several = [label for label in labels if separator in label]
        parts = {part.strip() for label in several for part in label.split(separator)}
        alone = whole - set(several)
        if several and all(parts) and parts & alone and len(parts | alone) <= len(whole):
            raise ValueError(
                f"{str(path)!r}: is {several[0]!r} one label, or several? Other cells hold a part "
                f"of it alone: give label_separator={separator!r}, or label_separator='' if each "
                "cell is one label"
            )


def refusal(path: Path, place: Any, name: Any, value: Any, wanted: str) -> ValueError:
    """The error about a cell that is no text or no label."""
    what = "missing" if value is None else f"{value!r:.60}"
    remedy = "mend the line, or name other columns with text_columns and label_column"
    if isinstance(value, (list, dict)):
        remedy = 'labels are names, or lists of names, ["a", "b"]'
        if "start" in str(value) or any(isinstance(each, list) for each in value):
            remedy = "texts with entities are read with task='entities'"
    return fault(path, place, f"{name!r} is {what}, not {wanted}: {remedy}")


# ---- columns of 0 and 1


def read_flags(
    path: Path, rows: Sequence[tuple[Any, Sequence[Any]]], columns: dict[int, str]
) -> list[list[str]]:
    """The names of the `columns`, from index to name, that hold 1 in each row.

    An empty cell is a label that is not known; rows in which none is known were left out before.
    """
    names: list[list[str]] = []
    for place, cells in rows:
        flags = {name: _flag(path, place, name, cells[i]) for i, name in columns.items()}
        here = [name for name, flag in flags.items() if flag]
        unknown = [name for name, flag in flags.items() if flag is None]
        names.append(PartLabels(here, unknown) if unknown else here)
    return names


def _flag(path: Path, place: Any, name: str, cell: Any) -> bool | None:
    if is_empty(cell):
        return None
    flag = str(cell).strip().lower().removesuffix(".0")
    if flag not in _FLAGS:
        problem = f"{name!r} is {cell!r:.60}, and a column of a label holds 0 or 1: "
        raise fault(path, place, problem + "check label_columns")
    return _FLAGS[flag]


class NamedRows(list[list[str]]):
    """Lists of names that know all columns, as a frame of 0 and 1 does.

    Attributes
    ----------
    columns : list of str
        Also of those that no row names.
    """

    def __init__(self, columns: Iterable[str], rows: Iterable[list[str]] = ()) -> None:
        super().__init__(rows)
        self.columns: list[str] = list(columns)

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
