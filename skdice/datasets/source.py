"""A file, read and parsed once, and its values; every fault names the file and the place."""

from __future__ import annotations

import ast
import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from skdice._checks import counted, shown
from skdice._warn import warn
from skdice.datasets.cells import rows_of, separator_of
from skdice.datasets.reading import (
    fault,
    first_line,
    is_record,
    iter_split,
    json_values,
    pandas_values,
    read_data,
    read_text,
    suffix_of,
)
from skdice.exceptions import SkippedRowsWarning

Placed = tuple[Any, Any]  # a value with its place in the file: a line's number, or a name
ANSWERS = ("accept", "reject", "ignore")  # of Prodigy
LABEL_NAMES = (
    *("label", "target", "class", "y", "tag", "labels"),
    *("gold_label", "is_duplicate", "quality"),  # of SNLI's, Quora's and Microsoft's pairs
)
# Two columns of which both are there are a pair.
PAIR_NAMES = (
    *(("sentence1", "sentence2"), ("question1", "question2"), ("premise", "hypothesis")),
    *(("text_a", "text_b"), ("text1", "text2"), ("#1 string", "#2 string")),
)
TEXT_NAMES = (
    *("text", "sentence", "review", "content", "message", "headline", "title", "question"),
    *("tweet", "comment", "comment_text", "body", "utterance"),
)
ID_NAMES = ("id", "idx", "index", "guid", "uid", "")  # pandas gives its index no name

# Options that only files of one kind have, and the task that reads such files.
OF_LABELS = {"label_column", "label_columns", "label_separator"}
_OF_TABLES = OF_LABELS | {"text_columns", "header", "quoting"}
_OF_TAGS = {"token_column", "tag_column", "scheme", "comment"}


@dataclass
class Source:
    """A file, or its values."""

    path: Path
    encoding: str = "utf-8"
    text_column: str | None = None
    labelled: bool = True  # False reads what is to be predicted
    layer: str | None = None  # of WebAnno
    feature: str | None = None
    of_labels: bool = False  # read labels of whole texts, of a tool that writes them, too
    separator: str | None = None  # of the cells of a table
    quoting: bool | None = None
    header: bool | None = None
    first: int = 0  # lines that stand before it in a stream
    skipped: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)  # what else a user should know
    # What a reader finds beside the rows.
    columns: dict[str, Any] | None = None
    table_options: Any = None  # `TableOptions` of a table
    queries: dict[str, str] | None = None

    def name_columns(self, columns: Iterable[Any]) -> None:
        """Take the first line for a header if one of the columns is asked for by name."""
        if self.header is None and any(isinstance(column, str) for column in columns):
            self.header = True

    @cached_property
    def data(self) -> bytes:
        """The bytes of a file, which go when they are decoded."""
        return read_data(self.path)

    @cached_property
    def text(self) -> str:
        """All of a text file, with line ends of one character."""
        data = self.data
        del self.data
        text = read_text(self.path, self.encoding, data)
        if not text or text.isspace():
            raise ValueError(f"{str(self.path)!r} is empty: give a file with at least one example")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def head(self) -> list[str]:
        """The first lines of a file, from which its form is told."""
        return list(islice(iter_split(self.text), 2000))

    def iter_lines(self) -> Iterator[str]:
        """The lines of a file, one after the other."""
        return iter_split(self.text)

    @cached_property
    def frame(self) -> list[Placed] | None:
        """The rows of a file that pandas reads: Parquet, Arrow or a spreadsheet."""
        if "text" in vars(self) or not self.path.is_file():
            return None
        return pandas_values(self.path, self.data)

    @cached_property
    def is_json(self) -> bool:
        """True if there are JSON values, or what is read as such."""
        if "values" in vars(self):  # of a data set
            return True
        if self.path.is_dir():
            return False
        if self.frame is not None or suffix_of(self.path) in (".jsonl", ".json"):
            return True
        return is_record(first_line(self.head))

    def takes_json(self) -> None:
        """Read a file as JSON whatever its name, if it begins so."""
        may_be = not self.path.is_dir() and suffix_of(self.path) in ("", ".txt")
        if may_be and self.text.lstrip()[:1] in "[{":
            self.is_json = True

    @cached_property
    def values(self) -> list[Placed]:
        """The values of a JSON file, or the rows of a table, and their places."""
        if self.frame is not None:
            return self.frame
        if not self.is_json:
            names, rows = self.table
            if names is None:
                return []
            return [(f"line {place}", _record(names, cells)) for place, cells in rows]
        values = json_values(self.path, self.text)
        if len(values) == 1 and isinstance(values[0][1], dict):
            data = values[0][1].get("data")
            if isinstance(data, list) and data and all(map(_is_plain, data)):
                return [(f"record {i} of 'data'", record) for i, record in enumerate(data, 1)]
        return values

    def found_separator(self) -> str:
        """The separator of cells that was given, or that the first line has."""
        return self.separator or separator_of(self.path, self.head)

    @cached_property
    def table(self) -> tuple[list[str] | None, list[tuple[Any, list[Any]]]]:
        """The names of the columns of separated values, if they are named, and the rows."""
        self.separator = self.found_separator()
        rows = rows_of(self.path, self.iter_lines(), self.separator, self.quoting)
        header = self.header
        if header is None:
            # The first of plain lines is a text.
            plain = len(rows[0][1]) == 1 and suffix_of(self.path) not in (".csv", ".tsv")
            header = not plain and names_columns([cells for _, cells in rows[:1000]])
        if not header:
            return None, rows
        if not rows[1:]:
            raise ValueError(f"{str(self.path)!r} holds a header only: give a file with examples")
        return [cell.strip() for cell in rows[0][1]], rows[1:]

    @cached_property
    def holds_structures(self) -> bool:
        """True if cells of a table with a header hold lists or objects, as JSON or Python's."""
        if self.is_json or self.path.is_dir():
            return False
        if "[" not in self.text and "{" not in self.text:
            return False
        names, rows = self.table
        return names is not None and any(
            isinstance(parsed(cell), (list, dict)) for _, cells in rows[:1000] for cell in cells
        )

    def records(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The JSON objects of a file, but what a person rejected or ignored in Prodigy."""
        for place, value in self.kept():
            if not isinstance(value, dict):
                problem = f"{shown(value)} is not a JSON object, as each line or element must be"
                raise self.fault(place, problem)
            yield place, value

    def kept(self) -> Iterator[Placed]:
        """The JSON values of a file, but what a person ignored in Prodigy, or rejected.

        A text of which a label was rejected is kept.
        """
        answers = [answer_of(value) for _, value in self.values]
        obeyed = self.labelled and all(answer in (*ANSWERS, None, "") for answer in answers)
        refused = ANSWERS[2:] if self.of_labels else ANSWERS[1:]
        for placed, answer in zip(self.values, answers, strict=True):
            if obeyed and answer in refused:
                self.skipped[f"whose answer is {answer}"] += 1
            else:
                yield placed

    def left_out(self) -> str:
        """Name and count what was left out; empty if nothing was."""
        return ", ".join(f"{n} {what}" for what, n in self.skipped.items() if n)

    def fault(self, place: int | str, problem: str) -> ValueError:
        """An error that names the file and the place."""
        return fault(self.path, place, problem)

    def text_key(self, place: int | str, record: Mapping[str, Any], names: tuple[str, ...]) -> str:
        """The first of the usual names, or the one that the user gave, that holds a text."""
        for name in (self.text_column,) if self.text_column else names:
            if isinstance(record.get(name), str):
                return str(name)
        wanted = self.text_column or " or ".join(names)
        problem = f"no text under {wanted!r}, but {list(record)}"
        raise self.fault(place, f"{problem}: say where it is with text_column")

    def listed(self, place: int | str, record: Any, name: str, kind: type = object) -> list[Any]:
        """A list of a record, which may be null or missing, of values of a kind."""
        if not isinstance(record, dict):
            raise self.fault(place, f"{shown(record)} is not a JSON object")
        value = record.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(place, f"{name!r} is {shown(value)}, not a list")
        for each in value:
            if not isinstance(each, kind):
                wanted = "a string" if kind is str else "an object"
                raise self.fault(place, f"{name!r} holds {shown(each)}, which is not {wanted}")
        return value


def answer_of(value: Any) -> Any:
    """What a person answered in Prodigy about a record or a span; None if nothing."""
    return value.get("answer") if isinstance(value, dict) else None


def names_columns(rows: list[list[str]]) -> bool:
    """Return True if the first row holds a usual name of a label or a text.

    Beside a text that happens to be such a name stands a label, which other rows have, too.
    """
    first, *below = [[cell.strip() for cell in row] for row in rows]
    names = [cell.lower() for cell in first]
    pairs = {name for pair in PAIR_NAMES for name in pair}
    if not set(names).isdisjoint(LABEL_NAMES):
        return True
    if set(names).isdisjoint({*TEXT_NAMES, *pairs, "tokens", "words"}):
        return False
    others = [i for i, name in enumerate(names) if name not in (*TEXT_NAMES, *pairs, *ID_NAMES)]
    return not any(first[i] and first[i] == row[i] for row in below for i in others)


def parsed(cell: Any) -> Any:
    """The list or object that a cell of a table holds, or the cell as it is."""
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    try:
        value = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return cell
    return _lists(value) if isinstance(value, (list, dict)) else cell


def _lists(value: Any) -> Any:
    """A value whose tuples are lists, as in JSON."""
    if isinstance(value, (list, tuple)):
        return [_lists(each) for each in value]
    return value


def _record(names: list[str], cells: list[Any]) -> dict[str, Any]:
    return {name: parsed(cell) for name, cell in zip(names, cells, strict=True)}


def _is_plain(value: Any) -> bool:
    """Return True if an object is no article of SQuAD's."""
    return isinstance(value, dict) and not {"paragraphs", "qas", "context"} & set(value)


def warn_of_skipped(source: Source, n_read: int) -> None:
    """Count what a reader left out."""
    told = [*([f"left out {left_out}"] if (left_out := source.left_out()) else []), *source.told]
    if told:
        read = counted(n_read, "text")
        warn(f"{str(source.path)!r}: {', '.join(told)}; {read} read", SkippedRowsWarning)


def check_options(reader: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse an option that the reader of a file does not have."""
    owner = f"{reader.__name__}, which reads this file"
    refuse_unknown(owner, inspect.signature(reader).parameters, options)


def refuse_unknown(owner: str, known: Iterable[str], options: Mapping[str, Any]) -> None:
    """Refuse an option that is not among those of what reads a file, its owner."""
    for name in sorted(set(options) - set(known)):
        problem = f"{name}={options[name]!r} is no option of {owner}"
        remedy = "leave it out"
        if name in _OF_TABLES:
            remedy += ", or read the file as texts with labels by task='classification'"
        elif name in _OF_TAGS:
            remedy += ", or read the file as tagged sentences by task='tagging'"
        raise TypeError(f"{problem}: {remedy}")
