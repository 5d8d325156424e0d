"""Probabilities of spans, against the sum over all sequences of tags."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.special import expit

from skdice.inspection import span_probabilities
from skdice.metrics import expected_calibration_error
from skdice.metrics.calibration import SpanScales, judged
from skdice.tags.posterior import SpanPosterior
from skdice.tags.schemes import SCHEMES, faults, get_spans
from skdice.tags.spans import ScoredSpan
from tests.data import tags_of


def by_brute_force(proba, spans, classes, scheme):
    """The share of the well-formed sequences that hold each span, weighted by their products."""
    total, of_span = 0.0, dict.fromkeys(spans, 0.0)
    for sequence in itertools.product(range(len(classes)), repeat=len(proba)):
        tags = [classes[i] for i in sequence]
        if next(faults(tags, scheme), None) is None:
            weight = np.prod([row[i] for row, i in zip(proba, sequence, strict=True)])
            total += weight
            for span in set(get_spans(tags, scheme)) & of_span.keys():
                of_span[span] += weight
    return [of_span[span] / total for span in spans]


def all_spans(n, types):
    return [(t, a, b) for t in types for a in range(n) for b in range(a + 1, n + 1)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_span_has_the_probability_of_all_sequences_that_hold_it(scheme):
    classes, draw = tags_of(scheme), np.random.default_rng(0)
    for n in (1, 2, 3, 4):
        proba = draw.dirichlet(np.ones(len(classes)), size=n)
        spans = all_spans(n, ("X", "Y", "unknown"))
        expected = by_brute_force(proba, spans, classes, scheme)
        found = span_probabilities([proba], [spans], classes, scheme=scheme)[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert max(expected) > 0.01


def test_zeros_count_as_the_least_of_all_probabilities():
    classes = ["B-X", "I-X", "O"]
    # Every sequence has a 0: those with one 0 count, and share the probability.
    proba = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    found = span_probabilities([proba], [[("X", 0, 2), ("X", 0, 1)]], classes)[0]
    assert found.tolist() == pytest.approx([1.0, 0.0])
    sharp = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    found = span_probabilities([sharp], [[("X", 0, 2), ("X", 0, 1)]], classes)[0]
    assert found.tolist() == pytest.approx([0.5, 0.5])
    # No sequence of three tags is well-formed.
    assert span_probabilities([np.ones((3, 2))], [[("X", 0, 2)]], ["B-X", "E-X"])[0] == [0.0]


def test_a_long_sentence_takes_linear_time_and_keeps_its_precision():
    classes = ["B-X", "B-Y", "I-X", "I-Y", "O"]
    draw = np.random.default_rng(1)
    part = draw.dirichlet(np.ones(5), size=4)
    # Tokens that are O for certain cut a sentence in two, so the spans of a part stay as they are.
    border = np.tile([0.0, 0.0, 0.0, 0.0, 1.0], (4998, 1))
    long = np.concatenate([border, part, border])
    spans = all_spans(4, "XY")
    expected = by_brute_force(part, spans, classes, "iob2")
    started = time.perf_counter()
    moved = [(t, a + 4998, b + 4998) for t, a, b in spans]
    found = span_probabilities([long], [moved], classes)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert time.perf_counter() - started < 10  # it takes 0.3 s
    noise = draw.dirichlet(np.ones(5), size=10_000)
    whole = span_probabilities([noise], [[("X", 0, 10_000)]], classes)[0]
    assert 0 <= whole[0] < 1e-300


def test_extreme_log_probabilities_stay_finite():
    posterior = SpanPosterior(["B-X", "I-X", "O"], "iob2")
    log_p = np.array([[-1e4, 0.0, -1e4], [-2e4, 0.0, -1e4], [-np.inf, -1e300, 0.0]])
    # B-X I-X O loses 1e4 against the best; every other sequence loses more, or as much.
    scores = posterior(log_p, [("X", 0, 2), ("X", 0, 1), ("X", 0, 3)])
    assert scores.tolist() == pytest.approx([1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("proba", "spans", "match"),
    [
        ([np.ones((2, 2))], [[]], "columns"),
        ([np.ones((2, 3))], [[("X", 1, 3)]], "outside the 2 tokens"),
        ([np.ones((2, 3))], [[("X", 1, 1)]], "outside"),
        ([np.ones((2, 3))], [], "proba holds 1 sentence and spans 0"),
        ([-np.ones((2, 3))], [[]], "below 0"),
        ([np.full((2, 3), np.nan)], [[]], "finite"),
        ([np.ones((2, 3))], [["X"]], "a span is"),
        ("ab", [[]], "proba"),
    ],
)
def test_bad_arguments_are_named(proba, spans, match):
    with pytest.raises((ValueError, TypeError), match=match):
        span_probabilities(proba, spans, ["B-X", "I-X", "O"])


def test_empty_sentences_and_lists():
    classes = ["B-X", "I-X", "O"]
    assert span_probabilities([], [], classes) == []
    assert [len(row) for row in span_probabilities([np.empty((0, 3))], [[]], classes)] == [0]


def drawn_spans(n, seed=0):
    """Spans of two types that are too sure or not sure enough, each with whether it is there."""
    draw = np.random.default_rng(seed)
    pairs = []
    for kind, temperature, bias in (("X", 2.5, -0.5), ("Y", 0.6, 0.3)):
        log_odds = draw.normal(0.5, 1.5, n)
        right = draw.random(n) < expit((log_odds + bias) / temperature)
        pairs += [
            (ScoredSpan(kind, i, i + 1, p), bool(r))
            for i, (p, r) in enumerate(zip(expit(log_odds), right, strict=True))
        ]
    return pairs


def test_scales_of_each_type_are_found():
    scales = SpanScales(drawn_spans(4000))
    spans = [ScoredSpan(kind, 0, 1, 0.9) for kind in "XY"]
    log_odds = np.log(9)
    expected = expit([(log_odds - 0.5) / 2.5, (log_odds + 0.3) / 0.6])
    scaled = scales(spans)
    np.testing.assert_allclose([span.score for span in scaled], expected, atol=0.03)
    assert [span[:3] for span in scaled] == [span[:3] for span in spans]
    pairs = drawn_spans(4000, seed=1)
    right = [known for _, known in pairs]
    for kind in "XY":  # on spans that were not seen
        of_kind = [(s, r) for s, r in pairs if s.type == kind]
        right = [known for _, known in of_kind]
        before, after = (
            expected_calibration_error(right, [span.score for span in spans])
            for spans in ([s for s, _ in of_kind], scales([s for s, _ in of_kind]))
        )
        assert after < 0.03 < 0.06 < before
    # A type that was not there has the scale of all.
    (unknown,) = scales([ScoredSpan("Z", 0, 1, 0.9)])
    assert scaled[0].score < unknown.score < scaled[1].score


def test_scores_near_0_and_near_1_are_corrected_apart():
    """Too sure of what it calls right, and right about what it doubts: no slope and offset fit."""
    draw = np.random.default_rng(0)
    p = draw.uniform(0.02, 0.98, 6000)
    right = draw.random(6000) < p / (p + (1 - p) ** 0.3)
    pairs = [(ScoredSpan("X", 0, 1, a), bool(b)) for a, b in zip(p, right, strict=True)]
    scales = SpanScales(pairs)
    scores = [0.05, 0.5, 0.95]
    scaled = [span.score for span in scales([ScoredSpan("X", 0, 1, a) for a in scores])]
    np.testing.assert_allclose(scaled, [a / (a + (1 - a) ** 0.3) for a in scores], atol=0.015)
    mirrored = SpanScales([(span._replace(score=1 - span.score), not b) for span, b in pairs])
    again = [1 - span.score for span in mirrored([ScoredSpan("X", 0, 1, 1 - a) for a in scores])]
    np.testing.assert_allclose(again, scaled, atol=1e-4)
    # A curve never falls.
    wrong = SpanScales([(span, span.score < 0.5) for span, _ in pairs])
    (low, high) = wrong([ScoredSpan("X", 0, 1, 0.1), ScoredSpan("X", 0, 1, 0.9)])
    assert low.score <= high.score


def test_scales_of_few_spans_change_little():
    span = ScoredSpan("X", 0, 1, 0.8)
    assert SpanScales([])([span]) == [pytest.approx(span)]
    for right in (True, False):
        (scaled,) = SpanScales([(span, right)])([span])
        assert 0.5 < scaled.score < 0.95
    sure = SpanScales([(ScoredSpan("X", 0, 1, 1.0), True)] * 50)
    assert 0.9 < sure([ScoredSpan("X", 0, 1, 1.0)])[0].score <= 1
    assert 0 <= sure([ScoredSpan("X", 0, 1, 0.0)])[0].score < 0.1


def test_spans_that_nobody_annotated_are_not_judged():
    spans = [ScoredSpan("X", 0, 1, 0.5), ScoredSpan("X", 1, 3, 0.5), ScoredSpan("Y", 3, 4, 0.5)]
    pairs = judged(spans, ["B-X", None, "O", "O"], "iob2")
    assert pairs == [(spans[0], True), (spans[2], False)]
    assert [known for _, known in judged(spans, [("X", 1, 3)], None)] == [False, True, False]
    assert judged(spans, [(None, 2, 9), ("X", 0, 1)], None) == [(spans[0], True)]
