"""CoNLL columns: one token a line, blank lines between sentences."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from skdice.metrics.schemes import faults

__all__ = ["read_conll", "read_conllu", "write_conll"]

Tagged = tuple[list[list[str]], list[list[str]]]

_DOCUMENT = "-DOCSTART-"


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked if gzip packed it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check the path")
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is a damaged gzip file ({error}): pack it anew") from error


def suffix_of(path: Path) -> str:
    """A file's suffix in lower case, without that of gzip."""
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()


def read_lines(path: str | Path, encoding: str = "utf-8") -> list[str]:
    """The lines of a text file, packed by gzip or not, without a byte order mark."""
    path = Path(path)
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{str(path)!r}, line {line}: byte {error.start} is not {encoding}: give the file's "
            "encoding, such as encoding='latin-1' (--encoding latin-1), or convert it"
        ) from error
    except LookupError as error:
        raise ValueError(f"encoding={encoding!r} is unknown: use one such as 'latin-1'") from error
    if not text.strip():
        raise ValueError(f"{str(path)!r} is empty: give a file with at least one example")
    # Not splitlines(): a token may hold one of the rarer line separators.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


Line = tuple[int, str, list[str]]  # number, text and columns


def _sentences(lines: list[str], separator: str | None) -> Iterator[list[Line]]:
    """Sentences as lists of lines."""
    sentence: list[Line] = []
    for number, line in enumerate([*lines, ""], start=1):
        if not line.strip():
            if sentence:
                yield sentence
            sentence = []
        elif not line.startswith(_DOCUMENT):
            sentence.append((number, line, line.rstrip("\n").split(separator)))


def read_conll(
    path: str | Path,
    *,
    token_column: int = 0,
    tag_column: int = -1,
    separator: str | None = None,
    comment: str | None = "#",
    scheme: str | None = None,
    encoding: str = "utf-8",
) -> Tagged:
    r"""Read tagged sentences from CoNLL columns.

    Blank lines, with or without white space in them, end a sentence; ``-DOCSTART-`` lines are
    skipped.

    Parameters
    ----------
    path : str or Path
    token_column, tag_column : int, default=0 and -1
        Columns of the token and of its tag; negative ones count from the right.
    separator : str or None, default=None
        Between columns; None is a tab if the first token line has one, and white space otherwise.
    comment : str or None, default="#"
        Before the first token of a sentence, a line that starts with it is a comment if it has
        another number of columns than a token line. In a file that begins with a comment, a line
        with as many columns is one too, if a space follows and its tag was not seen before.
    scheme : str or None, default=None
        Check that the tags are well formed in this scheme (see `skdice.metrics.schemes`).
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
        If the file is empty, is not in `encoding`, has a line with other columns than the first
        (such as one cut short), or has ill-formed tags; the message names the line.

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
    if separator is None:
        filled = [s for s in lines if s.strip() and not s.startswith(_DOCUMENT)]
        plain = [s for s in filled if not comment or not s.startswith(comment)]
        # If all look like comments, the last is a token's.
        separator = "\t" if any("\t" in s for s in plain[:1] or filled[-1:]) else None
    X, y = [], []
    width: int | None = None
    known: set[str] = set()
    commented = False
    for sentence in _sentences(lines, separator):
        tokens: list[str] = []
        tags: list[str] = []
        numbers: list[int] = []
        for number, line, columns in sentence:
            if comment and not tokens and line.startswith(comment):
                spaced = line[len(comment) :][:1] == " "
                if width is None:
                    is_comment = spaced or len(columns) < 2
                    commented = commented or is_comment
                elif len(columns) != width:
                    is_comment = True
                else:  # such as MultiCoNER's "# id 1 domain=train"
                    is_comment = commented and spaced and columns[tag_column].strip() not in known
                if is_comment:
                    continue
            if width is None:
                width = len(columns)
                _check_columns(path, number, width, token_column, tag_column)
            if len(columns) != width:
                raise ValueError(
                    f"{str(path)!r}, line {number}: {len(columns)} column(s) in {line[:60]!r}, but "
                    f"{width} in the lines before: mend the line, or the file may be cut short"
                )
            if not columns[tag_column].strip():
                raise ValueError(
                    f"{str(path)!r}, line {number}: no tag in {line[:60]!r}: mend the line, or "
                    "give tag_column"
                )
            tokens.append(columns[token_column].strip())
            tags.append(columns[tag_column].strip())
            numbers.append(number)
        if not tokens:
            continue
        fault = None if scheme is None else next(faults(tags, scheme), None)
        if fault is not None:
            raise ValueError(
                f"{str(path)!r}, line {numbers[fault[0]]}: {fault[1]} in scheme {scheme!r}: mend "
                "the file, or read it with scheme=None"
            )
        X.append(tokens)
        y.append(tags)
        known.update(tags)
    if not X:
        raise ValueError(f"{str(path)!r} holds no tagged token: is it a CoNLL file?")
    return X, y


def _check_columns(path: str | Path, number: int, width: int, token: int, tag: int) -> None:
    if width < 2:
        raise ValueError(
            f"{str(path)!r}, line {number}: one column only, but a token and its tag are needed: "
            "check the file and separator"
        )
    for name, column in (("token_column", token), ("tag_column", tag)):
        if not isinstance(column, int):
            raise TypeError(f"{name}={column!r} must be a number: {str(path)!r} names no columns")
        if not -width <= column < width:
            raise ValueError(f"{name}={column} is beyond the {width} columns of {str(path)!r}")


CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")


def read_conllu(path: str | Path, *, tag_column: str = "upos", encoding: str = "utf-8") -> Tagged:
    """Read tokens and one column of a CoNLL-U file.

    The lines of multiword tokens (``1-2``) and empty nodes (``1.1``) are skipped: their words have
    lines of their own.

    Parameters
    ----------
    path : str or Path
    tag_column : {"upos", "xpos", "deprel", "lemma", "feats", "misc"}, default="upos"
    encoding : str, default="utf-8"

    Returns
    -------
    X, y : list of lists of str
        Word forms and tags.

    Raises
    ------
    FileNotFoundError, ValueError
        As in `read_conll`.
    """
    if tag_column not in CONLLU_COLUMNS:
        raise ValueError(f"tag_column={tag_column!r} must be one of {CONLLU_COLUMNS}")
    column = CONLLU_COLUMNS.index(tag_column)
    X, y = [], []
    for sentence in _sentences(read_lines(path, encoding), "\t"):
        tokens, tags = [], []
        for number, line, columns in sentence:
            if line.startswith("#"):
                continue
            if len(columns) != len(CONLLU_COLUMNS):
                raise ValueError(
                    f"{str(path)!r}, line {number}: {len(columns)} column(s) in {line[:60]!r}, but "
                    "CoNLL-U has 10: mend the line, or the file may be cut short"
                )
            if columns[0].isdigit():
                tokens.append(columns[1])
                tags.append(columns[column])
        if tokens:
            X.append(tokens)
            y.append(tags)
    if not X:
        raise ValueError(f"{str(path)!r} holds no word: is it a CoNLL-U file?")
    return X, y


def write_conll(path: str | Path, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> Path:
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
    path = Path(path)
    if len(X) != len(y):
        raise ValueError(f"X holds {len(X)} sentences and y {len(y)}")
    blocks: list[str] = []
    for i, (tokens, tags) in enumerate(zip(X, y, strict=True)):
        if len(tokens) != len(tags):
            raise ValueError(f"X[{i}] has {len(tokens)} tokens and y[{i}] {len(tags)} tags")
        for value in (*tokens, *tags):
            if not value.strip() or any(c in value for c in "\t\n\r"):
                raise ValueError(f"sentence {i} holds {value!r}, which has no place in a column")
        for j, token in enumerate(tokens):
            # Only the first line of the file may be a comment with two columns.
            lost = (_DOCUMENT,) if j or blocks else (_DOCUMENT, "# ", "\ufeff")
            if token.startswith(lost):
                raise ValueError(
                    f"X[{i}][{j}] is {token!r}, which would not be read again: a line that starts "
                    "so is a document's start, a comment or a byte order mark; change or drop it"
                )
        if tokens:
            blocks.append("".join(f"{a}\t{b}\n" for a, b in zip(tokens, tags, strict=True)))
    write_text(path, "\n".join(blocks))
    return path


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none of it."""
    with replacing(path) as file:
        file.write(text)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A file to write, which takes its place when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.writing-{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
