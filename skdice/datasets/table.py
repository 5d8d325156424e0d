"""Rows of cells, of which some columns hold texts and labels: by their names, or as asked for."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skdice._checks import KINDS, shown
from skdice.datasets.answers import ANSWERS, are_answers
from skdice.datasets.cells import ID_NAMES, LABEL_NAMES, PAIR_NAMES, TEXT_NAMES
from skdice.datasets.labels import is_empty, refusal
from skdice.datasets.row import Note, left_out
from skdice.datasets.source import fault
from skdice.inputs.rows import as_row_list
from skdice.inputs.texts import is_text


@dataclass(frozen=True)
class Asked:
    """The columns that were asked for."""

    texts: list[Any]
    labels: list[Any]
    of_labels: str = "label_column"  # the parameter that named the labels
    separator: str | None = None  # between the labels of a cell

    @classmethod
    def by(
        cls,
        text_columns: Any = None,
        label_column: Any = None,
        label_columns: Any = None,
        label_separator: str | None = None,
    ) -> Asked:
        """The columns of these parameters."""
        if label_column is not None and label_columns is not None:
            raise ValueError("label_column and label_columns are both given: give one of them")
        texts = _listed("text_columns", text_columns)
        if len(texts) > 2:
            raise ValueError(f"text_columns={shown(text_columns)} names more than two columns")
        if label_columns is None:
            labels = _listed("label_column", label_column)
            return cls(texts, labels, separator=label_separator)
        labels = as_row_list("label_columns", label_columns)
        if not labels or len(set(map(str, labels))) < len(labels):
            raise ValueError(f"label_columns={shown(label_columns)} must name columns, each once")
        return cls(texts, labels, "label_columns")

    @property
    def all(self) -> list[Any]:
        """The columns of texts and of labels."""
        return [*self.texts, *self.labels]

    def header(self, header: bool | None) -> bool | None:
        """Whether the first line names the columns: it does if one is asked for by name."""
        named = any(isinstance(column, str) for column in self.all)
        return True if header is None and named else header


def _listed(name: str, columns: Any) -> list[Any]:
    """The columns of a parameter: one, several or none."""
    if columns is None:
        return []
    is_one = isinstance(columns, str) or not isinstance(columns, Iterable)
    return [columns] if is_one else as_row_list(name, columns)


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
            if any(value in ANSWERS for value in values) and are_answers(values):
                return i
        return None

    def values(self, i: int) -> list[Any]:
        """The cells of a column."""
        return [cells[i] for _, cells in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """What each row holds by the names of its columns; nothing of lines of one text."""
        if self.given is not None:
            return self.given
        if self.names is None and self.width == 1:
            return [{} for _ in self.rows]
        names = self.names or [*map(str, range(self.width))]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{str(self.path)!r} has two columns {twice[0]!r}: rename one")
        return [dict(zip(names, cells, strict=True)) for _, cells in self.rows]

    def named(self, i: int) -> Any:
        """The name of a column, or its index in a file without a header."""
        return i if self.names is None else self.names[i]

    def is_named(self, i: int, names: Iterable[str]) -> bool:
        """Return True if a column has one of some names."""
        return self.names is not None and self.names[i].lower() in names

    def index(self, column: Any, what: str) -> int:
        """The index of a column that was asked for by name or index."""
        if KINDS["int"][1](column) and -self.width <= column < self.width:
            return column % self.width
        if self.names is not None and isinstance(column, (str, int)) and str(column) in self.names:
            if self.names.count(str(column)) > 1:
                raise ValueError(f"{str(self.path)!r} has two columns {column!r}: rename one")
            return self.names.index(str(column))
        header = f"the header {self.names}"
        if self.names is None:
            header = "no header: give header=True if the first line names the columns"
        problem = f"which has {self.width} columns and {header}"
        raise ValueError(f"{what}={shown(column)} is not in {str(self.path)!r}, {problem}")

    def shown(self, columns: list[int]) -> list[str]:
        """Columns by name, or by index with their first value."""
        names = self.names or [f"{i}: {cell:.20}" for i, cell in enumerate(self.rows[0][1])]
        return [names[i] for i in columns]

    # ---- which columns hold what

    def find_label(self, columns: list[int], knows_texts: bool) -> int:
        """The column whose name says so, or the only one beside the texts."""
        if self.of_tool:
            named = columns = [self.index(name, "label_column") for name in self.of_tool]
        else:
            named = [i for i in columns if self.is_named(i, LABEL_NAMES)]
        if len(named) == 1 or (knows_texts and len(columns) == 1):
            return (named or columns)[0]
        problem = f"holds the label? It has {self.shown(columns)}: {self._remedy(columns)}"
        raise ValueError(f"which column of {str(self.path)!r} {problem}")

    def _remedy(self, columns: list[int]) -> str:
        """How to say which column holds the label."""
        if self.names is None:
            remedy = "give label_column by index with header=False, or header=True if the first "
            return remedy + "line names the columns"
        flags = [i for i in columns if all(str(v).strip() in ("0", "1") for v in self.values(i))]
        remedy = f"; for several labels a text, give label_columns={self.shown(flags)}"
        return "give label_column by index or name" + remedy * (len(flags) > 1)

    def find_texts(self, columns: list[int], n_texts: int | None = None) -> list[int]:
        """The columns whose names are those of texts, or all that are left, if few enough."""
        if self.of_tool:
            return [0]
        if n_texts != 1 and (pair := self._named_pair(columns)):
            return pair
        left = [i for i in columns if not self.is_named(i, LABEL_NAMES)]
        named = [i for i in left if self.is_named(i, TEXT_NAMES)]
        if len(named) == 1 and n_texts != 2:
            return named
        if len(left) == 1 or len(left) == n_texts:
            return left
        problem = f"has {len(left)} columns that may be text {self.shown(left)}, not {n_texts or 1}"
        remedy = "say which hold the text with text_columns, and which the label with label_column"
        raise ValueError(f"{str(self.path)!r} {problem}: {remedy}")

    def _named_pair(self, columns: list[int]) -> list[int] | None:
        """The columns with the two names of a pair."""
        pairs = ([i for name in pair for i in columns if self.is_named(i, (name,))]
                 for pair in PAIR_NAMES)  # fmt: skip
        return next((pair for pair in pairs if len(pair) == 2), None)

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

    # ---- what they hold

    def labelled(self, labels: list[int]) -> tuple[Table, list[Note]]:
        """The table without rows that a person ignored, or to which nobody gave a label."""
        at = self.answers
        answered = self.rows
        if at is not None and at not in labels:
            answered = [row for row in self.rows if row[1][at] != "ignore"]
        kept = [row for row in answered if not all(is_empty(row[1][i]) for i in labels)]
        what = "whose label is empty" if len(labels) == 1 else "whose labels are all empty"
        notes = [Note("whose answer is ignore", len(self.rows) - len(answered))]
        notes.append(Note(what, len(answered) - len(kept)))
        if not kept:
            problem = f"holds no labelled row; left out: {left_out(notes)}"
            raise ValueError(f"{str(self.path)!r} {problem}")
        return replace(self, rows=kept), notes

    def texts(self, columns: list[int]) -> list[Any]:
        """The text of each row, or its two texts."""
        for i in columns:
            for place, cells in self.rows:
                if not isinstance(cells[i], str):
                    raise refusal(self.path, place, self.named(i), cells[i], "a string")
                if not is_text(cells[i]):
                    problem = "the text holds half of a surrogate pair: write it anew"
                    raise fault(self.path, place, problem)
        read = operator.itemgetter(*columns)  # a value of one column, a tuple of two
        return [read(cells) for _, cells in self.rows]
