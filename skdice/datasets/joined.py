"""Texts of tokens with blanks between them, and entities of their tags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdice.datasets.record import Record, raw
from skdice.datasets.source import Source
from skdice.datasets.tokens import are_spans
from skdice.tags.schemes import get_spans, infer_scheme


def joined(tokens: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of tokens with blanks between them, and where each begins and ends."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), places


def token_records(
    source: Source, rows: list[tuple[str, Any, list[Any]]], metadata: list[dict[str, Any]]
) -> Iterator[Record]:
    """Records of tokens with tags or spans; a row goes when its record was taken."""
    tags = [[tag or "O" for tag in row] for _, _, row in rows if row and not are_spans(row)]
    try:
        scheme = infer_scheme(tags)
    except ValueError as error:
        raise ValueError(f"{str(source.path)!r}: {error}") from error
    if scheme == "plain" and any(tag != "O" for row in tags for tag in row):
        raise ValueError(
            f"{str(source.path)!r} holds tags without B- and I-, such as {tags[0][0]!r}"
        )
    del tags
    for i, ((place, tokens, spans), more) in enumerate(zip(rows, metadata, strict=True)):
        rows[i - 1 : i] = [("", [], [])] * (i > 0)  # is a record by now
        text, places = joined(tokens)
        if not are_spans(spans):  # a tag of None is a token that nobody annotated
            unknown = [(None, i, i + 1) for i, tag in enumerate(spans) if tag is None]
            spans = [*get_spans([tag or "O" for tag in spans], scheme), *unknown]
        for kind, start, end in spans:
            if not 0 <= start < end <= len(tokens):
                problem = f"the span {kind!r} from {start} to {end} is outside {len(tokens)} tokens"
                raise source.fault(place, problem)
        found = [raw(places[a][0], places[b - 1][1], kind) for kind, a, b in spans]
        yield Record(place, (text,), found, more, unit="codepoints")
