"""Doccano: JSON lines of sequence labelling, in the form without and with relations.

Read from Doccano 1.8.4's ``backend/data_export/pipeline`` (``factories.py``, ``formatters.py``) and
``backend/data_import/pipeline/label.py``. Its editor counts UTF-16 code units (issues 2290 and 2484
of doccano/doccano), while programs that make such files count code points as a rule. So a record
that we write says which, in a field ``offsets``, if its text holds characters beyond U+FFFF;
Doccano keeps that field as metadata. Where an entity has a ``label_name``, its ``label`` is an id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice.datasets.annotations._format import (
    JsonFormat,
    Record,
    Row,
    marks,
    span_of,
    spans_of,
    without,
)
from skdice.datasets.source import Source

_LISTS = ("label", "labels", "entities", "annotations")


def _entities(record: dict[str, Any]) -> str | None:
    """The field of the entities: the first that holds some, or else the first that is there."""
    lists = [name for name in _LISTS if record.get(name) is None or isinstance(record[name], list)]
    there = [name for name in lists if name in record]
    return next((name for name in there if record[name]), there[0] if there else None)


class Doccano(JsonFormat):
    """Texts with lists of (start, end, label), or with entities and relations."""

    unit = "utf16"
    rank = 20

    def fits(self, value: Any) -> bool:
        name = _entities(value) if isinstance(value, dict) and "tokens" not in value else None
        first = next(iter(value[name] or []), None) if name else None
        if isinstance(first, dict):
            return "start_offset" in first
        return (
            name in ("label", "labels") and isinstance(first, list) and span_of(first) is not None
        )

    def is_empty(self, value: Any) -> bool:
        name = _entities(value) if isinstance(value, dict) and "text" in value else None
        return name is not None and not value[name]

    def read(self, source: Source) -> Iterator[Record]:
        for place, record in source.records():
            text, name = source.text_key(place, record, ("text", "data")), _entities(record)
            items = source.listed(place, record, name) if name and source.with_entities else []
            metadata = without(record, text, name, *marks(record))
            if record.get("relations"):  # which name entities by their ids
                metadata["entity_ids"] = [
                    item.get("id") for item in items if isinstance(item, dict)
                ]
            unit = record.get(*marks(record) or [""])
            yield Record(
                place, (record[text],), spans_of(source, place, items), metadata, unit=unit
            )

    def dump(self, row: Row) -> dict[str, Any]:
        ids, scores = row.metadata.get("entity_ids"), [entity.score for entity in row.entities]
        out = {**without(row.metadata, "entity_ids", *_LISTS), "text": row.text}
        if any(score is not None for score in scores):  # no field of Doccano's holds them
            out["entity_scores"] = scores
        if row.metadata.get("relations") and ids and len(ids) == len(row.entities):
            out["entities"] = [
                {"id": name, "label": e.label, "start_offset": e.start, "end_offset": e.end}
                for name, e in zip(ids, row.entities, strict=True)
            ]
        else:
            out["label"] = [[e.start, e.end, e.label] for e in row.entities]
        return out
