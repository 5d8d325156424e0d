"""Prodigy: JSON lines of `db-out`, with the spans of ``ner`` and ``spans``.

Read from the page "Annotation interfaces" of Prodigy 1.18 (prodigy.ai/docs/api-interfaces). Its
offsets are spaCy's, which count code points. Tokens, where they are there, show whether offsets fit
the text. Records whose ``answer`` is ``reject`` or ``ignore`` are left out, and so are such spans.
The score of a span is kept there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice._checks import counted, shown
from skdice.datasets.answers import ANSWERS, REFUSED, answer_of, rejected
from skdice.datasets.formats._base import (
    JsonFormat,
    kept_beside,
    parts_of,
    rest_of,
    row_of,
    spans_of,
    without_scores,
)
from skdice.datasets.row import Note, Row, Span, Wanted
from skdice.datasets.source import Source


class Prodigy(JsonFormat):
    """Texts with spans, and with answers."""

    def tasks_of(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            return ()
        spans = value.get("spans")
        held = ["entities"] if isinstance(spans, list) and spans else []
        held += ["classification"] if _has_answer(value) else []
        empty = "spans" in value or "_task_hash" in value
        if not held and empty and not value.get("label"):
            return ("empty",)
        return tuple(held)

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        if wanted.of_labels:
            yield from _labels(source, wanted)
            return
        for place, record in source.records():
            text = source.text_key(place, record, ("text",), wanted.text_column)
            items = source.listed(place, record, "spans") if wanted.labelled else []
            kept = [item for item in items if answer_of(item) not in REFUSED]
            yield Note("spans that were rejected or ignored", len(items) - len(kept))
            row = row_of(source, place, record, text, "spans", kept)
            spans = row.y.spans
            if record.get("answer") is not None:
                spans = without_scores(spans)
            y = row.y._replace(spans=spans, checks=_tokens(source, place, record))
            yield row._replace(y=y)

    def dump(self, row: Row, predicted: bool) -> dict[str, Any]:
        spans = [parts_of(entity, "start", "end", "label", "score") for entity in row.y]
        return {**kept_beside(row.meta), "text": row.x, "spans": spans}


def _has_answer(value: dict[str, Any]) -> bool:
    """Return True if a person answered a question about a label, or chose some."""
    asked = isinstance(value.get("label"), str) or isinstance(value.get("accept"), list)
    return asked and value.get("answer") in ANSWERS


def _tokens(source: Source, place: Any, record: dict[str, Any]) -> tuple[Span, ...]:
    """The tokens of a text, with their places; other lists are no tokens of Prodigy's."""
    listed = source.listed(place, record, "tokens")
    if not all(isinstance(token, dict) for token in listed):
        return ()
    tokens = spans_of(source, place, listed)
    return tuple(token._replace(label=None, score=None) for token in tokens)


def _labels(source: Source, wanted: Wanted) -> Iterator[Row | Note]:
    """What was accepted of each text; a rejected label is left out."""
    rows: dict[Any, tuple[Row, dict[str, None]]] = {}
    refused: dict[Any, set[str]] = {}
    for i, (place, value) in enumerate(source.records()):
        text = source.text_key(place, value, ("text",), wanted.text_column)
        column = "accept" if isinstance(value.get("accept"), list) else "label"
        names = _names(source, place, value, column, wanted.labelled)
        # A question about one label is asked once for each label of a text.
        key = value[text] if column == "label" and wanted.labelled else i
        row = Row(place, value[text], None, rest_of(value, text, column, "answer"))
        _, kept = rows.setdefault(key, (row, {}))
        if value.get("answer") == "reject":
            refused.setdefault(key, set()).update(names)
        else:
            kept.update(dict.fromkeys(names))
    if refused:
        yield rejected(len(refused))
    if n_both := sum(len(labels.intersection(rows[key][1])) for key, labels in refused.items()):
        yield Note(f"{counted(n_both, 'label')} accepted and rejected, which is kept")
    for row, kept in rows.values():
        yield row._replace(y={"label": list(kept)})


def _names(
    source: Source, place: Any, value: dict[str, Any], column: str, labelled: bool
) -> list[str]:
    """The labels of a record; none where nothing was asked."""
    given = value[column] if column == "accept" else [value.get("label")]
    names: list[Any] = [str(name) if type(name) is int else name for name in given]
    if all(isinstance(name, str) and name.strip() for name in names):
        return names
    if labelled and value.get("answer") is not None:
        raise source.fault(place, f"{column!r} is {shown(value.get(column))}, not names")
    return []
