"""Several labels a row of a table: lists of names, or a column of 0 and 1 for each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skdice._checks import KINDS, as_row_list, shown
from skdice._warn import warn
from skdice.datasets.files import fault
from skdice.exceptions import SeveralLabelsWarning

# A list that pandas wrote to a cell and reads back as a string.
WRITTEN_LIST = re.compile(r"\[\s*([\'\"\[\d].*)?\]", re.DOTALL)
_FLAGS = {"0": False, "1": True, "false": False, "true": True}


def label_columns_of(one: Any, several: Any) -> list[tuple[str, Any]]:
    """The columns of labels that were asked for, each with the parameter that named it."""
    if one is not None and several is not None:
        raise ValueError("label_column and label_columns are both given: give one of them")
    if several is None:
        return [] if one is None else [("label_column", one)]
    columns = as_row_list("label_columns", several)
    is_column = KINDS["str"][1], KINDS["int"][1]
    for column in columns:
        if not any(fits(column) for fits in is_column):
            raise TypeError(
                f"label_columns={shown(several)} holds {shown(column)}, which is no name or "
                "index of a column"
            )
    if not columns or len({str(column) for column in columns}) < len(columns):
        raise ValueError(f"label_columns={shown(several)} must name columns, each once")
    return [("label_columns", column) for column in columns]


def lists_of_names(path: Path, cells: Sequence[tuple[str, Any]]) -> list[list[str]] | None:
    """The names in a column of lists, or of JSON's text of them; None if it holds other values.

    A cell comes with its place in the file.
    """
    rows = [_parsed(value) for _, value in cells]
    first = next((value for row in rows if isinstance(row, list) for value in row), "")
    if not any(isinstance(row, list) for row in rows) or not isinstance(first, str):
        return None
    for (place, value), row in zip(cells, rows, strict=True):
        if not isinstance(row, list) or not all(isinstance(n, str) and n.strip() for n in row):
            problem = f"{value!r:.60} is no list of names, as the other rows hold: give "
            raise fault(path, place, problem + '["a", "b"], or [] for a row without labels')
    return [[name.strip() for name in row] for row in rows]


def _parsed(value: Any) -> Any:
    """A list for the text of a JSON list."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def names_of_columns(
    path: Path, rows: Sequence[tuple[str, Sequence[Any]]], columns: dict[int, str]
) -> list[list[str]]:
    """The names of the `columns`, from index to name, that hold 1 in each row."""
    # A frame of one column holds classes, so a single label is read by its lists of names.
    names: list[list[str]] = NamedRows(columns.values()) if len(columns) > 1 else []
    for place, cells in rows:
        names.append([])
        for i, name in columns.items():
            flag = str(cells[i]).strip().lower().removesuffix(".0")
            if flag not in _FLAGS:
                problem = f"{name!r} is {cells[i]!r:.60}, and a column of a label holds 0 or 1: "
                raise fault(path, place, problem + "check label_columns")
            if _FLAGS[flag]:
                names[-1].append(name)
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

    def to_numpy(self) -> np.ndarray:
        """Rows of 0 and 1."""
        table = np.array([[name in row for name in self.columns] for row in self], dtype=int)
        return table.reshape(len(self), len(self.columns))


def split_cells(path: Path, labels: list[str], separator: str | None) -> list[Any]:
    """Labels of cells, of which some may hold several; see `read_table`."""
    if separator is None:
        separator = _separator_in(labels)
        if separator is None:
            return labels
        first = next(label for label in labels if separator in label)
        warn(
            f"{str(path)!r}: labels such as {first!r} are read as several, separated by "
            f"{separator!r}: say so by label_separator={separator!r}, or by "
            "label_separator='' if each cell is one label",
            SeveralLabelsWarning,
        )
    if not separator:
        return labels
    return [[part for each in label.split(separator) if (part := each.strip())] for label in labels]


def _separator_in(labels: list[str]) -> str | None:
    """Return what separates labels of a few cells that other cells hold alone."""
    whole = set(labels)
    for separator in ",;|#":
        several = {label for label in whole if separator in label}
        rows = [[part.strip() for part in label.split(separator)] for label in several]
        parts = {part for row in rows for part in row}
        alone = whole - several
        if several and all(parts) and parts & alone and len(parts | alone) <= len(whole):
            return separator
    return None
