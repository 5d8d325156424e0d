"""Pairs of the true and the predicted spans of a sentence, each right or an error of a kind."""

from __future__ import annotations

from collections import Counter

from skdice.tags.spans import Span

Pair = tuple[Span | None, Span | None]  # a true and a predicted span; None where there is none
# What a predicted span that overlaps a true one may have wrong, the nearest first.
NEAR = ("type", "boundary", "both")


def kind_of(right: Span | None, wrong: Span | None) -> str:
    """Return ``"right"``, what is wrong (one of `NEAR`), or ``"missed"`` or ``"spurious"``."""
    if right is None or wrong is None:
        return "spurious" if right is None else "missed"
    if right[1:] == wrong[1:]:
        return "right" if right == wrong else "type"
    return "boundary" if right[0] == wrong[0] else "both"


def overlap(one: Span, other: Span) -> int:
    """The number of tokens that two spans share."""
    return max(0, min(one[2], other[2]) - max(one[1], other[1]))


def pairs_by_span(true: list[Span], pred: list[Span]) -> list[Pair]:
    """Right spans and errors, with each span in one pair.

    The nearest kind of error comes first, and within a kind the larger overlap. A true span that is
    predicted in two parts is a wrong border and a spurious span.
    """
    right = Counter(true) & Counter(pred)
    left, extra = ([*(Counter(spans) - right).elements()] for spans in (true, pred))
    pairs: list[Pair] = [(span, span) for span in right.elements()]
    options = sorted(
        (NEAR.index(kind_of(t, p)), -overlap(t, p), i, j)
        for i, t in enumerate(left)
        for j, p in enumerate(extra)
        if overlap(t, p)
    )
    used_true, used_pred = set(), set()
    for _, _, i, j in options:
        if i not in used_true and j not in used_pred:
            used_true.add(i)
            used_pred.add(j)
            pairs.append((left[i], extra[j]))
    pairs += [(t, None) for i, t in enumerate(left) if i not in used_true]
    return [*pairs, *((None, p) for j, p in enumerate(extra) if j not in used_pred)]
