"""Which of a file's columns hold the tokens and the tags: as asked for, or as the first lines show.

The tags stand in the column of ``O`` and ``B-PER``, or in the only one beside the tokens. The
tokens stand in the first column that holds no tags, numbers or ids. What may be either is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
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
    separator: str | None = None  # None is white space
    comment: str | None = "auto"  # what a line that is none of a token starts with


def columns_of(
    source: Source, rows: list[Line], token: Any, tag: Any, names: list[str], with_tags: bool
) -> Layout:
    """The columns of tokens and tags, of the first lines of a file that has some `names`."""
    width = _width(source, rows)
    fitting = [row for row in rows if len(row.cells) == width]
    has_header = rows[0].number == 1 and rows[0] is fitting[0] and is_header(fitting)
    header = [cell.strip() for cell in rows[0].cells] if has_header else names
    token, tag = (
        _index(source, what, column, header, width)
        for what, column in (("token_column", token), ("tag_column", tag))
    )
    fitting = fitting[has_header:]
    if not fitting:
        raise no_tokens(source)
    sample = _Sample(source, fitting, header, names)
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

    def __init__(
        self, source: Source, rows: list[Line], header: list[str], names: list[str]
    ) -> None:
        self.source, self.header, self.number = source, header, rows[0].number
        self.width = len(rows[0].cells)
        sentences = [[row.cells for row in some] for _, some in groupby(rows, lambda r: r.sentence)]
        self.ids = _find_ids(sentences, names)
        sentences = [[c for c in some if not is_range(c, self.ids)] for some in sentences]
        self.columns = [[[c[j] for c in some] for some in sentences] for j in range(self.width)]
        self.flat = [[cell for cells in column for cell in cells] for column in self.columns]

    def fault(self, j: int, problem: str) -> ValueError:
        """An error that names a column."""
        return self.source.fault(self._shown(j), problem)

    def _shown(self, j: int) -> str:
        return f"column {j} ({', '.join(self.flat[j][:3])})"

    def find_tag(self, token: int | None) -> int | None:
        """The column that holds nothing but tags, or the other one of two; None if none does."""
        at = _find_tags(self.flat)
        return int(token != 1) if at is None and self.width == 2 else at

    def find_token(self, tag: int | None) -> int:
        """The first column that holds no tags, numbers or ids."""
        kinds = [self._kind(j, tag) for j in range(self.width)]
        fit = [j for j in range(self.width) if j != tag and not kinds[j]]
        if not fit:
            j = int(tag == 0)
            raise self.fault(j, f"{kinds[j]}, not tokens: give token_column and tag_column")
        return fit[0]

    def find_other(self, token: int, with_tags: bool) -> int:
        """The only column beside that of the tokens."""
        left = [j for j in range(self.width) if j != token and self._kind(j, None) != "counters"]
        if len(left) != 1 and with_tags:
            which = ", ".join(self.header[j] if self.header else self._shown(j) for j in left)
            problem = f"which column holds the tags? None has tags such as O and B-PER: {which}"
            raise self.source.fault(self.number, f"{problem}: give tag_column")
        return left[0] if left else self.width - 1

    def check_tags(self, at: int) -> None:
        """Refuse a column of numbers or of nothing for that of the tags."""
        if self._kind(at, None) == "counters" or set(self.flat[at]) <= {"_", "-"}:
            raise self.fault(at, "no tags: give tag_column")

    def _kind(self, j: int, tag: int | None) -> str:
        """Name what a column holds in place of tokens; empty if it may hold them."""
        kind = "counters" if j == self.ids else _kind(self.columns[j])
        if self.width != 2 or tag is None or kind == "counters" or set(self.flat[j]) == {"_"}:
            return kind
        # The only other column beside tags is anything else; beside words it is no tag.
        if are_tags(self.flat[tag]):
            return ""
        n_kinds, n_tags = len(set(self.flat[j])), len(set(self.flat[tag]))
        fewer = len(self.flat[j]) > 5 and n_tags > 1.25 * n_kinds
        return kind if kind == "tags" else "fewer values than the tags" * fewer


def _find_ids(sentences: list[list[list[str]]], names: list[str]) -> int | None:
    """The column of ids: that of this name, or the first of several, if it counts the tokens."""
    if "ID" in names:
        return names.index("ID")
    first = [[cells[0] for cells in some] for some in sentences]
    is_wide = len(sentences[0][0]) > 2
    return 0 if is_wide and (all(map(_are_ids, first)) or _count(first)) else None


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


def _are_ids(cells: list[str]) -> bool:
    """Return True if cells are CoNLL-U's ids of the words of a sentence."""
    return cells[0].split("-")[0] == "1" and all(map(_ID.fullmatch, cells))


def _is_counter(cells: list[str]) -> bool:
    """Return True if cells such as 1, 2, 3 or T1, T2, T3 count the tokens of a sentence."""
    parts = [re.fullmatch(r"(.*?)(\d+)", cell) for cell in cells if not RANGE.fullmatch(cell)]
    starts = [part and (part[1], int(part[2]) - i) for i, part in enumerate(parts)]
    return len(set(starts)) == 1 and starts[0] is not None


def _count(sentences: list[list[str]]) -> bool:
    """Return True if cells count the tokens of all sentences, of which there are some."""
    return sum(map(len, sentences)) - len(sentences) > 1 and all(map(_is_counter, sentences))


def _kind(sentences: list[list[str]]) -> str:
    """Name what a column holds in place of tokens; empty if it may hold them."""
    cells = [cell for sentence in sentences for cell in sentence]
    if has_entities(cells):
        return "tags"
    if _count(sentences):
        return "counters"
    is_constant = len(cells) - len(sentences) > 1 and all(len(set(row)) == 1 for row in sentences)
    return "one value a sentence" if is_constant else ""


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
    types = {j: _types(cells) for j, cells in enumerate(columns) if are_tags(cells)}
    chunks = {j for j, kinds in types.items() if kinds and all(map(_CHUNK.fullmatch, kinds))}
    of_entities = {j for j, kinds in types.items() if kinds} - chunks
    fewer = sorted(of_entities or set(types) - chunks or chunks)
    is_one = len(fewer) == 1 or (len(fewer) > 1 and _are_nested([types[j] for j in fewer]))
    return fewer[0] if is_one else None


def _are_nested(types: list[set[str]]) -> bool:
    """Return True if all columns have a type of the first; GermEval's LOCderiv is a LOC."""
    short = [{kind[:3] for kind in kinds} for kinds in types]
    return all(short[0] & kinds for kinds in short)
