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

    There are two rules because a list of errors needs each span once, and a score that counts each
    error once (`pairs_by_token`) needs each token once. Of a true span that is predicted in two
    parts this one makes a wrong border and a spurious span, and the other two wrong borders.

    The nearest kind of error comes first, and within a kind the larger overlap.
    """
    pairs, left, extra = _right_and_others(true, pred)
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


def pairs_by_token(true: list[Span], pred: list[Span]) -> list[Pair]:
    """Right spans and errors, with each token in one pair; the spans of a side must not overlap.

    The nearest kind of error comes first. A span is paired with the span without a partner that
    shares most tokens, or else with one that has a partner but shares tokens that no pair has
    counted.

    References
    ----------
    K. Ortmann, "Fine-Grained Error Analysis and Fair Evaluation of Labeled Spans", LREC 2022.
    """
    pairs, *others = _right_and_others(true, pred)
    alone, paired = [*map(set, others)], [set[Span](), set[Span]()]
    # The tokens of each span that no pair has counted yet.
    free = [{span: set(range(span[1], span[2])) for span in spans} for spans in others]
    for kind in NEAR:
        for side, partners in ((0, alone[1]), (0, paired[1]), (1, paired[0])):
            for span in sorted(alone[side], key=_by_length):
                shared = {
                    other: len(free[side][span] & free[1 - side][other])
                    for other in partners
                    if kind_of(span, other) == kind
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


def _right_and_others(
    true: list[Span], pred: list[Span]
) -> tuple[list[Pair], list[Span], list[Span]]:
    """Pairs of the spans that are on both sides, and the others of each side."""
    right = Counter(true) & Counter(pred)
    left, extra = ([*(Counter(spans) - right).elements()] for spans in (true, pred))
    return [(span, span) for span in right.elements()], left, extra


def _by_length(span: Span) -> tuple[int, int, str]:
    # With the type, so that spans with the same borders have an order of their own.
    return span[2] - span[1], span[1], str(span[0])
