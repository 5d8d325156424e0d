"""Credit for spans that are partly right: the schemas of SemEval-2013, and errors counted once."""

from __future__ import annotations

from itertools import chain

import numpy as np

from skdice.tags.spans import Span

MODES = {
    "strict": "type and both borders",
    "exact": "both borders, any type",
    "partial": "both borders, any type; an overlap counts half",
    "type": "an overlap, same type",
    "fair": "as strict; a wrong type or border is one error, not two",
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
    if mode == "fair":
        return _each_error_once(true, pred, kinds)

    def counted(true: Rows, pred: Rows) -> np.ndarray:
        hits = sum(_n_found(*pair, mode) for pair in zip(true, pred, strict=True))
        return np.array([hits, sum(map(len, pred)), sum(map(len, true))], dtype=float)

    def of_kind(kind: str) -> np.ndarray:
        return counted(*([_of_type(row, kind) for row in rows] for rows in (true, pred)))

    return {kind: of_kind(kind) for kind in kinds}, counted(true, pred)


def _of_type(spans: list[Span], kind: str) -> list[Span]:
    return [span for span in spans if span[0] == kind]


# ---- the schemas of SemEval-2013


def _n_overlapping(true: list[Span], pred: list[Span]) -> int:
    """The most pairs of spans that overlap, each span in one pair."""
    left, right = (sorted(spans, key=lambda span: span[1]) for spans in (true, pred))
    i = j = n = 0
    while i < len(left) and j < len(right):
        (_, start, end), (_, other_start, other_end) = left[i], right[j]
        n += min(end, other_end) > max(start, other_start)
        # Of two that do not overlap, the first overlaps nothing that is left.
        i, j = i + (other_end > start), j + (end > other_start)
    return n


def _n_found(true: list[Span], pred: list[Span], mode: str) -> float:
    """Return what counts as found, by a schema."""
    if mode == "strict":
        return len(set(true) & set(pred))
    if mode == "type":
        kinds = {span[0] for span in true}
        return sum(_n_overlapping(_of_type(true, kind), _of_type(pred, kind)) for kind in kinds)
    n_same_borders = len({span[1:] for span in true} & {span[1:] for span in pred})
    if mode == "exact":
        return n_same_borders
    return (n_same_borders + _n_overlapping(true, pred)) / 2  # those with other borders count half


# ---- each error once


def _each_error_once(
    true: Rows, pred: Rows, kinds: list[str]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """An error of two spans is half a false and half a missed span."""
    counts = {kind: np.zeros(3) for kind in kinds}
    for there, found in zip(true, pred, strict=True):
        for right, wrong in fair_pairs(there, found):
            if right is not None and right == wrong:
                counts[right[0]] += 1
                continue
            share = 1.0 if right is None or wrong is None else 0.5
            for column, span in ((1, wrong), (2, right)):
                if span is not None:
                    counts[span[0]][column] += share
    return counts, np.sum([np.zeros(3), *counts.values()], axis=0)


def fair_pairs(true: list[Span], pred: list[Span]) -> list[tuple[Span | None, Span | None]]:
    """Each correct span and each error of a sentence, once, as its true and its predicted span.

    The same spans come first, then those with the same borders, then those of the same type that
    overlap, and then all others that do. A span is paired with the span without a partner that
    shares most tokens, or else with one that has a partner but shares tokens with none.

    References
    ----------
    K. Ortmann, "Fine-Grained Error Analysis and Fair Evaluation of Labeled Spans", LREC 2022.
    """
    pairs: list[tuple[Span | None, Span | None]] = []
    alone = [set(true), set(pred)]
    for width in (3, 2):  # all alike, or the borders
        places = {span[-width:]: span for span in alone[1]}
        for right in sorted(alone[0]):
            if (wrong := places.get(right[-width:])) is not None:
                pairs.append((right, wrong))
                alone[0].remove(right)
                alone[1].remove(wrong)
    # The tokens of each span that no pair has counted yet.
    free = [{span: set(range(span[1], span[2])) for span in spans} for spans in alone]
    paired: list[set[Span]] = [set(), set()]
    for same_type in (True, False):
        for side, others in ((0, alone[1]), (0, paired[1]), (1, paired[0])):
            for span in sorted(alone[side], key=_by_length):
                shared = {
                    other: len(free[side][span] & free[1 - side][other])
                    for other in others
                    if (other[0] == span[0]) == same_type
                }
                best = max(sorted(shared, key=_by_length), key=shared.__getitem__, default=None)
                if best is None or not shared[best]:
                    continue
                pairs.append((span, best) if side == 0 else (best, span))
                counted = free[side][span] & free[1 - side][best]
                free[side][span] -= counted
                free[1 - side][best] -= counted
                alone[side].remove(span)
                paired[side].add(span)
                alone[1 - side].discard(best)
                paired[1 - side].add(best)
    return [*pairs, *((s, None) for s in sorted(alone[0])), *((None, s) for s in sorted(alone[1]))]


def _by_length(span: Span) -> tuple[int, int]:
    return span[2] - span[1], span[1]
