"""Tag schemes and decoding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.metrics.schemes import (
    check_tags,
    find_fault,
    get_spans,
    infer_scheme,
    to_tags,
    transitions,
)
from skdice.text.decoding import decode, viterbi

TAGGED = ["iob1", "iob2", "bioes", "bmes", "bilou"]
PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}


def classes_of(scheme):
    return ["O", *(f"{p}-{t}" for p in PREFIXES[scheme] for t in "XY")]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ([["B-A", "I-A", "O"]], "iob2"),
        ([["I-A", "B-A", "O"]], "iob1"),
        ([["I-A", "I-A"], ["O", "I-B"]], "iob1"),
        ([["B-A", "E-A"], ["S-A"]], "bioes"),
        ([["B-A", "M-A", "E-A"]], "bmes"),
        ([["B-A", "I-A", "L-A"], ["O", "O"]], "bilou"),
        ([["U-A", "O"], ["B-A", "L-A"]], "bilou"),
        ([["NOUN", "VERB"]], "plain"),
        ([["PROPN", "B-A"]], "plain"),
        ([["O", "O"]], "iob2"),
        ([["B-GPE.NOM", "I-GPE.NOM"]], "iob2"),
        ([["O", "I-A"], ["B-A", "I-A"]], "iob2"),
    ],
)
def test_inference(tags, scheme):
    assert infer_scheme(tags) == scheme


@st.composite
def spans(draw):
    n = draw(st.integers(1, 15))
    cuts = sorted(draw(st.sets(st.integers(0, n), min_size=2, max_size=8)))
    chosen = []
    for a, b in itertools.pairwise(cuts):
        if draw(st.booleans()):
            chosen.append((draw(st.sampled_from("XY")), a, b))
    return n, chosen


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None)
@given(spans())
def test_round_trip(scheme, drawn):
    n, chosen = drawn
    tags = to_tags(chosen, n, scheme)
    assert get_spans(tags, scheme) == chosen
    check_tags([tags], scheme)


def test_plain_spans_are_tokens():
    assert get_spans(["N", "V"], "plain") == [("N", 0, 1), ("V", 1, 2)]
    assert get_spans(["O", "N"], "plain") == [("N", 1, 2)]
    assert get_spans(["O", "N"], "plain", background=None) == [("O", 0, 1), ("N", 1, 2)]


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=150)
@given(st.data())
def test_transitions_agree_with_the_check(scheme, data):
    classes = classes_of(scheme)
    row = data.draw(st.lists(st.integers(0, len(classes) - 1), min_size=1, max_size=5))
    start, follow, end = transitions(classes, scheme)
    legal = start[row[0]] and end[row[-1]]
    legal = legal and all(follow[a, b] for a, b in itertools.pairwise(row))
    assert (find_fault([classes[i] for i in row], scheme) is None) == bool(legal)


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        ([["O"], ["O", "I-A"]], "iob2", r"y\[1\]\[1\].*'I-A' cannot follow 'O'"),
        ([["I-A"]], "iob2", r"y\[0\]\[0\].*cannot begin a sentence"),
        ([["B-A", "O"]], "bioes", r"y\[0\]\[1\].*'O' cannot follow 'B-A'"),
        ([["S-A", "B-A"]], "bmes", r"y\[0\]\[1\].*cannot end"),
        ([["NOUN"]], "iob2", r"'NOUN' has no prefix"),
        ([["B-A", "I-A"]], "bilou", r"y\[0\]\[1\].*cannot end"),
        ([["O"]], "bilo", "scheme='bilo'"),
    ],
)
def test_faults_are_named(tags, scheme, message):
    with pytest.raises(ValueError, match=message):
        check_tags(tags, scheme)


def test_spans_must_fit():
    with pytest.raises(ValueError, match="outside"):
        to_tags([("A", 0, 3)], 2)
    with pytest.raises(ValueError, match="overlaps"):
        to_tags([("A", 0, 2), ("B", 1, 3)], 3)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**16), st.integers(1, 4), st.integers(1, 4))
def test_viterbi_is_the_best_of_all_sequences(seed, n, c):
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(n, c))
    start, end = generator.random(c) > 0.3, generator.random(c) > 0.3
    follow = generator.random((c, c)) > 0.3
    best = None
    for row in itertools.product(range(c), repeat=n):
        legal = start[row[0]] and end[row[-1]]
        legal = legal and all(follow[a, b] for a, b in itertools.pairwise(row))
        total = sum(scores[i, k] for i, k in enumerate(row))
        if legal and (best is None or total > best[0]):
            best = total, list(row)
    if best is None:
        with pytest.raises(ValueError, match="no well-formed"):
            viterbi(scores, start, follow, end)
    else:
        assert viterbi(scores, start, follow, end) == best[1]


@pytest.mark.parametrize("scheme", TAGGED)
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**16), st.integers(0, 9))
def test_constrained_decoding_is_well_formed(scheme, seed, n):
    classes = classes_of(scheme)
    scores = np.random.default_rng(seed).normal(size=(n, len(classes))) * 50
    scores[scores < -60] = -np.inf  # probabilities that rounded to 0
    (tags,) = decode([scores], classes, scheme, constrained=True)
    assert len(tags) == n
    check_tags([tags], scheme)
    (free,) = decode([scores], classes, scheme)
    assert free == [classes[i] for i in scores.argmax(axis=1)] if n else free == []
