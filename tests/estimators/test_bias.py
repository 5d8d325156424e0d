"""Tuned decisions against brute force, and span counts against the plain metric."""

from __future__ import annotations

import pickle
from copy import copy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.over_sampling import RandomOverSampler
from scipy import sparse
from scipy.special import log_softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, recall_score
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceClassifier,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.estimators.tuned import base as tuned_base
from skdice.inspection import span_probabilities
from skdice.metrics import (
    AlertBudget,
    Cost,
    Fbeta,
    PrecisionAtRecall,
    class_recall_scorer,
    expected_calibration_error,
    span_f1_score,
)
from skdice.metrics.calibration import SpanScales, calibrate, judged
from skdice.metrics.decisions.bias_search import tune_bias
from skdice.metrics.decisions.span_counter import SpanCounter
from skdice.tags.schemes import SCHEMES, get_spans
from skdice.tags.spans import ScoredSpan
from tests.data import tags_of
from tests.fits import never_fitted

X, Y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)


def macro_f1(truth, predicted, n_classes):
    """As scikit-learn's, which takes a millisecond a call."""
    hits = np.bincount(truth[truth == predicted], minlength=n_classes)
    total = np.bincount(truth, minlength=n_classes) + np.bincount(predicted, minlength=n_classes)
    return (2 * hits / np.maximum(total, 1)).mean()


def best_f1(log_p, truth):
    """The highest F1 that any threshold has."""
    margins = log_p[:, 1] - log_p[:, 0]
    return max(f1_score(truth, margins >= t) for t in margins)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(SCHEMES))
def test_counted_spans_equal_the_metric(data, scheme):
    classes = tags_of(scheme)
    lengths = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    rows = [
        data.draw(st.lists(st.integers(0, len(classes) - 1), min_size=2 * n, max_size=2 * n))
        for n in lengths
    ]
    y_true = [[classes[i] for i in row[: len(row) // 2]] for row in rows]
    y_pred = [[classes[i] for i in row[len(row) // 2 :]] for row in rows]
    flat = np.array([classes.index(tag) for row in y_pred for tag in row], dtype=int)
    counter, micro = SpanCounter(y_true, classes, scheme), Fbeta(average="micro")
    expected = span_f1_score(y_true, y_pred, scheme=scheme)
    assert micro._value(counter.counts(flat)) == pytest.approx(expected)
    # A tag that the model does not know still counts as missed.
    fewer = SpanCounter(y_true, classes[:2], scheme)
    only = [[classes[0]] * len(row) for row in y_true]
    expected = span_f1_score(y_true, only, scheme=scheme)
    assert micro._value(fewer.counts(np.zeros(len(flat), dtype=int))) == pytest.approx(expected)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_more_classes_never_lose_on_what_they_are_tuned_on(seed):
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=200, p=[0.7, 0.2, 0.07, 0.03])
    log_p = log_softmax(rng.normal(size=(200, 4)) + np.eye(4)[truth] + [1, 0, 0, 0], axis=1)

    def score(predicted):
        return macro_f1(truth, predicted, 4)

    bias = tune_bias(log_p, truth, score)
    assert score((log_p + bias).argmax(axis=1)) >= score(log_p.argmax(axis=1))
    assert np.isfinite(bias).all()


def test_a_bias_is_found_that_is_known():
    """Probabilities off by a known factor: the bias puts them right."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, size=3000, p=[0.8, 0.15, 0.05])
    log_p = log_softmax(rng.normal(size=(3000, 3)) + 3 * np.eye(3)[truth], axis=1)
    off = np.array([2.0, -1.0, -2.5])

    def score(predicted):
        return macro_f1(truth, predicted, 3)

    biased = log_p + off
    assert score(biased.argmax(axis=1)) < 0.65
    tuned = biased + tune_bias(biased, truth, score)
    reference = log_p + tune_bias(log_p, truth, score)
    assert score(tuned.argmax(axis=1)) == pytest.approx(score(reference.argmax(axis=1)), abs=0.01)


@pytest.mark.parametrize("cv", [None, 3, 0.3, "prefit", PredefinedSplit(np.arange(600) % 2)])
def test_held_out_data_in_every_way(cv):
    inner = GaussianNB()
    if cv == "prefit":
        inner.fit(X, Y)
    tuned = BiasTunedClassifier(inner, cv=cv, random_state=0).fit(X, Y)
    assert tuned.score(X, Y) == f1_score(Y, tuned.predict(X))
    np.testing.assert_allclose(tuned.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(tuned.predict_proba(X).argmax(axis=1), tuned.predict(X))
    # The estimator that predicts was fitted on all rows.
    expected = GaussianNB().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(tuned.estimator_.predict_proba(X), expected)


def test_cross_validated_probabilities_are_what_is_tuned_on():
    proba = cross_val_predict(LogisticRegression(), X, Y, cv=5, method="predict_proba")
    tuned = BiasTunedClassifier(LogisticRegression(), n_bootstraps=0).fit(X, Y)
    log_p = np.log(proba)
    assert f1_score(Y, (log_p + tuned.bias_).argmax(axis=1)) == best_f1(log_p, Y)


def test_validation_rows_of_the_user_are_what_is_tuned_on():
    inner = LogisticRegression()
    tuned = BiasTunedClassifier(inner, n_bootstraps=0)
    tuned.fit(X[:400], Y[:400], X_val=X[400:], y_val=Y[400:])
    log_p = inner.fit(X[:400], Y[:400]).predict_log_proba(X[400:])
    assert tuned.score(X[400:], Y[400:]) == best_f1(log_p, Y[400:])
    with pytest.raises(ValueError, match="y_val is missing"):
        tuned.fit(X, Y, X_val=X)
    with pytest.raises(ValueError, match=rf"X_val has 1 columns and X {X.shape[1]}"):
        tuned.fit(X, Y, X_val=X[:, :1], y_val=Y)


def test_scoring():
    names = np.array(["common", "rare"])[Y]

    def fitted(**params):
        return BiasTunedClassifier(GaussianNB(), n_bootstraps=0, **params).fit(X, names)

    by_rare, by_name = fitted(), fitted(pos_label="rare", scoring="f1")
    np.testing.assert_array_equal(by_rare.bias_, by_name.bias_)
    other = fitted(pos_label="common")
    assert not np.array_equal(other.bias_, by_name.bias_)
    named, called = (fitted(scoring=s) for s in ("accuracy", accuracy_score))
    np.testing.assert_array_equal(named.bias_, called.bias_)
    for params, y, message in (
        ({"n_bootstraps": 10**30}, names, "n_bootstraps"),
        ({"scoring": "f1"}, np.arange(600) % 3, "scoring='f1' is for two classes, and y has 3"),
        ({}, [1] + [0] * 599, "1 sample only"),
        ({"scoring": "f2"}, Y, "scoring='f2' must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            BiasTunedClassifier(GaussianNB(), **params).fit(X, y)


def test_the_positive_class_is_that_of_training(tiny_backbone):
    names = np.array(["common", "rare"])[Y]
    # As many of both to tune on: what is rare there says nothing.
    held = np.concatenate([np.flatnonzero(c == Y)[:20] for c in (0, 1)])
    held = np.append(held, np.flatnonzero(Y == 1)[20:25])
    how = {"X_val": X[held], "y_val": names[held]}
    model = BiasTunedClassifier(GaussianNB(), n_bootstraps=0)
    by_itself = clone(model).fit(X, names, **how)
    told = clone(model).set_params(pos_label="rare").fit(X, names, **how)
    np.testing.assert_array_equal(by_itself.bias_, told.bias_)
    # The estimator's own word counts more.
    texts, labels = ["free money", "lunch", "the bus", "old road"] * 3, ["s", "h", "h", "h"] * 3
    inner = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, pos_label="h")
    inner.fit(texts, labels)
    tuned = BiasTunedClassifier(inner, cv="prefit").fit(texts, labels)
    told = BiasTunedClassifier(inner, cv="prefit", pos_label="h").fit(texts, labels)
    np.testing.assert_array_equal(tuned.bias_, told.bias_)
    heads = DiceClassifier(loss="ce", pos_label="common", max_epochs=5, random_state=0)
    for model in (heads, make_pipeline(StandardScaler(), heads)):
        tuned, told = (BiasTunedClassifier(model, pos_label=p) for p in (None, "common"))
        np.testing.assert_array_equal(tuned.fit(X, names).bias_, told.fit(X, names).bias_)


def test_a_scorer_of_the_users_sees_labels_that_training_did_not_hold():
    seen = []

    def scorer(truth, predicted):
        seen.append(set(truth.tolist()))
        return float((truth == predicted).mean())

    answers = np.where(np.arange(100) < 5, 7, Y[:100])
    model = BiasTunedClassifier(GaussianNB(), scoring=scorer, n_bootstraps=0)
    model.fit(X, Y, X_val=X[:100], y_val=answers)
    assert seen[0] == {0, 1, 7}


def test_sparse_rows_weights_and_a_grid_over_the_inner_loss():
    weights = np.where(Y == 1, 5.0, 1.0)
    plain = BiasTunedClassifier(LogisticRegression()).fit(X, Y)
    weighted = BiasTunedClassifier(LogisticRegression()).fit(X, Y, sample_weight=weights)
    assert not np.allclose(plain.estimator_.coef_, weighted.estimator_.coef_)
    expected = LogisticRegression().fit(X, Y, sample_weight=weights).coef_
    np.testing.assert_allclose(weighted.estimator_.coef_, expected)
    of_sparse = BiasTunedClassifier(LogisticRegression()).fit(sparse.csr_array(X), Y)
    np.testing.assert_allclose(of_sparse.bias_, plain.bias_)
    tuned = BiasTunedClassifier(DiceClassifier(max_epochs=5, random_state=0), cv=2)
    how = dict(cv=2, scoring="f1", error_score="raise")
    grid = GridSearchCV(tuned, {"estimator__loss": ["ce", "dsc"]}, **how).fit(X, Y)
    assert grid.best_estimator_.estimator_.loss == grid.best_params_["estimator__loss"]


def test_a_text_classifier_and_its_sampler(tiny_backbone):
    texts = ["win free money", "lunch today", "the bus was late", "old road", "new school"] * 4
    labels = np.array(["spam", "ham", "ham", "ham", "ham"] * 4)
    settings = dict(max_epochs=2, random_state=0, sampler=RandomOverSampler())
    inner = DiceSequenceClassifier(backbone=tiny_backbone, **settings)
    tuned = BiasTunedClassifier(inner, cv=0.5, random_state=0).fit(texts, labels)
    assert set(tuned.predict(texts)) <= {"spam", "ham"}
    held = BiasTunedClassifier(inner).fit(texts, labels, X_val=texts[:5], y_val=labels[:5])
    assert "valid_score" in held.estimator_.history_[-1]  # the inner fit saw them too


@pytest.mark.parametrize("constrained", [False, True])
def test_a_tagger(tiny_backbone, sentences, constrained, tmp_path):
    X, y = sentences
    settings = dict(max_epochs=8, lr=3e-3, batch_size=4, random_state=0)
    inner = DiceTokenClassifier(backbone=tiny_backbone, constrained=constrained, **settings)
    tuned = BiasTunedTagger(inner).fit(X, y, X_val=X, y_val=y)
    plain = inner.fit(X, y, X_val=X, y_val=y)
    assert tuned.scheme_ == "iob2"
    if not constrained:  # the search counts spans of the unconstrained decoding
        assert tuned.score(X, y) > plain.score(X, y)
    tables = tuned.predict_proba(X)
    tables_of_plain = plain.predict_proba(X)
    moved = [(np.log(rows) + tuned.bias_) / tuned.temperature_ for rows in tables_of_plain]
    for table, expected in zip(tables, moved, strict=True):
        np.testing.assert_allclose(table, np.exp(log_softmax(expected, axis=1)), atol=1e-6)
    for estimator in (plain, tuned):
        spans = estimator.predict_spans(X)
        rows = [[span[:3] for span in row] for row in spans]
        assert rows == [get_spans(tags, "iob2") for tags in estimator.predict(X)]
        proba = span_probabilities(estimator.predict_proba(X), rows, estimator.classes_)
        pairs = zip(rows, proba, strict=True)
        raw = [[ScoredSpan(*s, p) for s, p in zip(*pair, strict=True)] for pair in pairs]
        expected = raw if estimator is plain else [tuned.span_scales_(row) for row in raw]
        scores = [[span.score for row in part for span in row] for part in (spans, expected)]
        np.testing.assert_allclose(*scores, atol=1e-6)
    judgements = [judged(row, tags, "iob2") for row, tags in zip(raw, y, strict=True)]
    scales = SpanScales([pair for row in judgements for pair in row])
    assert set(scales.of_type) == set(tuned.span_scales_.of_type)
    for kind, scale in scales.of_type.items():
        assert scale == pytest.approx(tuned.span_scales_.of_type[kind], rel=1e-3)
    assert sum(map(len, rows)) > 5
    tuned.save_pretrained(tmp_path / "tagger")
    loaded = DiceTokenClassifier.from_pretrained(tmp_path / "tagger")
    for row, expected in zip(loaded.predict_spans(X), tuned.predict_spans(X), strict=True):
        assert [span[:3] for span in row] == [span[:3] for span in expected]
        np.testing.assert_allclose(*[[s.score for s in r] for r in (row, expected)], atol=1e-5)
    loaded.save_pretrained(tmp_path / "again")
    again = DiceTokenClassifier.from_pretrained(tmp_path / "again")
    assert vars(again.span_scales_) == vars(loaded.span_scales_)
    assert not hasattr(again.set_params(max_epochs=1).fit(X, y), "span_scales_")
    if not constrained:
        assert [list(tuned.classes_[t.argmax(axis=1)]) for t in tables] == list(tuned.predict(X))
    folds = BiasTunedTagger(inner.set_params(max_epochs=1), cv=2, random_state=0).fit(X, y)
    assert folds.predict(X).shape == (16,)
    with pytest.raises(ValueError, match=r"y\[0\] has 1 tag"):
        BiasTunedTagger(inner).fit(X, [["O"], *y[1:]])


# ---- objectives, several labels, calibration


@pytest.mark.parametrize("names", [("bad", "good"), ("spam", "ham")])  # the rare one, the other
def test_costs_by_name_are_those_of_the_names_wherever_they_sort(names):
    rare, common = names
    big, z = make_classification(6000, weights=[0.9], class_sep=1.0, flip_y=0.05, random_state=1)
    y = np.where(z == 1, rare, common)
    model = LogisticRegression().fit(big[:3000], y[:3000])
    cost = Cost({(rare, common): 10, (common, rare): 1})
    tuned = BiasTunedClassifier(model, cv="prefit", scoring=cost).fit(big[:3000], y[:3000])
    p = model.predict_proba(big)[:, list(model.classes_).index(rare)]
    new, truth = p[3000:], y[3000:] == rare

    def mean_cost(found):
        return (10 * (truth & ~found) + (found & ~truth)).mean()

    best = min(mean_cost(new > threshold) for threshold in np.linspace(0, 1, 1001))
    found = tuned.predict(big[3000:]) == rare
    assert mean_cost(found) < 1.05 * best
    assert 0.04 < tuned.threshold_ < 0.2
    assert tuned.evaluate(big[3000:], y[3000:])["cost"] == pytest.approx(mean_cost(found))
    opposite = Cost({(rare, common): 1, (common, rare): 10})
    other = clone(tuned).set_params(scoring=opposite, estimator=model).fit(big[:3000], y[:3000])
    assert other.threshold_ > 0.5
    assert tuned.tuned_for_["objective"] == f"the lowest cost ({repr(cost)[5:-1]})"


def test_a_cost_by_name_is_a_parameter():
    costs = {("bad", "good"): 10, ("good", "bad"): 1}
    cost = Cost(costs)
    assert repr(cost) == "Cost(bad taken for good: 10, good taken for bad: 1)"
    assert cost.get_params() == {"matrix": costs} == clone(cost).get_params()
    assert Cost(**cost.get_params()) == cost == clone(cost) == pickle.loads(pickle.dumps(cost))
    assert len({cost, Cost(costs), Cost([[0, 1], [10, 0]])}) == 2
    tuned = BiasTunedClassifier(GaussianNB(), scoring=cost)
    assert clone(tuned).scoring == cost
    assert tuned.set_params(scoring__matrix=[[0, 1], [2, 0]]).scoring == Cost([[0, 1], [2, 0]])
    assert repr(tuned.scoring) == "Cost([[0, 1], [2, 0]])"


@pytest.mark.parametrize(
    ("costs", "match"),
    [
        ({("bad", "good"): 10}, r"does not say what 'good' taken for 'bad' costs"),
        (
            {("bad", "god"): 10, ("good", "bad"): 1},
            r"scoring=Cost\(bad taken for god: 10, .*\) does not fit y: "
            r"class='god' is not among the classes \['bad', 'good'",
        ),
        (
            [[0, 1], [10, 0]],
            r"'bad' is the first of \['bad', 'good'\]: .*Cost\(\{\('bad', 'good'\): 1, "
            r"\('good', 'bad'\): 10\}\) if the rows are in this order",
        ),
    ],
)
def test_costs_that_could_mean_another_thing_are_refused_before_training(costs, match):
    y = np.where(Y == 1, "bad", "good")
    with pytest.raises(ValueError, match=match):
        BiasTunedClassifier(never_fitted(GaussianNB)(), scoring=Cost(costs)).fit(X, y)
    for wrong in ({"bad": 1}, {("bad", "good"): "x", ("good", "bad"): 1}):
        with pytest.raises((ValueError, TypeError), match="matrix"):
            Cost(wrong)


def test_costs_of_three_classes_and_of_several_labels_are_told():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], size=300)
    rows = rng.normal(size=(300, 3)) + 2 * (y[:, None] == ["a", "b", "c"])
    names, table = ["a", "b", "c"], [[0, 1, 2], [5, -1, 3], [1, 8, 0]]
    named = Cost({(t, p): table[i][j] for i, t in enumerate(names) for j, p in enumerate(names)})
    for cost in (named, Cost(table)):
        tuned = BiasTunedClassifier(GaussianNB(), scoring=cost, n_bootstraps=2).fit(rows, y)
        pairs = zip(y, tuned.predict(rows), strict=True)
        mean = np.mean([table[names.index(t)][names.index(p)] for t, p in pairs])
        assert tuned.evaluate(rows, y)["cost"] == pytest.approx(mean)
    truth = (rows > 1).astype(int)
    several = BiasTunedClassifier(
        OneVsRestClassifier(GaussianNB()), scoring=Cost([[0, 1], [4, 0]]), n_bootstraps=2, cv=2
    ).fit(rows, truth)
    found = several.predict(rows)
    mean = (4 * (truth > found) + (found > truth)).sum(axis=1).mean()
    assert several.evaluate(rows, truth)["cost"] == pytest.approx(mean)
    with pytest.raises(ValueError, match=r"names classes, and each label is there or not"):
        clone(several).set_params(scoring=named).fit(rows, truth)


def test_objectives_of_a_classifier():
    names = np.array(["common", "rare"])[Y]

    def fitted(scoring, **params):
        model = BiasTunedClassifier(GaussianNB(), scoring=scoring, **params)
        return model.fit(X, names)

    recalls = [(fitted(Fbeta(b)).predict(X) == "rare").sum() for b in (0.3, 1, 3)]
    assert recalls == sorted(recalls)
    assert recalls[0] < recalls[2]
    cheap, dear = (fitted(Cost([[0, 1], [c, 0]])).predict(X) for c in (1, 30))
    assert (dear == "rare").sum() > (cheap == "rare").sum()
    found = fitted(PrecisionAtRecall(0.7)).predict(X)
    assert (found[Y == 1] == "rare").mean() > 0.7
    assert (fitted(AlertBudget(50)).predict(X) == "rare").mean() < 0.06
    # The positive class has another place: an array could be read in two ways.
    other = BiasTunedClassifier(GaussianNB(), scoring=Cost([[0, 1], [30, 0]]), pos_label=0)
    with pytest.raises(ValueError, match=r"can be read in two ways.*Cost\(\{\(0, 1\): 1, \(1, 0"):
        other.fit(X, 1 - Y)
    zero_one = other.set_params(scoring=Cost({(0, 1): 30, (1, 0): 1})).fit(X, 1 - Y)
    np.testing.assert_array_equal(zero_one.predict(X) == 0, dear == "rare")
    assert fitted(partial(recall_score, pos_label="rare"), n_bootstraps=0, cv=2).bias_.shape == (2,)
    for scorer, match in (("roc_auc", "must be one of"), (class_recall_scorer, "give its metric")):
        with pytest.raises((ValueError, TypeError), match=match):
            fitted(scorer)
    for scoring, match in (
        (lambda true, predicted: float("nan"), "returned nan: it must return a finite number"),
        (lambda true, predicted: "good", "returned 'good'"),
        (lambda true, predicted: [][0], "index out of range"),
    ):
        with pytest.raises((ValueError, IndexError), match=match):
            fitted(scoring, cv=2)


def test_a_fitted_classifier_is_tuned_on_its_own_labels():
    tuned = BiasTunedClassifier(GaussianNB().fit(X, Y), cv="prefit")
    with pytest.raises(ValueError, match="y holds none of the classes of the estimator: it has"):
        tuned.fit(X, Y.astype(str))


def test_one_label_in_lists_is_tuned_as_several_are():
    names = [["rare"] if rare else [] for rare in Y]
    inner = DiceClassifier(loss="ce", max_epochs=5, random_state=0)
    for params, held in (({"cv": 2}, {}), ({}, {"X_val": X[:300], "y_val": names[:300]})):
        tuned = BiasTunedClassifier(inner, n_bootstraps=2, random_state=0, **params)
        tuned.fit(X, names, **held)
        assert (tuned.classes_.tolist(), tuned.bias_.shape) == (["rare"], (1,))
        assert tuned.predict(X).shape == (600, 1)
        assert tuned.score(X, names) == f1_score(Y, tuned.predict(X)[:, 0])
    with pytest.raises(ValueError, match=r"one label only, 'rare': give .*\['rare' in row for row"):
        BiasTunedClassifier(GaussianNB()).fit(X, names)


# ---- equal rows, groups, parameters of an objective


class Memory(GaussianNB):
    """Sure of the rows that it was trained on, as a forest is."""

    def fit(self, X, y, groups=None):
        self.seen = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
        self.groups = groups
        return super().fit(X, y)

    def predict_proba(self, X):
        p = super().predict_proba(X)
        for i, row in enumerate(X):
            if row.tobytes() in self.seen:
                p[i] = np.eye(2)[self.seen[row.tobytes()]]
        return p


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, pd.DataFrame, list])
@pytest.mark.parametrize("cv", ["prefit", 3, 0.5])
def test_equal_rows_are_one_piece_of_evidence_for_a_bound(container, cv):
    inner = GaussianNB().fit(X, Y)
    if container is sparse.csr_matrix:
        inner = LogisticRegression().fit(X, Y)
    rows = np.repeat(np.arange(600), 3)

    def fitted(chosen, bound):
        tuned = BiasTunedClassifier(inner, scoring=bound, cv=cv, random_state=0)
        return tuned.fit(container(X[chosen]), Y[chosen])

    once, thrice = (fitted(r, PrecisionAtRecall(0.7)) for r in (np.arange(600), rows))
    if cv == "prefit":
        np.testing.assert_array_equal(once.bias_, thrice.bias_)
    with pytest.warns(UserWarning, match=r"with \d+ different rows to tune on, of which \d\d are"):
        fitted(rows, PrecisionAtRecall(0.97))


def test_folds_do_not_share_equal_rows_where_a_bound_is_asked():
    rows = np.tile(np.arange(600), 4)
    scoring = PrecisionAtRecall(0.5)
    tuned = BiasTunedClassifier(Memory(), scoring=scoring, cv=3).fit(X[rows], Y[rows])
    once = BiasTunedClassifier(Memory(), scoring=scoring, cv=3).fit(X, Y)
    # A model that has seen the held-out rows would be sure, and no bias would be needed.
    np.testing.assert_allclose(tuned.bias_, once.bias_, rtol=0.2)


def test_groups_reach_the_splitter():
    groups = np.arange(600) // 4
    shares = BiasTunedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, Y, groups=groups)
    folds = list(GroupKFold(3).split(X, Y, groups))
    same = BiasTunedClassifier(GaussianNB(), cv=folds_as_splitter(folds)).fit(X, Y)
    np.testing.assert_array_equal(shares.bias_draws_, same.bias_draws_)
    kept = BiasTunedClassifier(Memory(), cv=3).fit(X, Y, groups=groups)
    np.testing.assert_array_equal(kept.estimator_.groups, groups)  # it takes them itself
    with config_context(enable_metadata_routing=True):
        routed = BiasTunedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, Y, groups=groups)
        np.testing.assert_array_equal(routed.bias_draws_, shares.bias_draws_)
        BiasTunedClassifier(GaussianNB(), cv=3).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match=r"cv=0\.5 makes none"):
        BiasTunedClassifier(GaussianNB(), cv=0.5).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match="X_val makes none"):
        BiasTunedClassifier(GaussianNB()).fit(X, Y, X_val=X, y_val=Y, groups=groups)
    for wrong, message in (
        (groups[:3], "groups holds 3 rows"),
        ([*groups[1:], None], r"groups\[599\] is None.* a group of its own"),
        (np.where(np.arange(600) == 7, np.nan, groups), r"groups\[7\] is nan"),
        (groups[:, None], r"groups\[0\] is array\(\[.*give each row a value"),
    ):
        with pytest.raises(ValueError, match=message):
            BiasTunedClassifier(GaussianNB()).fit(X, Y, groups=wrong)


def folds_as_splitter(folds):
    test = np.zeros(600, dtype=int)
    for i, (_, held) in enumerate(folds):
        test[held] = i
    return PredefinedSplit(test)


def test_groups_of_a_tagger(sentences, tiny_backbone):
    rows, tags = sentences
    groups, seen = np.arange(len(rows)) // 4, []

    class Splitter(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append(groups)
            return super().split(X, y, groups)

    inner = DiceTokenClassifier(loss="ce", backbone=tiny_backbone, max_epochs=1, random_state=0)
    BiasTunedTagger(inner, cv=Splitter(2), n_bootstraps=0).fit(rows, tags, groups=groups)
    np.testing.assert_array_equal(seen, [groups])


def test_a_search_over_the_parameters_of_an_objective():
    model = BiasTunedClassifier(GaussianNB(), scoring=Fbeta(1), cv=0.5, random_state=0)
    search = GridSearchCV(model, {"scoring__beta": [0.2, 5]}, cv=2).fit(X, Y)
    assert search.best_estimator_.scoring == Fbeta(search.best_params_["scoring__beta"])
    assert model.scoring == Fbeta(1)
    for objective in (Fbeta(2), Cost([[0, 1], [9, 0]]), AlertBudget(5, each=True)):
        copied = clone(objective)
        assert copied == objective
        assert copied is not objective
        assert type(objective)(**objective.get_params()) == objective
    assert model.set_params(scoring__beta=3).scoring == Fbeta(3)
    for params, match in (
        ({"scoring__beta": -1}, "beta=-1 must be above 0"),
        ({"scoring__gamma": 1}, "Invalid parameter 'gamma' for Fbeta"),
        ({"scoring": "f1", "scoring__beta": 1}, "scoring__beta is of an objective"),
    ):
        with pytest.raises(ValueError, match=match):
            clone(model).set_params(**params)
    assert model.scoring == Fbeta(3)


def test_a_metric_that_cannot_score_the_classes_is_refused_before_training():
    three, named = np.arange(600) % 3, np.array(["a", "b"])[Y]
    untrained = never_fitted(GaussianNB)()
    for scoring, y in (
        (f1_score, three),
        (partial(f1_score, pos_label=7), three),
        (f1_score, named),
    ):
        with pytest.raises(ValueError, match="cannot score these labels"):
            BiasTunedClassifier(untrained, scoring=scoring).fit(X, y)


def test_several_labels_of_any_classifier():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 3))
    labels = (rows + 0.3 * rng.normal(size=(600, 3)) > [0.5, 1, 1.5]).astype(int)
    inner = OneVsRestClassifier(LogisticRegression(class_weight="balanced"))
    tuned = BiasTunedClassifier(inner, scoring="f1", cv=3, random_state=0).fit(rows, labels)
    plain = clone(inner).fit(rows, labels)
    assert tuned.predict(rows).shape == tuned.predict_proba(rows).shape == (600, 3)
    gains = [f1_score(labels, m.predict(rows), average="macro") for m in (tuned, plain)]
    assert gains[0] > gains[1] + 0.02
    assert tuned.score(rows, labels) == f1_score(labels, tuned.predict(rows), average="micro")
    np.testing.assert_array_equal(tuned.predict_proba(rows) > 0.5, tuned.predict(rows))
    forest = RandomForestClassifier(10, random_state=0)  # a table of probabilities for each label
    held = {"X_val": rows[:300], "y_val": labels[:300]}
    other = BiasTunedClassifier(forest).fit(rows[300:], labels[300:], **held)
    assert other.predict(rows).shape == (600, 3)
    assert BiasTunedClassifier(inner, cv=0.3, random_state=0).fit(rows, labels).multilabel_
    assert pickle.loads(pickle.dumps(tuned)).predict(rows).tolist() == tuned.predict(rows).tolist()
    for other in (labels[:, :2], labels[:, 0]):
        with pytest.raises(ValueError, match="y_val has shape"):
            BiasTunedClassifier(inner).fit(rows, labels, X_val=rows, y_val=other)
    frame = pd.DataFrame(labels, columns=["a", "b", "c"])
    named = BiasTunedClassifier(inner, scoring="f1", cv=3, random_state=0).fit(rows, frame)
    assert named.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(named.bias_, tuned.bias_)
    assert named.score(rows, frame) == tuned.score(rows, labels)
    with pytest.raises(ValueError, match="y holds 0 samples"):
        BiasTunedClassifier(GaussianNB()).fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match="n_splits=50 must be a number from 2 to the 40 rows"):
        BiasTunedClassifier(inner, cv=50).fit(rows[:40], labels[:40])


def test_folds_share_the_rows_of_rare_labels():
    labels = np.zeros((50, 3), dtype=int)
    labels[:40, 0] = labels[:10, 1] = labels[:5, 2] = 1
    rows = np.arange(50.0)[:, None]

    class Watched(DecisionTreeClassifier):
        def fit(self, X, y):
            seen.append(X[:, 0].astype(int))
            return super().fit(X, y)

    for cv, rare in ((5, [4] * 5), (0.2, [4])):
        seen = []
        BiasTunedClassifier(Watched(), cv=cv).fit(rows, labels)
        fits = [train for train in seen if len(train) < 50]
        assert [len(train) for train in fits] == [40] * len(rare)
        assert [labels[train].sum(axis=0)[2] for train in fits] == rare


def test_probabilities_are_calibrated_and_the_decision_stays():
    rng = np.random.default_rng(0)
    X, y = make_classification(4000, weights=[0.8], flip_y=0.2, random_state=0)
    X = np.c_[X, X, X]  # counts all evidence three times
    train, held, new = np.split(rng.permutation(4000), [1000, 2500])
    inner = GaussianNB().fit(X[train], y[train])

    def error(model):
        return expected_calibration_error(y[new], model.predict_proba(X[new])[:, 1])

    tuned = BiasTunedClassifier(inner, cv="prefit").fit(X[held], y[held])
    assert tuned.temperature_ > 2
    likely = BiasTunedClassifier(inner, cv="prefit", scoring="neg_log_loss").fit(X[held], y[held])
    hot = copy(tuned)
    hot.temperature_ = 1.0
    assert error(hot) > error(tuned) + 0.02
    assert error(inner) > 0.15 > 0.08 > error(likely)
    np.testing.assert_array_equal(hot.predict(X[new]), tuned.predict(X[new]))
    biased = np.log(inner.predict_proba(X[new]) + 1e-300) + tuned.bias_
    np.testing.assert_array_equal(tuned.predict(X[new]), biased.argmax(axis=1))


@pytest.mark.parametrize(
    "scoring", ["f1_macro", Fbeta(2), Cost([[0, 1], [3, 0]]), "neg_log_loss", span_f1_score]
)
def test_objectives_of_a_tagger(tiny_backbone, sentences, scoring):
    X, y = sentences
    settings = dict(max_epochs=4, lr=3e-3, batch_size=4, random_state=0)
    inner = DiceTokenClassifier(backbone=tiny_backbone, **settings).fit(X, y)
    tuned = BiasTunedTagger(inner, cv="prefit", scoring=scoring, n_bootstraps=2).fit(X, y)
    assert tuned.predict(X).shape == (len(X),)
    scores = tuned.evaluate(X, y)
    assert ("cost" in scores) == isinstance(scoring, Cost)
    if isinstance(scoring, Cost):
        rows = [[{*get_spans(row)} for row in part] for part in (y, tuned.predict(X))]
        costs = [3 * len(t - p) + len(p - t) for t, p in zip(*rows, strict=True)]
        assert scores["cost"] == pytest.approx(np.mean(costs))
    with pytest.raises(ValueError, match="must be one of"):
        clone(tuned).set_params(estimator=inner, scoring="precision").fit(X, y)


def test_a_class_that_a_fold_never_saw_tells_nothing_of_calibration():
    draw = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 100)
    rows = draw.normal(size=(300, 2)) + 1.5 * np.array([[0, 0], [2, 0], [0, 2]]).repeat(100, 0)
    groups = np.where(y == "c", 9, np.arange(300) % 9)  # all of c in one document
    tuned = BiasTunedClassifier(LogisticRegression(), cv=5, random_state=0)
    tuned.fit(rows, y, groups=groups)
    _, truth = tuned._held
    assert (truth < 0).sum() == 100
    assert tuned.temperature_ < 1.3  # with 100 rows that are wrong for certain, it was 5


def test_a_tag_that_a_fold_never_saw_tells_nothing_of_calibration(
    tiny_backbone, sentences, monkeypatch
):
    X, y = [*sentences[0], ["rome", "met", "rome"]], [*sentences[1], ["B-RARE", "O", "B-RARE"]]
    seen = []

    def noting(logits, truth, **options):
        seen.append((logits, truth))
        return calibrate(logits, truth, **options)

    monkeypatch.setattr(tuned_base, "calibrate", noting)
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    tuned = BiasTunedTagger(tagger, cv=2, n_bootstraps=0, random_state=0).fit(X, y)
    ((logits, truth),) = seen
    assert (truth < 0).sum() >= 2
    rare = tuned.classes_.tolist().index("B-RARE")
    assert not (truth == rare).any()
    assert logits[truth < 0, rare].min() < -100  # a fold gives it no probability at all


@pytest.mark.parametrize("rare", ["bad", "zbad"])
def test_a_tie_is_negative_whichever_class_comes_first(rare):
    rows, z = make_classification(1000, weights=[0.7], flip_y=0.1, random_state=0)
    y = np.where(z == 1, rare, "ok")
    model = KNeighborsClassifier(2).fit(rows[:700], y[:700])
    tuned = BiasTunedClassifier(model, cv="prefit", scoring="accuracy").fit(rows[700:], y[700:])
    tuned.bias_ = np.zeros(2)
    p = model.predict_proba(rows[700:])[:, model.classes_.tolist().index(rare)]
    assert (p == 0.5).any()
    assert (tuned.predict(rows[700:]) == rare).tolist() == (p > 0.5).tolist()


def test_what_prefit_would_ignore_is_refused_and_the_global_generator_is_left_alone():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match=r"cv='prefit' fits nothing: leave out sample_weight"):
        BiasTunedClassifier(model, cv="prefit").fit(X, Y, sample_weight=np.ones(len(Y)))
    with pytest.raises(ValueError, match=r"groups are for folds, and cv='prefit' makes none"):
        BiasTunedClassifier(model, cv="prefit").fit(X, Y, groups=np.ones(len(Y)))
    before = np.random.get_state()[1].tolist()
    BiasTunedClassifier(model, cv=0.3).fit(X, Y)
    assert np.random.get_state()[1].tolist() == before
