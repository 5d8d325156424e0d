"""CoNLL columns: one token a line, blank lines between sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from skdice._checks import check_choice, check_lengths, checked, shown
from skdice._types import Rows
from skdice.datasets.reading import fault
from skdice.datasets.row import Row, x_and_y
from skdice.datasets.source import Source
from skdice.datasets.token_columns import (
    BRACKETS,
    DOCUMENT,
    RANGE,
    SAMPLE,
    TAG,
    Layout,
    Line,
    are_tags,
    columns_of,
    is_header,
)
from skdice.inputs.rows import as_row_list
from skdice.tags.schemes import faults
from skdice.whole_files import write_text


@checked
def read_conll(
    path: str | Path,
    *,
    token_column: int | str | None = None,
    tag_column: int | str | None = None,
    separator: str | None = None,
    comment: str | None = "auto",
    scheme: str | None = None,
    encoding: str = "utf-8",
    with_tags: bool = True,
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Read tagged sentences from CoNLL columns.

    Blank lines, with or without white space in them, end a sentence; so do ``-DOCSTART-`` lines,
    which are skipped.

    Parameters
    ----------
    path : str or Path
    token_column, tag_column : int, str or None, default=None
        Columns of the token and of its tag, by index or by name in a header; negative ones count
        from the right. None takes for the tag the column that holds tags such as ``O`` and
        ``B-PER``, the first of several whose tags name the same types, such as nested ones, or the
        only column beside the tokens. The token is in the first column that holds no counters,
        ids or tags. In CoNLL-2012 the two are 3 and 10.
    separator : str or None, default=None
        Between columns; None is a tab if most lines have one, and white space otherwise.
    comment : str or None, default="auto"
        Lines that start with it are comments. With ``"auto"``, a line that starts with ``#`` is
        one if it has another number of columns than a token's line, or no tag where all others
        have ``O`` or ``B-PER``. None is for a file without comments.
    scheme : str or None, default=None
        Check that the tags are well formed in this scheme (see `skdice.tags.schemes`).
    encoding : str, default="utf-8"
    with_tags : bool, default=True
        False takes whatever stands in the column of the tags, as for a prediction.

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
    how: dict[str, Any] = {"token_column": token_column, "tag_column": tag_column}
    how |= {"separator": separator, "comment": comment, "scheme": scheme}
    return x_and_y(column_rows(Source(Path(path), encoding, labelled=with_tags), **how))


def column_rows(
    source: Source,
    *,
    token_column: int | str | None = None,
    tag_column: int | str | None = None,
    separator: str | None = None,
    comment: str | None = "auto",
    scheme: str | None = None,
) -> list[Row]:
    """The sentences that `read_conll` reads."""
    path = source.path
    if comment == "":
        raise ValueError("comment='' would make every line a comment: give None for none")
    head = list(islice(source.iter_lines(), SAMPLE))
    if token_column is None and tag_column is None and is_conllu(head):
        remedy = "read it with read_conllu, or give token_column and tag_column"
        raise ValueError(f"{str(path)!r} has the ten columns of CoNLL-U: {remedy}")
    if separator is None:
        filled = [s for s in head if s.strip() and not s.startswith(DOCUMENT)]
        plain = ([s for s in filled if not s.startswith("#")] or filled)[:100]
        separator = "\t" if 2 * sum("\t" in s for s in plain) > len(plain) else None
    rows = list(_rows(head, separator))
    plain_rows = [row for row in rows if not row.text.startswith(comment)] if comment else rows
    if comment == "auto":
        plain_rows = [row for row in rows if not row.text.startswith("#")] or rows
    begins = next((row.text for row in rows), "")
    is_2012 = begins.startswith("#begin document") and tag_column is None
    if is_2012 and plain_rows and all(len(row.cells) > 11 for row in plain_rows):
        # Behind the column of the entities, each verb of a sentence has one.
        in_brackets = all(BRACKETS.fullmatch(row.cells[10]) for row in plain_rows)
        token = 3 if token_column is None else int(token_column)
        found = Layout(11, token, 10, in_brackets=in_brackets, is_wider=True)
    else:
        names = begins.partition("global.columns =")[2].split()  # CoNLL-U Plus
        if "FORM" in names and token_column is None:
            token_column = names.index("FORM")
        found = columns_of(source, plain_rows, token_column, tag_column, names)
    layout = found._replace(separator=separator, comment=comment)
    sentences = _sentences(source, layout, scheme)
    if not sentences:
        raise ValueError(f"{str(path)!r} holds no tagged token: is it a CoNLL file?")
    source.columns = {"token": found.token, "tag": found.tag}
    return sentences


def _split(line: str, separator: str | None) -> list[str]:
    # A token may hold one of the rarer spaces.
    return line.split(separator) if separator else re.split("[ \t]+", line.strip(" \t"))


def _rows(lines: Iterable[str], separator: str | None) -> Iterator[Line]:
    """The lines that hold something, each with its columns."""
    sentence = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(DOCUMENT):
            sentence += 1
        else:
            yield Line(number, line, _split(line, separator), sentence)


def _sentences(source: Source, layout: Layout, scheme: str | None = None) -> list[Row]:
    """All sentences, in one pass."""
    rows: list[Row] = []
    path, with_tags = source.path, source.labelled
    width, token_at, tag_at = layout.width, layout.token, layout.tag
    separator, comment = layout.separator, layout.comment
    known: dict[str, str] = {}  # equal words are one string
    tokens: list[str] = []
    tags: list[str] = []
    first, waits_for_header = 0, layout.has_header

    def end() -> None:
        if tokens:
            y = _from_brackets(tags) if layout.in_brackets else tags
            rows.append(Row(first, tokens, y, {}))
            for at, problem in [] if scheme is None else faults(y, scheme):
                remedy = "mend the file, or read it with scheme=None"
                problem = f"{problem} in scheme {scheme!r}: {remedy}"
                raise fault(path, first + at, problem)

    for number, line in enumerate(source.iter_lines(), 1):
        if not line or line.isspace() or line.startswith(DOCUMENT):
            if tokens:
                end()
                tokens, tags = [], []
            continue
        if comment is not None and comment != "auto" and line.startswith(comment):
            continue
        cells = line.split(separator) if separator else _split(line, None)
        if line[0] == "#" and _is_comment(path, number, line, cells, layout, not tokens):
            continue
        if len(cells) != width and not (layout.is_wider and len(cells) > width):
            problem = f"{len(cells)} column(s) in {line[:60]!r}, but {width} in most lines"
            raise fault(path, number, f"{problem}: mend the line, or the file may be cut short")
        if waits_for_header:
            waits_for_header = False
            continue
        if layout.ids is not None and RANGE.fullmatch(cells[layout.ids]):
            continue
        token, tag = cells[token_at].strip(), cells[tag_at].strip()
        if not token or (with_tags and not tag):
            what = "tag" if token else "token"
            problem = f"no {what} in {line[:60]!r}: mend the line, or give {what}_column"
            raise fault(path, number, problem)
        if not tokens:
            first = number
        tokens.append(known.setdefault(token, token))
        tags.append(known.setdefault(tag, tag))
    end()
    return rows


def _is_comment(
    path: Path, number: int, line: str, cells: list[str], layout: Layout, at_start: bool
) -> bool:
    """Return True if a line that begins with # is no token's; refuse what may be either."""
    if layout.comment != "auto":
        return False
    if line.startswith(("#begin document", "#end document")):
        return True
    if len(cells) != layout.width:
        return at_start or line.lstrip("#")[:1] in ("", " ", "\t")
    tag = cells[layout.tag].strip()
    if layout.has_tags:
        return not TAG.fullmatch(tag)
    if cells[0] == "#" and at_start and (layout.separator is None or may_be_source(tag)):
        remedy = "say which by comment='#', or by comment=None"
        raise fault(path, number, f"{line[:60]!r} may be a comment, or the token '#': {remedy}")
    return False


def may_be_source(tag: str) -> bool:
    """Return True if what follows # and a tab is perhaps a source, as in GermEval's comments."""
    return "://" in tag or " " in tag


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
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Read tokens and one column of a CoNLL-U file.

    The lines of multiword tokens (``1-2``) and empty nodes (``1.1``) are skipped: their words have
    lines of their own.

    Parameters
    ----------
    path : str or Path
    tag_column : {"upos", "xpos", "deprel", "lemma", "feats", "misc"} or int, default="upos"
        By name or index. Of ``"misc"``, the tags of named entities are read, such as
        ``name=B-PER``.
    encoding : str, default="utf-8"
    with_tags : bool, default=True
        False takes whatever stands in the column of the tags, as for a prediction.

    Returns
    -------
    X, y : list of lists of str
        Word forms and tags.

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
    source = Source(Path(path), encoding, labelled=with_tags)
    return x_and_y(conllu_rows(source, tag_column=tag_column))


def conllu_rows(source: Source, *, tag_column: str | int = "upos") -> list[Row]:
    """The sentences that `read_conllu` reads."""
    if isinstance(tag_column, int):
        tag_column = dict(enumerate(CONLLU_COLUMNS)).get(tag_column, str(tag_column))
    check_choice("tag_column", tag_column, CONLLU_COLUMNS)
    how: dict[str, Any] = {"ids": 0, "separator": "\t", "comment": "#"}
    layout = Layout(len(CONLLU_COLUMNS), 1, CONLLU_COLUMNS.index(tag_column), **how)
    path = source.path
    rows = _sentences(source, layout)
    if not rows:
        raise ValueError(f"{str(path)!r} holds no word: is it a CoNLL-U file?")
    X, y = x_and_y(rows)
    for what, values, remedy in (
        ("form", X, "the treebank comes without its words: merge them into it"),
        (tag_column, y, "give another tag_column"),
    ):
        if (source.labelled or values is X) and all(cell == "_" for row in values for cell in row):
            raise ValueError(f"{str(path)!r} holds only _ in the column {what!r}: {remedy}")
    if tag_column == "misc" and source.labelled:
        found = zip(rows, _tags_of_misc(path, y), strict=True)
        rows = [row._replace(y=tags) for row, tags in found]
    source.columns = {"token": "form", "tag": tag_column}
    return rows


def _tags_of_misc(path: str | Path, cells: list[list[str]]) -> list[list[str]]:
    """The values of the one attribute of MISC that has tags such as O and B-PER for all words."""
    found = [
        [dict(part.partition("=")[::2] for part in cell.split("|")) for cell in row]
        for row in cells
    ]
    words = [values for row in found for values in row]
    names = [
        name for name in words[0] if all(TAG.fullmatch(values.get(name, "")) for values in words)
    ]
    if len(names) != 1:
        has = f"{names} hold tags" if names else f"none of {sorted({n for v in words for n in v})}"
        problem = f"{has}, and one attribute such as name=B-PER must, for all words"
        raise ValueError(f"{str(path)!r}, the column 'misc': {problem}: give another tag_column")
    return [[values[names[0]] for values in row] for row in found]


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
    """
    path, X, y = Path(path), as_row_list("X", X), as_row_list("y", y)
    check_lengths("sentences", X=X, y=y)
    blocks: list[str] = []
    rows: list[Line] = []
    hashes: list[tuple[str, str, str]] = []  # tokens that begin so, with their tags
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
            if token.startswith((DOCUMENT, "#begin document", "#end document")) or (
                token.startswith("\ufeff") and not rows
            ):
                raise _unreadable(f"X[{i}][{j}]", token)
            if token[0] == "#":
                hashes.append((f"X[{i}][{j}]", token, tags[j]))
            if len(rows) < SAMPLE:
                rows.append(Line(1, "", [token, tags[j]]))
        if tokens:
            blocks.append("".join(f"{a}\t{b}\n" for a, b in zip(tokens, tags, strict=True)))
    has_tags = are_tags([row.cells[1] for row in rows])
    for where, token, tag in hashes:
        if not TAG.fullmatch(tag) if has_tags else token == "#" and may_be_source(tag):
            raise _unreadable(where, token)
    begins = "\n" if rows and is_header(rows) else ""
    write_text(path, begins + "\n".join(blocks))
    return path


def _unreadable(where: str, token: str) -> ValueError:
    return ValueError(
        f"{where} is {token!r}, which would not be read again: a line that starts so is a "
        "document's start, a comment or a byte order mark; change or drop it"
    )
