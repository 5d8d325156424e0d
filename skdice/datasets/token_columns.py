"""Which of a file's columns hold the tokens and the tags: as asked for, or as the first lines show.

The tags stand in the one column of ``O`` and ``B-PER``, or in the only one beside the tokens. The
tokens stand in the first column that holds no tags, numbers or ids. What may be either is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from skdice._checks import KINDS
from skdice.datasets.source import Source

DOCUMENT = "-DOCSTART-"
TAG = re.compile(r"O|[BIESMLU]-.+")
RANGE = re.compile(r"\d+[-.]\d+")  # CoNLL-U's ids of what is no word
_ID = re.compile(r"\d+([-.]\d+)?")
# The chunks of CoNLL-2000 and 2003, which stand beside entities.
_CHUNK = re.compile("(N|V|P|ADV|ADJ|CONJ|UC)P|[NPV]C|SBAR|PRT|INTJ|LST")
# Names of columns, where a first line has them.
TOKEN_NAMES = ("word", "token", "form", "words", "tokens")
TAG_NAMES = ("tag", "label", "ner", "ner_tag", "iob", "pos", "upos", "labels", "tags", "ner_tags")
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
    separator: str | None = None  # None is white space
    comment: str | None = "auto"  # what a line that is none of a token starts with


def columns_of(source: Source, rows: list[Line], token: Any, tag: Any, with_tags: bool) -> Layout:
    """The columns of tokens and tags, of the first lines of a file."""
    width = _width(source, rows)
    fitting = [row for row in rows if len(row.cells) == width]
    has_header = rows[0].number == 1 and rows[0] is fitting[0] and is_header(fitting)
    header = [cell.strip() for cell in rows[0].cells] if has_header else []
    token = _index(source, "token_column", token, header, width)
    tag = _index(source, "tag_column", tag, header, width)
    if not fitting[has_header:]:
        raise no_tokens(source)
    sample = _Sample(source, fitting[has_header:], header)
    at = sample.find_tag(token) if tag is None else tag
    token = sample.find_token(at) if token is None else token
    at = sample.find_other(token, with_tags) if at is None else at
    if tag is None and with_tags:
        sample.check_tags(at)
    return Layout(width, token, at, has_header, sample.ids, are_tags(sample.flat[at]))


def _width(source: Source, rows: list[Line]) -> int:
    """The number of columns that most lines have."""
    if not rows:
        raise no_tokens(source)
    width = Counter(len(row.cells) for row in rows).most_common(1)[0][0]
    if width < 2:
        problem = "one column only, but a token and its tag are needed"
        problem += ": check the file and the parameter separator"
        raise source.fault(rows[0].number, problem)
    return width


def no_tokens(source: Source) -> ValueError:
    """The error about a file without a token."""
    return ValueError(f"{str(source.path)!r} holds no tagged token: is it a CoNLL file?")


class _Sample:
    """The first lines of a file by their columns, each cut into sentences."""

    def __init__(self, source: Source, rows: list[Line], header: list[str]) -> None:
        self.source, self.header, self.number = source, header, rows[0].number
        self.ids = _ids(rows)
        words = [row for row in rows if not is_range(row.cells, self.ids)]
        sentences = [zip(*(row.cells for row in some), strict=True) for some in _sentences(words)]
        self.columns = list(zip(*sentences, strict=True)) or [()] * len(rows[0].cells)
        self.flat = [list(chain.from_iterable(column)) for column in self.columns]

    def _shown(self, j: int) -> str:
        return self.header[j] if self.header else f"column {j} ({', '.join(self.flat[j][:3])})"

    def find_tag(self, token: int | None) -> int | None:
        """The one column of tags, or the other one of two; None if several or none may be it."""
        types = {j: _types(cells) for j, cells in enumerate(self.flat) if are_tags(cells)}
        entities = [j for j, kinds in types.items() if not all(map(_CHUNK.fullmatch, kinds))]
        found = entities or [j for j, kinds in types.items() if not kinds] or [*types]
        if len(found) == 1:
            return found[0]
        return int(token != 1) if len(self.flat) == 2 else None

    def find_token(self, tag: int | None) -> int:
        """The first column that holds no tags, numbers or ids."""
        fit = [j for j in range(len(self.flat)) if j != tag and not self._problem(j, tag)]
        if not fit:
            j = int(tag == 0)
            problem = f"{self._problem(j, tag)}, not tokens: give token_column and tag_column"
            raise self.source.fault(self._shown(j), problem)
        return fit[0]

    def find_other(self, token: int, with_tags: bool) -> int:
        """The only column beside that of the tokens."""
        left = [j for j in range(len(self.flat)) if j != token and not self._counts(j)]
        if len(left) != 1 and with_tags:
            problem = f"which column holds the tags? {', '.join(map(self._shown, left))}"
            raise self.source.fault(self.number, f"{problem}: give tag_column")
        return left[0] if left else len(self.flat) - 1

    def check_tags(self, at: int) -> None:
        """Refuse a column of numbers or of nothing for that of the tags."""
        if self._counts(at) or set(self.flat[at]) <= {"_", "-"}:
            raise self.source.fault(self._shown(at), "no tags: give tag_column")

    def _counts(self, j: int) -> bool:
        return j == self.ids or _count(self.columns[j])

    def _problem(self, j: int, tag: int | None) -> str:
        """Name what a column holds in place of tokens; empty if it may hold them."""
        cells, sentences = self.flat[j], self.columns[j]
        if self._counts(j):
            return "counters"
        if len(self.flat) == 2 and tag is not None and set(cells) != {"_"}:
            if are_tags(self.flat[tag]):
                return ""  # the only column beside tags is anything else
            # Words are of more kinds than their tags.
            n_kinds, n_tags = len(set(cells)), len(set(self.flat[tag]))
            return "fewer values than the tags" * (len(cells) > 5 and n_tags > 1.25 * n_kinds)
        if has_entities(cells):
            return "tags"
        is_constant = len(cells) > len(sentences) + 1 and all(len({*row}) == 1 for row in sentences)
        return "one value a sentence" if is_constant else ""


def _sentences(rows: list[Line]) -> Iterator[list[Line]]:
    return (list(some) for _, some in groupby(rows, lambda row: row.sentence))


def _ids(rows: list[Line]) -> int | None:
    """The first of several columns, if its cells are ids or count tokens."""
    first = [[row.cells[0] for row in some] for some in _sentences(rows)]
    are_ids = all(map(_ID.fullmatch, chain.from_iterable(first))) or _count(first)
    return 0 if are_ids and len(rows[0].cells) > 2 else None


def is_range(cells: list[str], ids: int | None) -> bool:
    """Return True if the id of a line is that of what is no word, as in CoNLL-U."""
    return ids is not None and RANGE.fullmatch(cells[ids]) is not None


def _index(source: Source, what: str, column: Any, header: list[str], width: int) -> int | None:
    """The index of a column that was asked for."""
    if column is None:
        return None
    if isinstance(column, str) and column in header:
        return header.index(column)
    path = str(source.path)
    if not KINDS["int"][1](column):
        has = f"has the header {header}" if header else "names no columns"
        raise TypeError(f"{what}={column!r} must be a number: {path!r} {has}")
    if not -width <= column < width:
        raise ValueError(f"{what}={column} is beyond the {width} columns of {path!r}")
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


def _count(sentences: Sequence[Sequence[str]]) -> bool:
    """Return True if cells such as 1, 2, 3 or T1, T2, T3 count the tokens of all sentences."""
    return sum(map(len, sentences)) - len(sentences) > 1 and all(map(_is_counter, sentences))


def _is_counter(cells: Sequence[str]) -> bool:
    parts = [re.fullmatch(r"(.*?)(\d+)", cell) for cell in cells if not RANGE.fullmatch(cell)]
    starts = [part and (part[1], int(part[2]) - i) for i, part in enumerate(parts)]
    return len(set(starts)) == 1 and starts[0] is not None


def are_tags(cells: list[str], least: float = 0.9) -> bool:
    """Return True if at least a share of the cells are tags such as ``O`` and ``B-PER``."""
    return sum(bool(TAG.fullmatch(cell.strip())) for cell in cells) >= least * len(cells) > 0


def has_entities(cells: list[str], least: float = 0.9) -> bool:
    """Return True if cells are tags, and not all of them O."""
    return are_tags(cells, least) and bool(_types(cells))


def _types(cells: list[str]) -> set[str]:
    return {cell.strip()[2:] for cell in cells if TAG.fullmatch(cell.strip()) and cell != "O"}
