"""spaCy: training data as JSON, and JSON of documents.

Read from spaCy 3.8's ``Doc.to_json`` and the training data of its pages. Read are pairs of a text
and a dict with ``entities`` (also below ``annotations``, as some tools write them), and documents
with ``ents`` and ``spans``. Metadata, where there is some, is the third of three. Of ``.spacy``
files and paragraphs of version 2, spaCy itself makes such JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice._checks import shown
from skdice.datasets.formats._base import Format, spans_of
from skdice.datasets.row import Marks, Note, Row, Wanted, without
from skdice.datasets.source import Source


class Spacy(Format):
    """Pairs of a text and its entities, and documents."""

    is_json = True

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        if _is_pair(value):
            fields = {"entities": "entities", "classification": "cats"}
            return tuple(t for t, name in fields.items() if value[1].get(name)) or ("empty",)
        if not isinstance(value, dict):
            return ()
        return _tasks_of_document(value)

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        for place, value in source.values:
            if wanted.of_labels:
                yield _cats(source, place, value, wanted)
            elif isinstance(value, dict) and "ents" in value:
                yield _document(source, place, value, wanted)
            else:
                yield from _pairs(source, place, value, wanted)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and [type(each) for each in value[:2]] == [str, dict]


def _tasks_of_document(value: dict[str, Any]) -> tuple[str, ...]:
    """The tasks of a document of `Doc.to_json`, by what it holds."""
    pairs = value.get("annotations")
    if isinstance(pairs, list) and any(map(_is_pair, pairs)):
        return ("entities",)
    ents, cats, groups = (value.get(name) for name in ("ents", "cats", "spans"))
    if "text" not in value or not (isinstance(ents, list) or isinstance(cats, dict)):
        return ()
    has_spans = isinstance(groups, dict) and any(groups.values())
    held = ["entities"] if ents or has_spans else []
    held += ["classification"] if cats and isinstance(cats, dict) else []
    return tuple(held) or ("empty",)


def _cats(source: Source, place: Any, value: Any, wanted: Wanted) -> Row:
    """The categories of a score of at least a half, as spaCy's own trainer takes them."""
    text, fields = value[:2] if _is_pair(value) else (None, value)
    if not isinstance(fields, dict):
        raise source.fault(place, f"{shown(value)} is no text with 'cats'")
    if text is None:
        text = fields[source.text_key(place, fields, ("text",), wanted.text_column)]
    cats = (wanted.labelled and fields.get("cats")) or {}
    if not isinstance(cats, dict) or not all(
        isinstance(score, (int, float)) for score in cats.values()
    ):
        raise source.fault(place, f"'cats' is {shown(cats)}, not a score for each category")
    metadata = {"answer": fields["answer"]} if "answer" in fields else {}
    held = [name for name, score in cats.items() if score >= 0.5]
    return Row(place, text, {"cats": held} if cats else None, metadata)


def _pairs(source: Source, place: str, value: Any, wanted: Wanted) -> Iterator[Row]:
    pairs = [value]
    if isinstance(value, dict):
        pairs = [pair for pair in source.listed(place, value, "annotations") if pair]
    for i, pair in enumerate(pairs, 1):
        where = place if len(pairs) == 1 else f"{place}, pair {i}"
        if not _is_pair(pair):
            raise source.fault(where, f"{shown(pair)} is no pair of a text and its entities")
        items = source.listed(where, pair[1], "entities") if wanted.labelled else []
        more = pair[2] if len(pair) > 2 and isinstance(pair[2], dict) else {}
        metadata = {**without(pair[1], "entities"), **more}
        yield Row(where, pair[0], Marks(spans_of(source, where, items)), metadata)


def _document(source: Source, place: str, value: dict[str, Any], wanted: Wanted) -> Row:
    """A document of `Doc.to_json`, whose span groups may repeat its entities."""
    groups = value.get("spans") or {}
    if not isinstance(groups, dict):
        raise source.fault(place, f"'spans' is {shown(groups)}, not groups of spans")
    listed = [source.listed(place, value, "ents", dict)]
    listed += [source.listed(place, groups, name, dict) for name in groups]
    items = {shown([i.get(n) for n in ("start", "end", "label")]): i for e in listed for i in e}
    text = source.text_key(place, value, ("text",), wanted.text_column)
    found = spans_of(source, place, list(items.values()) if wanted.labelled else [])
    metadata = without(value, text, "ents", "spans", "tokens")
    return Row(place, value[text], Marks(found), metadata)
