"""The cells of separated values, and the names of their columns."""

from __future__ import annotations

import ast
import contextlib
import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from skdice.datasets.source import Placed, Source

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')  # the first, by which a spreadsheet names it

LABEL_NAMES = (
    *("label", "target", "class", "y", "tag", "labels"),
    *("gold_label", "is_duplicate", "quality"),  # of SNLI's, Quora's and Microsoft's pairs
)
# Two columns of which both are there are a pair.
PAIR_NAMES = (
    *(("sentence1", "sentence2"), ("question1", "question2"), ("premise", "hypothesis")),
    *(("text_a", "text_b"), ("text1", "text2"), ("#1 string", "#2 string")),
    ("question", "context"),
)
TEXT_NAMES = (
    *("text", "sentence", "review", "content", "message", "headline", "title", "question"),
    *("tweet", "comment", "comment_text", "body", "utterance"),
)
ID_NAMES = ("id", "idx", "index", "guid", "uid", "")  # pandas gives its index no name
_TEXTS = {*TEXT_NAMES, *(name for pair in PAIR_NAMES for name in pair)}

Cells = tuple[int, list[str]]  # a row with the number of its first line


def separator_of(source: Source) -> str:
    """The separator that was given, or that the first line has outside quotes."""
    if source.separator:
        return source.separator
    if named := _SEPARATOR_LINE.fullmatch(source.first_line):
        return named[1]
    first = _QUOTED.sub("", source.first_line)
    if "\t" in first:
        return "\t"
    if source.suffix != ".csv" or ";" not in first:
        return ","
    # Spreadsheets write it where the comma is the decimal point.
    if "," in first:
        problem = "the first line has ',' and ';': give separator=',' or separator=';'"
        raise source.fault(1, problem)
    return ";"


def quotes(source: Source) -> bool:
    """Return True if ``"`` quotes a cell: as asked for, or of all tables but those of tabs."""
    return separator_of(source) != "\t" if source.quoting is None else source.quoting


def cells_of(source: Source) -> Iterator[Cells]:
    """The number and the cells of every line that is not blank."""
    separator = separator_of(source)
    if len(separator) != 1:
        raise ValueError(f"separator={separator!r} must be one character")
    lines = source.iter_lines()
    if _SEPARATOR_LINE.fullmatch(source.first_line):
        lines = ("" if line == source.first_line else line for line in lines)
    rows = _quoted if quotes(source) else _unquoted
    return rows(source, lines, separator)


def _unquoted(source: Source, lines: Iterable[str], separator: str) -> Iterator[Cells]:
    for number, line in enumerate(lines, 1):
        if line and not line.isspace():
            yield number, line.split(separator)


def _quoted(source: Source, lines: Iterable[str], separator: str) -> Iterator[Cells]:
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            # An empty line has no cell; a quoted empty text is one.
            is_filled = any(map(str.strip, cells)) or cells == [""]
            if is_filled:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        problem = f"{error}, where {separator!r} separates cells: give another separator, mend "
        problem += "the quotes, or give quoting=False if they are part of the texts"
        raise source.fault(start, problem) from error


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Let csv read cells of any length, and leave its limit as it was."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


@long_cells()
def table_of(source: Source, limit: int | None = None) -> tuple[list[str] | None, list[Cells]]:
    """The names of the columns, if the first line has them, and the rows, all of one width."""
    rows = list(islice(cells_of(source), limit))
    if not rows:
        raise ValueError(f"{str(source.path)!r} has empty cells only: give a file with examples")
    width = len(rows[0][1])
    for place, cells in rows:
        if len(cells) != width:
            problem = f"{len(cells)} column(s), but {width} in the first line: mend it, or check "
            raise source.fault(place, problem + "the parameters separator and quoting")
    if not (_has_header(source, rows) if source.header is None else source.header):
        return None, rows
    if not rows[1:]:
        raise ValueError(f"{str(source.path)!r} holds a header only: give a file with examples")
    return [cell.strip() for cell in rows[0][1]], rows[1:]


def _has_header(source: Source, rows: list[Cells]) -> bool:
    """Return True if the first row holds a usual name of a label or a text.

    Beside a text that happens to be such a name stands a label, which other rows have, too.
    """
    if len(rows[0][1]) == 1 and source.suffix not in (".csv", ".tsv"):
        return False  # the first of plain lines is a text
    first = [cell.strip().lower() for cell in rows[0][1]]
    if not set(LABEL_NAMES).isdisjoint(first):
        return True
    if {*_TEXTS, "tokens", "words"}.isdisjoint(first):
        return False
    others = [i for i, name in enumerate(first) if name not in {*_TEXTS, *ID_NAMES}]
    below = islice(rows, 1, 1000)
    return not any(first[i] == cells[i].strip().lower() for _, cells in below for i in others)


# ---- lists and objects in cells


def records_in_cells(
    source: Source, limit: int | None = None, *, always: bool = False
) -> list[Placed]:
    """The first rows of a table with a header, if some cells hold lists or objects, or `always`."""
    has_some = always or _has_brackets(source, limit)
    try:
        names, rows = table_of(source, limit) if has_some else (None, [])
    except ValueError:
        if limit is None:
            raise
        return []  # a look refuses nothing
    if names is None:
        return []
    values = [(place, [parsed(cell) for cell in cells]) for place, cells in rows]
    structured = any(isinstance(cell, (list, dict)) for _, row in values[:1000] for cell in row)
    if not always and not structured:
        return []
    return [(f"line {place}", dict(zip(names, cells, strict=True))) for place, cells in values]


def _has_brackets(source: Source, limit: int | None) -> bool:
    may_be = source.is_text or limit is None  # a reader says that a folder is none
    return may_be and ("[" in source.text or "{" in source.text)


def values_of(source: Source, limit: int | None = None) -> list[Placed]:
    """The values of JSON, or the first rows of a table with lists or objects in its cells."""
    return source.values if source.is_json else records_in_cells(source, limit)


def parsed(cell: Any) -> Any:
    """The list or object that a cell holds, as JSON or Python's, or the cell as it is."""
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    for parse in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return _lists(parse(cell.strip()))
    return cell


def _lists(value: Any) -> Any:
    """A value whose tuples are lists, as in JSON."""
    return [_lists(each) for each in value] if isinstance(value, (list, tuple)) else value
