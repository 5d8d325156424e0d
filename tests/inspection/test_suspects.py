"""Suspect labels, against loops over the out-of-fold probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdice import (
    BiasTunedClassifier,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.inspection import span_errors, span_probabilities, suspect_labels
from skdice.model_selection import out_of_fold
from skdice.text.words import plain_words

X, CLASSES = make_classification(
    90, 4, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=1
)
Y = np.array(["a", "b", "c"])[CLASSES]


class Table(BaseEstimator):
    """A tagger that gives the tables it was made with, by the first token of a sentence."""

    def __init__(self, tables, classes, scheme="iob2"):
        self.tables, self.classes, self.scheme = tables, classes, scheme

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        found = np.empty(len(X), dtype=object)
        found[:] = [np.array(self.tables[row[0]]) for row in X]
        return found

    def predict(self, X):
        rows = self.predict_proba(X)
        found = np.empty(len(X), dtype=object)
        found[:] = [[self.classes[k] for k in table.argmax(axis=1)] for table in rows]
        return found


def by_a_loop(found, y, classes):
    """Row, given and model label, probability and gain, by the definition."""
    of_class = {c: [] for c in classes}
    for i, label in enumerate(y):
        of_class[label].append(found.probabilities[i][classes.index(label)])
    rows = []
    for i, label in enumerate(y):
        p = found.probabilities[i][classes.index(label)]
        other = found.predictions[i]
        if other != label and p < sum(of_class[label]) / len(of_class[label]):
            rows.append((i, label, other, found.probabilities[i][classes.index(other)], 1 - p))
    return sorted(rows, key=lambda row: -row[4])


@pytest.mark.parametrize("cv", [3, KFold(4, shuffle=True, random_state=0)])
def test_one_label_a_row(cv):
    wrong = Y.copy()
    wrong[:10] = "a"
    model = make_pipeline(StandardScaler(), LogisticRegression())
    suspects = suspect_labels(model, X, wrong, cv)
    expected = by_a_loop(out_of_fold(model, X, wrong, cv), wrong, ["a", "b", "c"])
    assert 3 < len(expected) < 45
    columns = ["row", "given", "model", "probability", "gain"]
    assert suspects[columns[:3]].values.tolist() == [list(row[:3]) for row in expected]
    np.testing.assert_allclose(suspects[columns[3:]], [row[3:] for row in expected])
    assert set(suspects.kind) == {"wrong"}
    assert list(suspects) == ["row", "kind", *columns[1:]]
    searched = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2)
    assert suspect_labels(searched, X, wrong, cv).equals(suspects)


def test_a_rare_class_is_not_suspect_as_a_whole():
    """Its labels are all improbable, and only those below their mean are suspects."""
    rows = np.random.default_rng(0).normal(size=(300, 2))
    labels = np.where(np.arange(300) < 9, "rare", "other")
    model = LogisticRegression()
    found = out_of_fold(model, rows, labels, 3)
    assert (found.predictions == "other").all()
    suspects = suspect_labels(model, rows, labels, 3)
    p = found.probabilities[:9, 1]
    assert set(suspects.row) == set(np.flatnonzero(p < p.mean()))
    alike = suspect_labels(LogisticRegression(C=1e-30), rows, labels, 3)  # all probabilities equal
    assert len(alike) == 0


def test_groups_and_fit_parameters_are_passed_on():
    groups = np.repeat(np.arange(15), 6)
    model, weights = LogisticRegression(), np.linspace(0.1, 2, 90)
    params = {"sample_weight": weights}
    found = out_of_fold(model, X, Y, GroupKFold(3), groups, params=params)
    suspects = suspect_labels(model, X, Y, GroupKFold(3), groups, params=params)
    rows = by_a_loop(found, Y, ["a", "b", "c"])
    np.testing.assert_allclose(suspects.gain, [row[4] for row in rows])


@pytest.mark.parametrize("form", ["table", "frame", "lists", "some hidden"])
def test_each_of_several_labels_by_itself(form):
    table = np.column_stack([CLASSES == 0, CLASSES > 0, X[:, 0] > 0]).astype(int)
    table[:6, 0] = 1 - table[:6, 0]
    names = ["u", "v", "w"]
    hidden = (np.arange(90)[:, None] % 4 == np.arange(3)) & (form == "some hidden")
    y = {
        "some hidden": pd.DataFrame(np.where(hidden, np.nan, table), columns=names),
        "table": table,
        "frame": pd.DataFrame(table, columns=names),
        "lists": [[n for n, has in zip(names, row, strict=True) if has] for row in table],
    }[form]
    model = DiceClassifier(max_epochs=10, random_state=0)
    found = out_of_fold(model, X, y, 3)
    expected = []
    for k, name in enumerate([0, 1, 2] if form == "table" else names):
        p_given = np.where(
            table[:, k] == 1, found.probabilities[:, k], 1 - found.probabilities[:, k]
        )
        for i in range(90):
            alike = p_given[(table[:, k] == table[i, k]) & ~hidden[:, k]]
            doubted = found.predictions[i, k] != table[i, k] and not hidden[i, k]
            if doubted and p_given[i] < alike.mean() - 1e-9:
                pair = ("surplus", name, None) if table[i, k] else ("missing", None, name)
                expected.append((1 - p_given[i], i, *pair))
    expected.sort(key=lambda row: -row[0])
    suspects = suspect_labels(model, X, y, 3)
    assert len(expected) > 5
    found = suspects[["row", "kind", "given", "model"]].values.tolist()
    assert found == [list(row[1:]) for row in expected]
    np.testing.assert_allclose(suspects.gain, [row[0] for row in expected])
    np.testing.assert_allclose(suspects.probability, suspects.gain)
    forest = MultiOutputClassifier(LogisticRegression())
    assert set(suspect_labels(forest, X, table, 3).kind) <= {"missing", "surplus"}


def test_texts_and_pairs_are_shown(tiny_backbone):
    texts = ["win money now", "lunch today", "free prize call", "the bus is late"] * 3
    labels = ["spam", "ham"] * 6
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    suspects = suspect_labels(model, texts, labels, 2)
    assert [texts[i] for i in suspects.row] == suspects.text.tolist()
    tuned = BiasTunedClassifier(model, cv=0.5, random_state=0)
    for found in (tuned, model):
        pairs = [(text, "lunch") for text in texts]
        suspects = suspect_labels(found, pairs, labels, 2)
        assert len(suspects)
        assert [f"{texts[i]} | lunch" for i in suspects.row] == suspects.text.tolist()


TAGS = ["B-LOC", "B-PER", "I-LOC", "I-PER", "O"]


def sure(*tags):
    """A table of 0.8 for each tag."""
    return [[0.8 if tag == known else 0.05 for known in TAGS] for tag in tags]


def test_kinds_of_spans():
    """Each sentence has one error; the others hold the threshold of their types up."""
    rows = [
        ["s0", "anna", "met"], ["s1", "rome", "is"], ["s2", "new", "york"],
        ["s3", "bob", "saw"], ["s4", "anna", "rome"], ["s5", "anna", "rome"],
    ]  # fmt: skip
    given = [
        ["O", "O", "O"], ["O", "B-PER", "O"], ["O", "B-LOC", "O"],
        ["O", "B-PER", "B-LOC"], ["O", "B-PER", "B-LOC"], ["O", "B-PER", "B-LOC"],
    ]  # fmt: skip
    answers = [
        ["O", "B-PER", "O"], ["O", "B-LOC", "O"], ["O", "B-LOC", "I-LOC"],
        ["O", "O", "B-LOC"], ["O", "B-PER", "B-LOC"], ["O", "B-PER", "B-LOC"],
    ]  # fmt: skip
    # A tag I-PER occurs, so that the classes of y are those of the tables.
    rows.append(["s6", "ann", "lee"])
    given.append(["O", "B-PER", "I-PER"])
    answers.append(["O", "B-PER", "I-PER"])
    rows.append(["s7", "new", "york"])
    given.append(["O", "B-LOC", "I-LOC"])
    answers.append(["O", "B-LOC", "I-LOC"])
    model = Table({row[0]: sure(*tags) for row, tags in zip(rows, answers, strict=True)}, TAGS)
    suspects = suspect_labels(model, rows, given, 2).sort_values("row").astype(object)
    spots = ["row", "kind", "given", "start", "end", "model", "model_start", "model_end", "text"]
    assert suspects[spots].where(suspects.notna(), None).values.tolist() == [
        [0, "missing", None, None, None, "PER", 1, 2, "anna"],
        [1, "wrong type", "PER", 1, 2, "LOC", 1, 2, "rome"],
        [2, "wrong border", "LOC", 1, 2, "LOC", 1, 3, "new york"],
        [3, "surplus", "PER", 1, 2, None, None, None, "bob"],
    ]
    tables = model.fit(rows, given).predict_proba(rows)
    spans = [[("PER", 1, 2)], [("PER", 1, 2), ("LOC", 1, 2)], [("LOC", 1, 2), ("LOC", 1, 3)]]
    (missing,), kind, border = span_probabilities(tables[:3], spans, TAGS)
    ((surplus,),) = span_probabilities(tables[3:4], [[("PER", 1, 2)]], TAGS)
    # The tag that is wrong has probability 0.05 in each of them.
    expected = [(missing, 0.95), (kind[1], 0.95), (border[1], 0.95), (1 - surplus, 0.95)]
    np.testing.assert_allclose(suspects[["probability", "gain"]].astype(float), expected)


def test_a_tagger_and_tokens_that_were_not_annotated(tiny_backbone, sentences):
    rows, tags = sentences
    tags = [[*row] for row in tags]
    tags[0][:2] = [None, None]
    tagger = DiceTokenClassifier(
        backbone=tiny_backbone, max_epochs=3, lr=3e-3, loss="ce", random_state=0
    )
    found = out_of_fold(tagger, rows, tags, 2)
    suspects = suspect_labels(tagger, rows, tags, 2)
    errors = span_errors(tags, found.predictions)
    assert 0 < len(suspects) <= len(errors)
    assert (suspects.gain.diff().dropna() <= 0).all()
    columns = ["row", "true_type", "true_start", "true_end", "pred_type", "pred_start", "pred_end"]
    known = {tuple(row) for row in errors[columns].astype(object).fillna(-1).values.tolist()}
    ours = ["row", "given", "start", "end", "model", "model_start", "model_end"]
    assert {tuple(row) for row in suspects[ours].astype(object).fillna(-1).values.tolist()} <= known
    for i, start, end, text in zip(
        suspects.row, suspects.model_start, suspects.model_end, suspects.text, strict=True
    ):
        if start is not pd.NA and suspects.given.isna().all():
            assert " ".join(rows[i][start:end]) == text


def test_entities_by_their_characters(tiny_backbone):
    texts = ["anna, met bob.", "rain in paris", "carla saw rome!", "dan is in oslo"] * 3
    names = {"anna": "PER", "bob": "PER", "paris": "LOC", "carla": "PER", "rome": "LOC"}
    entities = [
        [(a, b, names[text[a:b]]) for a, b in plain_words(text) if text[a:b] in names]
        for text in texts
    ]
    model = DiceEntityRecognizer(
        backbone=tiny_backbone, max_epochs=2, lr=5e-3, loss="ce", random_state=0
    )
    found = out_of_fold(model, texts, entities, 3)
    suspects = suspect_labels(model, texts, entities, 3)
    answers = {
        (i, e.label, e.start, e.end): e.score
        for i, row in enumerate(found.predictions)
        for e in row
    }
    assert len(suspects)
    for s in suspects.itertuples():
        place = [n for n in (s.start, s.model_start) if n is not pd.NA]
        ends = [n for n in (s.end, s.model_end) if n is not pd.NA]
        assert texts[s.row][min(place) : max(ends)] == s.text
        if s.given is not None:
            assert (s.start, s.end, s.given) in entities[s.row]
        if s.model is not None:
            score = answers[s.row, s.model, s.model_start, s.model_end]
            assert s.probability == pytest.approx(score, abs=1e-5)


@pytest.mark.parametrize(
    ("estimator", "y", "message"),
    [
        (LinearRegression(), Y, "no predict_proba"),
        (DiceMRCTagger(), Y, "no predict_proba"),
        (LogisticRegression, Y, "is a class"),
        ("model", Y, "estimator='model' has no fit"),
        (LogisticRegression(), Y[:-1], "inconsistent"),
        (LogisticRegression(), None, "y to be passed"),
        (Table({}, TAGS), [["O"]], "X"),
    ],
)
def test_refusals(estimator, y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        suspect_labels(estimator, X, y, 2)


def test_a_class_that_no_fold_trains_on():
    y, rows = np.array(["a", "b"] * 10 + ["c"]), np.arange(21.0).reshape(-1, 1)
    folds = [(np.arange(0, 10), np.arange(10, 21)), (np.arange(10, 20), np.arange(0, 10))]
    with pytest.raises(ValueError, match="cv leaves a class out of the training rows of all folds"):
        suspect_labels(LogisticRegression(), rows, y, folds)


@pytest.mark.parametrize("several", [False, True])
def test_rows_that_are_left_to_a_person_are_never_suspect(several):
    model = DiceClassifier(max_epochs=10, random_state=0)
    y = np.column_stack([CLASSES == 0, CLASSES > 0]).astype(int) if several else Y.copy()
    y[:10] = y[80:]
    tuned = BiasTunedClassifier(model, cv=3, reject=0.5, random_state=0)
    found = out_of_fold(tuned, X, y, 3)
    left = (found.predictions < 0).any(axis=1) if several else found.predictions == "?"
    assert 3 < left.sum() < 80
    suspects = suspect_labels(tuned, X, y, 3)
    assert len(suspects)
    assert not left[suspects.row].any()
