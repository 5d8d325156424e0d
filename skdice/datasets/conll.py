"""CoNLL columns: one token a line, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from skdice._checks import check_choice, check_lengths, checked, shown
from skdice._types import Rows
from skdice.datasets.row import Reading, Row, x_and_y
from skdice.datasets.source import Source
from skdice.datasets.token_columns import (
    DOCUMENT,
    SAMPLE,
    TAG,
    Layout,
    Line,
    columns_of,
    is_header,
    is_range,
    no_tokens,
)
from skdice.inputs.rows import as_row_list
from skdice.whole_files import write_text


@checked
def read_conll(
    path: str | Path,
    *,
    token_column: int | str | None = None,
    tag_column: int | str | None = None,
    separator: str | None = None,
    comment: str | None = "auto",
    encoding: str = "utf-8",
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Read tagged sentences from CoNLL columns.

    Blank lines, with or without white space in them, end a sentence; so do ``-DOCSTART-`` lines,
    which are skipped.

    Parameters
    ----------
    path : str or Path
    token_column, tag_column : int, str or None, default=None
        Columns of the token and of its tag, by index or by name in a header; negative ones count
        from the right. None takes for the tag the one column that holds tags such as ``O`` and
        ``B-PER``, or the only one beside the tokens. The token is in the first column that holds
        no counters, ids or tags.
    separator : str or None, default=None
        Between columns; None is a tab if most lines have one, and white space otherwise.
    comment : str or None, default="auto"
        Lines that start with it are comments. With ``"auto"``, a line that starts with ``#`` is
        one if it has another number of columns than a token's line, or no tag where all others
        have ``O`` or ``B-PER``. None is for a file without comments.
    encoding : str, default="utf-8"

    Returns
    -------
    X : list of lists of str
        Tokens.
    y : list of lists of str
        Tags.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, is not in `encoding`, has a line with other columns than most (such
        as one cut short), has no column of tokens or several that may be the tag's, or has
        ill-formed tags; the message names the line or the columns. A first line whose tag is no
        tag, where all others are, names the columns.

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
    source = Source(Path(path), encoding, separator=separator)
    how: dict[str, Any] = {"token_column": token_column, "tag_column": tag_column}
    return x_and_y(column_rows(source, comment=comment, **how).rows)


def column_rows(
    source: Source,
    *,
    token_column: int | str | None = None,
    tag_column: int | str | None = None,
    comment: str | None = "auto",
    labelled: bool = True,
) -> Reading:
    """The sentences that `read_conll` reads."""
    lines = source.head
    if token_column is None and tag_column is None and is_conllu(lines):
        remedy = "read it with read_dataset, or give token_column and tag_column"
        raise ValueError(f"{str(source.path)!r} has the ten columns of CoNLL-U: {remedy}")
    separator = source.separator or _separator_of(lines)
    plain = _plain_rows(list(islice(_rows(source, separator), SAMPLE)), comment)
    found = columns_of(source, plain, token_column, tag_column, labelled)
    layout = found._replace(separator=separator, comment=comment)
    every = _token_lines(source, layout)
    sentences = sentences_of(source, every, found.token, found.tag, labelled)
    if not sentences:
        raise no_tokens(source)
    return Reading(sentences, columns={"token": found.token, "tag": found.tag})


def _plain_rows(rows: list[Line], comment: str | None) -> list[Line]:
    """The lines that are no comments, or all if nothing else is there."""
    mark = "#" if comment == "auto" else comment
    plain = [row for row in rows if mark is None or not row.text.startswith(mark)]
    return plain or (rows if comment == "auto" else [])


def _separator_of(lines: list[str]) -> str | None:
    """A tab, if most lines have one; None is white space."""
    filled = [line for line in lines if line.strip() and not line.startswith(DOCUMENT)]
    plain = ([line for line in filled if not line.startswith("#")] or filled)[:100]
    return "\t" if 2 * sum("\t" in line for line in plain) > len(plain) else None


def _split(line: str, separator: str | None) -> list[str]:
    # A token may hold one of the rarer spaces.
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


def _rows(source: Source, separator: str | None) -> Iterator[Line]:
    """The lines that hold something, each with its columns."""
    sentence = 0
    for number, line in enumerate(source.iter_lines(), 1):
        if not line.strip() or line.startswith(DOCUMENT):
            sentence += 1
        else:
            yield Line(number, line, _split(line, separator), sentence)


def sentences_of(
    source: Source, lines: Iterable[TokenLine], token_at: int, tag_at: int, labelled: bool
) -> list[Row]:
    """All sentences of a file, in one pass over the cells of its lines."""
    rows: list[Row] = []
    known: dict[str, str] = {}  # equal words are one string
    begins = True
    for number, cells in lines:
        if cells is None:
            begins = True
            continue
        token, tag = cells[token_at].strip(), cells[tag_at].strip()
        if not token or (labelled and not tag):
            what, line = "tag" if token else "token", " ".join(cells)
            problem = f"no {what} in {line[:60]!r}: mend the line, or give {what}_column"
            raise source.fault(number, problem)
        if begins:
            tokens: list[str] = []
            tags: list[str] = []
            rows.append(Row(number, tokens, tags, {}))
            begins = False
        tokens.append(known.setdefault(token, token))
        tags.append(known.setdefault(tag, tag))
    return rows


TokenLine = tuple[int, list[str] | None]  # a line's number and its cells; None ends a sentence


def _token_lines(source: Source, layout: Layout) -> Iterator[TokenLine]:
    """The lines of tokens, and ends of sentences."""
    separator, at_start = layout.separator, True
    mark = "#" if layout.comment == "auto" else layout.comment or "\n"  # which no line holds
    for number, line in islice(enumerate(source.iter_lines(), 1), layout.has_header, None):
        if not line.strip() or line.startswith(DOCUMENT):
            at_start = True
            yield number, None
            continue
        cells = _split(line, separator)
        if line.startswith(mark) and _is_comment(source, number, line, cells, layout, at_start):
            continue
        if len(cells) != layout.width:
            problem = f"{len(cells)} column(s) in {line[:60]!r}, but {layout.width} in most lines"
            problem += ": mend the line, or the file may be cut short"
            raise source.fault(number, problem)
        if not is_range(cells, layout.ids):
            at_start = False
            yield number, cells


def _is_comment(
    source: Source, number: int, line: str, cells: list[str], layout: Layout, at_start: bool
) -> bool:
    """Return True if a line that begins with # is no token's; refuse what may be either."""
    if layout.comment != "auto" or line.startswith(_OF_DOCUMENTS):
        return True
    if len(cells) != layout.width:
        return at_start or line.lstrip("#")[:1] in ("", " ", "\t")
    tag = cells[layout.tag].strip()
    if layout.has_tags:
        return not TAG.fullmatch(tag)
    # What follows # and a tab is perhaps a source, as in GermEval's comments.
    may_be_source = layout.separator is None or "://" in tag or " " in tag
    if cells[0] == "#" and at_start and may_be_source:
        remedy = "say which by comment='#', or by comment=None"
        raise source.fault(number, f"{line[:60]!r} may be a comment, or the token '#': {remedy}")
    return False


_OF_DOCUMENTS = ("#begin document", "#end document")

CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def is_conllu(lines: list[str]) -> bool:
    """Return True if most lines have the columns of CoNLL-U, the first of them an id."""
    filled = (line for line in lines if line.strip() and not line.startswith("#"))
    rows = [line.split("\t") for line in islice(filled, 50)]
    width = len(CONLLU_COLUMNS)
    fit = sum(len(r) == width and bool(re.fullmatch(r"\d+([-.]\d+)?", r[0])) for r in rows)
    return 2 * fit > len(rows)


def conllu_rows(
    source: Source, *, tag_column: str | int = "upos", labelled: bool = True
) -> Reading:
    """Tokens and one column of a CoNLL-U file.

    The lines of multiword tokens (``1-2``) and empty nodes (``1.1``) are skipped: their words have
    lines of their own.
    """
    if isinstance(tag_column, int):
        tag_column = dict(enumerate(CONLLU_COLUMNS)).get(tag_column, str(tag_column))
    check_choice("tag_column", tag_column, CONLLU_COLUMNS[:-1])  # the last is no single value
    at = CONLLU_COLUMNS.index(tag_column)
    layout = Layout(len(CONLLU_COLUMNS), 1, at, ids=0, separator="\t", comment="#")
    lines = _token_lines(source, layout)
    rows = sentences_of(source, lines, layout.token, layout.tag, labelled)
    if not rows:
        raise ValueError(f"{str(source.path)!r} holds no word: is it a CoNLL-U file?")
    X, y = x_and_y(rows)
    for what, values, remedy in (
        ("form", X, "the treebank comes without its words: merge them into it"),
        (tag_column, y if labelled else X, "give another tag_column"),
    ):
        if all(cell == "_" for row in values for cell in row):
            raise ValueError(f"{str(source.path)!r} holds only _ in the column {what!r}: {remedy}")
    return Reading(rows, columns={"token": "form", "tag": tag_column})


@checked
def write_conll(path: str | Path, X: Rows, y: Rows) -> Path:
    """Write tokens and tags, a tab between them; the file appears when it is complete.

    Empty sentences are left out. A file whose first line would look like a header begins with a
    blank line.

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

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from skdice.datasets import read_conll, write_conll
    >>> with TemporaryDirectory() as folder:
    ...     path = write_conll(f"{folder}/a.conll", [["In", "Rome"]], [["O", "B-LOC"]])
    ...     read_conll(path)
    ([['In', 'Rome']], [['O', 'B-LOC']])
    """
    path, X, y = Path(path), as_row_list("X", X), as_row_list("y", y)
    check_lengths("sentences", X=X, y=y)
    pairs = [_pairs_to_write(i, *row) for i, row in enumerate(zip(X, y, strict=True))]
    filled = [(i, row) for i, row in enumerate(pairs) if row]
    text = "\n".join("".join(f"{token}\t{tag}\n" for token, tag in row) for _, row in filled)
    write_text(path, _readable(path, text, filled) if filled else text)
    return path


def _readable(path: Path, text: str, filled: list[tuple[int, list[tuple[str, str]]]]) -> str:
    """The text, without a token whose line would be read as a comment, a header or the like."""
    if is_header([Line(1, "", list(pair)) for _, row in filled[:SAMPLE] for pair in row]):
        text = f"\n{text}"
    source = Source(path, separator="\t", content=text.removeprefix("\ufeff"))
    try:
        rows = column_rows(source, token_column=0, tag_column=1).rows
    except ValueError as error:
        raise ValueError(f"X would not be read again: {error}") from error
    read = [list(zip(row.x, row.y, strict=True)) for row in rows]
    for (i, row), found in zip_longest(filled, read):
        if row != found:
            problem = f"a line that starts with {DOCUMENT}, # or a byte order mark may be a comment"
            raise ValueError(f"X[{i}] would not be read again: {problem}; change or drop the token")
    return text


def _pairs_to_write(i: int, tokens: Any, tags: Any) -> list[tuple[str, str]]:
    """The tokens of a sentence with their tags, checked."""
    tokens, tags = as_row_list(f"X[{i}]", tokens), as_row_list(f"y[{i}]", tags)
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
    return list(zip(tokens, tags, strict=True))
