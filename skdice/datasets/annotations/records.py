"""What the readers give and the writers take: a text, its entities, and all else as metadata."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import shown
from skdice.datasets.files import fault, json_values, read_lines

# What the tools and programs call the parts of an entity; the first is our own name.
_STARTS = ("start", "start_offset", "start_char", "begin", "startOffset")
_ENDS = ("end", "end_offset", "end_char", "stop", "endOffset")
_LABELS = ("label", "entity_group", "label_", "type", "tag", "entity")


class Span(NamedTuple):
    """An entity as a tool wrote it, before its offsets are checked."""

    parts: tuple[tuple[Any, Any], ...]  # its start and end; several if it is discontinuous
    label: Any
    text: Any = None  # that it holds, where the tool says so
    score: Any = None


class Record(NamedTuple):
    """A text as a tool wrote it."""

    place: str
    texts: tuple[str, ...]  # in which the offsets may count; the first is preferred
    spans: list[Span]
    metadata: dict[str, Any]
    checks: tuple[Span, ...] = ()  # tokens, whose texts show whether offsets are right
    unit: str | None = None  # what the record says that its offsets count


def without_scores(record: Record) -> Record:
    """A record of entities that a person accepted: they are no predictions any more."""
    return record._replace(spans=[span._replace(score=None) for span in record.spans])


@dataclass
class Source:
    """A file, or its values, for the readers."""

    path: Path
    encoding: str = "utf-8"
    text_column: str | None = None
    with_entities: bool = True
    skipped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of a file."""
        return read_lines(self.path, self.encoding)

    @cached_property
    def values(self) -> list[tuple[str, Any]]:
        """The values of a JSON file and their places."""
        return json_values(self.path, self.lines)

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The JSON objects of a file."""
        for place, value in self.values:
            if not isinstance(value, dict):
                raise self.fault(place, f"{shown(value)} is not a JSON object, as each must be")
            yield place, value

    def fault(self, place: str, problem: str) -> ValueError:
        """An error that names the file and the place."""
        return fault(self.path, place, problem)

    def text_key(self, place: str, record: Mapping[str, Any], names: tuple[str, ...]) -> str:
        """The first of the usual names, or the one that the user gave, that holds a text."""
        for name in (self.text_column,) if self.text_column else names:
            if isinstance(record.get(name), str):
                return str(name)
        wanted = self.text_column or " or ".join(names)
        problem = f"no text under {wanted!r}, but {list(record)}"
        raise self.fault(place, f"{problem}: say where it is with text_column (--text-column)")

    def listed(self, place: str, record: Mapping[str, Any], name: str) -> list[Any]:
        """A list of a record, which may be null or missing."""
        value = record.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(place, f"{name!r} is {shown(value)}, not a list")
        return value


def span_of(item: Any) -> Span | None:
    """An entity of three values or more, or of a mapping or an object with the usual names."""
    if isinstance(item, (list, tuple)) and not hasattr(item, "_fields"):
        if len(item) < 3:
            return None
        if isinstance(item[0], str) and not isinstance(item[2], str):
            item = (item[1], item[2], item[0], *item[3:])
        text = next((value for value in item[3:] if isinstance(value, str)), None)
        score = next((value for value in item[3:] if isinstance(value, float)), None)
        return Span(((item[0], item[1]),), item[2], text, score)
    fields = item if isinstance(item, Mapping) else _Fields(item)
    unnamed = isinstance(item, Mapping) and not set(_LABELS) & set(item)
    # A pipeline's `word` is what its tokenizer decodes, which may be in lower case: no evidence.
    start, end, label, text, score = (
        next((value for name in names if (value := fields.get(name)) is not None), None)
        for names in (_STARTS, _ENDS, _LABELS, ("text",), ("score",))
    )
    if start is None and end is None:
        return None
    return Span(((start, end),), "" if unnamed else label, text, score)


class _Fields(NamedTuple):
    """The attributes of an object, as a mapping gives its values."""

    owner: Any

    def get(self, name: str) -> Any:
        return getattr(self.owner, name, None)


def marks(record: Mapping[str, Any]) -> list[str]:
    """The field that says what offsets count, if the record has it; we write it."""
    return ["offsets"] if record.get("offsets") in ("codepoints", "utf16", "bytes") else []


def spans_of(source: Source, place: str, items: Any) -> list[Span]:
    """The entities of a list."""
    spans = []
    if not isinstance(items, list):
        raise source.fault(place, f"{shown(items)} is no list of entities")
    for item in items:
        span = span_of(item)
        if span is None:
            raise source.fault(place, f"{shown(item)} is no entity: it needs start, end and label")
        spans.append(span)
    return spans


def without(record: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    """All of a record but some of its fields."""
    return {name: value for name, value in record.items() if name not in names}


# Some programs end a line at these.
_LINE_ENDS = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}


def as_json(value: Any, ensure_ascii: bool = False) -> str:
    """A value on one line; numbers of numpy are numbers, and what JSON lacks is its string."""

    def plain(each: Any) -> Any:
        return each.item() if hasattr(each, "item") else str(each)

    text = json.dumps(value, ensure_ascii=ensure_ascii, default=plain)
    return text.translate(_LINE_ENDS)


class Entity(NamedTuple):
    """An entity to write; the offsets count what the tool counts."""

    start: int
    end: int
    label: Any
    text: str
    score: float | None = None


class Row(NamedTuple):
    """A text to write."""

    text: str
    entities: list[Entity]
    metadata: dict[str, Any]
    predicted: bool = False
