"""BioC, in JSON and XML: documents of passages, as PubTator and other services give them.

Read from "BioC: a minimalist approach to interoperability for biomedical text processing" (Comeau
et al., Database 2013), its ``BioC.dtd``, and the JSON of PubTator 3. The passages of a document are
one text, with a line break for each character between them. Documents may also come one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from skdice._checks import shown
from skdice.datasets.formats._base import Format, if_any
from skdice.datasets.row import Marks, Note, Row, Span, Wanted, without
from skdice.datasets.source import Source

_LAYER = re.compile(r"(webanno\.custom|de\.tudarmstadt)\.[\w.]+")  # that INCEpTION exports


class BioC(Format):
    """Documents of passages with annotations."""

    begins = r"\s*(?=<)[\s\S]*<collection"

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        documents = (each for each in _documents(value) if isinstance(each, dict))
        has_passages = any(isinstance(each.get("passages"), list) for each in documents)
        return ("entities",) if has_passages else ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        values = source.values if source.is_json else [("the file", _of_xml(source))]
        number = 0
        for place, value in values:
            for document in _documents(value):
                number += 1
                where = place if document is value else f"{place}, document {number}"
                yield _row(source, where, document, wanted)


def _documents(value: Any) -> list[Any]:
    """The documents of a collection, or a document."""
    if not isinstance(value, dict):
        return []
    for name in ("documents", "PubTator3"):
        if isinstance(value.get(name), list):
            return list(value[name])
    return [value] if "passages" in value else []


def _row(source: Source, place: str, document: Any, wanted: Wanted) -> Row:
    if source.listed(place, document, "annotations", dict) and wanted.labelled:
        raise source.fault(place, "an annotation stands outside the passages: move it into one")
    text, moved = "", 0  # how far offsets are from the text's
    spans: list[Span] = []
    identifiers: list[Any] = []
    for piece, held, is_passage in _pieces(source, place, document):
        offset = piece.get("offset", len(text))
        if type(offset) is not int:
            raise source.fault(place, f"a passage has the offset {shown(offset)}")
        if held:
            gap = max(0, offset - (len(text) - moved)) if text else 0
            if gap > 10_000_000:
                raise source.fault(place, f"a passage has the offset {offset}")
            text += "\n" * gap
            moved = len(text) - offset
            text += held
        elif is_passage:
            moved = 0
        for item in source.listed(place, piece, "annotations", dict) if wanted.labelled else ():
            spans.append(_span(source, place, item, moved, wanted.feature))
            identifiers.append(_infons_of(item).get("identifier"))
    metadata = {"id": document.get("id"), **_infons_of(document)}
    known = {name: value for name, value in metadata.items() if value is not None}
    return Row(place, text, Marks(spans), {**known, **if_any("identifiers", identifiers)})


def _pieces(
    source: Source, place: str, document: Any
) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """The passages and their sentences, the text that each adds, and whether it is a passage."""
    for passage in source.listed(place, document, "passages", dict):
        for piece in (passage, *source.listed(place, passage, "sentences", dict)):
            held = piece.get("text") or ""
            if not isinstance(held, str):
                raise source.fault(place, f"a passage has the text {shown(held)}")
            is_passage = piece is passage
            yield piece, held if is_passage or not passage.get("text") else "", is_passage


def _infons_of(part: dict[str, Any]) -> dict[str, Any]:
    infons = part.get("infons")
    return infons if isinstance(infons, dict) else {}


def _span(
    source: Source, place: str, item: dict[str, Any], moved: int, feature: str | None
) -> Span:
    parts = []
    for location in source.listed(place, item, "locations", dict):
        start, length = location.get("offset"), location.get("length")
        if type(start) is not int or type(length) is not int:
            raise source.fault(place, f"an annotation has the location {shown(location)}")
        parts.append((start + moved, start + moved + length))
    if not parts:
        raise source.fault(place, f"the annotation {shown(item)} has no location")
    infons = _infons_of(item)
    label = infons.get("type")
    if isinstance(label, str) and _LAYER.fullmatch(label):
        label = _of_layer(source, place, label, infons, feature)
    return Span(tuple(parts), label, item.get("text"))


def _of_layer(
    source: Source, place: str, layer: str, infons: dict[str, Any], feature: str | None
) -> Any:
    """The label of an annotation whose type is a layer of INCEpTION: the value of a feature."""
    values = without(infons, "type", "identifier")
    if feature is None and len(values) > 1 and "value" not in values:
        problem = f"the layer {layer!r} has the features {list(values)}: give feature= for one"
        raise source.fault(place, problem)
    if not values and feature is None:
        return layer.rpartition(".")[2]
    return values.get(feature or ("value" if "value" in values else next(iter(values))))


# ---- XML


def _of_xml(source: Source) -> dict[str, Any]:
    try:
        root = ElementTree.fromstring(source.text)
    except (ElementTree.ParseError, ValueError) as error:
        raise source.fault("the file", f"it is no XML: {error}") from error
    _check_places(source, root)
    return {"documents": [_element(source, node) for node in root.findall("document")]}


_INSIDE = {  # the parts that an element of BioC may have
    "collection": {"document"},
    "document": {"passage"},
    "passage": {"sentence", "annotation", "text"},
    "sentence": {"annotation", "text"},
    "annotation": {"location", "text"},
}
_PARTS = {part for parts in _INSIDE.values() for part in parts}


def _check_places(source: Source, root: Any) -> None:
    """Refuse a part that stands where it would be read past, or twice."""
    for node in root.iter():
        tags = [child.tag for child in node]
        outside = {*tags} & _PARTS - _INSIDE.get(node.tag, _PARTS)
        twice = [tag for tag in ("id", "offset", "text") if tags.count(tag) > 1]
        if outside or twice:
            problem = f"<{[*outside, *twice][0]}> stands in <{node.tag}>, "
            problem += "outside the passages or another place that may hold it, or twice"
            raise source.fault("the file", problem)


def _element(source: Source, node: Any) -> dict[str, Any]:
    """A document, a passage, a sentence or an annotation, as JSON has it."""
    found: dict[str, Any] = {"infons": _infons_in(source, node)}
    for name in ("id", "text"):
        if (child := node.find(name)) is not None:
            found[name] = "".join(child.itertext())
    if (offset := node.find("offset")) is not None:
        found["offset"] = _number(source, offset.text)
    for kind in ("passage", "sentence", "annotation"):
        found[f"{kind}s"] = [_element(source, child) for child in node.findall(kind)]
    found["locations"] = [
        {name: _number(source, place.get(name)) for name in ("offset", "length")}
        for place in node.findall("location")
    ]
    return found


def _infons_in(source: Source, node: Any) -> dict[Any, str]:
    infons = [(each.get("key"), each.text or "") for each in node.findall("infon")]
    if len({value for key, value in infons if key == "type"}) > 1:
        raise source.fault("the file", f"a <{node.tag}> has two types: {shown(infons)}")
    return dict(infons)


def _number(source: Source, text: str | None) -> int:
    if not re.fullmatch(r"\s*\d{1,15}\s*", text or ""):
        raise source.fault("the file", f"an offset or a length is {text!r}, not a whole number")
    return int(text or "")
