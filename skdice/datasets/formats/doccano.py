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

from skdice.datasets.formats._base import (
    JsonFormat,
    if_any,
    kept_beside,
    row_of,
    span_of,
)
from skdice.datasets.row import Note, Row, Wanted
from skdice.datasets.source import Source

_LABELS = ("label", "labels")
_LISTS = ("label", "labels", "entities", "annotations")


def _entities(record: dict[str, Any]) -> str | None:
    """The field of the entities: the first that holds some, or else the first that is there."""
    may_be = (list, type(None))
    there = [name for name in _LISTS if name in record and isinstance(record[name], may_be)]
    return next((name for name in there if record[name]), there[0] if there else None)


def _is_entity(first: Any, name: str) -> bool:
    """Return True if the first of a list is an entity, as Doccano writes it there."""
    if isinstance(first, dict):
        return "start_offset" in first
    return name in _LABELS and isinstance(first, list) and span_of(first) is not None


class Doccano(JsonFormat):
    """Texts with lists of (start, end, label), or with entities and relations."""

    unit = "utf16"

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        name = _entities(value) if isinstance(value, dict) else None
        if name is None:
            return ()
        if value[name]:
            return ("entities",) if _is_entity(value[name][0], name) else ()
        is_text = "text" in value or "data" in value
        return ("empty",) if is_text and name in _LABELS else ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        for place, record in source.records():
            text = source.text_key(place, record, ("text", "data"), wanted.text_column)
            name = _entities(record)
            items = source.listed(place, record, name) if name and wanted.labelled else []
            yield row_of(source, place, record, text, name, items)

    def dump(self, row: Row, predicted: bool) -> dict[str, Any]:
        scores = [entity.score for entity in row.y]  # no field of Doccano's holds them
        out = {**kept_beside(row.meta), "text": row.x, **if_any("entity_scores", scores)}
        return {**out, "label": [[e.start, e.end, e.label] for e in row.y]}
