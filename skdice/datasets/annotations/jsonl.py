"""JSON lines of texts with entities, or of tokens with tags, as programs write them.

An entity is a list (start, end, label) or an object with these names, or with ``start_offset``,
``end_offset`` and ``entity_group`` as Doccano and transformers name them. Tokens come with tags, as
`skdice predict --format jsonl` and the hub's data sets have them, or with spans of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice._checks import shown
from skdice.datasets.annotations.records import Record, Row, Source, Span, marks, spans_of, without
from skdice.metrics.schemes import get_spans, infer_scheme

UNIT = "codepoints"
_TEXTS = ("text", "sentence", "content", "document", "data")
_LISTS = ("entities", "spans", "ents", "annotations", "labels", "label")
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


def fits(value: Any) -> bool:
    """Whether a JSON value is a record of this format."""
    if fields := token_fields(value):
        return fields[1] is not None
    return isinstance(value, dict) and isinstance(
        value.get("entities", 0), (list, dict, type(None))
    )


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


def _are_spans(row: list[Any]) -> bool:
    return bool(row) and isinstance(row[0], tuple)


def joined(tokens: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of tokens with blanks between them, and where each begins and ends."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), places


def token_records(
    source: Source, rows: list[tuple[str, Any, list[Any]]], metadata: list[dict[str, Any]]
) -> Iterator[Record]:
    """Records of tokens with tags or spans."""
    tags = [[tag or "O" for tag in row] for _, _, row in rows if row and not _are_spans(row)]
    scheme = infer_scheme(tags)
    if scheme == "plain" and any(tag != "O" for row in tags for tag in row):
        raise ValueError(
            f"{str(source.path)!r} holds tags without B- and I-, such as {tags[0][0]!r}"
        )
    for (place, tokens, spans), more in zip(rows, metadata, strict=True):
        text, places = joined(tokens)
        if not _are_spans(spans):  # a tag of None is a token that nobody annotated
            unknown = [(None, i, i + 1) for i, tag in enumerate(spans) if tag is None]
            spans = [*get_spans([tag or "O" for tag in spans], scheme), *unknown]
        for kind, start, end in spans:
            if not 0 <= start < end <= len(tokens):
                problem = f"the span {kind!r} from {start} to {end} is outside {len(tokens)} tokens"
                raise source.fault(place, problem)
        found = [Span(((places[a][0], places[b - 1][1]),), kind) for kind, a, b in spans]
        yield Record(place, (text,), found, more, unit="codepoints")


def read(source: Source) -> Iterator[Record]:
    """The records of a file."""
    records = list(source.records())
    if any(token_fields(record) for _, record in records):
        metadata = [without(record, *(token_fields(record) or ())) for _, record in records]
        yield from token_records(source, list(read_tokens(source, source.with_entities)), metadata)
        return
    for place, record in records:
        text = source.text_key(place, record, _TEXTS)
        name = next((name for name in _LISTS if record.get(name) is not None), None)
        items = record[name] if name else []
        if isinstance(items, dict):  # of lists, as data sets of Hugging Face hold lists of objects
            names, lists = list(items), list(items.values())
            items = [dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True)]
        spans = spans_of(source, place, items if source.with_entities else [])
        more = without(record, text, name, *marks(record))
        yield Record(place, (record[text],), spans, more, unit=record.get(*marks(record) or [""]))


def dump(row: Row) -> dict[str, Any]:
    """A text as a JSON value."""
    entities = [
        without(entity._asdict(), "score" if entity.score is None else None)
        for entity in row.entities
    ]
    return {**row.metadata, "text": row.text, "entities": entities}
