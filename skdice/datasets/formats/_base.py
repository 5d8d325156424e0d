"""The protocol of a format: how its files are known and read, and perhaps written.

A format is one module in `skdice.datasets.formats`, with one subclass of `Format`, and a
line of `skdice/_names.py`, where `skdice convert`, `predict` and the readers find it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from skdice._checks import shown
from skdice._names import FORMATS, made
from skdice.datasets.row import UNITS, Marks, Note, Row, Span, Wanted, span, without
from skdice.datasets.source import Source
from skdice.inputs.entities import Entity, fields_of


class Format(ABC):
    """The files of one tool."""

    name: str
    unit: ClassVar[str] = "codepoints"  # that offsets count
    suffixes: ClassVar[tuple[str, ...]] = ()  # of files to write, which name the format
    knows_unlabelled: ClassVar[bool] = False  # whether a label of None marks a region
    is_json: ClassVar[bool] = False  # whether its files are JSON whatever their names
    begins: ClassVar[str | None] = None  # a pattern of the first lines of others
    keeps: ClassVar[tuple[str, ...] | None] = None  # metadata with a place in it; None is all

    def is_folder(self, path: Path) -> bool:
        """Return True if a folder holds files of this format, with a text in each."""
        return False

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        """The tasks of a value of a JSON file, if it looks like one of this format.

        They are "entities", "classification", or both, and "empty" for a text in which nothing is
        marked.
        """
        return ()

    @abstractmethod
    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        """The texts of a file, with their `Marks`, or with labels if these are wanted."""

    def write(self, path: Path, rows: list[Row]) -> None:
        """Write all texts, if `dump` does not; y of a row are its entities, of type `Entity`."""
        raise NotImplementedError(f"no file of {self.name} is written so")


class JsonFormat(Format):
    """A format that is written as one JSON value for each text, in lines or in an array."""

    is_json = True
    lines: ClassVar[bool] = True

    @abstractmethod
    def dump(self, row: Row, predicted: bool) -> Any:
        """A text as a JSON value; offsets count what the tool counts."""


@cache
def formats() -> dict[str, Format]:
    """The formats by name."""
    found: dict[str, Format] = {}
    for name, place in FORMATS.items():
        found[name] = made("datasets.formats", place)
        type(found[name]).name = name
    return found


# ---- for the readers


def span_of(item: Any) -> Span | None:
    """An entity of a file, which may begin with its type; None if it has no place."""
    if isinstance(item, list) and len(item) < 3:
        return None
    if isinstance(item, list) and isinstance(item[0], str) and not isinstance(item[2], str):
        item = [item[1], item[2], item[0], *item[3:]]
    found = {"start": None, "end": None, "label": "", **fields_of(item)}
    return None if found["start"] is None and found["end"] is None else span(**found)


def without_scores(spans: list[Span]) -> list[Span]:
    """Entities that a person accepted: they are no predictions any more."""
    return [each._replace(score=None) for each in spans]


def spans_of(source: Source, place: str, items: Any) -> list[Span]:
    """The entities of a list."""
    if not isinstance(items, list):
        raise source.fault(place, f"{shown(items)} is no list of entities")
    spans = [found for item in items if (found := span_of(item)) is not None]
    if len(spans) < len(items):
        wrong = next(item for item in items if span_of(item) is None)
        raise source.fault(place, f"{shown(wrong)} is no entity: it needs start, end and label")
    return spans


def row_of(
    source: Source, place: str, record: Mapping[str, Any], text: str, name: str | None, items: Any
) -> Row:
    """The row of a record: its text, its entities, and all that its other fields hold.

    One of these may say what offsets count, as we write it.
    """
    unit = record.get("offsets")
    unit = unit if unit in UNITS else None
    rest = rest_of(record, text, name, "offsets" if unit else None)
    return Row(place, record[text], Marks(spans_of(source, place, items), unit=unit), rest)


OWN = "skdice"  # the field of what another reader would take for its own
# The fields that readers look at.
_READ = {
    *("text", "data", "label", "labels", "entities", "spans", "ents", "annotations", "annotation"),
    *("predictions", "cats", "accept", "answer", "tokens", "words", "paragraphs"),
    *("documents", "passages", "PubTator3", "annotation_id", "lead_time", "offsets", "query"),
    *("entity_label", "question", "context", "qas", "sentence", "content", "document"),
    *("ner", "relations", "entity_ids", OWN),
    *("target", "class", "y", "tag", "gold_label", "is_duplicate", "quality", "entity_scores"),
    *("tags", "ner_tags"),
}


def kept_beside(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata to write beside a text and its entities; what a reader looks at is under one key."""
    obeyed = ("answer", "accept")  # of Prodigy, which changes nothing
    others = {n: value for n, value in metadata.items() if n in _READ and (n, value) != obeyed}
    return {**without(metadata, *others), **({OWN: others} if others else {})}


def rest_of(record: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    """The metadata of a record: all but some fields, and what is under our key."""
    rest = without(record, *names)
    ours = rest.pop(OWN, None) if isinstance(rest.get(OWN), dict) else None
    return {**rest, **(ours or {})}


# ---- for the writers


def parts_of(entity: Entity, *names: str) -> dict[str, Any]:
    """Some parts of an entity by their names; a score only if there is one."""
    parts = {name: getattr(entity, name) for name in names}
    return without(parts, "score") if entity.score is None else parts


def if_any(name: str, values: list[Any]) -> dict[str, list[Any]]:
    """The values of entities under a name; nothing if all are None."""
    return {name: values} if any(value is not None for value in values) else {}


# Some programs end a line at these.
_LINE_ENDS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}


def as_json(value: Any, ensure_ascii: bool = False) -> str:
    """A value on one line; numbers of numpy are numbers, and what JSON lacks is its string."""

    def plain(each: Any) -> Any:
        return each.item() if hasattr(each, "item") else str(each)

    text = json.dumps(value, ensure_ascii=ensure_ascii, default=plain)
    return text.translate(_LINE_ENDS)
