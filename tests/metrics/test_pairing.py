"""Pairs of true and predicted spans: right ones, and errors by their kind."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.tags.pairing import kind_of, overlap, pairs_by_span

A, NESTED = ("A", 0, 4), ("A", 1, 3)


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        (A, A, "right"),
        (A, ("B", 0, 4), "type"),
        (A, NESTED, "boundary"),
        (A, ("B", 1, 3), "both"),
        (A, None, "missed"),
        (None, A, "spurious"),
    ],
)
def test_the_kind_of_a_pair(right, wrong, kind):
    assert kind_of(right, wrong) == kind


@given(*[st.integers(0, 6)] * 4)
def test_tokens_that_two_spans_share(a, b, c, d):
    one, other = ("A", *sorted((a, b))), ("B", *sorted((c, d)))
    assert overlap(one, other) == len({*range(*one[1:])} & {*range(*other[1:])})


def naive(true, pred):
    """Pairs of indices: again and again the best of all pairs that are free."""
    words = "right", "type", "boundary", "both"
    left, extra = list(enumerate(true)), list(enumerate(pred))
    found = []
    while True:
        free = [
            (words.index(kind_of(t, p)), -len({*range(*t[1:])} & {*range(*p[1:])}), i, j)
            for i, t in left
            for j, p in extra
        ]
        free = [pair for pair in free if pair[0] == 0 or pair[1] < 0]
        if not free:
            break
        _, _, i, j = min(free)
        left, extra = ([s for s in side if s[0] != at] for side, at in ((left, i), (extra, j)))
        found.append((true[i], pred[j]))
    return [*found, *((t, None) for _, t in left), *((None, p) for _, p in extra)]


places = st.tuples(st.integers(0, 6), st.integers(1, 3)).map(lambda p: (p[0], sum(p)))
# Nested and crossing spans, each once.
spans = st.lists(
    st.builds(lambda kind, place: (kind, *place), st.sampled_from("AB"), places),
    unique=True,
    max_size=5,
)


@settings(deadline=None, max_examples=300)
@given(spans, spans)
def test_each_span_is_in_one_pair_and_the_nearest_come_first(true, pred):
    assert Counter(pairs_by_span(true, pred)) == Counter(naive(true, pred))


def test_a_span_that_is_there_twice_is_counted_twice():
    assert pairs_by_span([A, A], [A]) == [(A, A), (A, None)]
    assert pairs_by_span([A], [A, A]) == [(A, A), (None, A)]
