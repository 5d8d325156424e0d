"""scikit-learn's meta-estimators and utilities, on texts and on tagged sentences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdice import DiceSequenceClassifier, DiceTokenClassifier
from skdice.losses import TverskyLoss
from tests.data import KINDS_OF_MESSAGES as Y
from tests.data import MESSAGES as TEXTS

WEIGHTS = np.array([1.0, 0.0, 3.0, 1.0] * 4)
# Shuffled, as the two halves of these texts, and of the tagged sentences, are alike.
TWO_FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)
TAG_FOLDS = KFold(2, shuffle=True, random_state=0)


@pytest.fixture
def classifier(tiny_backbone):
    return DiceSequenceClassifier(
        backbone=tiny_backbone, max_epochs=1, lr=1e-3, batch_size=8, random_state=0
    )


@pytest.fixture
def tagger(tiny_backbone):
    return DiceTokenClassifier(
        backbone=tiny_backbone, max_epochs=1, lr=1e-3, batch_size=8, random_state=0
    )


def rows(X, indices):
    return [X[i] for i in indices]


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def assert_differ(actual, other):
    assert np.abs(np.asarray(actual) - other).max() > 1e-4


def lowered(X):
    return [x.lower() if isinstance(x, str) else [word.lower() for word in x] for x in X]


# ---- both kinds of estimators


def minus_log_loss(estimator, X, y):
    return -log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)


def log_likelihood(tagger, X, y):
    columns = {tag: j for j, tag in enumerate(tagger.classes_)}
    tables = tagger.predict_proba(X)
    picked = [
        table[range(len(tags)), [columns[t] for t in tags]]
        for table, tags in zip(tables, y, strict=True)
    ]
    return np.log(np.concatenate(picked)).mean()


class Case(NamedTuple):
    """An estimator with rows, folds and a score that tells small differences."""

    model: Any
    X: list[Any]
    y: Any
    folds: Any
    score: Any

    def fitted_on(self, train):
        return clone(self.model).fit(rows(self.X, train), rows(self.y, train))

    def scored_on(self, model, held):
        return self.score(model, rows(self.X, held), rows(self.y, held))

    def splits(self):
        return list(self.folds.split(self.X, None if isinstance(self.y, list) else self.y))


@pytest.fixture(params=["classifier", "tagger"])
def case(request, classifier, tagger, sentences):
    if request.param == "classifier":
        return Case(classifier, TEXTS, Y, TWO_FOLDS, minus_log_loss)
    return Case(tagger, *sentences, TAG_FOLDS, log_likelihood)


def flat(tables):
    return np.concatenate([np.ravel(table) for table in tables])


def assert_same_tables(one, other, X):
    assert_close(flat(one.predict_proba(X)), flat(other.predict_proba(X)))
    assert one.predict(X).tolist() == other.predict(X).tolist()


def test_pipeline(case):
    pipeline = Pipeline([("lower", FunctionTransformer(lowered)), ("model", case.model)])
    upper = [x.upper() if isinstance(x, str) else [word.upper() for word in x] for x in case.X]
    pipeline.fit(upper, case.y)
    bare = clone(case.model).fit(case.X, case.y)
    assert_close(flat(pipeline.predict_proba(upper)), flat(bare.predict_proba(case.X)))
    assert pipeline.predict(upper).tolist() == bare.predict(case.X).tolist()
    assert pipeline.score(upper, case.y) == bare.score(case.X, case.y)


def test_grid_search(case):
    alphas = [0.1, 5.0]
    pipeline = Pipeline([("model", case.model.set_params(loss="tversky"))])
    how = dict(cv=case.folds, scoring=case.score, error_score="raise")
    search = GridSearchCV(pipeline, {"model__loss__alpha": alphas}, **how).fit(case.X, case.y)
    means = []
    for alpha in alphas:
        one = case._replace(model=clone(case.model).set_params(loss=TverskyLoss(alpha=alpha)))
        scores = [one.scored_on(one.fitted_on(train), test) for train, test in case.splits()]
        means.append(np.mean(scores))
    assert_close(search.cv_results_["mean_test_score"], means)
    assert_differ(means[0], means[1])
    best = alphas[int(np.argmax(means))]
    assert search.best_params_ == {"model__loss__alpha": best}
    refit = clone(case.model).set_params(loss=TverskyLoss(alpha=best)).fit(case.X, case.y)
    assert_same_tables(search, refit, case.X)


def test_cross_validate(case):
    how = dict(cv=case.folds, scoring=case.score, error_score="raise")
    how |= dict(return_train_score=True, return_estimator=True)
    results = cross_validate(case.model, case.X, case.y, **how)
    for i, (train, test) in enumerate(case.splits()):
        one = case.fitted_on(train)
        assert_close(results["test_score"][i], case.scored_on(one, test))
        assert_close(results["train_score"][i], case.scored_on(one, train))
        assert_same_tables(results["estimator"][i], one, rows(case.X, test))


# ---- DiceSequenceClassifier


def test_calibrated_classifier(classifier):
    calibrated = CalibratedClassifierCV(
        classifier, method="isotonic", cv=TWO_FOLDS, ensemble=False
    ).fit(TEXTS, Y)
    held_out = cross_val_predict(classifier, TEXTS, Y, cv=TWO_FOLDS, method="decision_function")
    curve = IsotonicRegression(out_of_bounds="clip").fit(held_out, Y == "spam")
    margin = clone(classifier).fit(TEXTS, Y).decision_function(TEXTS)
    assert_close(calibrated.predict_proba(TEXTS)[:, 1], curve.predict(margin))
    assert np.ptp(curve.predict(margin)) > 0
    assert calibrated.classes_.tolist() == ["ham", "spam"]


def test_tuned_threshold(classifier, tiny_backbones):
    classifier.set_params(backbone=tiny_backbones["bert"])  # whose threshold is not 0.5
    tuned = TunedThresholdClassifierCV(
        classifier, scoring="balanced_accuracy", cv=TWO_FOLDS, store_cv_results=True
    ).fit(TEXTS, Y)
    curve = tuned.cv_results_
    assert tuned.best_score_ == curve["scores"].max()
    assert tuned.best_threshold_ == curve["thresholds"][curve["scores"].argmax()]
    bare = clone(classifier).fit(TEXTS, Y)
    above = bare.predict_proba(TEXTS)[:, 1] >= tuned.best_threshold_
    assert tuned.predict(TEXTS).tolist() == np.where(above, "spam", "ham").tolist()
    assert (tuned.predict(TEXTS) != bare.predict(TEXTS)).any()


def test_stacking(classifier):
    members = [("dsc", classifier), ("ce", clone(classifier).set_params(loss="ce", lr=1e-2))]
    # Without a penalty to speak of, the coefficients follow the probabilities.
    final = LogisticRegression(C=100.0)
    stacking = StackingClassifier(members, final_estimator=final, cv=TWO_FOLDS).fit(TEXTS, Y)
    held_out = [
        cross_val_predict(member, TEXTS, Y, cv=TWO_FOLDS, method="predict_proba")[:, 1]
        for _, member in members
    ]
    refit = [clone(member).fit(TEXTS, Y).predict_proba(TEXTS)[:, 1] for _, member in members]
    assert_close(stacking.transform(TEXTS), np.column_stack(refit))
    expected = clone(final).fit(np.column_stack(held_out), Y)
    np.testing.assert_allclose(stacking.final_estimator_.coef_, expected.coef_, rtol=1e-3)
    wanted = expected.predict_proba(np.column_stack(refit))
    np.testing.assert_allclose(stacking.predict_proba(TEXTS), wanted, atol=1e-4)


def test_bagging(classifier):
    # BaggingClassifier draws columns too and so insists on two dimensions.
    column = np.array(TEXTS, dtype=object).reshape(-1, 1)
    bagging = BaggingClassifier(classifier, n_estimators=2, random_state=0)
    with pytest.raises(ValueError, match="Expected 2D array"):
        bagging.fit(TEXTS, Y)
    bagging.fit(column, Y)
    # Rows are drawn by weight, as the classifier takes weights.
    tables = [
        clone(member)
        .fit(TEXTS, Y, sample_weight=np.bincount(drawn, minlength=len(Y)))
        .predict_proba(TEXTS)
        for member, drawn in zip(bagging.estimators_, bagging.estimators_samples_, strict=True)
    ]
    assert_differ(*tables)
    assert_close(bagging.predict_proba(column), np.mean(tables, axis=0))


def test_one_vs_rest(classifier):
    y = np.array((["spam"] * 3 + ["ham"] * 3 + ["note"] * 2) * 2)
    many = OneVsRestClassifier(classifier).fit(TEXTS, y)
    assert many.classes_.tolist() == ["ham", "note", "spam"]
    columns = [
        clone(classifier).fit(TEXTS, (y == name).astype(int)).predict_proba(TEXTS)[:, 1]
        for name in many.classes_
    ]
    table = np.column_stack(columns)
    assert_close(many.predict_proba(TEXTS), table / table.sum(axis=1, keepdims=True))
    assert many.predict(TEXTS).tolist() == many.classes_[table.argmax(axis=1)].tolist()


def test_weights_are_routed_through_a_pipeline(classifier):
    bare = clone(classifier.set_params(loss="ce"))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("lower", FunctionTransformer(lowered)),
                ("classifier", classifier.set_fit_request(sample_weight=True)),
            ]
        )
        weighted = pipeline.fit(TEXTS, Y, sample_weight=WEIGHTS).predict_proba(TEXTS)
        # Where a row weighs nothing, its label must not matter.
        wrong = np.where(WEIGHTS == 0, np.where(Y == "ham", "spam", "ham"), Y)
        assert (wrong != Y).sum() == 4
        relabelled = pipeline.fit(TEXTS, wrong, sample_weight=WEIGHTS).predict_proba(TEXTS)
    assert_close(relabelled, weighted)
    assert_close(weighted, bare.fit(TEXTS, Y, sample_weight=WEIGHTS).predict_proba(TEXTS))
    assert_differ(weighted, bare.fit(TEXTS, Y).predict_proba(TEXTS))
    assert_differ(weighted, bare.fit(TEXTS, wrong).predict_proba(TEXTS))


def test_weights_are_routed_through_cross_validate(classifier):
    with sklearn.config_context(enable_metadata_routing=True):
        model = clone(classifier).set_fit_request(sample_weight=True)
        scorer = get_scorer("neg_log_loss").set_score_request(sample_weight=True)
        how = dict(cv=TWO_FOLDS, scoring=scorer, params={"sample_weight": WEIGHTS})
        how |= dict(return_estimator=True, error_score="raise")
        results = cross_validate(model, TEXTS, Y, **how)
    for i, (train, test) in enumerate(TWO_FOLDS.split(TEXTS, Y)):
        held = rows(TEXTS, test)
        seen, labels = rows(TEXTS, train), Y[train]
        one = clone(classifier).fit(seen, labels, sample_weight=WEIGHTS[train])
        probabilities = results["estimator"][i].predict_proba(held)
        assert_close(probabilities, one.predict_proba(held))
        assert_differ(probabilities, one.fit(seen, labels).predict_proba(held))
        score = -log_loss(Y[test], probabilities, sample_weight=WEIGHTS[test])
        assert_close(results["test_score"][i], score)
        assert score != -log_loss(Y[test], probabilities)


# ---- both


@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_html_repr(name, request, sentences):
    estimator = request.getfixturevalue(name).set_params(loss=TverskyLoss(alpha=0.25))
    data = (TEXTS, Y) if name == "classifier" else sentences
    html = estimator._repr_html_()
    assert type(estimator).__name__ in html
    assert "TverskyLoss(alpha=0.25)" in html
    assert "Not fitted" in html
    fitted = estimator.fit(*data)._repr_html_()
    assert "Fitted" in fitted
    assert "Not fitted" not in fitted
    assert type(estimator).__name__ in Pipeline([("model", estimator)])._repr_html_()
