"""Words of a text for formats that hold words, and texts of words with blanks between them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from typing import Any

from skdice.datasets.row import Marks, Row, span
from skdice.datasets.source import Source
from skdice.datasets.tagged import are_spans
from skdice.inputs.entities import Entity
from skdice.tags.schemes import get_spans, infer_scheme, to_tags
from skdice.tags.spans import flat_spans

# Runs without white space and punctuation, or one sign of it; joiners stay in their emoji.
_WORD = re.compile(
    r"[^\s!-/:-@\[-`{-~\u2010-\u2027\u2030-\u205e\u3000-\u3003\u3008-\u3011\uff01-\uff0f\uff1a-\uff20]+|\S"
)


def words_of(text: str, entities: Iterable[Entity]) -> list[tuple[int, int]]:
    """Return the begin and end of each word."""
    cuts = sorted({offset for entity in entities for offset in (entity.start, entity.end)})
    words: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        start, end = match.span()
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        words += pairwise((start, *inner, end))
    return words


def longest(entities: list[Entity]) -> list[Entity]:
    """Entities that do not overlap: of those that do, the longest."""
    ordered = sorted(entities, key=lambda e: (e.start - e.end, e.start))
    return flat_spans(ordered, lambda e: (e.start, e.end))


def tags_of(text: str, entities: list[Entity]) -> tuple[list[tuple[int, int]], list[str]]:
    """Return each word's place and its tag, of entities that do not overlap."""
    words = words_of(text, entities)
    starts, ends = ({place[k]: j for j, place in enumerate(words)} for k in (0, 1))
    spans = [(str(e.label), starts[e.start], ends[e.end] + 1) for e in entities]
    return words, to_tags(spans, len(words))


def tagged_words(texts: list[str], entities: Any) -> Iterator[tuple[list[str], list[str]]]:
    """Words and tags of texts with entities; of those that overlap, the longest."""
    for text, row in zip(texts, entities, strict=True):
        found = [Entity(a, b, label, None, text[a:b]) for a, b, label in row]
        kept = [e for e in longest(found) if e.text == e.text.strip() and e.label is not None]
        words, tags = tags_of(text, kept)
        yield [text[start:end] for start, end in words], tags


_GONE = Row("", "", None, {})


def _joined(tokens: list[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of tokens with blanks between them, and where each begins and ends."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), places


def joined_rows(source: Source, rows: list[Row]) -> Iterator[Row]:
    """Texts, with their marks, of rows of tokens with tags or spans; a row goes when it is read."""
    scheme = _scheme_of(source, rows)
    for i, (place, tokens, y, meta) in enumerate(rows):
        rows[i - 1 : i] = [_GONE] * (i > 0)
        text, places = _joined(tokens)
        found = []
        for kind, start, end in y if are_spans(y or ()) else _spans_of(y or [], scheme):
            if not 0 <= start < end <= len(tokens):
                problem = f"the span {kind!r} from {start} to {end} is outside {len(tokens)} tokens"
                raise source.fault(place, problem)
            found.append(span(places[start][0], places[end - 1][1], kind))
        yield Row(place, text, Marks(found, unit="codepoints"), meta)


def _scheme_of(source: Source, rows: list[Row]) -> str:
    """The scheme of the tags of all rows."""
    tags = [[tag or "O" for tag in row.y] for row in rows if row.y and not are_spans(row.y)]
    try:
        scheme = infer_scheme(tags)
    except ValueError as error:
        raise ValueError(f"{str(source.path)!r}: {error}") from error
    if scheme == "plain" and {*chain.from_iterable(tags)} - {"O"}:
        problem = f"holds tags without B- and I-, such as {tags[0][0]!r}"
        raise ValueError(f"{str(source.path)!r} {problem}")
    return scheme


def _spans_of(tags: list[Any], scheme: str) -> list[tuple[Any, int, int]]:
    """The spans of tags; a tag of None is a token that nobody annotated."""
    unknown = [(None, i, i + 1) for i, tag in enumerate(tags) if tag is None]
    return [*get_spans([tag or "O" for tag in tags], scheme), *unknown]
