"""Which of a file's columns hold the tokens and the tags: told from its first lines."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import KINDS
from skdice.datasets.reading import fault
from skdice.datasets.source import Source

DOCUMENT = "-DOCSTART-"
TAG = re.compile(r"O|[BIESMLU]-.+")
BRACKETS = re.compile(r"\(?[\w-]*\*\)?|\([\w-]+\)")
_ID = re.compile(r"\d+([-.]\d+)?")
RANGE = re.compile(r"\d+[-.]\d+")  # CoNLL-U's ids of what is no word
# The chunks of CoNLL-2000 and 2003, which stand beside entities.
_CHUNK = re.compile("(N|V|P|ADV|ADJ|CONJ|UC)P|[NPV]C|SBAR|PRT|INTJ|LST")
# Names of columns, where a first line has them.
TOKEN_NAMES = ("word", "token", "form", "words", "tokens")
TAG_NAMES = (
    *("tag", "label", "ner", "ner_tag", "iob", "pos", "upos"),
    *("labels", "tags", "ner_tags"),
)
SAMPLE = 5_000  # lines, from which the columns are told


class Line(NamedTuple):
    """A line of columns."""

    number: int
    text: str
    cells: list[str]
    sentence: int = 0  # how many ends of sentences stand before it


class Layout(NamedTuple):
    """What stands in which column."""

    width: int
    token: int
    tag: int
    has_header: bool = False
    ids: int | None = None  # the column of CoNLL-U's ids
    has_tags: bool = False  # whether tags such as O and B-PER show what is a token's line
    in_brackets: bool = False
    is_wider: bool = False  # whether lines may have more columns
    separator: str | None = None  # None is white space
    comment: str | None = "auto"  # what a line that is none of a token starts with


def columns_of(source: Source, rows: list[Line], token: Any, tag: Any, names: list[str]) -> Layout:
    """The columns of tokens and tags, of the first lines of a file that has some `names`."""
    path, with_tags = source.path, source.labelled
    if not rows:
        raise ValueError(f"{str(path)!r} holds no tagged token: is it a CoNLL file?")
    width = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    if width < 2:
        problem = "one column only, but a token and its tag are needed"
        raise fault(path, rows[0].number, f"{problem}: check the file and the parameter separator")
    fitting = [row for row in rows if len(row.cells) == width]
    has_header = rows[0].number == 1 and rows[0] is fitting[0] and is_header(fitting)
    header = [cell.strip() for cell in rows[0].cells] if has_header else names
    token, tag = (
        _index(path, what, column, header, width)
        for what, column in (("token_column", token), ("tag_column", tag))
    )
    fitting = fitting[has_header:]
    if not fitting:
        raise ValueError(f"{str(path)!r} holds no tagged token: is it a CoNLL file?")
    sentences = [list(some) for _, some in groupby(fitting, key=lambda row: row.sentence)]
    ids = names.index("ID") if "ID" in names else None
    numbers = [[row.cells[0] for row in some] for some in sentences]
    if ids is None and width > 2 and (
        all(map(_are_ids, numbers)) or _kind(numbers) == "counters"
    ):  # fmt: skip
        ids = 0
    if ids is not None:
        sentences = [[r for r in some if not RANGE.fullmatch(r.cells[ids])] for some in sentences]
    columns = [[[row.cells[j] for row in s] for s in sentences] for j in range(width)]
    flat = [[cell for cells in column for cell in cells] for column in columns]
    kinds = ["counters" if j == ids else _kind(column) for j, column in enumerate(columns)]
    shown_ = [f"column {j} ({', '.join(flat[j][:3])})" for j in range(width)]
    at = tag if tag is not None else _find_tags(flat)
    if at is None and width == 2:
        at = int(token != 1)
    if token is None and at is not None and width == 2:
        kinds[1 - at] = _kind_beside(kinds[1 - at], flat[1 - at], flat[at])
    if token is None:
        fit = [j for j in range(width) if j != at and not kinds[j]]
        if not fit:
            j = int(at == 0)
            problem = f"{kinds[j]}, not tokens: give token_column and tag_column"
            raise fault(path, shown_[j], problem)
        token = fit[0]
    if at is None:
        left = [j for j in range(width) if j != token and kinds[j] != "counters"]
        if len(left) != 1 and with_tags:
            which = ", ".join(header[j] if header else shown_[j] for j in left)
            problem = f"which column holds the tags? None has tags such as O and B-PER: {which}"
            raise fault(path, rows[0].number, f"{problem}: give tag_column")
        at = left[0] if left else width - 1
    if tag is None and with_tags and (kinds[at] == "counters" or set(flat[at]) <= {"_", "-"}):
        raise fault(path, shown_[at], "no tags: give tag_column")
    brackets = all(BRACKETS.fullmatch(cell) for cell in flat[at])
    return Layout(width, token, at, has_header, ids, are_tags(flat[at]), brackets)


def _index(path: str | Path, what: str, column: Any, header: list[str], width: int) -> int | None:
    if column is None:
        return None
    if isinstance(column, str) and column in header:
        return header.index(column)
    if not KINDS["int"][1](column):
        has = f"has the header {header}" if header else "names no columns"
        raise TypeError(f"{what}={column!r} must be a number: {str(path)!r} {has}")
    if not -width <= column < width:
        raise ValueError(f"{what}={column} is beyond the {width} columns of {str(path)!r}")
    return int(column) % width


def is_header(rows: list[Line]) -> bool:
    """Tell if the first of the rows names the columns.

    It does by its names, or if it has no tag where all others have ``O`` or ``B-PER``.
    """
    first, below = rows[0].cells, rows[1:]
    if first[0].startswith("#"):  # a token, or a comment
        return False
    names = {cell.strip().lower() for cell in first}
    if below and names & set(TOKEN_NAMES) and names & set(TAG_NAMES):
        return True
    return any(
        not TAG.fullmatch(cell.strip()) and has_entities([row.cells[j] for row in below], least=1.0)
        for j, cell in enumerate(first)
    )


def _are_ids(cells: list[str]) -> bool:
    """Return True if cells are CoNLL-U's ids of the words of a sentence."""
    return cells[0].split("-")[0] == "1" and all(map(_ID.fullmatch, cells))


def _is_counter(cells: list[str]) -> bool:
    """Return True if cells such as 1, 2, 3 or T1, T2, T3 count the tokens of a sentence."""
    parts = [re.fullmatch(r"(.*?)(\d+)", cell) for cell in cells if not RANGE.fullmatch(cell)]
    starts = [part and (part[1], int(part[2]) - i) for i, part in enumerate(parts)]
    return len(set(starts)) == 1 and starts[0] is not None


def _kind(sentences: list[list[str]]) -> str:
    """Name what a column holds in place of tokens; empty if it may hold them."""
    cells = [cell for sentence in sentences for cell in sentence]
    if has_entities(cells):
        return "tags"
    if len(cells) - len(sentences) < 2:  # too few to tell
        return ""
    if all(map(_is_counter, sentences)):
        return "counters"
    return "one value a sentence" if all(len(set(row)) == 1 for row in sentences) else ""


def _kind_beside(kind: str, cells: list[str], tags: list[str]) -> str:
    """The kind of the only other column, which beside tags is anything but counters."""
    if kind == "counters" or set(cells) == {"_"}:
        return kind
    if are_tags(tags):
        return ""
    more_tags = len(cells) > 5 and len(set(tags)) > 1.25 * len(set(cells))
    return kind if kind == "tags" else "fewer values than the tags" * more_tags


def are_tags(cells: list[str], least: float = 0.9) -> bool:
    """Return True if at least a share of the cells are tags such as ``O`` and ``B-PER``."""
    return sum(bool(TAG.fullmatch(cell.strip())) for cell in cells) >= least * len(cells) > 0


def has_entities(cells: list[str], least: float = 0.9) -> bool:
    """Return True if cells are tags, and not all of them O."""
    return are_tags(cells, least) and bool(_types(cells))


def _types(cells: list[str]) -> set[str]:
    return {cell.strip()[2:] for cell in cells if TAG.fullmatch(cell.strip()) and cell != "O"}


def _find_tags(columns: list[list[str]]) -> int | None:
    """The column that holds nothing but tags, or the first of nested tags; None if none does."""
    with_tags = {j: _types(cells) for j, cells in enumerate(columns) if are_tags(cells)}
    chunks = {j for j, kinds in with_tags.items() if kinds and all(map(_CHUNK.fullmatch, kinds))}
    for fewer in (
        {j for j, kinds in with_tags.items() if kinds and j not in chunks},
        set(with_tags) - chunks,
        chunks,
    ):
        if not fewer:
            continue
        first, last = min(fewer), max(fewer)
        # GermEval's LOCderiv is a LOC.
        kinds = {kind[:3] for kind in with_tags[first]}
        nested = all(kinds & {kind[:3] for kind in with_tags[j]} for j in fewer)
        return first if nested else last if len(fewer) == 1 else None
    return None
