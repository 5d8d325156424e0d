"""Metadata that a format would take for its own fields, or another format for its: kept apart.

A value is read back as it is written. Where that does not give the same text with the same
metadata, by the format that is found, the metadata go into one field, with the format's name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skdice.datasets.annotations._find import APART, find_format
from skdice.datasets.annotations._format import JsonFormat, Row, as_json, without
from skdice.datasets.annotations._offsets import units_before
from skdice.datasets.source import Source
from skdice.datasets.tokens import token_fields


def value_of(row: Row, form: JsonFormat, offsets: str) -> Any:
    """The JSON value of a text, whose offsets count the units of its tool or others."""
    value = _dumped(row, form, offsets)
    if _reads_as(value, row, form):
        return value
    for outside in ({"id"}, set[str]()):
        kept = {name: v for name, v in row.metadata.items() if name in outside}
        apart = {"format": form.name, "metadata": without(row.metadata, *kept)}
        value = _dumped(row._replace(metadata={**kept, APART: apart}), form, offsets)
        if _reads_as(value, row, form):
            break
    return value


def together(metadata: dict[str, Any], format: str) -> dict[str, Any]:
    """Metadata without the field in which some stood apart."""
    mark = metadata.get(APART)
    if not isinstance(mark, dict) or mark.get("format") != format:
        return metadata
    apart = mark.get("metadata")
    return {**without(metadata, APART), **(apart if isinstance(apart, dict) else {})}


def _dumped(row: Row, form: JsonFormat, offsets: str) -> Any:
    unit = form.unit if offsets == "auto" else offsets
    before = units_before(row.text, unit)
    if not form.lines or before[-1] == len(row.text):
        return form.dump(row)
    moved = [e._replace(start=before[e.start], end=before[e.end]) for e in row.entities]
    return {**form.dump(row._replace(entities=moved)), "offsets": unit}


def _reads_as(value: Any, row: Row, form: JsonFormat) -> bool:
    source = Source(Path("row"))
    source.values = [("row", read := json.loads(as_json(value)))]
    if token_fields(read) or find_format(source) != form.name:
        return False
    try:
        records = list(form.read(source))
    except ValueError:
        return False
    if len(records) != 1 or len(records[0].spans) != len(row.entities):
        return False
    found = without(together(records[0].metadata, form.name), "entity_scores")
    return records[0].texts[0] == row.text and found == json.loads(as_json(row.metadata))
