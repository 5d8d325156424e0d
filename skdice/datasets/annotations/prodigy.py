"""Prodigy: JSON lines of `db-out`, with the spans of ``ner`` and ``spans``.

Read from the page "Annotation interfaces" of Prodigy 1.18 (prodigy.ai/docs/api-interfaces). Its
offsets are spaCy's, which count code points. Tokens, where they are there, show whether offsets fit
the text. Records whose ``answer`` is ``reject`` or ``ignore`` are left out, and so are such spans.
The score of a span is kept there, and the lowest of a text in ``meta``, which is shown below the
text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice.datasets.annotations._format import (
    JsonFormat,
    Record,
    Row,
    Span,
    spans_of,
    without,
    without_scores,
)
from skdice.datasets.source import Source


class Prodigy(JsonFormat):
    """Texts with spans, and with answers."""

    rank = 30

    def fits(self, value: Any) -> bool:
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            return False
        spans = value.get("spans")
        if not isinstance(spans, list):
            return False
        marks = {"_input_hash", "_task_hash", "answer"} & set(value)
        return bool(marks) or any(isinstance(span, dict) and "start" in span for span in spans)

    def is_empty(self, value: Any) -> bool:
        return isinstance(value, dict) and "text" in value and value.get("spans") == []

    def read(self, source: Source) -> Iterator[Record]:
        for place, record in source.records():
            answer = record.get("answer")
            text = source.text_key(place, record, ("text",))
            items = source.listed(place, record, "spans") if source.with_entities else []
            kept = [item for item in items if not _is_refused(item)]
            source.skipped["spans that were rejected or ignored"] += len(items) - len(kept)
            listed = source.listed(place, record, "tokens")
            listed = listed if all(isinstance(token, dict) for token in listed) else []
            tokens = spans_of(source, place, listed)  # other lists are no tokens of Prodigy's
            checks = tuple(Span(token.parts, None, token.text) for token in tokens)
            metadata = _without_lowest(without(record, text, "spans"), kept)
            found = Record(place, (record[text],), spans_of(source, place, kept), metadata, checks)
            yield found if answer is None else without_scores(found)

    def dump(self, row: Row) -> dict[str, Any]:
        spans = []
        for entity in row.entities:
            score = {} if entity.score is None else {"score": entity.score}
            spans.append({"start": entity.start, "end": entity.end, "label": entity.label, **score})
        out = {**without(row.metadata, "spans"), "text": row.text, "spans": spans}
        scores = [entity.score for entity in row.entities if entity.score is not None]
        if scores:
            meta = out.get("meta")
            out["meta"] = {**(meta if isinstance(meta, dict) else {}), "score": min(scores)}
        return out


def _is_refused(span: Any) -> bool:
    return isinstance(span, dict) and span.get("answer") in ("reject", "ignore")


def _without_lowest(metadata: dict[str, Any], spans: list[Any]) -> dict[str, Any]:
    """Metadata without the lowest score of the spans, which is there to be shown."""
    scores = [span.get("score") for span in spans if isinstance(span, dict)]
    known = [score for score in scores if isinstance(score, float)]
    meta = metadata.get("meta")
    if not known or not isinstance(meta, dict) or meta.get("score") != min(known):
        return metadata
    meta = without(meta, "score")
    return {**metadata, "meta": meta} if meta else without(metadata, "meta")
