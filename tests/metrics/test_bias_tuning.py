"""Objectives, bounds and calibration against brute force, on decisions of every kind."""

from __future__ import annotations

import math
import re
import time
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from scipy.stats import binom
from sklearn.metrics import f1_score, log_loss, make_scorer

from skdice.exceptions import DecisionWarning
from skdice.metrics import (
    AlertBudget,
    Cost,
    Fbeta,
    PrecisionAtRecall,
    RecallAtPrecision,
    expected_calibration_error,
    span_f1_score,
    span_precision_recall_fscore_support,
)
from skdice.metrics.calibration import calibrate, log
from skdice.metrics.decisions import held_out_rows
from skdice.metrics.decisions.bias_search import tune_bias
from skdice.metrics.decisions.chosen_objective import resolve_scoring
from skdice.metrics.decisions.counts import Counts
from skdice.metrics.decisions.held_out_rows import BinaryRows, ClassRows, SpanRows
from skdice.metrics.decisions.span_counter import SpanCounter
from skdice.metrics.decisions.tuning import tune
from skdice.tags.decoding import decode
from skdice.tags.schemes import SCHEMES, get_spans
from tests.data import tags_of


def two_classes(margins, truth):
    return BinaryRows(margins[:, None], truth[:, None] == 1, truth, np.array([0, 1]))


def several_labels(margins, truth):
    return BinaryRows(margins, truth, truth.astype(int), None, list("abcd")[: truth.shape[1]])


def kept(rows, objective):
    """The bias of a bound that is promised as it was asked for, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DecisionWarning)
        tuning = tune(rows, objective)
    return tuning.bias if tuning.promise.promised == objective._asked else None


def drawn_margins(seed, n, share=0.3, apart=1.5, ties=False):
    rng = np.random.default_rng(seed)
    truth = (rng.uniform(size=n) < share).astype(int)
    margins = rng.normal(size=n) - 1 + apart * truth
    return (np.round(margins) if ties else margins), truth


def cost(matrix):
    def negative(truth, predicted):
        return -np.mean([matrix[t][p] for t, p in zip(truth, predicted, strict=True)])

    return negative


def f_beta(b):
    def score(truth, predicted):
        hits = (truth * predicted).sum()
        false, missed = predicted.sum() - hits, truth.sum() - hits
        return (1 + b**2) * hits / max((1 + b**2) * hits + b**2 * missed + false, 1)

    return score


def of_both(truth, predicted):
    return (f_beta(1)(truth, predicted) + f_beta(1)(1 - truth, 1 - predicted)) / 2


OF_TWO = {
    "f1": (Fbeta(), f_beta(1)),
    "f2": (Fbeta(2), f_beta(2)),
    "macro": (Fbeta(average="macro"), of_both),
    "accuracy": (Fbeta(average="micro"), lambda t, p: (t == p).mean()),
    "cost": (Cost([[0, 1], [20, 0]]), cost([[0, 1], [20, 0]])),
    "gain": (Cost([[0, 2], [3, -5]]), cost([[0, 2], [3, -5]])),
    "false": (Cost([[2, 0], [1, 2]]), cost([[2, 0], [1, 2]])),  # false alarms are what pays
}


@pytest.mark.parametrize("name", OF_TWO)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 40), st.booleans())
def test_two_classes_reach_the_best_threshold(name, seed, n, ties):
    objective, metric = OF_TWO[name]
    margins, truth = drawn_margins(seed, n, ties=ties)
    if len(set(truth)) < 2:
        return
    rows = two_classes(margins, truth)
    thresholds = [*np.unique(margins), np.inf]
    best = max(metric(truth, (margins >= t).astype(int)) for t in thresholds)
    for given_objective in (objective, metric)[: 1 if name == "false" else 2]:
        bias = tune(rows, given_objective, n_draws=0).bias
        reached = metric(truth, rows.decide(bias)[:, 0].astype(int))
        assert reached == pytest.approx(best, abs=1e-9)
        assert reached == pytest.approx(rows.score(objective, rows.decide(bias)))


OF_MORE = {
    "macro": Fbeta(),
    "micro": Fbeta(0.5, average="micro"),
    "cost": Cost([[0, 1, 2], [5, -1, 3], [0.25, 8, 0]]),
}


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(SCHEMES), st.booleans())
def test_spans_at_each_step_are_those_of_its_tags(seed, scheme, unknown):
    rng = np.random.default_rng(seed)
    tags = tags_of(scheme)
    lengths = rng.integers(0, 7, size=rng.integers(1, 6))
    y = [[str(tag) for tag in rng.choice(tags, n)] for n in lengths]
    if unknown:
        y = [[None if rng.random() < 0.2 else tag for tag in row] for row in y]
    classes = tags[: rng.integers(2, len(tags) + 1)]  # the truth may hold others
    counter = SpanCounter(y, classes, scheme)
    n, n_steps, k = lengths.sum(), int(rng.integers(1, 6)), int(rng.integers(len(classes)))
    rival = rng.integers(len(classes), size=n)
    steps = rng.integers(n_steps + 1, size=n)
    found = counter.counts_by_step(k, rival, steps, n_steps)
    for step in range(n_steps):
        plain = counter.counts(np.where(steps <= step, k, rival))
        for name in ("hits", "predicted", "true"):
            assert getattr(found, name)[step].tolist() == getattr(plain, name).tolist()
    assert found.n_rows == plain.n_rows


@pytest.mark.parametrize("name", OF_MORE)
@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_classes_at_each_step_score_as_their_decisions(name, seed, n):
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 3, size=n)
    rows = ClassRows(np.zeros((n, 3)), truth, truth, np.arange(3))
    n_steps, k = int(rng.integers(1, 6)), int(rng.integers(3))
    rival, steps = rng.integers(3, size=n), rng.integers(n_steps + 1, size=n)
    plain = [rows.score(OF_MORE[name], np.where(steps <= s, k, rival)) for s in range(n_steps)]
    found = rows._scores(OF_MORE[name], k, rival, steps, n_steps)
    assert found == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("objective", [Fbeta(), Fbeta(2, average="macro"), Cost([[0, 1], [9, 0]])])
def test_tuning_by_steps_finds_what_trying_one_by_one_finds(objective):
    rng = np.random.default_rng(0)
    tags = ["O", "B-X", "I-X", "B-Y", "I-Y"]
    truth = rng.choice(5, size=300, p=[0.8, 0.08, 0.04, 0.05, 0.03])
    log_p = log_softmax(rng.normal(size=(300, 5)) + 1.5 * np.eye(5)[truth], axis=1)
    y = [[tags[i] for i in row] for row in np.split(truth, 30)]
    spans = SpanRows(log_p, truth, y, tags, "iob2")
    one_by_one = tune_bias(log_p, truth, lambda decisions: spans.score(objective, decisions))
    assert spans.best_bias(objective).tolist() == one_by_one.tolist()
    assert one_by_one.any()
    if objective != Cost([[0, 1], [9, 0]]):  # of five classes
        classes = ClassRows(log_p, truth, truth, np.arange(5))
        one_by_one = tune_bias(log_p, truth, lambda decisions: classes.score(objective, decisions))
        assert classes.best_bias(objective).tolist() == one_by_one.tolist()


def test_margins_that_lie_close_together():
    """Between 0.871573 and 0.871574 lies the best threshold."""
    margins = np.array([2.0, 0.87157418, 0.87157387, 0.5, np.nextafter(0.5, 0)])
    for truth in np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T[1:]:
        rows = two_classes(margins, truth)
        best = max(f1_score(truth, margins >= t) for t in margins)
        assert f1_score(truth, rows.decide(tune(rows, Fbeta(), n_draws=0).bias)[:, 0]) == best


def test_a_plain_decision_that_is_best_stays():
    truth = np.array([1, 1, 0, 0])
    rows = two_classes(np.array([3.0, 0.1, -0.2, -5.0]), truth)
    for scoring in (Fbeta(), f1_score):
        assert tune(rows, scoring, n_draws=0).bias == [0.0]


@contextmanager
def pooling(n_positives):
    """Let the common bias count as so many positives of a label."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out_rows, "POOLING", n_positives)
        yield


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["micro", "macro"]))
def test_several_labels_against_all_thresholds(seed, average):
    rng = np.random.default_rng(seed)
    truth = rng.uniform(size=(12, 2)) < [0.3, 0.5]
    margins = rng.normal(size=(12, 2)) + truth - 0.5
    rows = several_labels(margins, truth)

    def score(bias):
        predicted = margins + bias > 0
        if average == "micro":
            return f_beta(1)(truth.ravel(), predicted.ravel())
        return np.mean([f_beta(1)(truth[:, k], predicted[:, k]) for k in (0, 1)])

    of_label = [[-t for t in [*(np.sort(m) - 1e-9), 99]] for m in margins.T]
    with pooling(1e-12):
        bias = tune(rows, Fbeta(average=average), n_draws=0).bias
    best = max(score(np.array([a, b])) for a in of_label[0] for b in of_label[1])
    if average == "macro":
        # A label that is neither true nor predicted counts as 0 there, and not at all here.
        assert score(bias) >= best - 1e-9 or not truth.any(axis=0).all()
    else:  # label by label may end at a ridge; it is never worse than no bias
        assert best >= score(bias) - 1e-9 >= score(np.zeros(2)) - 1e-8


def test_labels_with_few_positives_take_the_common_bias():
    rng = np.random.default_rng(0)
    shares = [0.5, 0.4, 0.3, 0.004]
    truth = rng.uniform(size=(2000, 4)) < shares
    margins = rng.normal(size=(2000, 4)) + 3 * truth - 3
    rows = several_labels(margins, truth)
    bias = tune(rows, Fbeta(average="macro"), n_draws=0).bias
    with pooling(1e-12):
        own = tune(rows, Fbeta(average="macro"), n_draws=0).bias
    with pooling(1e12):
        common = tune(rows, Fbeta(average="macro"), n_draws=0).bias
    assert np.ptp(common) < 1e-6
    n = truth.sum(axis=0)
    np.testing.assert_allclose(bias, (n * own + 20 * common) / (n + 20), rtol=1e-6)
    assert abs(bias[0] - own[0]) < 0.1 < abs(bias[3] - own[3])


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        (Cost([[0, 1], [20, 0]]), lambda t, p: (20 * (t & ~p) + (p & ~t)).sum()),
        (Fbeta(3, "micro"), lambda t, p: -f_beta(3)(t.ravel(), p.ravel())),
    ],
)
def test_the_common_bias_is_the_best_for_what_is_asked(objective, loss):
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=(300, 3)) < [0.02, 0.03, 0.1]
    margins = rng.normal(size=(300, 3)) + 2 * truth - 1.5
    rows = several_labels(margins, truth)
    with pooling(1e12):
        common = tune(rows, objective, n_draws=0).bias
    best = min(loss(truth, margins >= t) for t in np.unique(margins))
    assert loss(truth, rows.decide(common)) == pytest.approx(best)

    def called(true, predicted):
        return -loss(true == 1, predicted == 1)

    near = loss(truth, rows.decide(tune(rows, called, n_draws=0).bias))
    assert near - best <= 0.05 * abs(best)  # 64 thresholds are tried


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_costs_of_three_classes(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=30)
    log_p = log_softmax(rng.normal(size=(30, 3)) + np.eye(3)[truth], axis=1)
    matrix = rng.uniform(0, 5, size=(3, 3))
    rows = ClassRows(log_p, truth, truth, np.arange(3))
    bias = tune(rows, Cost(matrix), n_draws=0).bias
    predicted = rows.decide(bias)
    mean = np.mean([matrix[t, p] for t, p in zip(truth, predicted, strict=True)])
    assert -rows.score(Cost(matrix), predicted) == pytest.approx(mean)
    plain = np.mean([matrix[t, p] for t, p in zip(truth, log_p.argmax(axis=1), strict=True)])
    assert mean <= plain + 1e-9


# ---- bounds


def fisher(successes, trials, share):
    """At most how likely these are, if half as many new trials miss the share."""
    new = -(-trials // 2)
    missed = max(math.ceil(share * new - 1e-9) - 1, 0)
    both = successes + missed
    ways = [
        math.comb(both, i) * math.comb(trials + new - both, trials - i)
        for i in range(successes, min(trials, both) + 1)
    ]
    return sum(ways) / math.comb(trials + new, trials) if trials else 1.0


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_test_of_a_bound_against_all_ways_to_divide(confidence):
    rng = np.random.default_rng(0)
    for share in rng.uniform(0.1, 0.97, size=40):
        bound = RecallAtPrecision(share, confidence=confidence)
        trials = rng.integers(90, size=6)
        hits = np.minimum(trials, (trials * rng.uniform(share - 0.1, 1.3, size=6)).astype(int))
        pairs = zip(hits.tolist(), trials.tolist(), strict=True)
        expected = [fisher(*pair, share) <= 1 - confidence for pair in pairs]
        level = [1 - confidence]
        assert bound._sure(hits, trials, share, level)[0].tolist() == expected
        same = np.full(6, trials[0])
        hits = rng.integers(trials[0] + 1, size=6)
        expected = [fisher(int(k), int(trials[0]), share) <= 1 - confidence for k in hits]
        assert bound._sure(hits, same, share, level)[0].tolist() == expected
        least = bound._fewest_trials(share, 20_000)
        assert fisher(least, least, share) <= 1 - confidence
        assert all(fisher(n, n, share) > 1 - confidence for n in range(1, least))


def test_a_promise_breaks_seldom_whatever_the_true_share():
    """The error of one test, summed over all outcomes of old and new rows."""
    shares = (0.5, 0.05), (0.9, 0.05), (0.9, 0.2), (0.95, 0.01), (0.9, 0.05 / 4), (0.5, 0.05 / 16)
    # Tests of a low precision begin where ten hits are expected, and go on at stricter levels.
    low = (0.03, 0.05, 400), (0.03, 0.05 / 4, 1500), (0.1, 0.05, 100), (0.1, 0.05 / 8, 1600)
    for share, level, *sizes in (*shares, *low):
        bound = RecallAtPrecision(share)
        for n in sizes or (20, 45, 130):
            (sure,) = bound._sure(np.arange(n + 1), np.full(n + 1, n), share, [level])
            for times in (0.5, 1, 3):
                new = int(np.ceil(n * times))
                missed = np.arange(new + 1) < share * new - 1e-9
                for p in np.linspace(share - 0.02, min(0.999, 4 * share), 25):
                    promised = binom.pmf(np.arange(n + 1), n, p)[sure].sum()
                    broken = binom.pmf(np.arange(new + 1), new, p)[missed].sum()
                    assert promised * broken < 0.4 * level


def ranked(seed, precisions):
    """Margins and truth of rows from the surest on, 10,000 of each precision."""
    rng = np.random.default_rng(seed)
    truth = [rng.permutation(10_000) < 10_000 * p for p in precisions]
    return np.linspace(5, -5, 10_000 * len(precisions)), np.concatenate(truth).astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_a_low_precision_is_found_where_it_is(seed):
    """Of 100,000 rows 2,000 are positive, and the surest 10,000 have a precision of 0.07."""
    margins, truth = ranked(seed, [0.07] + [0.13 / 9] * 9)
    rows = two_classes(margins, truth)
    tuning = tune(rows, RecallAtPrecision(0.03))
    found = margins + tuning.bias > 0
    assert truth[found].mean() > 0.03
    assert found[truth == 1].mean() > 0.35  # what the surest 10,000 hold
    with pytest.warns(UserWarning, match=r"the best .* at 95% confidence is precision 0\.0[456]"):
        tuning = tune(rows, RecallAtPrecision(0.1))  # out of reach: not that of some lucky rows
    found = margins + tuning.bias > 0
    assert 0.045 < tuning.promise.promised < 0.07
    assert truth[found].mean() > tuning.promise.promised
    assert found[truth == 1].mean() > 0.02


def test_tests_begin_at_every_size():
    """Neither the surest 100 rows, all wrong, nor the next 200 end the search."""
    margins = np.linspace(5, -5, 40_000)
    truth = (np.arange(40_000) % 5 < 4).astype(int)
    truth[:300] = np.arange(300) % 5 < 2
    truth[:100] = truth[10_000:] = 0
    found = margins + tune(two_classes(margins, truth), RecallAtPrecision(0.7)).bias > 0
    assert truth[found].mean() > 0.7
    assert found[truth == 1].mean() > 0.9


def test_low_precisions_are_broken_in_at_most_5_percent_of_the_draws():
    """On half as many new rows, where precision falls slowly past what was asked for."""
    broken = n_promised = 0
    margins, p = np.linspace(0, -6, 6000), np.linspace(0.12, 0.0, 6000)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rows = two_classes(margins, (rng.uniform(size=6000) < p).astype(int))
        _, steps = rows.counts_by_shift([0], np.zeros(1))
        held = np.flatnonzero(RecallAtPrecision(0.08)._promised(steps))
        if not len(held):
            continue
        n_promised += 1
        new = rng.uniform(size=3000) < p[::2]
        broken += new[: steps.predicted[held[-1], 0] // 2].mean() < 0.08
    assert n_promised > 100
    assert 0 < broken <= 0.05 * 300


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(60, 400), st.booleans())
def test_recall_and_alerts_against_a_loop(seed, n, ties):
    margins, truth = drawn_margins(seed, n, 0.5, ties=ties)
    rows = two_classes(margins, truth)
    levels = [np.inf, *np.unique(margins)[::-1]]

    def chosen(objective):
        bias = kept(rows, objective)
        return None if bias is None else margins + bias > 0

    # From the loosest threshold on, as long as recall is sure.
    expected, best = None, -1.0
    for t in levels[::-1]:
        found = margins >= t
        if fisher(int((found & (truth == 1)).sum()), int(truth.sum()), 0.8) > 0.05:
            break
        if truth[found].mean() > best - 1e-12:
            expected, best = found, truth[found].mean()
    np.testing.assert_equal(chosen(PrecisionAtRecall(0.8)), expected)
    # From the strictest on, as long as the rows without alert are sure.
    expected, best = None, -1.0
    for t in levels:
        found = margins >= t
        if fisher(int((~found).sum()), n, 0.7) > 0.05:
            break
        if (found & (truth == 1)).sum() > best:
            expected, best = found, (found & (truth == 1)).sum()
    np.testing.assert_equal(chosen(AlertBudget(300)), expected)


@pytest.mark.parametrize(
    "objective", [RecallAtPrecision(0.9), PrecisionAtRecall(0.9), AlertBudget(100)]
)
def test_a_bound_holds_for_new_rows(objective):
    """In 95 % of 200 draws, on as many new rows; on infinitely many even more often."""
    holds = sure = n_chosen = 0
    endless = drawn_margins(1, 50_000, 0.3, apart=3)
    for seed in range(200):
        margins, truth = drawn_margins(seed, 800, 0.3, apart=3)
        new, new_truth = drawn_margins(10_000 + seed, 800, 0.3, apart=3)
        bias = kept(two_classes(margins, truth), objective)
        if bias is None:
            continue
        n_chosen += 1

        def share(margins, truth, bias=bias):
            found = margins + bias > 0
            if isinstance(objective, RecallAtPrecision):
                return truth[found].mean()
            if isinstance(objective, PrecisionAtRecall):
                return found[truth == 1].mean()
            return (~found).mean()

        holds += share(new, new_truth) >= objective._share
        sure += share(*endless) >= objective._share
    assert n_chosen >= 180
    assert holds >= 0.95 * n_chosen - 4  # the count's standard deviation is 3
    assert sure >= 0.97 * n_chosen
    assert holds < n_chosen  # and not by predicting nothing, or everything


def test_precision_beside_a_wrong_sure_row():
    """A false alarm at the top does not end the search."""
    margins = np.linspace(5, -5, 2000)
    truth = (margins > 0).astype(int)
    truth[[0, 30]] = 0
    found = margins + tune(two_classes(margins, truth), RecallAtPrecision(0.9)).bias > 0
    assert truth[found].mean() > 0.9
    assert found[truth == 1].mean() > 0.9


def test_a_bound_out_of_reach_is_named():
    margins, truth = drawn_margins(0, 100, 0.3)
    rows = two_classes(margins, truth)
    for objective, match in (
        (RecallAtPrecision(0.99), r"precision=0.99\) cannot be promised.* is precision 0\.\d"),
        (PrecisionAtRecall(0.95), r"2\d are positive, .* is recall 0\.\d"),
        (AlertBudget(1), r"is \d+(\.\d)? alerts per 1,000 rows"),
    ):
        with pytest.warns(UserWarning, match=f"{match}.*The decision keeps that promise"):
            tune(rows, objective)
    none, far = two_classes(margins, 0 * truth), RecallAtPrecision(0.9, confidence=0.999)
    nothing = r"no bound on precision can be promised at 99\.9% confidence\. Lower"
    with pytest.warns(UserWarning, match=rf"{nothing}.*The decision stays as it is"):
        tuning = tune(none, far)
    assert tuning.bias.tolist() == [0]
    assert tuning.promise == ("precision", 0.9, 0.0, 0.999)
    few = two_classes(margins[:3], truth[:3])  # every row of new ones may alert
    with pytest.warns(UserWarning, match="no bound on alerts per 1,000 rows can be promised"):
        assert tune(few, AlertBudget(1)).promise.promised == 1000


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (RecallAtPrecision(0.97), "precision "),
        (PrecisionAtRecall(0.99), "recall "),
        (AlertBudget(1), ""),
    ],
)
def test_what_is_named_is_promised(asked, words):
    """The decision is the one of somebody who asks for no more than that."""
    for seed in range(6):  # the shares of 2 and 4, rounded up, could not be had
        rows = two_classes(*drawn_margins(seed, 80 + 10 * seed, 0.3))
        with pytest.warns(UserWarning, match="cannot be promised") as warned:
            tuning = tune(rows, asked)
        best = re.search(rf"confidence is {words}([\d.]*\d)", str(warned[0].message))
        assert tuning.promise.promised == pytest.approx(float(best[1]), rel=1e-2)
        assert tuning.promise.asked == asked._asked
        asked_less = type(asked)(tuning.promise.promised)
        assert tuning.bias == tune(rows, asked_less).bias
        assert asked_less._promise(asked_less._share).promised == tuning.promise.promised


def test_bounds_of_several_labels_alone_and_together():
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=(3000, 4)) < [0.4, 0.2, 0.01, 0.01]
    margins = rng.normal(size=(3000, 4)) + 5 * truth - 2 + [0, 1, 0, 0]
    rows = several_labels(margins, truth)
    alone = tune(rows, RecallAtPrecision(0.9, each=True)).bias
    together = tune(rows, RecallAtPrecision(0.9)).bias
    assert np.ptp(together) == 0
    assert alone[2] == alone[3]  # 30 positives each: only both together show it
    assert len(set(alone)) == 3
    predicted = margins + alone > 0
    for label in range(2):
        assert truth[predicted[:, label], label].mean() >= 0.9
    assert truth[:, 2:][predicted[:, 2:]].mean() >= 0.9
    predicted = margins + together > 0
    assert truth[predicted].mean() >= 0.9
    flagged = (margins + tune(rows, AlertBudget(200)).bias > 0).any(axis=1)
    assert 0.15 < flagged.mean() <= 0.2
    few, each = rows.take(np.arange(600)), RecallAtPrecision(0.9, each=True)
    with pytest.warns(UserWarning, match="cannot be promised for c, d"):
        tuning = tune(few, each)
    assert tuning.bias[2] == tuning.bias[3]
    assert 0 < tuning.promise.promised < 0.9
    predicted = margins[:600] + tuning.bias > 0
    assert all(truth[:600][predicted[:, i], i].mean() > 0.9 for i in range(2))


# ---- spans


def tagged(seed, n):
    rng = np.random.default_rng(seed)
    classes = ["B-A", "B-B", "I-A", "I-B", "O"]
    patterns = [["B-A"], ["B-B", "I-B"], ["O"], ["O"], ["O", "O"]]
    drawn = rng.integers(5, size=(n, 4))
    tags = [[tag for i in row for tag in patterns[i]] for row in drawn]
    flat = np.array([classes.index(tag) for row in tags for tag in row])
    logits = rng.normal(size=(len(flat), 5)) + 3.2 * np.eye(5)[flat] + [0, 0, 0, 0, 0.8]
    return SpanRows(log_softmax(logits, axis=1), flat, tags, classes, "iob2")


def as_tags(rows, bias):
    named = np.array(rows.classes)[rows.decide(bias)]
    return [part.tolist() for part in np.split(named, rows.ends[:-1])]


def test_objectives_of_spans_are_those_of_the_metric():
    rows = tagged(0, 60)
    for bias in (np.zeros(5), np.array([1.0, 0, 0.5, -1, 0])):
        decisions, tags = rows.decide(bias), as_tags(rows, bias)
        for average in ("micro", "macro"):
            expected = span_f1_score(rows.tags, tags, average=average)
            assert rows.score(Fbeta(average=average), decisions) == pytest.approx(expected)
        assert rows.score(span_f1_score, decisions) == rows.score(Fbeta(average="micro"), decisions)
        p, r, _, _ = span_precision_recall_fscore_support(rows.tags, tags, average="micro")
        value = rows.score(Fbeta(2, average="micro"), decisions)
        assert value == pytest.approx(5 * p * r / (4 * p + r))
        counts = rows.counter.counts(decisions)
        assert counts.alerts == sum(any(tag != "O" for tag in row) for row in tags)
        false, missed = (counts.predicted - counts.hits).sum(), (counts.true - counts.hits).sum()
        wanted = -(2 * false + 7 * missed) / 60
        assert rows.score(Cost([[0, 2], [7, 0]]), decisions) == pytest.approx(wanted)
    chosen = np.array([3, 0, 3])
    few = rows.take(chosen)
    assert few.tags == [rows.tags[i] for i in chosen]
    assert as_tags(few, np.zeros(5)) == [as_tags(rows, np.zeros(5))[i] for i in chosen]


@pytest.mark.parametrize("each", [False, True])
def test_bounds_of_spans(each):
    rows, new = tagged(1, 500), tagged(2, 500)
    for objective, at in ((RecallAtPrecision(0.75, each=each), 0), (PrecisionAtRecall(0.7), 1)):
        bias = tune(rows, objective).bias
        assert bias[4] == 0
        tags = as_tags(new, bias)
        average = None if each and at == 0 else "micro"
        values = span_precision_recall_fscore_support(new.tags, tags, average=average)[at]
        assert np.min(values) >= objective._share
        assert at or np.min(values) < 0.87  # a lower threshold than the plain one
    if each:
        assert bias[0] == bias[2]  # all tags of a type move together
    tags = as_tags(new, tune(rows, AlertBudget(300)).bias)
    flagged = [any(tag != "O" for tag in row) for row in tags]
    assert 0.2 < np.mean(flagged) <= 0.3


# ---- bootstrap draws


def test_the_bias_is_the_mean_of_the_best_ones_of_the_draws():
    margins, truth = drawn_margins(3, 200, apart=2)
    tuning, rng = tune(two_classes(margins, truth), Fbeta(), n_draws=4), np.random.default_rng(0)
    assert tuning.bias == pytest.approx(sum(tuning.biases) / 4)
    for bias in tuning.biases:
        chosen = rng.integers(200, size=200)
        best = max(f_beta(1)(truth[chosen], margins[chosen] >= t) for t in margins[chosen])
        assert f_beta(1)(truth[chosen], margins[chosen] + bias > 0) == pytest.approx(best)
    assert tune(two_classes(np.ones(1), np.ones(1, int)), Fbeta()).bias == 0


def test_the_cost_of_tuning_grows_with_the_rows():
    """Ten times as many rows may take 17 times as long; sets of rows outside draws took 23."""

    def seconds(n):
        rows = two_classes(*drawn_margins(0, n, 0.02, apart=2))
        start = time.process_time()
        tune(rows, Fbeta(), n_draws=3)
        return time.process_time() - start

    assert min(seconds(300_000) for _ in range(3)) < 17 * min(seconds(30_000) for _ in range(4))


@pytest.mark.parametrize("rows_of", ["two", "classes"])
def test_probabilities_of_0_and_1_do_not_outweigh_the_other_draws(rows_of):
    """Shares of 20 trees, as of a forest: log-odds of them are up to 700 apart."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = (rng.uniform(size=400) < 0.1).astype(int)
        p = rng.binomial(20, np.where(truth == 1, rng.beta(2, 3, 400), rng.beta(0.3, 6, 400))) / 20
        log_p = log(np.c_[1 - p, p, np.zeros(400)])
        if rows_of == "two":
            bias = tune(two_classes(log_p[:, 1] - log_p[:, 0], truth), Fbeta()).bias[0]
        else:
            found = tune(ClassRows(log_p, truth, truth, np.arange(3)), Fbeta(average="macro")).bias
            bias = found[1] - found[0]
        assert -1 < bias < 5
        assert f_beta(1)(truth, log_p[:, 1] + bias > log_p[:, 0]) > 0.45


# ---- names


def test_what_scoring_stands_for():
    names = np.array(["ham", "spam"])
    assert resolve_scoring("f1", "two", names, 1) == Fbeta()
    assert resolve_scoring(Fbeta(2), "labels", names) == Fbeta(2, average="micro")
    assert resolve_scoring(Fbeta(2), "classes", np.arange(3)) == Fbeta(2, average="macro")
    three = np.arange(3)
    for scoring, kind, match in (
        ("roc_auc", "two", "'roc_auc' must be one of"),
        ("accuracy", "labels", r"'accuracy' must be one of \('auto', 'f1', 'f1_micro', 'f1_macro'"),
        ("r3", "two", "'r3' must be one of"),
        ("precision", "spans", "'precision' must be one of"),
        (RecallAtPrecision(0.9), "classes", "is for two classes"),
        (Cost([[0, 1], [1, 0]]), "classes", "must have 3 rows"),
        (Cost([[1, 1], [1, 0]]), "spans", r"matrix\[0\]\[0\] must be 0"),
    ):
        with pytest.raises(ValueError, match=match):
            resolve_scoring(scoring, kind, three if kind == "classes" else names, 1)
    scorer = make_scorer(f1_score, response_method="predict_proba")
    with pytest.raises(TypeError, match=r"labels: a scorer takes an estimator, so give its met"):
        resolve_scoring(scorer, "two", names, 1)
    for function in (lambda t: 0, lambda: 0, lambda a, b, c, d: 0):
        for kind in ("two", "spans"):
            with pytest.raises(TypeError, match="must be a function of two arguments"):
                resolve_scoring(function, kind, names, 1)
    for function in (lambda t, p, k=1: k, max, lambda *both: 1):
        assert resolve_scoring(function, "two", names, 1) is function
    assert resolve_scoring(f1_score, "two", np.array([0, 1]), 1) is f1_score
    for scoring in (None, 3, Fbeta, ["f1"]):
        with pytest.raises(TypeError, match=r"scoring=.* must be a name"):
            resolve_scoring(scoring, "two", names, 1)


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Fbeta(0), ValueError, "beta=0 must be above 0"),
        (lambda: Fbeta("2"), TypeError, "beta='2' must be"),
        (lambda: Fbeta(1, "weighted"), ValueError, "average='weighted'"),
        (lambda: RecallAtPrecision(90), ValueError, "precision=90 must be .* below 1"),
        (lambda: PrecisionAtRecall(float("nan")), ValueError, "recall=nan must"),
        (lambda: AlertBudget(0), ValueError, "per_thousand=0 must"),
        (lambda: AlertBudget(5, confidence=95), ValueError, "confidence=95 must"),
        (lambda: AlertBudget(5, each="A"), TypeError, "each='A'"),
        (lambda: Cost([1, 2]), ValueError, "matrix"),
        (lambda: Cost([[1, 2]]), ValueError, r"matrix has shape \(1, 2\)"),
        (lambda: Cost([["a", 1], [1, 0]]), TypeError, "matrix"),
        (lambda: Cost([[0, float("nan")], [1, 0]]), ValueError, "matrix"),
    ],
)
def test_objectives_refuse_what_makes_no_sense(make, error, match):
    with pytest.raises(error, match=match):
        make()


# ---- calibration


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=30))
def test_calibration_error_against_a_loop(rows):
    true, p = map(np.array, zip(*rows, strict=True))
    total = 0.0
    for k in range(5):
        inside = [(t, q) for t, q in rows if min(int(q * 5), 4) == k]
        if inside:
            t, q = map(np.array, zip(*inside, strict=True))
            total += len(inside) / len(rows) * abs(t.mean() - q.mean())
    assert expected_calibration_error(true, p, n_bins=5) == pytest.approx(total, abs=1e-12)
    assert expected_calibration_error([0, 1], [1.0, 0.95]) == pytest.approx(0.475)  # one bin


def test_calibration_error_refuses():
    for args, match in (
        (([0, 2], [0.1, 0.2]), "0 and 1 only"),
        (([0, 1], [0.1, 1.2]), "must hold probabilities"),
        (([0, 1], [0.1]), "must match|same"),
    ):
        with pytest.raises(ValueError, match=match):
            expected_calibration_error(*args)
    with pytest.raises(ValueError, match="n_bins=0"):
        expected_calibration_error([1], [0.5], n_bins=0)


def test_a_temperature_is_found_that_is_known():
    rng = np.random.default_rng(0)
    logits = log_softmax(rng.normal(size=(20_000, 3)) * 2, axis=1)
    truth = np.array([rng.choice(3, p=np.exp(row)) for row in logits])
    temperature, bias = calibrate(3 * logits, truth, biases=False)
    assert temperature == pytest.approx(3, rel=0.03)
    assert (bias == 0).all()
    off = 3 * logits + [0, 2, -1]
    temperature, bias = calibrate(off, truth, biases=True)
    assert temperature == pytest.approx(3, rel=0.03)
    np.testing.assert_allclose(bias - bias[0], [0, -2, 1], atol=0.2)
    labels = rng.uniform(size=(20_000, 2)) < expit(logits[:, :2])
    temperature, bias = calibrate(logits[:, :2] / 2 + [1, -1], labels, biases=True)
    assert temperature == pytest.approx(0.5, rel=0.05)
    np.testing.assert_allclose(bias, [-1, 1], atol=0.05)


def test_a_temperature_is_the_likeliest():
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=500)
    logits = log_softmax(rng.normal(size=(500, 3)) + np.eye(3)[truth], axis=1)
    truth[:5] = -1  # a class that the model does not know

    def loss(log_t):
        p = np.exp(log_softmax(logits[5:] / np.exp(log_t), axis=1))
        scale = np.exp(-log_t)
        return log_loss(truth[5:], p, normalize=False) + (scale - 1) ** 2 / 2

    expected = np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x)
    assert calibrate(logits, truth, biases=False)[0] == pytest.approx(expected, rel=1e-3)
    # All right and no row leave it finite.
    assert calibrate(np.array([[0.0, -9.0]]), np.array([0]), biases=True)[0] > 0.02
    assert calibrate(np.zeros((0, 2)), np.zeros(0, int), biases=False)[0] == 1.0


def test_one_draw_without_end_does_not_decide():
    """The bias is a mean of draws, of which none is farther than 10 log-odds from the middle."""

    class Draws:
        n_rows = 5
        found = iter([1.0] * 17 + [math.inf, -math.inf, 4.0])

        def take(self, chosen):
            return self

        def best_bias(self, objective):
            return np.array([next(self.found)])

    tuned = tune(Draws(), Fbeta())
    assert tuned.bias == pytest.approx([(17 * 1.0 + 11.0 - 9.0 + 4.0) / 20])
    assert tuned.biases.shape == (20, 1)


@pytest.mark.parametrize("n_kinds", [1, 3])
def test_the_total_of_a_value_is_a_sum_over_all_decisions(n_kinds):
    draw = np.random.default_rng(0)
    truth, predicted = draw.integers(2, size=(2, 9, n_kinds))
    table = np.array([[0.25, -3.0], [-10.0, 2.0]])  # by truth and prediction
    both = (truth & predicted).sum(axis=0)
    counts = Counts(both, predicted.sum(axis=0), truth.sum(axis=0), predicted.any(axis=1).sum(), 9)
    expected = sum(table[t, p] for t, p in zip(truth.flat, predicted.flat, strict=True))
    assert counts.total(table) == pytest.approx(expected)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_errors_of_all_places_of_a_test_add_up_to_what_is_allowed(confidence, monkeypatch):
    asked, sure = [], RecallAtPrecision._sure
    monkeypatch.setattr(
        RecallAtPrecision, "_sure", lambda *given: asked.append(given[-1]) or sure(*given)
    )
    n = np.arange(1, 4001)[:, None]
    bound = RecallAtPrecision(0.5, confidence=confidence)
    bound._promised(Counts(n, n, np.array([4000]), n[:, 0], 4000))
    ((*levels,),) = asked
    assert len(levels) >= 4
    error = 1 - confidence
    assert levels[:4] == pytest.approx([error, error, error / 4, error / 8])
    assert sum(levels) <= 2.5 * error


def test_bounds_of_spans_count_well_formed_sequences():
    rows = tagged(3, 80)
    rows.constrained = True
    bias, together = np.array([0.5, 0, -0.5, 0, 0]), [0, 2]
    shifts, found = rows.counts_by_shift(together, bias)
    ill_formed = 0
    for i, shift in enumerate(shifts):
        moved = bias + shift * np.isin(np.arange(5), together)
        tables = np.split(rows.log_p + moved, rows.ends[:-1])
        tags = decode(tables, rows.classes, "iob2", constrained=True)
        assert as_tags(rows, moved) == tags
        ill_formed += tags != decode(tables, rows.classes, "iob2")
        spans = [{span for span in get_spans(row, "iob2") if span[0] == "A"} for row in tags]
        true = [{span for span in get_spans(row, "iob2") if span[0] == "A"} for row in rows.tags]
        pairs = list(zip(spans, true, strict=True))
        assert found.predicted[i].sum() == sum(map(len, spans))
        assert found.hits[i].sum() == sum(len(ours & theirs) for ours, theirs in pairs)
    assert ill_formed > 10
