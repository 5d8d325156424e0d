"""Decisions that move with the frequencies of the classes."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.optimize import minimize
from scipy.special import expit, softmax
from scipy.stats import ks_2samp
from sklearn.linear_model import LogisticRegression
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from skdice import BiasTunedClassifier, DiceClassifier, DiceSequenceClassifier
from skdice.metrics import Cost, RecallAtPrecision
from skdice.metrics.decisions.frequencies import distance, mixture_weights
from skdice.model_selection import adapt_prior


def rows_of(random, n, frequencies, moved=0.0):
    """Normal rows around the corners of a simplex; `moved` shifts the last class."""
    y = random.choice(len(frequencies), size=n, p=frequencies)
    centres = 2.0 * np.eye(len(frequencies))
    centres[-1, -1] += moved
    return random.normal(size=(n, len(frequencies))) + centres[y], y


@pytest.fixture
def fitted():
    random = np.random.default_rng(0)
    model = LogisticRegression().fit(*rows_of(random, 2000, [0.95, 0.05]))
    return model, rows_of(random, 2000, [0.95, 0.05])


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("drawn", [False, True])
def test_the_weights_make_the_rows_likeliest(n_classes, drawn):
    random = np.random.default_rng(n_classes)
    ratios = random.exponential(size=(300, n_classes))
    ratios[:, -1] *= 0.3  # a class that is not there
    counts = random.multinomial(300, np.full(300, 1 / 300)) if drawn else np.ones(300)

    def loss(weights):
        mixed = ratios @ weights
        return -counts @ np.log(mixed) / 300, -(counts / mixed) @ ratios / 300

    whole = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n_classes)}
    best = minimize(
        loss,
        np.full(n_classes, 1 / n_classes),
        jac=True,
        bounds=[(0, 1)] * n_classes,
        constraints=[whole],
        options={"ftol": 1e-16, "maxiter": 500},
    )
    found = mixture_weights(ratios, counts)
    np.testing.assert_allclose(found, best.x, atol=1e-6)
    assert loss(found)[0] <= best.fun + 1e-9


def test_the_distance_is_kolmogorovs():
    random = np.random.default_rng(0)
    a, b = random.normal(size=40), random.normal(0.3, size=60).round(1)
    weights = np.concatenate([np.full(40, 1 / 40), np.full(60, -1 / 60)])
    for one, other in ((a, b), (a.round(), b.round())):  # in the second they share scores
        found = distance(np.concatenate([one, other]), weights)
        assert found == pytest.approx(ks_2samp(one, other).statistic)


def test_known_frequencies_are_recovered_within_the_interval():
    covered, p_values = [], []
    for seed in range(8):
        random = np.random.default_rng(seed)
        model = LogisticRegression().fit(*rows_of(random, 1000, [0.9, 0.06, 0.04]))
        held = rows_of(random, 1000, [0.9, 0.06, 0.04])
        X_new, _ = rows_of(random, 600, [0.55, 0.15, 0.3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moved = adapt_prior(model, X_new, X_val=held[0], y_val=held[1], n_bootstraps=25)
        shift = moved.prior_shift_
        covered += ((shift.low <= [0.55, 0.15, 0.3]) & (shift.high >= [0.55, 0.15, 0.3])).tolist()
        p_values.append(shift.p_value)
        np.testing.assert_allclose(shift.after, [0.55, 0.15, 0.3], atol=0.12)
        assert shift.after.sum() == pytest.approx(1)
    assert np.mean(covered) >= 0.75
    assert np.mean(np.array(p_values) < 0.1) < 0.5


def test_rows_that_changed_in_other_ways_are_noticed(fitted):
    model, (X_val, y_val) = fitted
    X_new, _ = rows_of(np.random.default_rng(1), 2000, [0.8, 0.2], moved=2.0)
    with pytest.warns(UserWarning, match=r"X_new does not look like the held-out rows .*p = 0\.01"):
        adapt_prior(model, X_new, X_val=X_val, y_val=y_val)


def test_the_decision_keeps_its_threshold_on_the_calibrated_probability(fitted):
    model, (X_val, y_val) = fitted
    tuned = BiasTunedClassifier(model, cv="prefit", scoring=Cost([[0, 1], [9, 0]]))
    tuned.fit(X_val, y_val)
    before = pickle.dumps(tuned)
    moved = adapt_prior(tuned, prior={1: 0.3})
    assert pickle.dumps(tuned) == before
    margin = np.diff(model.predict_log_proba(X_val), axis=1)[:, 0]
    # Calibrated by a logistic regression on the margin, with next to no penalty.
    calibrated = LogisticRegression(C=1e6).fit(margin[:, None], y_val)
    slope, start = calibrated.coef_[0, 0], calibrated.intercept_[0]
    threshold = start - slope * np.diff(tuned.bias_)[0]  # log-odds from which a row is positive
    prior = np.mean(y_val)
    odds = slope * margin + start + np.log(0.3 / 0.7) - np.log(prior / (1 - prior))
    assert (moved.predict(X_val) == (odds > threshold)).mean() > 0.998
    assert moved.predict(X_val).sum() > tuned.predict(X_val).sum()
    assert type(moved) is BiasTunedClassifier
    read = pickle.loads(pickle.dumps(moved))
    assert read.predict(X_val).tolist() == moved.predict(X_val).tolist()


def test_a_plain_classifier_predicts_the_most_probable_class(fitted):
    model, (X_val, y_val) = fitted
    frame = pd.DataFrame(X_val).to_numpy()
    moved = adapt_prior(model, X_val=frame, y_val=y_val, prior={0: 0.6})
    assert moved.prior_shift_.after.tolist() == [0.6, 0.4]
    assert moved.prior_shift_.p_value is None
    # Weighted to these frequencies, the held-out rows are as many as their probabilities say.
    weight = np.array([0.6, 0.4])[y_val] / (np.bincount(y_val) / len(y_val))[y_val]
    proba = moved.predict_proba(X_val)[:, 1]
    assert np.average(proba, weights=weight) == pytest.approx(0.4, abs=0.02)
    np.testing.assert_array_equal(moved.predict(X_val), (proba > 0.5).astype(int))
    assert moved.score(X_val, y_val) > 0


def test_several_labels_move_each_by_itself():
    random = np.random.default_rng(0)

    def draw(n, frequencies):
        y = (random.random((n, 2)) < frequencies).astype(int)
        return (random.normal(size=(n, 2)) + 2.5 * y).astype(np.float32), y

    X, y = draw(800, [0.05, 0.2])
    frame = pd.DataFrame(y, columns=["rare", "common"])
    model = DiceClassifier(loss="ce", max_epochs=20, random_state=0).fit(X, frame)
    X_val, y_val = draw(1500, [0.05, 0.2])
    held = pd.DataFrame(y_val, columns=["rare", "common"])
    X_new, _ = draw(800, [0.25, 0.2])
    moved = adapt_prior(model, X_new, X_val=X_val, y_val=held, n_bootstraps=10)
    shift = moved.prior_shift_
    np.testing.assert_allclose(shift.after, [0.25, 0.2], atol=0.06)
    assert shift.low[0] < shift.after[0] < shift.high[0]
    assert str(shift).splitlines()[1].startswith("rare")
    assert moved.predict(X_new)[:, 0].mean() > model.predict(X_new)[:, 0].mean()
    known = adapt_prior(model, X_val=X_val, y_val=held, prior={"rare": 0.25})
    assert known.prior_shift_.after[0] == 0.25
    assert known.prior_shift_.after[1] == pytest.approx(y_val[:, 1].mean())


@pytest.mark.parametrize("several", [False, True])
def test_plain_transformers_makes_the_moved_decision(tiny_backbone, tmp_path, several):
    texts = ["win free money", "lunch today", "the bus was late", "good team"] * 5
    y = [["spam"], [], ["bus"], []] * 5 if several else ["spam", "ham", "ham", "ham"] * 5
    model = DiceSequenceClassifier(
        backbone=tiny_backbone, pooling="native", max_epochs=1, random_state=0
    ).fit(texts, y)
    moved = adapt_prior(model, X_val=texts, y_val=y, prior={"spam": 0.6})
    folder = moved.save_pretrained(tmp_path / "m")
    plain = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = plain(**tokens).logits.double().numpy()
    served = expit(logits) if several else softmax(logits, axis=1)
    np.testing.assert_allclose(served, moved.predict_proba(texts), atol=1e-5)
    again = DiceSequenceClassifier.from_pretrained(folder)
    np.testing.assert_array_equal(again.predict(texts), moved.predict(texts))
    # A saved model knows the frequencies of its training rows.
    at_hand = adapt_prior(DiceSequenceClassifier.from_pretrained(folder), prior={"spam": 0.6})
    assert at_hand.prior_shift_.before[at_hand.classes_.tolist().index("spam")] == 0.25


def test_what_is_not_possible_is_refused(fitted):
    model, (X, y) = fitted
    held = {"X_val": X, "y_val": y}
    for given, message in (
        ({}, "give X_new, .* or prior"),
        ({"X_new": X, "prior": {1: 0.3}, **held}, "one of them"),
        ({"X_new": X}, "X_val and y_val are missing"),
        ({"X_new": X, "X_val": X}, "y_val is missing"),
        ({"prior": {}, **held}, "prior is empty"),
        ({"prior": {"1": 0.3}, **held}, "label='1' is not among the classes"),
        ({"prior": {1: 1.0}, **held}, r"prior\[1\]=1.0 must be between 0 and 1"),
        ({"prior": {1: float("nan")}, **held}, r"prior\[1\]=nan must be between 0 and 1"),
        ({"prior": {0: 0.5, 1: 0.4}, **held}, "sums to 0.9"),
        (
            {"X_new": X, "X_val": X[:9], "y_val": np.zeros(9, int)},
            r"no held-out row tells of \[1\]",
        ),
        ({"X_new": X, "X_val": X, "y_val": y + 1}, "y_val holds labels that fit did not see"),
        ({"X_new": X, **held, "n_bootstraps": 0}, "n_bootstraps=0 must be 1 to 1,000,000"),
        ({"X_new": X, **held, "n_bootstraps": 10**30}, "n_bootstraps=1000.* 1 to 1,000,000"),
    ):
        with pytest.raises(ValueError, match=message):
            adapt_prior(model, **given)
    with pytest.raises(TypeError, match=r"prior\[1\]='a' must be a number"):
        adapt_prior(model, prior={1: "a"}, **held)
    with pytest.raises(TypeError, match="model="):
        adapt_prior("model", X, **held)
    bound = BiasTunedClassifier(model, cv="prefit", scoring=RecallAtPrecision(0.5)).fit(X, y)
    with pytest.raises(ValueError, match="a bound that was promised"):
        adapt_prior(bound, X)
