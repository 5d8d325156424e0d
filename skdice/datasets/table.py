"""Rows of cells, of which some columns hold texts and labels: by their names, or as asked for."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skdice._checks import KINDS, shown
from skdice.datasets.multilabel import check_separator, is_empty, lists_of_names, split_cells
from skdice.datasets.reading import fault, suffix_of
from skdice.datasets.source import (
    ANSWERS,
    ID_NAMES,
    LABEL_NAMES,
    PAIR_NAMES,
    TEXT_NAMES,
    Source,
    parsed,
)


@dataclass(frozen=True)
class TableOptions:
    """How a table was read: the arguments by which `read_table` reads another one like it.

    Attributes
    ----------
    text_columns : list of int or str
        One, or two of a pair: names, or indices where no header names them.
    label_column : int, str or None
    label_columns : list of int or str, or None
    label_separator : str or None
    separator, header, quoting : str, bool, bool or None
        As they were given or found; None of JSON, which has none of these.
    encoding : str
    """

    text_columns: list[Any]
    label_column: int | str | None = None
    label_columns: list[Any] | None = None
    label_separator: str | None = None
    separator: str | None = None
    header: bool | None = None
    quoting: bool | None = None
    encoding: str = "utf-8"

    def given(self) -> dict[str, Any]:
        """The arguments by their names, without those that are None."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Table:
    """Rows of one width, each with its place; cells of JSON need not be strings."""

    path: Path
    names: list[str] | None
    rows: list[tuple[Any, list[Any]]]  # the place and its cells
    of_tool: tuple[str, ...] = ()  # columns in which an annotation tool wrote labels
    given: list[dict[str, Any]] | None = None  # the rows as JSON has them

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.rows[0][1])

    @property
    def columns(self) -> list[int]:
        """Columns that may hold a text or a label."""
        others = range(self.width)
        return [i for i in others if i != self.answers and not self.is_named(i, ID_NAMES)]

    @cached_property
    def answers(self) -> int | None:
        """The column of Prodigy's answers."""
        for i in range(self.width):
            values = self.values(i) if self.is_named(i, ("answer",)) else []
            known = all(value in (*ANSWERS, None, "") for value in values)
            if known and any(value in ANSWERS for value in values):
                return i
        return None

    def values(self, i: int) -> list[Any]:
        """The cells of a column."""
        return [cells[i] for _, cells in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """What each row holds by the names of its columns; nothing of lines of one text."""
        if self.given is not None:
            return self.given
        names: Any = self.names
        if names is None and suffix_of(self.path) in (".csv", ".tsv") and self.width > 1:
            names = [*map(str, range(self.width))]
        if names is None:
            return [{} for _ in self.rows]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{str(self.path)!r} has two columns {twice[0]!r}: rename one")
        return [dict(zip(names, cells, strict=True)) for _, cells in self.rows]

    def named(self, i: int) -> Any:
        """The name of a column, or its index in a file without a header."""
        return i if self.names is None else self.names[i]

    def is_named(self, i: int, names: Iterable[str]) -> bool:
        """Return True if a column has one of some names."""
        return self.names is not None and self.names[i].lower() in names

    def with_labels(self, source: Source, labels: list[int]) -> Table:
        """The table without rows that a person ignored, or to which nobody gave a label."""
        rows, answers = self.rows, self.answers

        def keep(what: str, fits: Callable[[list[Any]], bool]) -> None:
            nonlocal rows
            kept = [row for row in rows if fits(row[1])]
            source.skipped[what] += len(rows) - len(kept)
            rows = kept

        if answers is not None and answers not in labels:
            keep("whose answer is ignore", lambda cells: cells[answers] != "ignore")
        if len(labels) == 1:
            keep("whose label is empty", lambda cells: not is_empty(cells[labels[0]]))
        else:
            keep(
                "whose labels are all empty",
                lambda cells: not all(is_empty(cells[i]) for i in labels),
            )
        if not rows:
            left_out = source.left_out()
            raise ValueError(f"{str(self.path)!r} holds no labelled row; left out: {left_out}")
        return replace(self, rows=rows)

    def index(self, column: Any, what: str) -> int:
        """The index of a column that was asked for by name or index."""
        if isinstance(column, str) and self.names is not None and column in self.names:
            return self.names.index(column)
        if KINDS["int"][1](column) and -self.width <= column < self.width:
            return column % self.width
        if str(column) in (self.names or ()):  # a name that is a number, such as a year
            return (self.names or []).index(str(column))
        header = "no header" if self.names is None else f"the header {self.names}"
        problem = f"which has {self.width} columns and {header}"
        raise ValueError(f"{what}={shown(column)} is not in {str(self.path)!r}, {problem}")

    def find_label(self, columns: list[int], knows_texts: bool) -> int:
        """The column whose name says so, or the only one beside the texts."""
        if self.of_tool:
            named = columns = [self.index(name, "label_column") for name in self.of_tool]
        else:
            named = [i for i in columns if self.is_named(i, LABEL_NAMES)]
        if len(named) == 1 or (knows_texts and len(columns) == 1):
            return (named or columns)[0]
        remedy = "give label_column by index or name"
        if self.names is None:
            remedy = "give label_column by index with header=False, or header=True if the first "
            remedy += "line names the columns"
        flags = [i for i in columns if all(str(v).strip() in ("0", "1") for v in self.values(i))]
        if len(flags) > 1 and self.names is not None:
            remedy = f"for several labels a text, give label_columns={self.shown(flags)}; or, "
            remedy += "for one, label_column"
        problem = f"holds the label? It has {self.shown(columns)}: {remedy}"
        raise ValueError(f"which column of {str(self.path)!r} {problem}")

    def shown(self, columns: list[int]) -> list[str]:
        """Columns by name, or by index with their first value."""
        names = self.names or [f"{i}: {cell:.20}" for i, cell in enumerate(self.rows[0][1])]
        return [names[i] for i in columns]

    def find_texts(self, columns: list[int], n_texts: int | None = None) -> list[int]:
        """The columns whose names are those of texts, or all that are left, if few enough."""
        if self.of_tool:
            return [0]
        for pair in PAIR_NAMES if n_texts != 1 else ():
            named = [i for name in pair for i in columns if self.is_named(i, (name,))]
            if len(named) == 2:
                return named
        left = [i for i in columns if not self.is_named(i, LABEL_NAMES)]
        named = [i for i in left if self.is_named(i, TEXT_NAMES)]
        if len(named) == 1 and n_texts != 2:
            return named
        fit = len(left) == 1 or (n_texts == 2 and len(left) == 2)
        if not fit:
            found = f"{len(left)} columns that may be text {self.shown(left)}"
            problem = f"{found}, not {n_texts or 1}" if left else "no column that may be text"
            more = ", and which the label with label_column" if n_texts is None else ""
            remedy = f"say which hold the text with text_columns{more}"
            raise ValueError(f"{str(self.path)!r} has {problem}: {remedy}")
        return left

    def check_headless(self, labels: list[int]) -> None:
        """Refuse a file of which nothing says whether its first line names the columns.

        A label that comes again is no name.
        """
        first = [str(self.rows[0][1][i]).strip() for i in labels]
        flags = [cell in ("0", "1") for cell in first]
        again = first[0] in (str(cells[labels[0]]).strip() for _, cells in self.rows[1:])
        if all(flags) if len(labels) > 1 else again:
            return
        problem = f"does the first line, {shown(self.rows[0][1])}, name the columns? Give "
        raise fault(self.path, self.rows[0][0], problem + "header=True or header=False")

    def texts(self, columns: list[int]) -> list[Any]:
        """The text of each row, or its two texts."""
        for i in columns:
            for place, cells in self.rows:
                if not isinstance(cells[i], str):
                    raise self._refusal(place, i, cells[i], "a string")
                try:
                    cells[i].encode()
                except UnicodeEncodeError as error:
                    problem = "the text holds half of a surrogate pair: write it anew"
                    raise fault(self.path, place, problem) from error
        read = operator.itemgetter(*columns)  # a value of one column, a tuple of two
        return [read(cells) for _, cells in self.rows]

    def labels(self, i: int, separator: str | None) -> list[Any]:
        """The label of each row, or the list of its labels."""
        cells = [(place, parsed(row[i])) for place, row in self.rows]
        lists = None if self.is_named(i, ("tag",)) else lists_of_names(self.path, cells)
        if lists is not None:
            one_each = all(len(row) == 1 for row in lists)
            return [row[0] for row in lists] if one_each else lists
        labels = []
        for place, value in cells:
            is_finite = isinstance(value, (int, float)) and abs(value) < math.inf
            name = str(value).strip()
            if not (isinstance(value, str) or is_finite) or re.match(r"https?://", name):
                raise self._refusal(place, i, value, "a label")
            # 1.0 is 1, from JSON as from CSV.
            labels.append(name.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", name) else name)
        if separator is None:
            check_separator(self.path, labels)
        return split_cells(labels, separator)

    def _refusal(self, place: Any, i: int, value: Any, wanted: str) -> ValueError:
        what = "missing" if value is None else f"{value!r:.60}"
        remedy = "mend the line, or name other columns with text_columns and label_column"
        if isinstance(value, (list, dict)):
            remedy = 'labels are names, or lists of names, ["a", "b"]'
            if "start" in str(value) or any(isinstance(each, list) for each in value):
                remedy = "texts with entities are read with task='entities'"
        return fault(self.path, place, f"{self.named(i)!r} is {what}, not {wanted}: {remedy}")
