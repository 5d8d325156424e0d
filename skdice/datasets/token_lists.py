"""JSON of lists of tokens with their tags, or with spans of tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from skdice._checks import shown
from skdice.datasets.source import Source
from skdice.datasets.token_columns import TAG

_TOKENS = ("tokens", "words")
TEXT_FIELDS = (*_TOKENS, "sentence", "text")  # of strings, whose words stand between blanks
TAG_FIELDS = ("tags", "ner_tags", "ner", "tag", "labels", "label", "spans", "pos", "upos")


def token_fields(value: Any) -> tuple[str, str | None] | None:
    """The fields of a record's tokens and of its tags or spans.

    Tokens may be a string of words, if the tags such as ``O`` and ``B-PER`` are as many, in a
    list or a string.
    """
    if not isinstance(value, dict) or isinstance(value.get("entities"), list):
        return None
    named = {str(name).lower(): name for name in value}
    for name in _TOKENS:
        tokens = value.get(named.get(name, name))
        if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
            lists = (
                named[t] for t in TAG_FIELDS if t in named and isinstance(value[named[t]], list)
            )
            return named[name], next(lists, None)
    for name in TEXT_FIELDS:
        words = value.get(named.get(name, name))
        if not isinstance(words, str) or "_".join(words.split()) == "":
            continue
        for tag in TAG_FIELDS:
            cells = _tags_of(value.get(named.get(tag, tag)))
            if cells is None or not all(map(TAG.fullmatch, cells)):
                continue
            if len(cells) == len(words.split()) or set(cells) != {"O"}:
                return named[name], named[tag]
    return None


def _tags_of(cell: Any) -> list[str] | None:
    """The tags of a list, or of a string with blanks or commas between them."""
    cells = re.split(r"[,\s]+", cell.strip()) if isinstance(cell, str) else cell
    fits = isinstance(cells, list) and cells and all(isinstance(each, str) for each in cells)
    return cells if fits else None


def read_tokens(source: Source, with_tags: bool = True) -> Iterator[tuple[str, Any, list[Any]]]:
    """The place, the tokens, and the tags or the spans of each record."""
    for place, record in source.records():
        fields = token_fields(record)
        if fields is None or (with_tags and fields[1] is None):
            problem = f"no lists of tokens and tags, but {list(record)}"
            raise source.fault(place, f"{problem}: name them 'tokens' and 'tags'")
        tokens, tags = record[fields[0]], record[fields[1]] if fields[1] and with_tags else []
        tokens = tokens.split() if isinstance(tokens, str) else tokens
        tags = _tags_of(tags) or [] if isinstance(tags, str) else tags
        if any(isinstance(tag, int) for tag in tags):
            problem = f"{fields[1]!r} holds ids: write the names of the tags, or give the "
            raise source.fault(place, problem + "data set of Hugging Face, which has them")
        if all(tag is None or isinstance(tag, str) for tag in tags):
            if tags and len(tags) != len(tokens):
                problem = f"{len(tokens)} tokens, but {len(tags)} tags: mend the row"
                raise source.fault(place, problem)
            yield place, tokens, tags
            continue
        spans = list(map(_token_span, tags))
        if None in spans:
            raise source.fault(place, f"{shown(tags)} are no tags, or spans (type, start, end)")
        yield place, tokens, spans


def _token_span(item: Any) -> tuple[str, int, int] | None:
    if isinstance(item, dict):
        item = [item.get(name) for name in ("type", "start", "end")]
    if not isinstance(item, list) or [type(each) for each in item[:3]] != [str, int, int]:
        return None
    return item[0], item[1], item[2]  # without its score


def are_spans(row: list[Any]) -> bool:
    """Return True if a row of `read_tokens` holds spans."""
    return bool(row) and isinstance(row[0], tuple)
