"""F1 as the score of classifiers: what a search over losses optimises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_imblearn_pipeline
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer, precision_score, recall_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdice import BiasTunedClassifier, DiceClassifier, DiceSequenceClassifier
from skdice.inspection import imbalance
from skdice.metrics import (
    class_f1_scorer,
    class_precision_scorer,
    class_recall_scorer,
)
from skdice.metrics.decisions.positive import positive_class
from skdice.model_selection import LossSearchCV, compare_losses

SCORERS = {
    class_f1_scorer: f1_score,
    class_precision_scorer: precision_score,
    class_recall_scorer: recall_score,
}


def rare(n_ham, n_spam, shift=2.0):
    """Rows of two classes that overlap: at 2.5 % spam, calling all of them ham is most accurate."""
    draw = np.random.default_rng(0)
    X = np.concatenate([draw.normal(0, 1, (n_ham, 2)), draw.normal(shift, 1, (n_spam, 2))])
    return X, np.repeat(["ham", "spam"], [n_ham, n_spam])


def naive_f1(truth, predicted, label):
    hits = sum(t == p == label for t, p in zip(truth, predicted, strict=True))
    total = sum(t == label for t in truth) + sum(p == label for p in predicted)
    return 2 * hits / total if total else 0.0


# ---- a search chooses by F1


def test_a_grid_over_losses_finds_the_one_that_finds_spam():
    X, y = rare(585, 15, shift=1.0)
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = GridSearchCV(
        DiceClassifier(max_epochs=15, random_state=0), {"loss": ["ce", "ce_dice"]}, cv=cv
    ).fit(X, y)
    by_hand = []
    for loss in ("ce", "ce_dice"):
        scores = []
        for train, test in cv.split(X, y):
            model = DiceClassifier(loss=loss, max_epochs=15, random_state=0).fit(X[train], y[train])
            scores.append(naive_f1(y[test], model.predict(X[test]), "spam"))
        by_hand.append(np.mean(scores))
    np.testing.assert_allclose(grid.cv_results_["mean_test_score"], by_hand)
    assert by_hand[0] < by_hand[1]
    assert grid.best_params_ == {"loss": "ce_dice"}
    accurate = GridSearchCV(grid.estimator, {"loss": ["ce", "ce_dice"]}, cv=cv, scoring="accuracy")
    accurate.fit(X, y)  # as `score` used to be: no better than calling everything ham
    assert accurate.best_params_ == {"loss": "ce"}
    assert accurate.best_score_ <= np.mean(y == "ham") == 0.975
    assert naive_f1(y, grid.predict(X), "spam") > naive_f1(y, accurate.predict(X), "spam")


@pytest.mark.parametrize("strategy", ["full", "shared"])
def test_a_search_with_optuna_does_too(strategy):
    X, y = rare(388, 12, shift=1.0)
    model, how = DiceClassifier(max_epochs=15, random_state=0), dict(n_trials=6, cv=3)
    search = LossSearchCV(
        model, {"loss": ["ce", "ce_dice"]}, strategy=strategy, random_state=0, **how
    )
    search.fit(X, y)
    scorer = make_scorer(f1_score, pos_label="spam")
    results = search.cv_results_
    for params, mean in zip(results["params"], results["mean_test_score"], strict=True):
        model = clone(search.estimator).set_params(**params)
        assert mean == pytest.approx(cross_val_score(model, X, y, cv=3, scoring=scorer).mean())
    assert search.best_params_["loss"] == "ce_dice"
    assert search.score(X, y) == naive_f1(y, search.predict(X), "spam")


def test_a_text_classifier_and_early_stopping_use_the_same_score(tiny_backbone):
    X = ["win free money", "lunch today", "the bus was late", "old road", "new school"] * 8
    y = np.array(["spam", "ham", "ham", "ham", "ham"] * 8)
    model = DiceSequenceClassifier(
        backbone=tiny_backbone, max_epochs=6, lr=1e-2, early_stopping=True, random_state=0
    ).fit(X, y, X_val=X[:10], y_val=y[:10])
    best = max(epoch["valid_score"] for epoch in model.history_)
    assert model.score(X[:10], y[:10]) == pytest.approx(best)
    assert model.score(X, y) == naive_f1(y, model.predict(X), "spam")
    rows = np.stack([y == "ham", y == "spam"], axis=1).astype(int)
    model.fit(X, rows, X_val=X[:10], y_val=rows[:10])
    best = max(epoch["valid_score"] for epoch in model.history_)
    assert model.score(X[:10], rows[:10]) == pytest.approx(best)
    expected = f1_score(rows, model.predict(X), average="micro")
    assert model.score(X, rows) == pytest.approx(expected)
    found = model.evaluate(X, rows)
    assert found["f1"] == pytest.approx(expected)
    assert found["accuracy"] == np.mean((model.predict(X) == rows).all(axis=1))


# ---- score and evaluate


@pytest.fixture(scope="module")
def fitted():
    X, y = rare(80, 20)
    return {
        "dice": DiceClassifier(max_epochs=100, random_state=0).fit(X, y),
        "tuned": BiasTunedClassifier(DiceClassifier(max_epochs=100, random_state=0), cv=2).fit(
            X, y
        ),
    }, (X, y)


@pytest.mark.parametrize("kind", ["dice", "tuned"])
def test_score_is_the_f1_of_the_positive_class(fitted, kind):
    models, (X, y) = fitted
    model, predicted = models[kind], models[kind].predict(X)
    assert model.score(X, y) == naive_f1(y, predicted, "spam")
    found = model.evaluate(X, y)
    assert found["f1"] == model.score(X, y)
    assert found["accuracy"] == np.mean(y == predicted)
    assert found["precision"] == precision_score(y, predicted, pos_label="spam")
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weights)
    expected = model.score(X[again], y[again])
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected)
    assert model.score(X, list(y), [2.0] * len(y)) == pytest.approx(model.score(X, y))
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(X, y, -weights)
    assert model.task.measure(model) == "class spam"


@pytest.mark.parametrize("kind", ["dice", "tuned"])
def test_rows_of_one_class_have_a_score(fitted, kind, recwarn):
    models, (X, y) = fitted
    model = models[kind]
    ham = np.flatnonzero((y == "ham") & (model.predict(X) == "ham"))
    assert model.score(X[ham], y[ham]) == 0  # there is nothing to find, and nothing was found
    spam = y == "spam"
    assert model.score(X[spam], y[spam]) == naive_f1(y[spam], model.predict(X[spam]), "spam")
    assert not recwarn.list


def test_macro_is_over_the_classes_of_fit():
    draw = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.eye(3)[y] * 3 + draw.normal(size=(60, 3))
    for model in (
        DiceClassifier(max_epochs=20, random_state=0).fit(X, y),
        BiasTunedClassifier(LogisticRegression()).fit(X, y),
    ):
        predicted = model.predict(X)
        expected = np.mean([naive_f1(y, predicted, label) for label in (0, 1, 2)])
        assert model.score(X, y) == pytest.approx(expected)
        some = (y < 2) & (predicted < 2)  # the third class is neither true nor predicted here
        expected = sum(naive_f1(y[some], predicted[some], label) for label in (0, 1)) / 3
        assert model.score(X[some], y[some]) == pytest.approx(expected)
        assert class_f1_scorer(model, X[some], y[some]) == pytest.approx(expected)
        assert model.task.measure(model) == "classes, macro"


BAD = {
    "strings": ["0", "1"],
    "bytes": [b"0", b"1"],
    "None": [None, 1],
    "NaN": [float("nan"), 1.0],
    "objects": np.array([None, 1], dtype=object),
    "infinite": [0, float("inf")],
    "huge": [0, 10**400],
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    "rows": [[0, 1], [1, 0]],
    "number": 5,
    "string": "01",
    "nothing": None,
    "sets": [{0}, {1}],
}


@pytest.fixture(scope="module")
def of_numbers():
    """Models whose labels are 0 and 1."""
    X, y = np.repeat(np.eye(2), 4, axis=0), np.repeat([0, 1], 4)
    inner = DiceClassifier(max_epochs=2, random_state=0)
    search = LossSearchCV(inner, {"loss": ["ce"]}, n_trials=1, cv=2)
    return inner.fit(X, y), BiasTunedClassifier(inner, cv=2).fit(X, y), search.fit(X, y)


@pytest.mark.parametrize("labels", BAD.values(), ids=BAD)
def test_labels_of_another_type_are_refused_everywhere(labels, of_numbers):
    X, y = np.repeat(np.eye(2), 4, axis=0), np.repeat([0, 1], 4)
    if isinstance(labels, np.ndarray):
        labels = np.repeat(labels, 4)
    elif isinstance(labels, list):
        labels = [label for label in labels for _ in range(4)]
    inner, *_ = models = of_numbers
    calls = [model.score for model in models] + [model.evaluate for model in models[:2]]
    calls += [lambda X, y, model=model: class_f1_scorer(model, X, y) for model in models]
    calls.append(lambda X, y: class_f1_scorer(LogisticRegression().fit(X, [0, 1] * 4), X, y))
    calls.append(
        lambda rows, given: compare_losses(inner, X, y, X_test=rows, y_test=given, seeds=1)
    )
    for call in calls:
        with pytest.raises((ValueError, TypeError), match=r"\by(_test)?\b"):
            call(X, labels)


def test_numbers_of_another_width_are_the_same_labels(fitted):
    X, y = np.repeat(np.eye(2), 4, axis=0), np.repeat([0, 1], 4)
    model = DiceClassifier(max_epochs=2, random_state=0).fit(X, y)
    for labels in (y.tolist(), y.astype(np.uint8), y.astype(float), y == 1, y.astype(object)):
        assert model.score(X, labels) == model.score(X, y)


# ---- scorers


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_find_the_positive_class(scorer):
    X, y = rare(90, 20)
    metric = SCORERS[scorer]
    model = LogisticRegression().fit(X, y)
    predicted = model.predict(X)
    assert scorer(model, X, y) == metric(y, predicted, pos_label="spam")
    assert make_scorer(metric, pos_label="spam")(model, X, y) == scorer(model, X, y)
    weights = np.random.default_rng(0).random(len(y))
    expected = metric(y, predicted, pos_label="spam", sample_weight=weights)
    assert scorer(model, X, y, sample_weight=weights) == pytest.approx(expected)
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer)):
        assert copy(model, X, y) == scorer(model, X, y)
    signs = LogisticRegression().fit(X, np.where(y == "ham", 1, -1))  # 1 is positive, and common
    truth = np.where(y == "ham", 1, -1)
    assert scorer(signs, X, truth) == metric(truth, signs.predict(X))


def test_the_classifiers_own_positive_class_counts_more():
    X, y = rare(90, 20)
    model = DiceClassifier(pos_label="ham", max_epochs=3, random_state=0).fit(X, y)
    expected = f1_score(y, model.predict(X), pos_label="ham")
    assert class_f1_scorer(model, X, y) == expected == model.score(X, y)
    steps = make_pipeline(StandardScaler(), model).fit(X, y)
    assert class_f1_scorer(steps, X, y) == f1_score(y, steps.predict(X), pos_label="ham")
    # Rows of which spam is the more frequent class are still scored by the class of the model.
    other = DiceClassifier(max_epochs=3, random_state=0).fit(X, y)
    some = [*np.flatnonzero(y == "spam").tolist(), 0, 1]
    expected = f1_score(y[some], other.predict(X[some]), pos_label="spam")
    assert class_f1_scorer(other, X[some], y[some]) == expected
    grid = GridSearchCV(model, {"lr": [0.1]}, cv=2).fit(X, y)
    assert class_f1_scorer(grid, X, y) == f1_score(y, grid.predict(X), pos_label="ham")


def test_behind_a_sampler_the_rare_class_is_positive():
    X, y = rare(90, 20)
    y = np.where(y == "spam", "a rare one", "common")  # the first by name: a tie would choose 1
    for last in (LogisticRegression(), DiceClassifier(max_epochs=3, random_state=0)):
        pipeline = make_imblearn_pipeline(RandomOverSampler(random_state=0), last).fit(X, y)
        expected = f1_score(y, pipeline.predict(X), pos_label="a rare one")
        assert class_f1_scorer(pipeline, X, y) == expected
        scores = cross_val_score(pipeline, X, y, cv=3, scoring=class_f1_scorer)
        assert np.isfinite(scores).all()
    tuned = BiasTunedClassifier(pipeline, cv=2).fit(X, y)
    assert tuned.classes_[tuned.positive_] == "a rare one"


def test_scorers_of_more_classes_and_of_several_labels():
    draw = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = draw.normal(size=(60, 3)) + np.eye(3)[np.repeat([0, 1, 2], 20)]
    model = LogisticRegression().fit(X, y)
    expected = f1_score(y, model.predict(X), average="macro")
    assert class_f1_scorer(model, X, y) == pytest.approx(expected)
    rows = (draw.random((60, 3)) < 0.3).astype(int)
    several = OneVsRestClassifier(LogisticRegression(class_weight="balanced")).fit(X, rows)
    expected = f1_score(rows, several.predict(X), average="micro")
    assert class_f1_scorer(several, X, rows) == pytest.approx(expected)


def test_scorers_in_searches_and_with_routing():
    X, y = rare(90, 20)
    weights = np.where(y == "spam", 3.0, 1.0)
    grid = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring=class_f1_scorer, cv=2)
    assert np.isfinite(clone(grid).fit(X, y).cv_results_["mean_test_score"]).all()
    search = LossSearchCV(
        DiceClassifier(max_epochs=3, random_state=0), {"loss": ["ce", "dice"]},
        n_trials=2, cv=2, scoring=class_recall_scorer, random_state=0,
    ).fit(X, y, sample_weight=weights)  # fmt: skip
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(class_f1_scorer).set_score_request(sample_weight=True)
        inner = LogisticRegression().set_fit_request(sample_weight=False)
        how = {"cv": StratifiedKFold(2), "params": {"sample_weight": weights}}
        scores = cross_val_score(inner, X, y, scoring=asked, **how)
        for score, (train, test) in zip(scores, how["cv"].split(X, y), strict=True):
            predicted = LogisticRegression().fit(X[train], y[train]).predict(X[test])
            expected = f1_score(y[test], predicted, pos_label="spam", sample_weight=weights[test])
            assert score == pytest.approx(expected)


def test_scorers_refuse_by_name():
    X, y = rare(20, 5)
    model = DummyClassifier().fit(X, y)
    with pytest.raises(ValueError, match="measure='f2'"):
        clone(class_f1_scorer).set_params(measure="f2")(model, X, y)
    with pytest.raises(TypeError, match="no fitted classifier"):
        class_f1_scorer(DummyClassifier(), X, y)


def test_the_counts_of_a_data_set_and_its_estimators_have_one_positive_class():
    for y in (["True"] * 9 + ["False"], [1] * 9 + [-1], ["a", "b"] * 3, ["ham"] + ["spam"] * 4):
        names, counts = np.unique(np.array(y), return_counts=True)
        positive = names.tolist()[positive_class(names.tolist(), counts)]
        assert imbalance(y).background == next(n for n in names.tolist() if n != positive)


def test_the_positive_class_is_the_rarer_one_if_that_is_no_chance():
    names = ["no", "yes"]
    for counts, positive in (
        ((99, 101), 1), ((101, 99), 1), ((80, 120), 1), ((79, 121), 1), ((78, 122), 0),
        ((78, 121), 0), ((122, 78), 1), ((0, 0), 1), ((1, 9), 1), ((10, 90), 0),
    ):  # fmt: skip
        assert positive_class(names, counts) == positive, counts
        assert (counts[1] - counts[0] > 3 * sum(counts) ** 0.5) == (positive == 0)


@pytest.mark.parametrize("n_no", [90, 99, 100, 101, 110])
def test_classes_of_about_one_size_have_the_same_positive_one_in_all_folds(n_no):
    y = np.array(["no"] * n_no + ["yes"] * (200 - n_no))
    X = np.random.default_rng(0).normal(size=(200, 2))
    kept = {"cv": KFold(5, shuffle=True, random_state=0), "return_estimator": True}
    models = cross_validate(DiceClassifier(max_epochs=1, random_state=0), X, y, **kept)
    assert {model.classes_[model.positive_] for model in models["estimator"]} == {"yes"}


def test_weights_do_not_choose_the_positive_class():
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.array(["a"] * 20 + ["b"] * 180)
    balanced = np.where(y == "a", 9.0, 1.0)
    for weights in (None, balanced, balanced**2):
        model = DiceClassifier(max_epochs=1, random_state=0).fit(X, y, sample_weight=weights)
        assert model.classes_[model.positive_] == "a"


def test_verbose_names_the_positive_class(capsys):
    X, y = np.random.default_rng(0).normal(size=(200, 2)), ["no"] * 99 + ["yes"] * 101
    DiceClassifier(max_epochs=1, random_state=0, verbose=1).fit(X, y)
    assert "the positive class is yes" in capsys.readouterr().out


def test_a_class_that_training_did_not_have_counts_as_missed():
    """By hand: the row of "c" is predicted to be "a" or "b", and is right for neither."""
    X = np.array([[0.0], [0.0], [9.0], [9.0]] * 10)
    model = DiceClassifier(random_state=0).fit(X, ["a", "a", "b", "b"] * 10)
    rows, y = np.array([[0.0], [9.0], [9.0]]), ["a", "b", "c"]
    assert model.predict(rows).tolist() == ["a", "b", "b"]
    for score in (model.score(rows, y), class_f1_scorer(model, rows, y)):
        assert score == pytest.approx(2 / 3)  # of "b": one hit, two found, one there
    assert model.evaluate(rows, y)["accuracy"] == pytest.approx(2 / 3)
    three = DiceClassifier(random_state=0).fit(
        np.vstack([X, [[-9.0]] * 20]), [*["a", "a", "b", "b"] * 10, *["d"] * 20]
    )
    rows, y = np.array([[0.0], [9.0], [9.0], [-9.0]]), ["a", "b", "c", "d"]
    for score in (three.score(rows, y), class_f1_scorer(three, rows, y)):
        assert score == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)  # macro, over "c" as well
    with pytest.raises(ValueError, match="labels of a type that fit did not see"):
        model.score(rows, [0, 1, 2, 3])


def test_a_label_that_training_did_not_have_counts_as_missed():
    X = np.eye(2)[[0, 1] * 20] * 9
    model = DiceClassifier(random_state=0).fit(X, [["a"], ["b"]] * 20)
    y = [["a"], ["b", "c"]]
    assert model.predict(X[:2]).tolist() == [[1, 0], [0, 1]]
    scores = model.evaluate(X[:2], y)
    assert scores["f1"] == class_f1_scorer(model, X[:2], y) == pytest.approx(2 * 2 / (2 + 3))
    assert scores["recall"] == pytest.approx(2 / 3)
    assert scores["f1_macro"] == pytest.approx(2 / 3)
    assert scores["accuracy"] == 0.5
    assert {name for name in scores if "of" in name} == {"f1 of a", "f1 of b"}
