"""Credit for spans that are partly right: by hand, and against slow searches over all pairings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.metrics import span_report
from skdice.metrics.partial_credit import MODES, credit
from skdice.tags.schemes import to_tags


def scores(true, pred, mode, row="micro avg", n=12):
    tags = [[to_tags(spans, n) for spans in rows] for rows in (true, pred)]
    entry = span_report(*tags, mode=mode, output_dict=True)[row]
    return [entry[name] for name in ("precision", "recall", "f1")]


# The example of nervaluate's page: a span missed, one spurious, one whole, one of another type, one
# of other borders, and one of both.
TRUE = [[("P", 0, 1), ("P", 2, 4), ("P", 4, 5), ("P", 5, 7), ("P", 8, 10)]]
PRED = [[("P", 2, 4), ("Q", 4, 5), ("P", 5, 8), ("Q", 9, 11), ("Q", 11, 12)]]
BY_HAND = {
    "lenient": 1 / 5,
    "strict": 1 / 5,
    "exact": 2 / 5,
    "partial": 3 / 5,  # 2 whole, 2 halves
    "type": 2 / 5,
}


def test_the_modes_by_hand():
    for mode in MODES:
        assert scores(TRUE, PRED, mode) == pytest.approx([BY_HAND[mode]] * 3), mode
    with pytest.raises(ValueError, match="mode='half' must be one of"):
        span_report([["O"]], [["O"]], mode="half")


@pytest.mark.parametrize("kinds", ["QR", "RQ"])
def test_a_span_of_another_type_takes_no_partner_away(kinds):
    """Of two predicted spans around a true R one is an R, whichever comes first.

    nervaluate 1.2.1 gives 0, 0, 0 for the first order, and 1/2, 1, 2/3 for the other.
    """
    pred = [[(kinds[0], 0, 2), (kinds[1], 2, 4)]]
    assert scores([[("R", 1, 3)]], pred, "type") == pytest.approx([1 / 2, 1, 2 / 3])


def test_rows_of_types_and_their_means():
    # Three true P are paired with no P, or one; spurious Q are those of Q.
    assert scores(TRUE, PRED, "partial", "P")[:2] == pytest.approx((1.5 / 2, 1.5 / 5))
    assert scores(TRUE, PRED, "partial", "Q") == [0] * 3
    tags = [[to_tags(rows[0], 12)] for rows in (TRUE, PRED)]
    report = span_report(*tags, mode="partial", output_dict=True)
    assert [report[kind]["support"] for kind in ("P", "Q", "micro avg")] == [5, 0, 5]
    for name in ("precision", "recall", "f1"):
        macro = (report["P"][name] + report["Q"][name]) / 2
        assert report["macro avg"][name] == pytest.approx(macro)
        assert report["weighted avg"][name] == pytest.approx(report["P"][name])


@st.composite
def spans(draw, n=7):
    cuts = sorted(draw(st.sets(st.integers(0, n), min_size=2)))
    runs = [run for run in itertools.pairwise(cuts) if draw(st.booleans())]
    return [(draw(st.sampled_from("XY")), *run) for run in runs]


def best_pairing(true, pred, worth):
    """The most that any pairing is worth, each span in one pair."""
    short, long = sorted((true, pred), key=len)
    flip = short is not true
    return max(
        sum(worth(*(pair[::-1] if flip else pair)) for pair in zip(short, order, strict=True))
        for order in itertools.permutations(long, len(short))
    )


WORTH = {
    "strict": lambda t, p: t == p,
    "exact": lambda t, p: t[1:] == p[1:],
    "partial": lambda t, p: 1 if t[1:] == p[1:] else (min(t[2], p[2]) > max(t[1], p[1])) / 2,
    "type": lambda t, p: t[0] == p[0] and min(t[2], p[2]) > max(t[1], p[1]),
}


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(spans(), spans()), min_size=1, max_size=2))
def test_credit_is_that_of_the_best_pairing(rows):
    true, pred = map(list, zip(*rows, strict=True))
    for mode, worth in WORTH.items():
        of_type, of_all = credit(true, pred, mode)
        hits = sum(best_pairing(t, p, worth) for t, p in rows)
        assert of_all.tolist() == [hits, sum(map(len, pred)), sum(map(len, true))]
        for kind, counts in of_type.items():
            alone = [[[s for s in spans if s[0] == kind] for spans in row] for row in rows]
            n_pred, n_true = (sum(len(row[side]) for row in alone) for side in (1, 0))
            hits = sum(best_pairing(*row, worth) for row in alone)
            assert counts.tolist() == [hits, n_pred, n_true]
