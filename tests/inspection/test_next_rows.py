"""Rows worth a label, against loops over the model's probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TfidfClassifier,
)
from skdice.inspection import next_to_label, suspect_labels
from skdice.inspection.next_rows import key_of
from skdice.model_selection import out_of_fold
from skdice.tasks import TASKS

X, Y = make_classification(120, 4, weights=[0.8], random_state=0)
MODEL = LogisticRegression().fit(X[:60], Y[:60])
POOL = X[60:]


def test_the_probability_of_the_positive_class():
    p = MODEL.predict_proba(POOL)[:, 1]
    found = next_to_label(MODEL, POOL, 7, strategy="positives")
    assert found.row.tolist() == np.argsort(-p)[:7].tolist()
    np.testing.assert_allclose(found.score, np.sort(p)[::-1][:7])
    assert list(found) == ["row", "reason", "score"]
    turned = DiceClassifier(max_epochs=5, random_state=0, pos_label=0).fit(X, Y)
    found = next_to_label(turned, POOL, 7, strategy="positives")
    assert found.row.tolist() == np.argsort(-turned.predict_proba(POOL)[:, 0])[:7].tolist()


def test_the_least_margin():
    best = np.sort(MODEL.predict_proba(POOL), axis=1)
    found = next_to_label(MODEL, POOL, 7, strategy="margin")
    assert found.row.tolist() == np.argsort(best[:, 1] - best[:, 0])[:7].tolist()
    assert set(found.reason) == {"uncertain"}


def test_mixed_is_half_and_half():
    p = MODEL.predict_proba(POOL)[:, 1]
    found = next_to_label(MODEL, POOL, 5, strategy="mixed").row.tolist()
    first = np.argsort(-p)[:3].tolist()
    left = np.setdiff1d(np.arange(60), first)
    assert found == first + left[np.argsort(np.abs(2 * p[left] - 1))[:2]].tolist()


def test_rare_classes_of_many():
    y = np.where(np.arange(120) % 12 == 0, 2, Y)
    model = LogisticRegression().fit(X, y)
    p = model.predict_proba(POOL)
    rarity = [sum(q * (1 - m) for q, m in zip(row, p.mean(axis=0), strict=True)) for row in p]
    found = next_to_label(model, POOL, 6, strategy="positives")
    np.testing.assert_allclose(found.score, np.sort(rarity)[::-1][:6])
    groups = np.array(["A", "B", "O"])  # of blood: no background
    model = LogisticRegression().fit(X, groups[y])
    found = next_to_label(model, POOL, 6, strategy="positives")
    np.testing.assert_allclose(found.score, np.sort(rarity)[::-1][:6])


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        DiceClassifier(max_epochs=3, random_state=0),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_several_labels_are_summed(model):
    y = np.column_stack([Y, X[:, 0] > 1, X[:, 1] > 0]).astype(int)
    model = clone(model).fit(X, y)
    p = model.predict_proba(POOL)
    p = np.column_stack([t[:, 1] for t in p]) if isinstance(p, list) else p
    found = next_to_label(model, POOL, 8, strategy="positives")
    np.testing.assert_allclose(found.score, np.sort(p.sum(axis=1))[::-1][:8])
    found = next_to_label(model, POOL, 8, strategy="margin")
    doubt = sum(1 - np.abs(2 * p[:, k] - 1) for k in range(3))
    np.testing.assert_allclose(found.score, np.sort(doubt)[::-1][:8])


@pytest.mark.parametrize("strategy", ["mixed", "positives", "margin"])
def test_equal_rows_are_given_once_and_no_more_than_there_are(strategy):
    pool = np.repeat(POOL[:10], 3, axis=0)
    assert sorted(next_to_label(MODEL, pool, 50, strategy=strategy).row) == list(range(0, 30, 3))
    assert len(next_to_label(MODEL, pool, 3, strategy=strategy)) == 3
    assert len(next_to_label(MODEL, pool[:1], 3, strategy=strategy)) == 1
    rows = next_to_label(MODEL, sparse.csr_matrix(POOL), 4, strategy=strategy).row.tolist()
    assert rows == next_to_label(MODEL, POOL, 4, strategy=strategy).row.tolist()


def test_rows_that_differ_in_no_value():
    """The two zeros are equal; texts are but for case and white space; pairs are two texts."""
    pool = np.array([[0.0, 1.0, 0, 0], [-0.0, 1.0, 0, 0], [0.0, -1.0, 0, 0]])
    assert sorted(next_to_label(MODEL, pool, 3).row) == [0, 2]
    assert sorted(next_to_label(MODEL, pool.astype("f4"), 3).row) == [0, 2]
    assert sorted(next_to_label(MODEL, sparse.csr_matrix(pool), 3).row) == [0, 2]
    assert key_of(("a", "b | c")) != key_of(("a | b", "c"))
    assert key_of(["New  York", "is"]) == key_of(("new york", "IS"))


@pytest.mark.parametrize("strategy", ["mixed", "positives", "margin"])
def test_a_model_of_one_class_doubts_no_row(strategy):
    model = DecisionTreeClassifier().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match=r"estimator knows one class only \(1.0\)"):
        next_to_label(model, POOL, 3, strategy=strategy)
    one_label = OneVsRestClassifier(LogisticRegression()).fit(X, Y[:, None])  # yes or no
    p = one_label.predict_proba(POOL)
    assert p.shape == (60, 2)
    assert len(next_to_label(one_label, POOL, 3, strategy=strategy)) == 3


def test_a_frame_of_texts_and_numbers():
    frame = pd.DataFrame({"text": TEXTS * 2, "size": [1.0, 2, 3, np.nan, 5, 6] * 2})
    parts = make_column_transformer((TfidfVectorizer(), "text"), (SimpleImputer(), ["size"]))
    pipe = make_pipeline(parts, LogisticRegression()).fit(frame, [0, 1] * 6)
    assert sorted(next_to_label(pipe, frame, 12).row) == [0, 1, 2, 3, 4, 5]
    assert len(suspect_labels(pipe, frame, [0, 1] * 6, 2).columns) == 6


class Lengths:
    """A transformer as scikit-learn's guide has it, without its base class."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return [row if isinstance(row, list) else [len(row)] for row in X]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("kind", [list, pd.Series])
def test_a_missing_text_is_named_by_its_row(missing, kind):
    texts, labels = kind([*TEXTS[:4], missing, "late"]), [0, 1] * 3
    for reader in (TfidfVectorizer(), FeatureUnion([("words", TfidfVectorizer())])):
        pipe = make_pipeline(reader, LogisticRegression()).fit(TEXTS, labels)
        with pytest.raises(TypeError, match=r"pool\[4\] is .*drop the row or fill it"):
            next_to_label(pipe, texts)
        for model in (pipe, GridSearchCV(pipe, {}, cv=2)):
            for judge in (suspect_labels, out_of_fold):
                with pytest.raises(TypeError, match=r"X\[4\] is .*drop the row or fill it"):
                    judge(model, texts, labels, 2)
    for first in (Lengths(), "passthrough"):  # without tags, or no estimator at all
        pipe = make_pipeline(first, Lengths(), LogisticRegression()).fit(TEXTS, labels)
        assert len(next_to_label(pipe, TEXTS)) == len(out_of_fold(pipe, TEXTS, labels, 2).folds) - 1
    filled = FunctionTransformer(lambda texts: ["" if pd.isna(t) else t for t in texts])
    pipe = make_pipeline(filled, TfidfVectorizer(), LogisticRegression()).fit(texts, labels)
    assert sorted(next_to_label(pipe, texts).row) == [0, 1, 2, 3, 4, 5]
    assert len(out_of_fold(pipe, texts, labels, 2).predictions) == 6


def test_models_inside_of_others():
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    search = GridSearchCV(pipe, {"logisticregression__C": [1.0]}, cv=2).fit(X, Y)
    assert next_to_label(search, POOL, 6).equals(next_to_label(pipe, POOL, 6))
    for positive in (0, 1):  # of the tuner, whatever its classifier may know
        tuned = BiasTunedClassifier(LogisticRegression(), cv=0.5, pos_label=positive).fit(X, Y)
        p = tuned.predict_proba(POOL)[:, positive]
        found = next_to_label(tuned, POOL, 6, strategy="positives")
        assert found.row.tolist() == np.argsort(-p)[:6].tolist()


TEXTS = ["win money now", "lunch today", "Win  money NOW", "the bus is late", "call now", ""]


def test_texts_and_pairs(tiny_backbone):
    labels = [1, 0, 1, 0, 0, 0]
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(TEXTS, labels)
    found = next_to_label(model, TEXTS, 6)
    assert sorted(found.row) == [0, 1, 3, 4, 5]
    assert found.text.tolist() == [TEXTS[i] for i in found.row]
    pairs = [(text, "now") for text in TEXTS]
    model.fit(pairs, labels)
    assert set(next_to_label(model, pairs, 2).text) <= {f"{text} | now" for text in TEXTS}
    plain = TfidfClassifier(random_state=0).fit(TEXTS, labels)
    assert len(next_to_label(plain, TEXTS, 2, strategy="mixed")) == 2


class Outside(BaseEstimator):
    """A tagger, not of skdice, that knows only what is outside."""

    task = TASKS["tagging"]

    def fit(self, X, y):
        self.classes_ = np.array(["O"])
        return self

    def predict(self, X):
        return [["O"] * len(row) for row in X]

    def predict_proba(self, X):
        return np.fromiter([np.ones((len(row), 1)) for row in X], dtype=object)


def test_taggers_and_recognizers(tiny_backbone, sentences):
    rows, tags = sentences
    how = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    tagger = DiceTokenClassifier(**how).fit(rows, tags)
    pool = [*rows[:8], [], ["anna", "met", "bob"]]
    outside = [t[:, tagger.classes_.tolist().index("O")] for t in tagger.predict_proba(pool)]
    found = next_to_label(tagger, pool, 4, strategy="positives")
    np.testing.assert_allclose(found.score, sorted((sum(1 - p) for p in outside), reverse=True)[:4])
    assert found.text.tolist() == [" ".join(pool[i]) for i in found.row]
    assert len(next_to_label(tagger, pool, 20)) == 10
    nothing = next_to_label(tagger, [[], []], 3)
    assert nothing[["row", "score"]].values.tolist() == [[0, 0.0]]
    with pytest.raises(ValueError, match=r"estimator knows one class only \('O'\)"):
        next_to_label(Outside().fit(rows, tags), pool, 4)
    texts = ["anna met bob.", "rain today", "carla saw rome"]
    recognizer = DiceEntityRecognizer(**how)
    recognizer.fit(texts, [[(0, 4, "PER")], [], [(0, 5, "PER"), (10, 14, "LOC")]])
    best = [np.sort(t, axis=1) for t in recognizer.predict_proba(texts)]
    doubt = [sum(1 - t[:, -1] + t[:, -2]) for t in best]
    found = next_to_label(recognizer, texts, 3, strategy="margin")
    np.testing.assert_allclose(found.score, sorted(doubt, reverse=True))


def test_a_list_without_pandas(without):
    model = DiceClassifier(max_epochs=1, random_state=0).fit(X, Y)
    expected = next_to_label(model, POOL, 4).to_dict("records")
    without("pandas")
    assert next_to_label(model, POOL, 4) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 must be at least 1"),
        ({"n": "3"}, "n='3' must be an integer"),
        ({"strategy": "best"}, "strategy='best' must be one of"),
        ({"pool": []}, "pool"),
        ({"pool": "text"}, "pool"),
        ({"pool": [[np.nan] * 4]}, "pool"),
        ({"estimator": LinearRegression().fit(X, Y)}, "no predict_proba"),
        ({"estimator": LogisticRegression()}, "not fitted"),
        ({"estimator": DiceSequenceClassifier()}, "not fitted"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises((TypeError, ValueError, NotFittedError), match=message):
        next_to_label(**{"estimator": MODEL, "pool": POOL, **arguments})


def test_behind_a_sampler_positives_are_the_rare_class():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = np.where(X[:, 0] > 1.25, "alarm", "normal")
    model = make_sampling_pipeline(
        RandomOverSampler(random_state=0), DiceClassifier(random_state=0)
    )
    chosen = next_to_label(model.fit(X, y), X, n=20, strategy="positives")
    assert (y[list(pd.DataFrame(chosen)["row"])] == "alarm").all()
