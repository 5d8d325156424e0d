"""Spans of tokens, with or without a score."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

Span = tuple[str, int, int]  # a type, and the first and the last token, the end exclusive


class ScoredSpan(NamedTuple):
    """A span of tokens with its type, its end exclusive, and how sure the model is of it."""

    type: str
    start: int
    end: int
    score: float


def flat_spans(
    spans: Iterable[Any], place: Callable[[Any], Sequence[int]] = itemgetter(slice(1, 3))
) -> list[Any]:
    """Spans without overlaps, by their places: the first of those that overlap stays.

    Examples
    --------
    >>> from skdice.tags.spans import flat_spans
    >>> flat_spans([("ORG", 2, 4, 0.9), ("LOC", 3, 5, 0.8), ("PER", 0, 1, 0.7)])
    [('PER', 0, 1, 0.7), ('ORG', 2, 4, 0.9)]
    """
    kept: list[tuple[int, int, Any]] = []  # in order
    for span in spans:
        start, end = place(span)
        i = bisect_right(kept, start, key=itemgetter(0))
        if (i == 0 or kept[i - 1][1] <= start) and (i == len(kept) or end <= kept[i][0]):
            kept.insert(i, (start, end, span))
    return [span for _, _, span in kept]
