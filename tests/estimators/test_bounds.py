"""Bounds that can and cannot be promised, and thresholds that people can read."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from skdice import BiasTunedClassifier, DiceClassifier
from skdice.metrics import AlertBudget, PrecisionAtRecall, RecallAtPrecision

X, Y = make_classification(2000, weights=[0.9], class_sep=1.5, flip_y=0.02, random_state=0)
HARD = RecallAtPrecision(0.97)  # 200 positives show less


def test_a_bound_that_is_kept_is_told():
    tuned = BiasTunedClassifier(LogisticRegression(), scoring=PrecisionAtRecall(0.8)).fit(X, Y)
    assert tuned.bound_ == ("recall", 0.8, 0.8, 0.95)
    assert BiasTunedClassifier(LogisticRegression()).fit(X, Y).bound_ is None
    budget = BiasTunedClassifier(LogisticRegression(), scoring=AlertBudget(70)).fit(X, Y)
    assert budget.bound_ == ("alerts per 1,000 rows", 70, 70, 0.95)


def test_a_bound_out_of_reach_leaves_a_model_and_a_warning():
    model = BiasTunedClassifier(LogisticRegression(), scoring=HARD)
    with pytest.warns(
        UserWarning, match=r"precision=0\.97\) cannot be promised.* is precision 0\.9"
    ):
        model.fit(X, Y)
    measure, asked, promised, confidence = model.bound_
    assert (measure, asked, confidence) == ("precision", 0.97, 0.95)
    assert 0.8 < promised < 0.97
    less = RecallAtPrecision(promised)
    same = BiasTunedClassifier(LogisticRegression(), scoring=less).fit(X, Y)
    np.testing.assert_array_equal(model.bias_, same.bias_)


def test_a_search_ends_with_a_model_and_a_warning():
    tuned = BiasTunedClassifier(LogisticRegression(), scoring=HARD, cv=2)
    search = GridSearchCV(tuned, {"estimator__C": [0.1, 1]}, cv=2, error_score="raise")
    with pytest.warns(UserWarning, match="cannot be promised"):
        search.fit(X, Y)
    assert search.best_estimator_.bound_.promised < 0.97
    assert search.predict(X).sum() > 0


def test_probabilities_that_are_no_numbers_are_refused():
    class Broken(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), np.nan)

    broken = Broken()
    broken.classes_ = np.array([0, 1])
    for scoring in ("auto", PrecisionAtRecall(0.9), "neg_log_loss"):
        with pytest.raises(
            ValueError, match=r"Broken gives NaN as a probability, .* row or token 0"
        ):
            BiasTunedClassifier(broken, cv="prefit", scoring=scoring).fit(X, Y)


# ---- thresholds


@pytest.mark.parametrize("names", [["no", "yes"], ["yes", "zero"]])  # "yes" is the rare one
def test_the_threshold_is_a_probability_of_the_estimator(names):
    y = np.array(names)[Y if names[1] == "yes" else 1 - Y]
    tuned = BiasTunedClassifier(LogisticRegression(), n_bootstraps=5).fit(X, y)
    at = tuned.positive_
    assert tuned.classes_[at] == "yes"
    p = tuned.estimator_.predict_proba(X)[:, at]
    np.testing.assert_array_equal(tuned.predict(X) == "yes", p > tuned.threshold_)
    assert 0.02 < tuned.threshold_ < 0.98
    assert tuned.bias_.any()
    assert tuned.thresholds_ == {"yes": tuned.threshold_}


def test_thresholds_of_several_labels_have_their_names():
    Z = [[name for name, v in zip(["cold", "wet"], row, strict=True) if v > 1] for row in X[:, :2]]
    model = DiceClassifier(loss="ce", random_state=0, max_epochs=5)
    tuned = BiasTunedClassifier(model, scoring="f1", cv=2, random_state=0).fit(X, Z)
    assert list(tuned.thresholds_) == ["cold", "wet"]
    p = tuned.estimator_.predict_proba(X)
    np.testing.assert_array_equal(tuned.predict(X), p > list(tuned.thresholds_.values()))
    assert not hasattr(tuned, "threshold_")
    # The line of the guide: lists of names fit scikit-learn's report.
    binary = MultiLabelBinarizer(classes=tuned.classes_).fit(Z)
    np.testing.assert_array_equal(binary.transform(tuned.predict_labels(X)), tuned.predict(X))
    tables = (binary.transform(rows) for rows in (Z, tuned.predict_labels(X)))
    report = classification_report(*tables, target_names=binary.classes, zero_division=0)
    assert "cold" in report
    table = MultiOutputClassifier(LogisticRegression())
    numbered = BiasTunedClassifier(table, cv=2, random_state=0).fit(X, binary.transform(Z))
    assert list(numbered.thresholds_) == [0, 1]


def test_more_classes_have_no_threshold():
    tuned = BiasTunedClassifier(LogisticRegression(), cv=2).fit(X, np.arange(2000) % 3)
    for name in ("threshold_", "thresholds_"):
        with pytest.raises(AttributeError, match="of two classes, and there are 3 classes"):
            getattr(tuned, name)
    assert not hasattr(BiasTunedClassifier(LogisticRegression()), "threshold_")
