"""n-grams with a logistic regression, and a conditional random field."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import RandomOverSampler
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_predict

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceClassifier,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TfidfClassifier,
)
from skdice.datasets import load_town_notes
from skdice.engine.fit_plan import draw_epochs
from skdice.estimators.baselines import features_of
from skdice.inspection import span_probabilities
from skdice.metrics import span_f1_scorer
from skdice.model_selection import compare_losses
from skdice.resampling import TagOverSampler
from skdice.tags.schemes import get_spans

# Twelve of 30 texts are spam, which a few words tell.
X = ["win money now", "free prize, call!", "win a prize", "lunch today?", "see you there"] * 4
X += ["the bus was old", "rain again", "meet me at noon", "how are you", "money for lunch"] * 2
y = np.array(["spam", "spam", "spam", "ham", "ham"] * 4 + ["ham"] * 10)
PAIRS = [("how old is rome", "how old is oslo"), ("rain today", "rain now"), ("a bus", "a cat")] * 5
PAIRS += [("is rome old", "rome is old"), ("rain today", "today rain")] * 3
SAME = [0] * 15 + [1] * 6


def test_it_finds_the_rare_class():
    model = TfidfClassifier(random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.classes_[model.positive_] == "spam"
    assert model.task.measure(model) == "class spam"
    assert model.predict(["win a free prize", "lunch at noon"]).tolist() == ["spam", "ham"]
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    log_odds = model.decision_function(X)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), log_odds, rtol=1e-4)
    assert model.score(X, y) == f1_score(y, model.predict(X), pos_label="spam")


def test_it_is_a_logistic_regression_on_both_kinds_of_n_grams():
    model = TfidfClassifier(Cs=[10.0]).fit(X, y)
    kinds = [
        TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+|[^\w\s]+", ngram_range=(1, 2)),
        TfidfVectorizer(sublinear_tf=True, analyzer="char_wb", ngram_range=(2, 4)),
    ]
    table = np.hstack([kind.fit_transform(X).toarray() for kind in kinds])
    expected = LogisticRegression(C=10, class_weight="balanced", max_iter=1000).fit(table, y)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(table), atol=1e-4)


def test_c_is_the_one_with_the_best_f1_on_inner_folds():
    found = TfidfClassifier(random_state=0, Cs=[1e-6, 1.0]).fit(X, y).model_.C
    assert found == 1.0  # the other one is too weak to find anything
    assert TfidfClassifier(Cs=[0.5]).fit(X, y).model_.C == 0.5
    alone = [*y[:-1], "other"]
    assert TfidfClassifier(Cs=[1, 2, 3]).fit(X, alone).model_.C == 2


def test_pairs_have_what_they_share_and_how_they_differ():
    model = TfidfClassifier(random_state=0).fit(PAIRS, SAME)
    assert model.predict([("the old bus", "the bus old"), ("a dog", "a fox")]).tolist() == [1, 0]
    a, b = (model.vectorizer_.transform(side).toarray() for side in zip(*PAIRS, strict=True))
    expected = np.hstack([a, b, np.minimum(a, b), np.abs(a - b), (a * b).sum(1, keepdims=True)])
    rival = LogisticRegression(C=model.model_.C, class_weight="balanced", max_iter=1000)
    proba = rival.fit(expected, SAME).predict_proba(expected)
    np.testing.assert_allclose(model.predict_proba(PAIRS), proba, atol=1e-4)
    with pytest.raises(ValueError, match="X holds texts, but fit saw pairs"):
        model.predict(X)
    frame = pd.DataFrame(PAIRS, columns=["a", "b"])
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        assert model.predict(frame).tolist() == model.predict(PAIRS).tolist()


@pytest.mark.parametrize(
    ("params", "rows", "labels", "message"),
    [
        ({"pos_label": "no"}, X, y, "pos_label='no'"),
        ({}, X, ["ham"] * len(X), r"one class only \('ham'\)"),
        ({}, [" ", "\n"] * 2, [0, 1] * 2, "no text of X has an n-gram"),
        ({"sampler": TagOverSampler()}, X, y, "TagOverSampler.* draws by the tags of a sentence"),
        ({}, X, np.eye(2, dtype=int)[[0, 1] * 15], "one label a row"),
        ({}, [], [], "0 samples"),
    ],
)
def test_what_cannot_be_classified_is_refused(params, rows, labels, message):
    with pytest.raises(ValueError, match=message):
        TfidfClassifier(**params).fit(rows, labels)
    with pytest.raises(NotFittedError):
        TfidfClassifier(**params).predict(X)


def test_words_that_no_other_text_has_are_left_out():
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice([*"abcdefgh"], 12)) for _ in range(1000)]  # none of them twice
    labels = ["a" in name[:3] for name in names]
    model = TfidfClassifier(Cs=[10]).fit(names, labels)
    assert [name for name, _ in model.vectorizer_.transformer_list] == ["characters"]
    assert model.score(names, labels) > 0.8


def test_a_row_of_weight_0_is_one_that_is_not_there():
    weights = np.array([0.0] * 5 + [1.0] * 25)
    model = TfidfClassifier(random_state=0)
    without = model.fit(X[5:], y[5:]).predict_proba(X)
    with config_context(enable_metadata_routing=True):
        model.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict_proba(X), without, atol=1e-6)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, y, sample_weight=y == "ham")


def test_tools_of_scikit_learn_take_it():
    model = TfidfClassifier(random_state=0)
    search = GridSearchCV(model, {"Cs": [(1,), (1, 10)]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    odd = ["🙂 !!", "", "\u200b", "日本語"]
    assert search.predict(odd).shape == (4,)
    tuned = BiasTunedClassifier(TfidfClassifier(random_state=0), cv=3, random_state=0).fit(X, y)
    assert tuned.evaluate(X, y)["f1"] > 0.8


def test_a_sampler_draws_rows_after_c_is_chosen():
    sampler = RandomOverSampler(sampling_strategy={"spam": 18})
    model = TfidfClassifier(Cs=[1.0], sampler=sampler, random_state=0).fit(X, y)
    rows = draw_epochs(sampler, y, 0, [1])[0]
    assert np.mean(y[rows] == "spam") == 0.5
    by_hand = clone(model).set_params(sampler=None)
    by_hand.fit(X, y, sample_weight=np.bincount(rows, minlength=len(X)).astype(float))
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(X), atol=1e-3)
    assert model.classes_[model.positive_] == "spam"
    with pytest.raises(ValueError, match="TagOverSampler"):
        CRFTagger(sampler=sampler).fit([["a", "b"]] * 2, [["O", "B-X"]] * 2)


def test_more_classes_are_chosen_by_macro_f1():
    labels = ["a" if "o" in text else "b" if "e" in text else "c" for text in X]
    model = TfidfClassifier(random_state=0).fit(X, labels)
    assert model.task.measure(model) == "classes, macro"
    assert model.predict_proba(X).shape == model.decision_function(X).shape == (len(X), 3)
    assert model.score(X, labels) > 0.9


# ---- the random field


@pytest.fixture
def tagged():
    pytest.importorskip("pycrfsuite")
    return load_town_notes(subset="train"), load_town_notes(subset="test")


def test_a_random_field_tags(tagged):
    (X, y), (X_test, y_test) = tagged
    tagger = CRFTagger().fit(X, y)
    assert tagger.scheme_ == "iob2"
    assert tagger.classes_.tolist() == sorted({tag for row in y for tag in row})
    assert tagger.score(X_test, y_test) > 0.8
    assert tagger.task.measure(tagger) == "spans, micro"
    predicted = tagger.predict([*X_test, []])
    assert predicted.shape == (len(X_test) + 1,)
    assert [len(row) for row in predicted] == [len(row) for row in [*X_test, []]]
    tables = tagger.predict_proba([*X_test[:20], []])
    assert tables[-1].shape == (0, len(tagger.classes_))
    for table, row in zip(tables, X_test[:20], strict=False):
        assert table.shape == (len(row), len(tagger.classes_))
        np.testing.assert_allclose(table.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(tagger))
    assert again.predict(X_test).tolist() == tagger.predict(X_test).tolist()


def test_probabilities_are_those_of_all_sequences(tagged):
    import pycrfsuite

    X = [["ann", "is", "here"], ["rome", "is"], ["ann"]] * 3
    y = [["B", "O", "O"], ["B", "O"], ["B"]] * 3
    tagger = CRFTagger(scheme="plain").fit(X, y)
    reader = pycrfsuite.Tagger()
    reader.open_inmemory(tagger.model_)
    info, names = reader.info(), tagger.classes_.tolist()
    sentence = ["ann", "is", "new"]
    scores = np.array(
        [
            [sum(info.state_features.get((f, name), 0) for f in row) for name in names]
            for row in features_of(sentence)
        ]
    )
    steps = np.array([[info.transitions.get((a, b), 0) for b in names] for a in names])
    total = {
        path: sum(scores[range(3), path]) + steps[path[0], path[1]] + steps[path[1], path[2]]
        for path in np.ndindex(2, 2, 2)
    }
    for t in range(3):
        for k in range(2):
            with_k = [value for path, value in total.items() if path[t] == k]
            p = np.exp(logsumexp(with_k) - logsumexp(list(total.values())))
            assert tagger.predict_proba([sentence])[0][t, k] == pytest.approx(p, abs=1e-4)


def test_spans_are_those_of_the_tags_with_their_probabilities(tagged):
    (X, y), (X_test, _) = tagged
    tagger = CRFTagger(max_iterations=20).fit(X[:200], y[:200])
    found = tagger.predict_spans([*X_test[:50], []])
    tags, tables = tagger.predict(X_test[:50]), tagger.predict_proba(X_test[:50])
    spans = [get_spans(row, "iob2") for row in tags]
    assert [[span[:3] for span in row] for row in found] == [*spans, []]
    scores = span_probabilities(tables, spans, tagger.classes_, scheme="iob2")
    for row, wanted in zip(found, scores, strict=False):
        np.testing.assert_allclose([span.score for span in row], wanted)
    assert sum(map(len, spans)) > 10


def test_features_are_of_the_word_and_its_neighbours():
    first, second = features_of(["New", "U2-band"])
    assert {"bias", "lower=new", "title", "prefix=ne", "suffix=ew", "shape=Xx"} <= set(first)
    assert {"-1:border", "+1:lower=u2-band", "+1:shape=Xd-x"} <= set(first)
    assert {"suffix=nd", "suffix=and", "-1:title", "+1:border"} <= set(second)
    assert "digits" in features_of(["2024"])[0]
    assert "upper" in features_of(["NATO"])[0]
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] holds half"):  # CRFsuite needs UTF-8
        CRFTagger().fit([["\ud800x"]], [["O"]])


def test_a_chain_breaks_where_nobody_annotated(tagged):
    (X, y), _ = tagged
    some = [[tag if (i + j) % 7 else None for j, tag in enumerate(row)] for i, row in enumerate(y)]
    tagger = CRFTagger(max_iterations=20).fit(X[:200], some[:200])
    assert None not in tagger.classes_.tolist()
    assert tagger.score(X[:200], some[:200]) > 0.6
    with pytest.raises(ValueError, match="y holds no tag at all"):
        CRFTagger().fit(X[:2], [[None] * len(row) for row in X[:2]])


def test_tools_take_the_random_field(tagged):
    (X, y), _ = tagged
    X, y = X[:120], y[:120]
    tagger = CRFTagger(max_iterations=10)
    search = GridSearchCV(tagger, {"c2": [0.01, 1.0]}, cv=2, scoring=span_f1_scorer).fit(X, y)
    assert 0 <= search.best_score_ <= 1
    assert len(cross_val_predict(tagger, X, y, cv=2)) == len(X)
    tuned = BiasTunedTagger(tagger, cv=0.5, random_state=0).fit(X, y)
    assert tuned.bias_.shape == tuned.classes_.shape
    for params, message in [({"c1": -1}, "c1"), ({"scheme": "iob"}, "scheme")]:
        with pytest.raises(ValueError, match=message):
            CRFTagger(**params).fit(X, y)
    with pytest.raises(ValueError, match=r"y\[0\] has 1 tag,"):
        tagger.fit([["a", "b"]], [["O"]])
    with pytest.raises(ValueError, match="cannot follow"):
        CRFTagger(scheme="iob2").fit([["a", "b"]], [["O", "I-X"]])
    with pytest.raises(NotFittedError):
        CRFTagger().predict(X)


def test_a_missing_library_is_named(without):
    without("pycrfsuite")
    with pytest.raises(ImportError, match=r"pip install 'skdice\[crf\]'"):
        CRFTagger().fit([["a", "b"]], [["O", "B-X"]])
    tagger = DiceTokenClassifier(backbone="no/such-model")
    with pytest.raises(ImportError, match=r"skdice\[crf\]"):
        compare_losses(tagger, [["a"]], [["O"]], X_test=[["a"]], y_test=[["O"]], losses=["crf"])


# ---- as rows of a comparison


def test_baselines_come_first_in_a_comparison(tiny_backbone, tmp_path, capsys):
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, pos_label="ham")
    how = dict(X_test=X, y_test=y, seeds=2, verbose=1)
    losses = ["ce", "tfidf", "tfidf + RandomOverSampler", "tfidf + tuned"]
    found = compare_losses(model, X, y, losses=losses, **how)
    made = [line.split(",")[0] for line in capsys.readouterr().out.splitlines()]
    with_chance = ["tfidf + RandomOverSampler", "tfidf + tuned", "ce"]
    assert made == ["tfidf", *with_chance, *with_chance]
    assert [row.label for row in found.rows] == ["ce", *made[:3]]
    expected = TfidfClassifier(pos_label="ham", random_state=1).fit(X, y).evaluate(X, y)
    assert len(found.rows[1].runs) == 1  # without chance
    assert {name: found.rows[1].runs[0][name] for name in expected} == expected
    assert found.measure == "class ham"
    path = found.to_json(tmp_path / "rows.json")
    again = compare_losses(model, X, y, losses=losses[:2], resume_from=path, **how)
    assert capsys.readouterr().out == ""  # no run is made again
    assert again.rows[1].runs == found.rows[1].runs


def test_a_random_field_is_a_row(tiny_backbone, tagged):
    (X, y), (X_test, y_test) = tagged
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1)
    data = {"X_test": X_test, "y_test": y_test, "seeds": 1}
    rows = ["crf", "crf + TagOverSampler", "crf + BackgroundUnderSampler + tuned"]
    found = compare_losses(tagger, X[:100], y[:100], losses=rows, **data).rows
    assert all(row.runs[0]["f1"] > 0.3 for row in found)


@pytest.mark.parametrize(
    ("estimator", "row"),
    [
        (DiceTokenClassifier(), "tfidf"),
        (DiceSequenceClassifier(), "crf + tuned"),
        (DiceQuestionAnswerer(), "tfidf"),
        (DiceClassifier(), "tfidf"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_baseline_of_another_task_is_refused(estimator, row):
    pairs, answers = [("who", "ann sings")] * 2, [[(0, "ann")]] * 2
    data = {
        DiceTokenClassifier: ([["a", "b"]] * 2, [["O", "B-X"]] * 2),
        DiceSequenceClassifier: (["a", "b"], [0, 1]),
        DiceClassifier: (np.eye(2), [0, 1]),
    }.get(type(estimator), (pairs, answers))
    for given, message in (
        (row, f"the row {row!r} is not possible beside a {type(estimator).__name__}"),
        ("tf-idf + tuned", "begins with 'tf-idf', which is neither a loss .*'tfidf', 'crf'"),
    ):
        with pytest.raises(ValueError, match=message.replace("+", r"\+")):
            compare_losses(estimator, *data, X_test=data[0], y_test=data[1], losses=[given])
