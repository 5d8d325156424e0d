"""scikit-learn's meta-estimators and utilities, on texts and on tagged sentences."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
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


def fit_fold(estimator, X, y, train):
    return clone(estimator).fit(rows(X, train), rows(y, train))


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


def assert_differ(actual, other):
    assert np.abs(np.asarray(actual) - other).max() > 1e-4


def lowered(X):
    return [x.lower() if isinstance(x, str) else [word.lower() for word in x] for x in X]


# ---- DiceSequenceClassifier


def minus_log_loss(estimator, X, y):
    return -log_loss(y, estimator.predict_proba(X), labels=estimator.classes_)


@pytest.mark.parametrize("X", [TEXTS, np.array(TEXTS)], ids=["list", "array"])
def test_pipeline(classifier, X):
    pipeline = Pipeline([("lower", FunctionTransformer(lowered)), ("classifier", classifier)])
    shouted = [text.upper() for text in X]
    probabilities = pipeline.fit(shouted, Y).predict_proba(shouted)
    bare = clone(classifier).fit(X, Y)
    assert_close(probabilities, bare.predict_proba(X))
    assert pipeline.predict(shouted).tolist() == bare.predict(X).tolist()
    assert pipeline.classes_.tolist() == ["ham", "spam"]
    assert pipeline.score(shouted, Y) == bare.score(X, Y)


def test_grid_search(classifier):
    pipeline = Pipeline([("classifier", classifier.set_params(loss="tversky"))])
    alphas = [0.1, 5.0]
    search = GridSearchCV(
        pipeline,
        {"classifier__loss__alpha": alphas},
        cv=TWO_FOLDS,
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(TEXTS, Y)
    means = []
    for alpha in alphas:
        one = clone(classifier).set_params(loss=TverskyLoss(alpha=alpha))
        means.append(
            np.mean(
                [
                    minus_log_loss(fit_fold(one, TEXTS, Y, train), rows(TEXTS, test), Y[test])
                    for train, test in TWO_FOLDS.split(TEXTS, Y)
                ]
            )
        )
    assert_close(search.cv_results_["mean_test_score"], means)
    assert_differ(means[0], means[1])
    best = alphas[int(np.argmax(means))]
    assert search.best_params_ == {"classifier__loss__alpha": best}
    refit = clone(classifier).set_params(loss=TverskyLoss(alpha=best)).fit(TEXTS, Y)
    assert_close(search.predict_proba(TEXTS), refit.predict_proba(TEXTS))


def test_halving_grid_search(classifier):
    rates = [1e-4, 1e-2]
    search = HalvingGridSearchCV(
        classifier,
        {"lr": rates},
        factor=2,
        min_resources=16,
        cv=TWO_FOLDS,
        scoring="neg_log_loss",
        random_state=0,
        error_score="raise",
    ).fit(TEXTS * 2, np.tile(Y, 2))
    assert search.n_resources_ == [16, 32]
    assert search.n_candidates_ == [2, 1]
    first = search.cv_results_["mean_test_score"][:2]
    assert search.best_params_ == {"lr": rates[int(np.argmax(first))]}
    refit = clone(classifier).set_params(**search.best_params_).fit(TEXTS * 2, np.tile(Y, 2))
    assert_close(search.predict_proba(TEXTS), refit.predict_proba(TEXTS))


def test_cross_validate(classifier):
    results = cross_validate(
        classifier,
        TEXTS,
        Y,
        cv=TWO_FOLDS,
        scoring=["accuracy", "neg_log_loss"],
        return_train_score=True,
        return_estimator=True,
        error_score="raise",
    )
    for i, (train, test) in enumerate(TWO_FOLDS.split(TEXTS, Y)):
        one = fit_fold(classifier, TEXTS, Y, train)
        held = rows(TEXTS, test)
        assert results["test_accuracy"][i] == one.evaluate(held, Y[test])["accuracy"]
        assert_close(results["test_neg_log_loss"][i], minus_log_loss(one, held, Y[test]))
        trained = minus_log_loss(one, rows(TEXTS, train), Y[train])
        assert_close(results["train_neg_log_loss"][i], trained)
        assert_close(results["estimator"][i].predict_proba(held), one.predict_proba(held))


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_cross_val_predict(classifier, method):
    classifier.set_params(lr=1e-2, max_epochs=4)  # so that both classes are predicted
    predicted = cross_val_predict(classifier, TEXTS, Y, cv=TWO_FOLDS, method=method)
    expected = np.empty_like(predicted)
    for train, test in TWO_FOLDS.split(TEXTS, Y):
        expected[test] = getattr(fit_fold(classifier, TEXTS, Y, train), method)(rows(TEXTS, test))
    if method == "predict":
        assert predicted.tolist() == expected.tolist()
        assert set(predicted) == {"ham", "spam"}
    else:
        assert_close(predicted, expected)
        assert_differ(predicted, clone(classifier).fit(TEXTS, Y).predict_proba(TEXTS))


def test_learning_curve(classifier):
    sizes, train_scores, test_scores = learning_curve(
        classifier,
        TEXTS,
        Y,
        cv=TWO_FOLDS,
        train_sizes=[5, 8],
        scoring="neg_log_loss",
        error_score="raise",
    )
    assert sizes.tolist() == [5, 8]
    assert train_scores.shape == test_scores.shape == (2, 2)
    for j, (train, test) in enumerate(TWO_FOLDS.split(TEXTS, Y)):
        for i, size in enumerate(sizes):
            one = fit_fold(classifier, TEXTS, Y, train[:size])
            assert_close(test_scores[i, j], minus_log_loss(one, rows(TEXTS, test), Y[test]))
            seen = train[:size]
            assert_close(train_scores[i, j], minus_log_loss(one, rows(TEXTS, seen), Y[seen]))
    assert_differ(test_scores[0], test_scores[1])


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


def test_soft_voting(classifier):
    members = [("dsc", classifier), ("slow", clone(classifier).set_params(loss="ce", lr=1e-4))]
    voting = VotingClassifier(members, voting="soft").fit(TEXTS, Y)
    tables = [clone(member).fit(TEXTS, Y).predict_proba(TEXTS) for _, member in members]
    assert_differ(*tables)
    assert_close(voting.predict_proba(TEXTS), np.mean(tables, axis=0))
    winners = voting.classes_[np.mean(tables, axis=0).argmax(axis=1)]
    assert voting.predict(TEXTS).tolist() == winners.tolist()


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
    np.testing.assert_allclose(
        stacking.predict_proba(TEXTS),
        expected.predict_proba(np.column_stack(refit)),
        atol=1e-4,
    )


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
        results = cross_validate(
            clone(classifier).set_fit_request(sample_weight=True),
            TEXTS,
            Y,
            cv=TWO_FOLDS,
            scoring=get_scorer("neg_log_loss").set_score_request(sample_weight=True),
            params={"sample_weight": WEIGHTS},
            return_estimator=True,
            error_score="raise",
        )
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


# ---- DiceTokenClassifier


def log_likelihood(tagger, X, y):
    columns = {tag: j for j, tag in enumerate(tagger.classes_)}
    tables = tagger.predict_proba(X)
    picked = [
        table[range(len(tags)), [columns[t] for t in tags]]
        for table, tags in zip(tables, y, strict=True)
    ]
    return np.log(np.concatenate(picked)).mean()


def assert_tables_close(tables, expected):
    assert_close(np.concatenate(list(tables)), np.concatenate(list(expected)))


def test_tagger_in_a_pipeline(tagger, sentences):
    X, y = sentences
    pipeline = Pipeline([("lower", FunctionTransformer(lowered)), ("tagger", tagger)])
    shouted = [[word.upper() for word in row] for row in X]
    pipeline.fit(shouted, y)
    bare = clone(tagger).fit(X, y)
    assert_tables_close(pipeline.predict_proba(shouted), bare.predict_proba(X))
    assert pipeline.predict(shouted).tolist() == bare.predict(X).tolist()
    assert pipeline.score(shouted, y) == bare.score(X, y)


def test_tagger_in_a_grid_search(tagger, sentences):
    X, y = sentences
    pipeline = Pipeline([("tagger", tagger.set_params(loss="tversky"))])
    alphas = [0.1, 5.0]
    search = GridSearchCV(
        pipeline,
        {"tagger__loss__alpha": alphas},
        cv=TAG_FOLDS,
        scoring=log_likelihood,
        error_score="raise",
    ).fit(X, y)
    means = []
    for alpha in alphas:
        one = clone(tagger).set_params(loss=TverskyLoss(alpha=alpha))
        means.append(
            np.mean(
                [
                    log_likelihood(fit_fold(one, X, y, train), rows(X, test), rows(y, test))
                    for train, test in TAG_FOLDS.split(X)
                ]
            )
        )
    assert_close(search.cv_results_["mean_test_score"], means)
    assert_differ(means[0], means[1])
    best = alphas[int(np.argmax(means))]
    assert search.best_params_ == {"tagger__loss__alpha": best}
    refit = clone(tagger).set_params(loss=TverskyLoss(alpha=best)).fit(X, y)
    assert_tables_close(search.predict_proba(X), refit.predict_proba(X))


def test_tagger_in_a_halving_grid_search(tagger, sentences):
    X, y = sentences
    rates = [1e-4, 1e-2]
    search = HalvingGridSearchCV(
        tagger,
        {"lr": rates},
        factor=2,
        min_resources=16,
        cv=TAG_FOLDS,
        scoring=log_likelihood,
        random_state=0,
        error_score="raise",
    ).fit(X * 2, y * 2)
    assert search.n_resources_ == [16, 32]
    assert search.n_candidates_ == [2, 1]
    first = search.cv_results_["mean_test_score"][:2]
    assert search.best_params_ == {"lr": rates[int(np.argmax(first))]}
    refit = clone(tagger).set_params(**search.best_params_).fit(X * 2, y * 2)
    assert_tables_close(search.predict_proba(X), refit.predict_proba(X))


def test_tagger_in_cross_validate(tagger, sentences):
    X, y = sentences
    results = cross_validate(
        tagger,
        X,
        y,
        cv=TAG_FOLDS,
        scoring=log_likelihood,
        return_train_score=True,
        return_estimator=True,
        error_score="raise",
    )
    for i, (train, test) in enumerate(TAG_FOLDS.split(X)):
        one = fit_fold(tagger, X, y, train)
        held = rows(X, test)
        assert_close(results["test_score"][i], log_likelihood(one, held, rows(y, test)))
        trained = log_likelihood(one, rows(X, train), rows(y, train))
        assert_close(results["train_score"][i], trained)
        assert_tables_close(results["estimator"][i].predict_proba(held), one.predict_proba(held))


def test_tagger_in_cross_val_predict(tagger, sentences):
    X, y = sentences
    tagger.set_params(lr=1e-2, max_epochs=10)  # so that more than one tag is predicted
    predicted = cross_val_predict(tagger, X, y, cv=TAG_FOLDS)
    assert [len(row) for row in predicted] == [len(row) for row in X]
    for train, test in TAG_FOLDS.split(X):
        one = fit_fold(tagger, X, y, train)
        assert predicted[test].tolist() == one.predict(rows(X, test)).tolist()
    assert len({tag for row in predicted for tag in row}) > 1
    assert predicted.tolist() != clone(tagger).fit(X, y).predict(X).tolist()


def test_tagger_in_a_learning_curve(tagger, sentences):
    X, y = sentences
    sizes, train_scores, test_scores = learning_curve(
        tagger,
        X,
        y,
        cv=TAG_FOLDS,
        train_sizes=[6, 8],
        scoring=log_likelihood,
        error_score="raise",
    )
    assert sizes.tolist() == [6, 8]
    assert train_scores.shape == test_scores.shape == (2, 2)
    for j, (train, test) in enumerate(TAG_FOLDS.split(X)):
        for i, size in enumerate(sizes):
            seen = train[:size]
            one = fit_fold(tagger, X, y, seen)
            held_score = log_likelihood(one, rows(X, test), rows(y, test))
            assert_close(test_scores[i, j], held_score)
            assert_close(train_scores[i, j], log_likelihood(one, rows(X, seen), rows(y, seen)))
    assert_differ(test_scores[0], test_scores[1])


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
