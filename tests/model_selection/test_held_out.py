"""Predictions out of fold, against a loop over the folds."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.model_selection import LossSearchCV, out_of_fold
from tests.fits import Given, never_fitted

X, Y = make_classification(40, 5, n_informative=4, n_redundant=0, n_classes=2, random_state=0)
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0)])
def test_a_classifier_as_in_scikit_learn(cv):
    names = np.array(["no", "yes"])[Y]
    found = out_of_fold(LOGISTIC, X, names, cv)
    np.testing.assert_array_equal(found.predictions, cross_val_predict(LOGISTIC, X, names, cv=cv))
    proba = cross_val_predict(LOGISTIC, X, names, cv=cv, method="predict_proba")
    np.testing.assert_allclose(found.probabilities, proba)
    splits = (StratifiedKFold(3) if cv == 3 else cv).split(X, names)
    for number, (_, test) in enumerate(splits):
        assert (found.folds[test] == number).all()
    predictions, probabilities, folds = found
    assert len(predictions) == len(probabilities) == len(folds) == 40


def test_a_tuned_decision_is_tuned_on_the_rows_of_out_of_fold():
    """On the same folds; rows are in the order of the folds, as draws are of them."""
    names, folds = np.array(["no", "yes"])[Y], StratifiedKFold(3)
    found = out_of_fold(LOGISTIC, X, names, folds)
    order = np.concatenate([test for _, test in folds.split(X, names)])

    tuned = BiasTunedClassifier(LOGISTIC, cv=folds, n_bootstraps=4).fit(X, names)
    given = BiasTunedClassifier(Given(np.unique(names)), cv="prefit", n_bootstraps=4)
    given.fit(found.probabilities[order], names[order])
    np.testing.assert_allclose(tuned.bias_draws_, given.bias_draws_)
    np.testing.assert_allclose(tuned.bias_, given.bias_)


def test_the_models_of_folds_are_not_kept_while_others_are_fitted():
    alive, most = weakref.WeakSet(), []

    class Counted(LogisticRegression):
        def fit(self, X, y):
            alive.add(self)
            gc.collect()
            most.append(len(alive))
            return super().fit(X, y)

    BiasTunedClassifier(Counted(), cv=5).fit(X, Y)
    assert len(most) == 6
    assert max(most) <= 2  # a fold's, until the next one has its place


def test_groups_stay_together():
    groups = np.repeat(np.arange(10), 4)
    for estimator, splitter in (
        (LOGISTIC, StratifiedGroupKFold(3)),
        (LinearRegression(), GroupKFold(3)),
    ):
        found = out_of_fold(estimator, X, Y, 3, groups)
        assert all(len(set(found.folds[groups == g])) == 1 for g in range(10))
        expected = cross_val_predict(estimator, X, Y, groups=groups, cv=splitter)
        np.testing.assert_allclose(found.predictions, expected)
    assert out_of_fold(LinearRegression(), X, Y).probabilities is None
    assert out_of_fold(LinearRegression(), X, X[:, :3]).predictions.shape == (40, 3)


def test_a_class_that_a_fold_lacks_has_probability_0():
    y = np.array(["a", "b", "c"])[Y + (np.arange(40) < 4)]
    folds = KFold(4)  # all rows of c may be in the first fold
    rows = np.flatnonzero(y == "c")
    assert len(rows) > 0
    assert rows.max() < 10
    found = out_of_fold(LogisticRegression(), X, y, folds)
    train = np.arange(10, 40)
    model = LogisticRegression().fit(X[train], y[train])
    expected = np.zeros((10, 3))
    expected[:, [["a", "b", "c"].index(label) for label in model.classes_]] = model.predict_proba(
        X[:10]
    )
    np.testing.assert_allclose(found.probabilities[:10], expected)
    assert (found.probabilities[:10, 2] == 0).all()
    assert (found.probabilities[10:, 2] > 0).all()


def test_several_labels_and_fit_parameters():
    y = np.column_stack([Y, 1 - Y, X[:, 0] > 0]).astype(int)
    forest = RandomForestClassifier(5, random_state=0)
    found = out_of_fold(forest, X, y, 2)
    assert found.predictions.shape == found.probabilities.shape == (40, 3)
    for number in (0, 1):
        train, test = found.folds != number, found.folds == number
        model = clone(forest).fit(X[train], y[train])
        np.testing.assert_array_equal(found.predictions[test], model.predict(X[test]))
        ones = np.column_stack([table[:, 1] for table in model.predict_proba(X[test])])
        np.testing.assert_allclose(found.probabilities[test], ones)
    heads = DiceClassifier(max_epochs=2, random_state=0)
    weights = np.linspace(0.1, 3, 40)
    found = out_of_fold(heads, X, Y, 2, params={"sample_weight": weights})
    train, test = found.folds != 1, found.folds == 1
    model = clone(heads).fit(X[train], Y[train], sample_weight=weights[train])
    np.testing.assert_allclose(found.probabilities[test], model.predict_proba(X[test]), atol=1e-6)


def test_a_tagger_of_which_a_fold_lacks_a_tag(tiny_backbone, sentences):
    rows, tags = sentences
    tags = [
        [tag.replace("LOC", "GPE") if i == 3 else tag for tag in row] for i, row in enumerate(tags)
    ]
    rows, tags = [*rows[:6], ["rain", "rome"]], [*tags[:6], ["O", "B-RARE"]]
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    groups = [0, 0, 1, 1, 2, 2, 3]
    found = out_of_fold(tagger, rows, tags, 2, groups)
    classes = sorted({tag for row in tags for tag in row})
    assert [len(row) for row in found.predictions] == [len(row) for row in rows]
    for number in (0, 1):
        train, test = (np.flatnonzero((found.folds == number) == held) for held in (False, True))
        model = clone(tagger).fit([rows[i] for i in train], [tags[i] for i in train])
        places = [classes.index(tag) for tag in model.classes_]
        for i, table in zip(test, model.predict_proba([rows[i] for i in test]), strict=True):
            expected = np.zeros((len(rows[i]), len(classes)))
            expected[:, places] = table
            np.testing.assert_allclose(found.probabilities[i], expected, atol=1e-6)
    rare = found.probabilities[6][:, classes.index("B-RARE")]
    assert (rare == 0).all()
    rows, tags = sentences
    tuned = out_of_fold(BiasTunedTagger(tagger, cv=0.5, random_state=0), rows, tags, 2)
    assert [len(row) for row in tuned.predictions] == [len(row) for row in rows]


def test_readers(tiny_backbone, sentences):
    rows, tags = (part[:6] for part in sentences)
    common = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    asker = DiceMRCTagger(**common, threshold=0.01)
    found = out_of_fold(asker, rows, tags, 2)
    assert [len(row) for row in found.predictions] == [len(row) for row in rows]
    model = clone(asker).fit(rows[3:], tags[3:])
    assert found.predictions[:3].tolist() == model.predict(rows[:3]).tolist()
    assert found.probabilities is None
    questions = [("who met bob", "anna met bob"), ("who saw rain", "carla saw rain")] * 2
    answers = [[(0, "anna")], [(0, "carla")]] * 2
    reader = DiceQuestionAnswerer(**common)
    found = out_of_fold(reader, questions, answers, 2)
    model = clone(reader).fit(questions[2:], answers[2:])
    assert found.predictions[:2].tolist() == list(model.predict(questions[:2]))


TAGGED = [["O"]] * 5 + [["O", "O"]]


@pytest.mark.parametrize(
    ("estimator", "rows", "y", "message"),
    [
        (DiceTokenClassifier(), [["a"]] * 6, TAGGED, r"y\[5\] has 2 tags"),
        (DiceTokenClassifier(), [*[["a"]] * 5, [None]], [["O"]] * 6, r"X\[5\]\[0\] is None"),
        (BiasTunedTagger(DiceTokenClassifier()), [["a"]] * 6, TAGGED, r"y\[5\] has 2 tags"),
        (DiceMRCTagger(), [["a"]] * 6, TAGGED, r"y\[5\] has 2 tags"),
        (DiceEntityRecognizer(), ["a"] * 6, [*[[]] * 5, [(0, "a", "X")]], r"y\[5\]"),
        (DiceQuestionAnswerer(), [("b", "a")] * 6, [*[[]] * 5, [(0, "x")]], r"y\[5\]"),
        (DiceSequenceClassifier(), [*[("a", "b")] * 5, ("a", None)], [0, 1] * 3, r"X\[5\]\[1\]"),
    ],
)
def test_a_bad_row_is_named_by_its_number_in_all_rows(estimator, rows, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        out_of_fold(estimator, rows, y, 2)
    if not isinstance(estimator, BiasTunedTagger):
        with pytest.raises((ValueError, TypeError), match=message):
            LossSearchCV(estimator, {"lr": [1e-3]}, cv=2).fit(rows, y)
    if isinstance(estimator, DiceSequenceClassifier):
        with pytest.raises((ValueError, TypeError), match=message):
            BiasTunedClassifier(estimator, cv=2).fit(rows, y)


def test_folds_at_the_same_time():
    model = DiceClassifier(max_epochs=2, random_state=0)
    with parallel_config("threading"):
        alone, together = (out_of_fold(model, X, Y, 3, n_jobs=n) for n in (1, 2))
    np.testing.assert_allclose(alone.probabilities, together.probabilities, atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2)}, "each row must be held out once"),
        ({"cv": TimeSeriesSplit(3)}, "each row must be held out once"),
        ({"cv": [([0], [1])]}, "each row must be held out once"),
        ({"cv": [([0, 1, 2], [99])]}, "cv=.*index 99 is out of bounds for axis 0 with size 40"),
        ({"cv": 1}, "cv=1"),
        ({"cv": "five"}, "cv='five'"),
        ({"y": Y[:-1]}, "inconsistent"),
        ({"y": None}, "y"),
        ({"groups": [1]}, "groups holds 1 row and y"),
        ({"groups": [*"aabbccddeeffg", None] * 4}, r"groups holds 56 rows and y"),
        ({"groups": [*range(37), None, 1, 2]}, r"groups\[37\] is None.* a group of its own"),
        ({"groups": [np.nan, *range(39)]}, r"groups\[0\] is nan"),
        ({"groups": [pd.NA, *range(39)], "cv": GroupKFold(2)}, r"groups\[0\] is <NA>"),
        ({"groups": pd.Series([*range(39), None], dtype="datetime64[ns]")}, r"groups\[39\]"),
        ({"groups": np.zeros((40, 1))}, r"groups\[0\] is array\(\[0.\]\): give each row a value"),
        ({"estimator": 3}, "estimator"),
        ({"n_jobs": "two"}, "n_jobs"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"params": [1]}, "params"),
    ],
)
def test_bad_arguments_are_named_before_any_fit(changed, match):
    call = {"estimator": never_fitted(LogisticRegression)(), "X": X, "y": Y, "cv": 2} | changed
    with pytest.raises((ValueError, TypeError), match=match):
        out_of_fold(**call)
