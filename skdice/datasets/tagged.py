"""Tagged sentences in any of their formats: columns, CoNLL-U, tables, lists of tokens in JSON."""

from __future__ import annotations

from collections.abc import Collection
from inspect import unwrap
from typing import Any

from skdice.datasets.cells import separator_of
from skdice.datasets.conll import (
    is_conllu,
    read_conll,
    read_conllu,
)
from skdice.datasets.reading import first_line
from skdice.datasets.source import Source, check_options
from skdice.datasets.token_columns import DOCUMENT, TAG
from skdice.datasets.token_lists import (
    TAG_FIELDS,
    TEXT_FIELDS,
    are_spans,
    read_tokens,
    token_fields,
)
from skdice.datasets.token_tables import token_columns, token_table
from skdice.tags.schemes import to_tags


def is_tagged(source: Source) -> bool:
    """Return True if a file holds tokens with their tags."""
    return _reader_of(source) is not None


def read_tagged(source: Source, nested: bool = False, **options: Any) -> tuple[Any, Any]:
    """The sentences of a file and their tags.

    Where a file holds spans of tokens they are made tags, unless they may be `nested`.
    """
    source.separator = source.separator or options.get("separator")
    read: Any = _reader_of(source) or (_token_lists if source.is_json else read_conll)
    if read in (read_conll, read_conllu):
        check_options(read, options)
        X, y = unwrap(read)(source, **options)
        return X, y
    check_options(read, options, () if source.is_json else ("separator", "quoting"))
    with_tags = options.get("with_tags", True)
    return (
        token_table(source, with_tags) if read is token_table else read(source, with_tags, nested)
    )


def _reader_of(source: Source) -> Any:
    """What reads the tagged sentences of a file; None if nothing shows that it holds some."""
    if source.is_json:
        return _token_lists if any(token_fields(value) for _, value in source.values) else None
    lines = source.head
    first = first_line(lines)
    if is_conllu(lines):
        return read_conllu
    if first.startswith(("#begin document", DOCUMENT)) or _in_blocks(lines):
        return read_conll
    if not any(sign in first for sign in (source.separator or "\t", ",", ";")):
        return None
    if token_columns(source) is not None:
        return token_table
    return _token_lists if _has_words(source) else None


def _has_words(source: Source) -> bool:
    """Return True if a table holds texts with as many tags as words."""
    separator = source.separator or separator_of(source.path, source.head)
    cells = [cell.strip(' "').lower() for cell in first_line(source.head).split(separator)]
    if not ({*cells} & {*TEXT_FIELDS} and {*cells} & {*TAG_FIELDS}):
        return False
    names, _ = source.table
    return names is not None and token_fields(source.values[0][1]) is not None


def _token_lists(
    source: Source, with_tags: bool = True, nested: bool = False
) -> tuple[list[Any], list[Any]]:
    """Lists of tokens with their tags, or with spans of tokens, from JSON or from cells."""
    if not any(token_fields(value) for _, value in source.values):
        remedy = "for texts with entities, give task='entities'"
        raise ValueError(f"{str(source.path)!r} holds no lists of tokens and tags: {remedy}")
    if not source.is_json:
        names = token_fields(source.values[0][1]) or ("", None)
        source.columns = dict(zip(("token", "tag"), names, strict=True))
    rows = list(read_tokens(source, with_tags))
    y: list[Any] = [row for _, _, row in rows]
    for i, (place, tokens, row) in enumerate(() if nested else rows):
        if are_spans(row):
            try:
                y[i] = to_tags(row, len(tokens))
            except ValueError as error:
                remedy = "give task='mrc-ner'"
                raise source.fault(place, f"{error}; for nested spans, {remedy}") from error
        elif not row:
            y[i] = ["O"] * len(tokens)
    return [tokens for _, tokens, _ in rows], y


def _in_blocks(lines: list[str]) -> bool:
    """Return True if blank lines stand between blocks of lines of columns."""
    return _has_gaps(lines) and holds_columns(lines, set("OBIES"))


def holds_columns(lines: list[str], tags: Collection[str]) -> bool:
    """Tell if lines are columns of single words: after tabs, or with a tag at one end of each."""
    filled = _filled(lines)
    single = [len(line.split()) == len(line.rstrip().split("\t")) for line in filled]
    if 10 * sum(single) >= 9 * len(filled) and any("\t" in line for line in filled):
        return True
    ends = ([line.split()[i] for line in filled] for i in (0, -1))
    return len({len(line.split()) for line in filled}) == 1 and any(
        all(word in tags or TAG.fullmatch(word) for word in words) for words in ends
    )


def has_even_lines(lines: list[str]) -> bool:
    """Tell if blank lines separate lines that all have the same number of words, two or more."""
    filled = _filled(lines)
    widths = {1 if "\t" in line else len(line.split()) for line in filled}
    return _has_gaps(lines) and len(widths) == 1 and widths != {1}


def _has_gaps(lines: list[str]) -> bool:
    return "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")


def _filled(lines: list[str]) -> list[str]:
    """The first lines of tokens or texts."""
    return [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))][:200]
