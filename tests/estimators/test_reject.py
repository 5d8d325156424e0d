"""Rows that are left to a person, against brute force, Chow's rule and simulated promises."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV

from skdice import BiasTunedClassifier, DiceSequenceClassifier
from skdice.exceptions import DecisionWarning
from skdice.inspection import RejectDisplay
from skdice.metrics import Cost, Fbeta, RecallAtPrecision, RejectAt, class_f1_scorer
from skdice.metrics.decisions.held_out_rows import BinaryRows, ClassRows
from skdice.metrics.decisions.rejection import (
    _best_window,
    best_margin,
    sureness,
    tune_rejecting,
)
from tests.fits import Given

DRAWS = 100


def tuned_on(X, y, labels=(0, 1), **params):
    """A decision tuned on rows that are the probabilities of these labels."""
    model = Given(labels)
    return BiasTunedClassifier(model, cv="prefit", reject_label=-1, **params).fit(X, y)


def two(p):
    return np.column_stack([1 - p, p])


def draw(n, seed, rare=-1.5, noise=1.5):
    """Rows of two classes with probabilities that rank them well."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(rare, 1.5, n)
    y = (rng.random(n) < expit(margins * noise)).astype(int)
    return margins, y


OBJECTIVES = {
    Fbeta(): lambda t, p: f1_score(t, p, zero_division=0),
    Fbeta(average="micro"): accuracy_score,
    Cost([[0, 1], [5, 0]]): lambda t, p: -np.mean(np.where(t & ~p, 5, t ^ p)),
    Cost([[0, 1], [5, -3]]): lambda t, p: -np.mean(np.where(t & ~p, 5, t ^ p) - 3 * (t & p)),
}


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 10_000),
    st.integers(5, 20),
    st.floats(0, 0.6),
    st.sampled_from([1.0, 2.0, 10.0, 1000.0]),
    st.sampled_from([*OBJECTIVES]),
)
def test_the_best_window_is_that_of_all_pairs_of_thresholds(seed, n, share, fine, objective):
    rng = np.random.default_rng(seed)
    margins = np.round(rng.normal(size=n) * fine) / fine  # many are tied
    truth = rng.random(n) < 0.4
    best = largest = -np.inf
    at = [*(np.unique(margins) - 1e-6), margins.max() + 1]
    for upper in at:
        for lower in [value for value in at if value <= upper]:
            out = (margins >= lower) & (margins < upper)
            if out.sum() <= int(share * n + 1e-9):
                found = OBJECTIVES[objective](truth[~out], margins[~out] >= upper)
                best, largest = max((best, largest), (round(float(found), 9), out.sum()))
    rows = BinaryRows(margins[:, None], truth[:, None], truth, np.array([0, 1]))
    bias, half = _best_window(rows, objective, share)
    out = np.abs(margins + bias) < half
    value = OBJECTIVES[objective](truth[~out], margins[~out] + bias > 0)
    assert round(float(value), 9) == best
    assert out.sum() == largest or isinstance(objective, Cost)
    tuning, margin = tune_rejecting(rows, objective, share, n_draws=0)
    assert tuning.bias == [bias]
    assert (np.abs(margins + bias) < margin).sum() <= int(share * n + 1e-9)


def test_a_share_of_new_rows_is_left_out_and_the_others_are_better():
    margins, y = draw(6000, 0)
    X = two(expit(margins))
    plain, tuned = (tuned_on(X[:3000], y[:3000], reject=share) for share in (0.0, 0.1))
    found = tuned.predict(X[3000:])
    assert set(found.tolist()) == {-1, 0, 1}
    out = found == -1
    assert 0.08 < out.mean() < 0.12
    kept = f1_score(y[3000:][~out], found[~out])
    assert kept > plain.score(X[3000:], y[3000:]) + 0.03
    scores = tuned.evaluate(X[3000:], y[3000:])
    assert scores["f1"] == pytest.approx(kept) == tuned.score(X[3000:], y[3000:])
    assert scores["rejected"] == pytest.approx(out.mean())
    high, p = tuned.threshold_, X[3000:, 1]
    assert tuned.thresholds_ == {1: high}
    low = expit(logit(high) - 2 * tuned.reject_margin_)
    np.testing.assert_array_equal(found, np.where(p >= high, 1, np.where(p < low, 0, -1)))
    np.testing.assert_allclose(tuned.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(tuned)).predict(X[3000:]), found)


def test_labels_of_every_type():
    margins, y = draw(400, 1)
    X = two(expit(margins))
    names = np.where(y == 1, "yes", "no")
    tuned = BiasTunedClassifier(Given(("no", "yes")), cv="prefit", reject=0.2).fit(X, names)
    found = tuned.predict(X)
    assert found.dtype.kind == "U"
    assert set(found.tolist()) == {"no", "yes", "?"}
    assert tuned.predict_labels(X).tolist() == found.tolist()
    numbers = tuned_on(X, y, reject=0.2)
    assert numbers.predict(X).dtype == int
    assert (numbers.predict(X) == -1).tolist() == (found == "?").tolist()
    missed = f1_score(y == 1, numbers.predict(X) == 1)
    assert class_f1_scorer(numbers, X, y) == pytest.approx(missed)  # what is left out is not found
    with pytest.raises(ValueError, match="reject_label=1 must be of the type"):
        numbers.set_params(reject_label=1).predict(X)
    none = BiasTunedClassifier(Given(), cv="prefit").fit(X, y)
    assert none.predict(X).dtype == int
    assert none.reject_margin_ == 0
    assert "rejected" not in none.evaluate(X, y)
    none.set_params(reject_label=-1)
    grid = GridSearchCV(none, {"reject": [0.0, 0.1]}, scoring="accuracy", error_score="raise")
    grid.set_params(estimator__cv=2, estimator__estimator=LogisticRegression()).fit(X, y)


def test_several_classes_follow_chow():
    """Without costs the rows left out are those whose best probability leads by the least."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6] * 4, 3000)
    y = np.array([rng.choice(4, p=row) for row in p])
    tuned = tuned_on(p, y, range(4), scoring="neg_log_loss", reject=0.3)
    logits = np.log(p) + tuned.bias_
    ordered = np.sort(logits, axis=1)
    expected = ordered[:, -1] - ordered[:, -2]
    np.testing.assert_allclose(sureness(logits, False), expected)
    out = tuned.predict(p) == -1
    assert out.sum() == 900
    assert expected[out].max() < expected[~out].min()
    wrong = [accuracy_score(y[part], logits[part].argmax(axis=1)) for part in (out, ~out)]
    assert wrong[0] < 0.6 < wrong[1]
    macro, plain = (tuned_on(p, y, range(4), reject=share) for share in (0.3, 0.0))
    assert macro.score(p, y) > plain.score(p, y) + 0.04
    with pytest.raises(AttributeError, match="two classes"):
        _ = macro.thresholds_


def test_several_labels_are_left_out_by_the_row():
    rng = np.random.default_rng(0)
    margins = rng.normal(-1, 2, (800, 3))
    Y = (rng.random((800, 3)) < expit(margins)).astype(int)
    X = expit(margins)
    model = Given(("a", "b", "c"), multilabel=True)
    tuned = BiasTunedClassifier(model, cv="prefit", reject=0.25).fit(X, Y)
    found = tuned.predict(X)
    out = (found < 0).any(axis=1)
    assert (found[out] == -1).all()
    near = np.abs(margins + tuned.bias_).min(axis=1)
    decided, order = (margins + tuned.bias_ > 0).astype(int), np.argsort(near)
    scores = [
        f1_score(Y[order[size:]], decided[order[size:]], average="micro") for size in range(201)
    ]
    # One in two sizes is tried.
    assert tuned.score(X, Y) >= max(scores) - 0.002
    assert out.sum() <= 200
    assert near[out].max() < near[~out].min()
    expected = f1_score(Y[~out], found[~out], average="micro")
    assert tuned.score(X, Y) == pytest.approx(expected)
    rows = tuned.predict_labels(X)
    assert rows[np.flatnonzero(out)[0]] == ["?"]
    first = np.flatnonzero(~out)[0]
    assert rows[first] == np.array(["a", "b", "c"])[found[first] == 1].tolist()
    high = [logit(tuned.thresholds_[name]) for name in "abc"]
    np.testing.assert_allclose(high, tuned.reject_margin_ - tuned.bias_)


@settings(deadline=None, max_examples=100)
@given(
    st.integers(0, 10_000),
    st.integers(3, 12),
    st.sampled_from([0.2, 0.5, 0.9]),
    st.booleans(),
    st.integers(1, 3),
)
def test_of_classes_and_labels_any_margin_up_to_the_share_is_the_best(
    seed, n, share, several, steps
):
    """As good as every number of rows, one after the other, that the share allows."""
    rng = np.random.default_rng(seed)
    log_p = np.round(rng.normal(size=(n, 3)) * steps)  # with equally sure rows
    if several:
        truth = rng.integers(2, size=(n, 3))
        rows = BinaryRows(log_p, truth, truth)
        decided, sure = log_p > 0, np.abs(log_p).min(axis=1)
        objective, judge = Fbeta(average="micro"), partial(f1_score, average="micro")
    else:
        truth = rng.integers(3, size=n)
        rows = ClassRows(log_p, truth, truth, np.arange(3))
        decided = log_p.argmax(axis=1)
        sure = np.diff(np.sort(log_p, axis=1))[:, -1]
        objective = Fbeta(average="macro")
        judge = partial(f1_score, average="macro")
    scores = {}
    for size in range(int(share * n + 1e-9) + 1):
        kept = np.argsort(sure, kind="stable")[size:]
        if size == 0 or sure[kept].min() > np.sort(sure)[size - 1]:
            scores[size] = judge(truth[kept], decided[kept], zero_division=0)
    margin = best_margin(rows, np.zeros(3), objective, share)
    out = sure < margin
    assert scores[out.sum()] == pytest.approx(max(scores.values()))
    assert out.sum() == max(n for n, s in scores.items() if s > max(scores.values()) - 1e-9)


@pytest.mark.filterwarnings("ignore::skdice.exceptions.DecisionWarning")
@pytest.mark.parametrize("kind", ["two", "classes", "labels"])
def test_a_promised_accuracy_of_the_decided_rows_is_kept(kind):
    rng = np.random.default_rng(0)
    broken = promised = 0
    for _ in range(DRAWS):
        n = 600
        if kind == "two":
            margins, y = draw(n + 300, rng.integers(1 << 30), rare=-0.5, noise=2.0)
            X, model, asked = two(expit(margins)), Given(), 0.92
        elif kind == "classes":
            X, asked = rng.dirichlet([0.4] * 3, n + 300), 0.85
            y = (rng.random((n + 300, 1)) > X.cumsum(axis=1)).sum(axis=1)
            model = Given(range(3))
        else:
            margins, asked = rng.normal(-1, 3.5, (n + 300, 2)), 0.85
            y, X = (rng.random(margins.shape) < expit(margins)).astype(int), expit(margins)
            model = Given(("a", "b"), multilabel=True)
        left_out = "?" if kind == "labels" else -1
        tuned = BiasTunedClassifier(
            model, cv="prefit", scoring=RejectAt(asked), reject_label=left_out
        )
        tuned.fit(X[:n], y[:n])
        found, new = tuned.predict(X[n:]), y[n:]
        kept = found.reshape(len(new), -1)[:, 0] >= 0
        right = (found == new).reshape(len(new), -1).all(axis=1)
        promised += tuned.bound_.promised == asked
        broken += right[kept].mean() < tuned.bound_.promised
    assert promised > 0.8 * DRAWS
    assert broken <= 0.05 * DRAWS


def test_the_fewest_rows_are_left_out():
    margins, y = draw(4000, 3)
    X = two(expit(margins))
    shares = []
    for asked in (0.93, 0.97):
        tuned = tuned_on(X[:3000], y[:3000], scoring=RejectAt(asked))
        assert tuned.bound_[:3] == ("accuracy of the decided rows", asked, asked)
        # The rows nearest to one half are left out.
        assert logit(tuned.threshold_) == pytest.approx(tuned.reject_margin_)
        out = np.abs(margins) < tuned.reject_margin_
        right = (margins > 0) == y
        assert right[3000:][~out[3000:]].mean() >= asked
        # With 3,000 rows the promise costs a percent.
        order = np.argsort(-np.abs(margins[:3000]))
        reached = np.cumsum(right[order]) / np.arange(1, 3001) >= asked
        fewest = 3000 - np.flatnonzero(reached)[-1]
        assert fewest <= out[:3000].sum() <= fewest + 600
        shares.append(tuned.evaluate(X[3000:], y[3000:])["rejected"])
    assert 0 < shares[0] < shares[1] < 0.75


def test_no_row_is_left_out_where_the_bound_holds_for_all():
    margins = np.linspace(0.1, 4, 300) * np.where(np.arange(300) % 3, -1, 1)
    y = (margins > 0).astype(int)
    y[:9] = 1 - y[:9]  # the nine rows of which the model is least sure
    X = two(expit(margins))
    tuned = tuned_on(X, y, scoring=RejectAt(0.9))
    assert tuned.bound_.promised == 0.9
    assert tuned.evaluate(X, y)["rejected"] == 0
    assert (tuned.predict(X) == (margins > 0)).all()


def test_a_warning_of_more_classes_says_what_it_counts():
    rng = np.random.default_rng(0)
    X = rng.dirichlet([0.5] * 5, 120)
    y = (rng.random((120, 1)) > X.cumsum(axis=1)).sum(axis=1)
    right = (X.argmax(axis=1) == y).sum()
    with pytest.warns(DecisionWarning, match=rf"120 different rows .* {right} are decided right"):
        tuned_on(X, y, range(5), scoring=RejectAt(0.99))


def test_a_saved_model_says_that_it_decides_all_rows(tiny_backbone, tmp_path):
    texts = [f"word{i % 5} {'good' if i % 2 else 'bad'}" for i in range(40)]
    labels = ["pos" if i % 2 else "neg" for i in range(40)]
    inner = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=2, random_state=0)
    inner.fit(texts, labels)
    tuned = BiasTunedClassifier(inner, cv="prefit", reject=0.2).fit(texts, labels)
    tuned.save_pretrained(tmp_path / "m")
    card = (tmp_path / "m" / "README.md").read_text("utf-8")
    assert "leaves rows to a person" in card
    again = DiceSequenceClassifier.from_pretrained(tmp_path / "m")
    sure = tuned.predict(texts) != "?"
    assert 0 < (~sure).sum() <= 8
    np.testing.assert_array_equal(again.predict(texts)[sure], tuned.predict(texts)[sure])


def test_the_picture_is_the_error_of_the_rows_that_are_left():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6] * 3, 200)
    y = np.array([rng.choice(3, p=row) for row in p])
    tuned = tuned_on(p, y, range(3), reject=0.3)
    display = RejectDisplay.from_estimator(tuned, p, y)
    logits = np.log(p) + tuned.bias_
    lead = np.diff(np.sort(logits, axis=1)[:, -2:], axis=1)[:, 0]
    for k in (0, 60, 150):
        kept = np.argsort(lead)[k:]
        error = 1 - accuracy_score(y[kept], logits[kept].argmax(axis=1))
        assert display.rejected[k] == k / 200
        assert display.error[k] == pytest.approx(error)
    assert display.chosen == pytest.approx(0.3)
    assert "30% to a person" in display.ax_.get_title()
    with pytest.raises(TypeError, match="must be a fitted BiasTunedClassifier"):
        RejectDisplay.from_estimator(Given(range(3)), p, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"reject": 1.0}, "reject"),
        ({"reject": -0.1}, "reject"),
        ({"reject": 0.1, "reject_label": 1}, r"reject_label=1 must be .* none of \[0, 1\]"),
        ({"reject": 0.1}, r"reject_label='\?' must be of the type"),
        ({"reject": 0.1, "reject_label": np.nan}, "reject_label=nan must be of the type"),
        ({"reject": 0.1, "reject_label": [-1]}, r"reject_label=\[-1\] must be of the type"),
        (
            {"reject": 0.1, "reject_label": -1, "scoring": RecallAtPrecision(0.9)},
            "does not go with scoring",
        ),
    ],
)
def test_what_is_refused_before_work_starts(params, message):
    X, y = make_classification(100, random_state=0)

    class Forbidden(LogisticRegression):
        def fit(self, X, y):
            raise AssertionError("it was fitted")

    with pytest.raises(ValueError, match=message):
        BiasTunedClassifier(Forbidden(), **params).fit(X, y)
