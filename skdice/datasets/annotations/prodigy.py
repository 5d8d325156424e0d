"""Prodigy: JSON lines of `db-out`, with the spans of ``ner`` and ``spans``.

Read from the page "Annotation interfaces" of Prodigy 1.18 (prodigy.ai/docs/api-interfaces). Its
offsets are spaCy's, which count code points. Tokens, where they are there, show whether offsets fit
the text. Records whose ``answer`` is ``reject`` or ``ignore`` are left out. The score of a span
is kept there, and the lowest of a text in ``meta``, which is shown below the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice.datasets.annotations.records import (
    Record,
    Row,
    Source,
    Span,
    spans_of,
    without,
    without_scores,
)

UNIT = "codepoints"


def fits(value: Any) -> bool:
    """Whether a JSON value is a record of this format."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return False
    spans = value.get("spans")
    if not isinstance(spans, list):
        return False
    marks = {"_input_hash", "_task_hash", "answer"} & set(value)
    return bool(marks) or any(isinstance(span, dict) and "start" in span for span in spans)


def read(source: Source) -> Iterator[Record]:
    """The records of a file."""
    for place, record in source.records():
        answer = record.get("answer")
        if answer not in (None, "accept") and source.with_entities:
            source.skipped[f"whose answer is {answer}"] += 1
            continue
        text = source.text_key(place, record, ("text",))
        items = source.listed(place, record, "spans") if source.with_entities else []
        tokens = spans_of(source, place, source.listed(place, record, "tokens"))
        checks = tuple(Span(token.parts, None, token.text) for token in tokens)
        spans = spans_of(source, place, items)
        found = Record(place, (record[text],), spans, without(record, text, "spans"), checks)
        yield found if answer is None else without_scores(found)


def dump(row: Row) -> dict[str, Any]:
    """A text as a JSON value."""
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
