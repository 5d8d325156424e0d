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

from skdice._checks import counted, shown
from skdice.datasets.formats._base import (
    JsonFormat,
    kept_beside,
    parts_of,
    rest_of,
    row_of,
    spans_of,
    without,
    without_scores,
)
from skdice.datasets.row import Row, raw
from skdice.datasets.source import ANSWERS, Source, answer_of


class Prodigy(JsonFormat):
    """Texts with spans, and with answers."""

    rank = 30

    def holds(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, dict) or not isinstance(value.get("text"), str):
            return ()
        spans = value.get("spans")
        held = ["entities"] if isinstance(spans, list) and spans else []
        if value.get("answer") in ANSWERS and (
            isinstance(value.get("label"), str) or isinstance(value.get("accept"), list)
        ):
            held.append("classification")
        empty = not held and ("spans" in value or "_task_hash" in value)
        return ("empty",) if empty and not spans and not value.get("label") else tuple(held)

    def read(self, source: Source) -> Iterator[Row]:
        if source.of_labels:
            yield from _labels(source)
            return
        for place, record in source.records():
            answer = record.get("answer")
            text = source.text_key(place, record, ("text",))
            items = source.listed(place, record, "spans") if source.labelled else []
            kept = [item for item in items if answer_of(item) not in ANSWERS[1:]]
            source.skipped["spans that were rejected or ignored"] += len(items) - len(kept)
            listed = source.listed(place, record, "tokens")
            listed = listed if all(isinstance(token, dict) for token in listed) else []
            tokens = spans_of(source, place, listed)  # other lists are no tokens of Prodigy's
            checks = tuple(raw(token.start, token.end, None, token.text) for token in tokens)
            row = row_of(source, place, record, text, "spans", kept)
            spans = row.y.spans if answer is None else without_scores(row.y.spans)
            y = row.y._replace(spans=spans, checks=checks)
            yield row._replace(y=y, meta=_without_lowest(row.meta, kept))

    def dump(self, row: Row, predicted: bool) -> dict[str, Any]:
        spans = [parts_of(entity, "start", "end", "label", "score") for entity in row.y]
        tokens = row.meta.get("tokens")
        own = ["tokens"] if isinstance(tokens, list) and _fit(tokens, row.x) else []
        out = {**kept_beside(row.meta, *own), "text": row.x, "spans": spans}
        scores = [entity.score for entity in row.y if entity.score is not None]
        if scores:
            meta = out.get("meta")
            out["meta"] = {**(meta if isinstance(meta, dict) else {}), "score": min(scores)}
        return out


def _labels(source: Source) -> Iterator[Row]:
    """What was accepted of each text; a rejected label is left out."""
    rows: dict[Any, tuple[Row, dict[str, None]]] = {}
    rejected: dict[Any, set[str]] = {}
    for i, (place, value) in enumerate(source.records()):
        text = source.text_key(place, value, ("text",))
        column = "accept" if isinstance(value.get("accept"), list) else "label"
        given = value[column] if column == "accept" else [value.get("label")]
        names: list[Any] = [str(name) if type(name) is int else name for name in given]
        if not all(isinstance(name, str) and name.strip() for name in names):
            if source.labelled and value.get("answer") is not None:
                problem = f"{column!r} is {shown(value.get(column))}, not names"
                raise source.fault(place, problem)
            names = []
        # A question about one label is asked once for each label of a text.
        name = value[text] if column == "label" and source.labelled else i
        row = Row(place, value[text], None, rest_of(value, text, column, "answer"))
        _, kept = rows.setdefault(name, (row, {}))
        if value.get("answer") == "reject":
            rejected.setdefault(name, set()).update(names)
        else:
            kept.update(dict.fromkeys(names))
    if rejected:
        n = counted(len(rejected), "row")
        source.told.append(f"{n} kept without the labels that were rejected")
    if n_both := sum(len(labels.intersection(rows[name][1])) for name, labels in rejected.items()):
        both = f"{counted(n_both, 'label')} accepted and rejected, which is kept"
        source.told.append(both)
    for row, kept in rows.values():
        yield row._replace(y={"label": list(kept)})


def _fit(tokens: list[Any], text: str) -> bool:
    """Return True if tokens are those of a text."""
    return all(
        isinstance(token, dict)
        and isinstance(token.get("start"), int)
        and isinstance(token.get("end"), int)
        and text[token["start"] : token["end"]] == token.get("text") != ""
        for token in tokens
    ) and bool(tokens)


def _without_lowest(metadata: dict[str, Any], spans: list[Any]) -> dict[str, Any]:
    """Metadata without the lowest score of the spans, which is there to be shown."""
    scores = [span.get("score") for span in spans if isinstance(span, dict)]
    known = [score for score in scores if isinstance(score, float)]
    meta = metadata.get("meta")
    if not known or not isinstance(meta, dict) or meta.get("score") != min(known):
        return metadata
    meta = without(meta, "score")
    return {**metadata, "meta": meta} if meta else without(metadata, "meta")
