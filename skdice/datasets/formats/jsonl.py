"""JSON lines of texts with entities, or of tokens with tags, as programs write them.

An entity is a list (start, end, label) or an object with these names, or with ``start_offset``,
``end_offset`` and ``entity_group`` as Doccano and transformers name them. Tokens come with tags, as
`skdice predict --format jsonl` and the hub's data sets have them, or with spans of tokens. A label
of null is a region that nobody annotated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from skdice.datasets.formats._base import JsonFormat, kept_beside, parts_of, row_of
from skdice.datasets.row import Note, Row, Wanted
from skdice.datasets.source import Source
from skdice.datasets.tagged import token_fields, token_rows
from skdice.datasets.words import joined_rows

_TEXTS = ("text", "sentence", "content", "document", "data")
_LISTS = ("entities", "annotations", "annotation", "labels", "label")


class JsonLines(JsonFormat):
    """Texts with entities that name their start, end and label."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)
    knows_unlabelled = True

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, dict):
            return ()
        items = value.get("entities", 0)
        if _are_entities(items) or any(_are_named(value.get(name)) for name in _LISTS[1:]):
            return ("entities",)
        return ("empty",) if items in (None, []) else ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        records = list(source.records())
        if any((token_fields(record) or ("", None))[1] for _, record in records):
            yield from joined_rows(source, token_rows(source, wanted.labelled))
            return
        for place, record in records:
            text = source.text_key(place, record, _TEXTS, wanted.text_column)
            name = next((n for n in (*_LISTS, "spans", "ents") if record.get(n) is not None), None)
            items = record[name] if name else []
            yield row_of(source, place, record, text, name, items if wanted.labelled else [])

    def dump(self, row: Row, predicted: bool) -> dict[str, Any]:
        entities = [parts_of(entity, "start", "end", "label", "text", "score") for entity in row.y]
        return {**kept_beside(row.meta), "text": row.x, "entities": entities}


def _are_entities(items: Any) -> bool:
    """Return True if entities are a list of lists, or of objects that are not Doccano's."""
    if not isinstance(items, list) or not items:
        return False
    return not (isinstance(items[0], dict) and "start_offset" in items[0] and "label" in items[0])


def _are_named(items: Any) -> bool:
    """Return True if a list under another name holds entities."""
    first = items[0] if isinstance(items, list) and items else None
    if isinstance(first, list):  # (type, start, end), as Argilla has it
        return [type(each) for each in first[:3]] == [str, int, int]
    return isinstance(first, dict) and {"start", "end", "label"} <= set(first)
