"""JSON of lists of tokens with their tags, or with spans of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice._checks import shown
from skdice.datasets.source import Source

_TOKENS = ("tokens", "words")
_TAGS = ("tags", "ner_tags", "ner", "labels", "label", "spans")


def token_fields(value: Any) -> tuple[str, str | None] | None:
    """The fields of a record's tokens and of its tags or spans."""
    if not isinstance(value, dict) or isinstance(value.get("entities"), list):
        return None
    for name in _TOKENS:
        tokens = value.get(name)
        if isinstance(tokens, list) and all(isinstance(token, str) for token in tokens):
            lists = (tag for tag in _TAGS if isinstance(value.get(tag), list))
            return name, next(lists, None)
    return None


def read_tokens(source: Source, with_tags: bool = True) -> Iterator[tuple[str, Any, list[Any]]]:
    """The place, the tokens, and the tags or the spans of each record."""
    for place, record in source.records():
        fields = token_fields(record)
        if fields is None or (with_tags and fields[1] is None):
            problem = f"no lists of tokens and tags, but {list(record)}"
            raise source.fault(place, f"{problem}: name them 'tokens' and 'tags'")
        tokens, tags = record[fields[0]], record[fields[1]] if fields[1] and with_tags else []
        if any(isinstance(tag, int) for tag in tags):
            problem = f"{fields[1]!r} holds ids: write the names of the tags, or give the "
            raise source.fault(place, problem + "data set of Hugging Face, which has them")
        if all(tag is None or isinstance(tag, str) for tag in tags):
            if tags and len(tags) != len(tokens):
                raise source.fault(place, f"{len(tokens)} tokens, but {len(tags)} tags")
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
