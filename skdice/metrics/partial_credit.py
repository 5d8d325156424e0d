"""Credit for spans that are partly right: the schemas of SemEval-2013."""

from __future__ import annotations

from itertools import chain

import numpy as np

from skdice.tags.pairing import overlap
from skdice.tags.spans import Span

MODES = {
    "lenient": "type and both borders",
    "strict": "as lenient, of spans that are tagged as their scheme says",
    "exact": "both borders, any type",
    "partial": "both borders, any type; an overlap counts half",
    "type": "an overlap, same type",
}
Rows = list[list[Span]]


def credit(true: Rows, pred: Rows, mode: str) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return what counts as found of each type and of all, and what it is divided by.

    The spans of a sentence must not overlap.

    Returns
    -------
    of_type : dict of ndarray
        Hits, and the denominators of precision and of recall.
    of_all : ndarray of shape (3,)
    """
    kinds = sorted({span[0] for span in chain(*true, *pred)})

    def counted(true: Rows, pred: Rows) -> np.ndarray:
        hits = sum(_n_found(*pair, mode) for pair in zip(true, pred, strict=True))
        return np.array([hits, sum(map(len, pred)), sum(map(len, true))], dtype=float)

    def of_kind(kind: str) -> np.ndarray:
        return counted(*([_of_type(row, kind) for row in rows] for rows in (true, pred)))

    return {kind: of_kind(kind) for kind in kinds}, counted(true, pred)


def _of_type(spans: list[Span], kind: str) -> list[Span]:
    return [span for span in spans if span[0] == kind]


def _n_overlapping(true: list[Span], pred: list[Span]) -> int:
    """The most pairs of spans that overlap, each span in one pair."""
    left, right = (sorted(spans, key=lambda span: span[1]) for spans in (true, pred))
    i = j = n = 0
    while i < len(left) and j < len(right):
        one, other = left[i], right[j]
        n += overlap(one, other) > 0
        # Of two that do not overlap, the first overlaps nothing that is left.
        i, j = i + (other[2] > one[1]), j + (one[2] > other[1])
    return n


def _n_found(true: list[Span], pred: list[Span], mode: str) -> float:
    """Return what counts as found, by a schema."""
    if mode in ("lenient", "strict"):
        return len(set(true) & set(pred))
    if mode == "type":
        kinds = {span[0] for span in true}
        return sum(_n_overlapping(_of_type(true, kind), _of_type(pred, kind)) for kind in kinds)
    n_same_borders = len({span[1:] for span in true} & {span[1:] for span in pred})
    if mode == "exact":
        return n_same_borders
    return (n_same_borders + _n_overlapping(true, pred)) / 2  # those with other borders count half
