"""CoNLL columns: one token a line, blank lines between sentences."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import KINDS, as_row_list, check_choice, check_lengths, checked, shown
from skdice.datasets.files import fault, first_line, read_lines, write_text
from skdice.metrics.schemes import faults

DOCUMENT = "-DOCSTART-"
TAG = re.compile(r"O|[BIESMLU]-.+")
_BRACKETS = re.compile(r"\(?[\w-]*\*\)?|\([\w-]+\)")
_ID = re.compile(r"\d+([-.]\d+)?")
_RANGE = re.compile(r"\d+[-.]\d+")  # CoNLL-U's ids of what is no word
# The chunks of CoNLL-2000 and 2003, which stand beside entities.
_CHUNK = re.compile("(N|V|P|ADV|ADJ|CONJ|UC)P|[NPV]C|SBAR|PRT|INTJ|LST")
# Names of columns, where a first line has them.
TOKEN_NAMES = ("word", "token", "form")
TAG_NAMES = ("tag", "label", "ner", "ner_tag", "iob", "pos", "upos")


class Line(NamedTuple):
    """A line of columns."""

    number: int
    text: str
    cells: list[str]
    sentence: int = 0  # how many blank lines stand before it


def _split(lines: list[str], separator: str | None) -> list[Line]:
    """The lines that hold something, each with its columns."""
    rows, sentence = [], 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            sentence += 1
        elif not line.startswith(DOCUMENT):
            # A token may hold one of the rarer spaces.
            cells = line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))
            rows.append(Line(number, line, cells, sentence))
    return rows


def _in_sentences(rows: list[Line]) -> list[list[Line]]:
    return [list(sentence) for _, sentence in groupby(rows, key=lambda row: row.sentence)]


def _usual_width(rows: list[Line]) -> int:
    return Counter(len(row.cells) for row in rows).most_common(1)[0][0]


def _check_widths(path: str | Path, rows: list[Line], width: int, where: str) -> None:
    for number, line, cells, _ in rows:
        if len(cells) != width:
            problem = f"{len(cells)} column(s) in {line[:60]!r}, but {width} in {where}"
            raise fault(path, number, f"{problem}: mend the line, or the file may be cut short")


def _without_comments(rows: list[Line]) -> list[Line]:
    plain = [row for row in rows if not row.text.startswith("#")]
    if len(plain) in (0, len(rows)):  # if all look like comments, they are tokens
        return rows
    width = _usual_width(plain)
    tags = {row.cells[-1] for row in plain if len(row.cells) == width}

    def is_comment(row: Line, at_start: bool) -> bool:
        after, tag = row.text.lstrip("#")[:1], row.cells[-1]
        if not row.text.startswith("#"):
            return False
        if row.text.startswith(("#begin document", "#end document")):
            return True
        if len(row.cells) != width:
            return at_start or after in (" ", "\t")
        # Such as MultiCoNER's "# id 1 domain=train", and GermEval's source after a tab.
        is_source = after == "\t" and ("://" in tag or " " in tag.strip())
        return at_start and tag not in tags and (after == " " or is_source)

    if not is_comment(rows[0], True):  # lines as wide as a token's are tokens
        tags |= {row.cells[-1] for row in rows if len(row.cells) == width}
    kept: list[Line] = []
    for row in rows:
        if not is_comment(row, not kept or kept[-1].sentence != row.sentence):
            kept.append(row)
    return kept


@checked
def read_conll(
    path: str | Path,
    *,
    token_column: int | str | None = None,  # a name is refused below, with the file's
    tag_column: int | str | None = None,
    separator: str | None = None,
    comment: str | None = "auto",
    scheme: str | None = None,
    encoding: str = "utf-8",
    with_tags: bool = True,
    return_columns: bool = False,
) -> Any:
    r"""Read tagged sentences from CoNLL columns.

    Blank lines, with or without white space in them, end a sentence; ``-DOCSTART-`` lines are
    skipped.

    Parameters
    ----------
    path : str or Path
    token_column, tag_column : int or None, default=None
        Columns of the token and of its tag; negative ones count from the right. None looks at the
        rows. The tag is in the last column; in the first, if only that one holds tags such as
        ``O`` and ``B-PER``; or in the first of several whose tags name the same types, such as
        nested ones. The token is in the first column that holds no counters, ids or tags. In
        CoNLL-2012 the two are 3 and 10.
    separator : str or None, default=None
        Between columns; None is a tab if the first token line has one, and white space otherwise.
    comment : str or None, default="auto"
        Lines that start with it are comments. ``"auto"`` tells them from tokens: a line that starts
        with ``#`` is a comment before the first token of a sentence, or if white space follows, if
        it has another number of columns than a token line. In a file that begins with a comment, a
        line with as many columns is one too, if a space follows and no other line has its tag.
        None is for a file without comments.
    scheme : str or None, default=None
        Check that the tags are well formed in this scheme (see `skdice.metrics.schemes`).
    encoding : str, default="utf-8"
    with_tags : bool, default=True
        False takes whatever stands in the column of the tags, as for a prediction.
    return_columns : bool, default=False

    Returns
    -------
    X : list of lists of str
        Tokens.
    y : list of lists of str
        Tags.
    columns : dict
        With ``return_columns``: the indices of ``"token"`` and ``"tag"``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, is not in `encoding`, has a line with other columns than most (such
        as one cut short), has no column of tokens, or has ill-formed tags; the message names the
        line or the column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from skdice.datasets import read_conll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.conll")
    ...     _ = path.write_text("Ann\tB-PER\nsleeps\tO\n\nRome\tB-LOC\n")
    ...     read_conll(path)
    ([['Ann', 'sleeps'], ['Rome']], [['B-PER', 'O'], ['B-LOC']])
    """
    lines = read_lines(path, encoding)
    if token_column is None and tag_column is None and is_conllu(lines):
        remedy = "read it with read_conllu, or give token_column and tag_column"
        raise ValueError(f"{str(path)!r} has the ten columns of CoNLL-U: {remedy}")
    if separator is None:
        filled = [s for s in lines if s.strip() and not s.startswith(DOCUMENT)]
        plain = ([s for s in filled if not s.startswith("#")] or filled)[:100]
        separator = "\t" if 2 * sum("\t" in s for s in plain) > len(plain) else None
    rows = _split(lines, separator)
    if comment == "auto":
        rows = _without_comments(rows)
    elif comment == "":
        raise ValueError("comment='' would make every line a comment: give None for none")
    elif comment is not None:
        rows = [row for row in rows if not row.text.startswith(comment)]
    wide = all(len(row.cells) > 11 for row in rows)
    if tag_column is None and wide and first_line(lines).startswith("#begin document"):
        # CoNLL-2012: after the entities' column, each verb of a sentence has one.
        token_column, tag_column = 3 if token_column is None else token_column, 10
        rows = [row._replace(cells=row.cells[:11]) for row in rows]
    if names := _columns_named(lines):  # CoNLL-U Plus
        rows = [row for row in rows if not ("ID" in names and _is_range(row, names.index("ID")))]
        token_column = names.index("FORM") if token_column is None else token_column
    rows, token, tag = columns_of(path, rows, token_column, tag_column, with_tags)
    for row in rows:
        for what, column in [("token", token), ("tag", tag)][: 2 if with_tags else 1]:
            if not row.cells[column].strip():
                problem = f"no {what} in {row.text[:60]!r}: mend the line, or give {what}_column"
                raise fault(path, row.number, problem)
    in_brackets = all(_BRACKETS.fullmatch(row.cells[tag]) for row in rows)
    X, y = [], []
    for sentence in _in_sentences(rows):
        tokens = [row.cells[token].strip() for row in sentence]
        tags = [row.cells[tag].strip() for row in sentence]
        if in_brackets:
            tags = _from_brackets(tags)
        for at, problem in [] if scheme is None else faults(tags, scheme):
            problem = f"{problem} in scheme {scheme!r}: mend the file, or read it with scheme=None"
            raise fault(path, sentence[at].number, problem)
        X.append(tokens)
        y.append(tags)
    return (X, y, {"token": token, "tag": tag}) if return_columns else (X, y)


def _columns_named(lines: list[str]) -> list[str]:
    """The names of columns in the first line of CoNLL-U Plus, if it names the words."""
    names = first_line(lines).partition("global.columns =")[2].split()
    return names if "FORM" in names else []


def _is_range(row: Line, at: int) -> bool:
    return at < len(row.cells) and bool(_RANGE.fullmatch(row.cells[at]))


def columns_of(
    path: str | Path, rows: list[Line], token: Any, tag: Any, with_tags: bool
) -> tuple[list[Line], int, int]:
    """The rows but those that hold names or no word, and the columns of tokens and tags."""
    if not rows:
        raise ValueError(f"{str(path)!r} holds no tagged token: is it a CoNLL file?")
    width = _usual_width(rows)
    if width < 2:
        problem = "one column only, but a token and its tag are needed"
        raise fault(path, rows[0].number, f"{problem}: check the file and the parameter separator")
    for what, column in (("token_column", token), ("tag_column", tag)):
        if column is not None and not KINDS["int"][1](column):
            raise TypeError(f"{what}={column!r} must be a number: {str(path)!r} names no columns")
        if column is not None and not -width <= column < width:
            raise ValueError(f"{what}={column} is beyond the {width} columns of {str(path)!r}")
    _check_widths(path, rows, width, "most lines")
    names = {cell.strip().lower() for cell in rows[0].cells}
    if len(rows) > 1 and names & set(TOKEN_NAMES) and names & set(TAG_NAMES):
        rows = rows[1:]
    looked_at = _in_sentences(rows)[:1000]
    columns = [[[row.cells[j] for row in s] for s in looked_at] for j in range(width)]
    flat = [[cell for cells in column for cell in cells] for column in columns]
    kinds = [_kind(column) for column in columns]
    if width > 2 and all(map(_are_ids, columns[0])):  # also of sentences of one word
        kinds[0] = "counters"
    if width > 2 and kinds[0] == "counters":
        rows = [row for row in rows if not _RANGE.fullmatch(row.cells[0])]
    at = _find_tags(flat) if tag is None else tag % width
    if token is None and width == 2:
        kinds[1 - at] = _kind_beside(kinds[1 - at], flat[1 - at], flat[at])
    shown = [f"column {j} ({', '.join(flat[j][:3])})" for j in range(width)]
    if token is None:
        fit = [j for j in range(width) if j != at and not kinds[j]]
        if not fit:
            j = int(at == 0)
            problem = f"{kinds[j]}, not tokens: give token_column and tag_column"
            raise fault(path, shown[j], problem)
        token = fit[0]
    if tag is None and with_tags and (kinds[at] == "counters" or set(flat[at]) <= {"_", "-"}):
        raise fault(path, shown[at], "no tags: give tag_column")
    return rows, token % width, at


def _are_ids(cells: list[str]) -> bool:
    """Return True if cells are CoNLL-U's ids of the words of a sentence."""
    return cells[0].split("-")[0] == "1" and all(map(_ID.fullmatch, cells))


def _is_counter(cells: list[str]) -> bool:
    """Return True if cells such as 1, 2, 3 or T1, T2, T3 count the tokens of a sentence."""
    parts = [re.fullmatch(r"(.*?)(\d+)", cell) for cell in cells if not _RANGE.fullmatch(cell)]
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
    if _are_tags(tags):
        return ""
    more_tags = len(cells) > 5 and len(set(tags)) > 1.25 * len(set(cells))
    return kind if kind == "tags" else "fewer values than the tags" * more_tags


def _are_tags(cells: list[str]) -> bool:
    return sum(bool(TAG.fullmatch(cell.strip())) for cell in cells) >= 0.9 * len(cells)


def has_entities(cells: list[str]) -> bool:
    """Return True if cells are tags, and not all of them O."""
    return _are_tags(cells) and bool(_types(cells))


def _types(cells: list[str]) -> set[str]:
    return {cell.strip()[2:] for cell in cells if TAG.fullmatch(cell.strip()) and cell != "O"}


def _find_tags(columns: list[list[str]]) -> int:
    """The last column, the first that holds nothing but tags, or the first of nested tags."""
    last = len(columns) - 1
    with_tags = [j for j, cells in enumerate(columns) if _are_tags(cells)]
    if last not in with_tags:
        return 0 if with_tags == [0] and has_entities(columns[0]) else last
    kinds = {kind[:3] for kind in _types(columns[last])}  # GermEval's LOCderiv is a LOC
    for j in with_tags:
        others = {kind[:3] for kind in _types(columns[j]) if not _CHUNK.fullmatch(kind)}
        if 0 < j < last and others and (not kinds or kinds & others):
            return j
    return last


def _from_brackets(cells: list[str]) -> list[str]:
    """IOB2 tags of CoNLL-2012's cells, such as ``(ORG*``, ``*`` and ``*)``."""
    tags, kind = [], ""
    for cell in cells:
        begins = cell.startswith("(")
        kind = cell.strip("(*)") if begins else kind
        tags.append(f"{'B' if begins else 'I'}-{kind}" if kind else "O")
        kind = "" if cell.endswith(")") else kind
    return tags


CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def is_conllu(lines: list[str]) -> bool:
    """Return True if most lines have the columns of CoNLL-U, the first of them an id."""
    filled = (line for line in lines if line.strip() and not line.startswith("#"))
    rows = [line.split("\t") for line in islice(filled, 50)]
    width = len(CONLLU_COLUMNS)
    fit = sum(len(r) == width and bool(re.fullmatch(r"\d+([-.]\d+)?", r[0])) for r in rows)
    return 2 * fit > len(rows)


@checked
def read_conllu(
    path: str | Path,
    *,
    tag_column: str | int = "upos",
    encoding: str = "utf-8",
    with_tags: bool = True,
    return_columns: bool = False,
) -> Any:
    r"""Read tokens and one column of a CoNLL-U file.

    The lines of multiword tokens (``1-2``) and empty nodes (``1.1``) are skipped: their words have
    lines of their own.

    Parameters
    ----------
    path : str or Path
    tag_column : {"upos", "xpos", "deprel", "lemma", "feats", "misc"} or int, default="upos"
        By name or index.
    encoding : str, default="utf-8"
    with_tags : bool, default=True
        False takes whatever stands in the column of the tags, as for a prediction.
    return_columns : bool, default=False

    Returns
    -------
    X, y : list of lists of str
        Word forms and tags.
    columns : dict
        With ``return_columns``: the names of ``"token"`` and ``"tag"``.

    Raises
    ------
    FileNotFoundError, ValueError
        As in `read_conll`, and if the treebank comes without its words or without these tags.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skdice.datasets import read_conllu
    >>> cells = ["1", "Ann", "Ann", "PROPN", "_", "_", "0", "root", "_", "_"]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "one.conllu"
    ...     _ = path.write_text("\t".join(cells) + "\n")
    ...     read_conllu(path)
    ([['Ann']], [['PROPN']])
    """
    if isinstance(tag_column, int):
        tag_column = dict(enumerate(CONLLU_COLUMNS)).get(tag_column, str(tag_column))
    check_choice("tag_column", tag_column, CONLLU_COLUMNS)
    column = CONLLU_COLUMNS.index(tag_column)
    lines = _split(read_lines(path, encoding), "\t")
    rows = [row for row in lines if not row.text.startswith("#")]
    _check_widths(path, rows, len(CONLLU_COLUMNS), "CoNLL-U")
    sentences = _in_sentences([row for row in rows if row.cells[0].isdigit()])
    X, y = ([[row.cells[j] for row in s] for s in sentences] for j in (1, column))
    if not X:
        raise ValueError(f"{str(path)!r} holds no word: is it a CoNLL-U file?")
    for what, values, remedy in (
        ("form", X, "the treebank comes without its words: merge them into it"),
        (tag_column, y, "give another tag_column"),
    ):
        if (with_tags or values is X) and all(cell == "_" for row in values for cell in row):
            raise ValueError(f"{str(path)!r} holds only _ in the column {what!r}: {remedy}")
    return (X, y, {"token": "form", "tag": tag_column}) if return_columns else (X, y)


@checked
def write_conll(path: str | Path, X: Any, y: Any) -> Path:
    """Write tokens and tags, a tab between them; the file appears when it is complete.

    Empty sentences are left out.

    Parameters
    ----------
    path : str or Path
    X, y : lists of lists of str
        Tokens and tags.

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        If lengths differ, a token or tag is empty or holds white space that would break a line, or
        `read_conll` would take a token's line for a document's start or a comment.
    """
    path, X, y = Path(path), as_row_list("X", X), as_row_list("y", y)
    check_lengths("sentences", X=X, y=y)
    blocks: list[str] = []
    for i in range(len(X)):
        tokens, tags = as_row_list(f"X[{i}]", X[i]), as_row_list(f"y[{i}]", y[i])
        if len(tokens) != len(tags):
            raise ValueError(f"X[{i}] has {len(tokens)} tokens and y[{i}] {len(tags)} tags")
        for value in (*tokens, *tags):
            if not isinstance(value, str):
                raise TypeError(f"X[{i}] or y[{i}] holds {shown(value)}, which is no string")
            if not value or value != value.strip() or any(c in value for c in "\t\n\r"):
                raise ValueError(
                    f"X[{i}] or y[{i}] holds {value!r}, which has no place in a column: leave out "
                    "tabs, line breaks and white space around a token"
                )
        for j, token in enumerate(tokens):
            # Only the first line of the file may be a comment with two columns.
            lost = (DOCUMENT,) if j or blocks else (DOCUMENT, "# ", "\ufeff")
            if token.startswith(lost):
                raise ValueError(
                    f"X[{i}][{j}] is {token!r}, which would not be read again: a line that starts "
                    "so is a document's start, a comment or a byte order mark; change or drop it"
                )
        if tokens:
            blocks.append("".join(f"{a}\t{b}\n" for a, b in zip(tokens, tags, strict=True)))
    write_text(path, "\n".join(blocks))
    return path
