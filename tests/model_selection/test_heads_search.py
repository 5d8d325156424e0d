"""Searches of text estimators in which heads on the frozen encoder stand for full fits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.engine import vectors
from skdice.metrics import span_f1_score
from skdice.model_selection import LossSearchCV, loss_space
from skdice.model_selection.heads import data as heads_data
from tests.data import KINDS_OF_MESSAGES as LABELS
from tests.data import MESSAGES as TEXTS
from tests.data import SENTENCES, TAGS

SPACE = loss_space("tversky")


@pytest.fixture
def classifier(tiny_backbone):
    return DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)


@pytest.fixture
def tagger(tiny_backbone):
    return DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)


def search(estimator, space=SPACE, **params):
    settings = dict(n_trials=6, n_finalists=2, cv=2, random_state=0, strategy="shared")
    return LossSearchCV(estimator, space, **{**settings, **params})


def spam_f1(model, texts, labels):
    return f1_score(np.asarray(labels) == "spam", model.predict(texts) == "spam")


def test_vectors_are_those_of_the_encoder(classifier, tagger):
    fitted = DiceSequenceClassifier(**{**classifier.get_params(), "frozen": "encoder"})
    fitted.fit(TEXTS, LABELS)
    head = fitted.net_.module_.output_layer
    with torch.no_grad():
        logits = head(torch.from_numpy(classifier.frozen_vectors(TEXTS)).float()).numpy()
    np.testing.assert_allclose(softmax(logits, axis=1), fitted.predict_proba(TEXTS), atol=1e-5)
    assert not hasattr(classifier, "net_")

    frozen = DiceTokenClassifier(**{**tagger.get_params(), "frozen": "encoder"}).fit(
        SENTENCES, TAGS
    )
    vectors = tagger.frozen_vectors(SENTENCES)
    with torch.no_grad():
        rows = (
            frozen.net_.module_.output_layer(torch.from_numpy(vectors)).double().softmax(1).numpy()
        )
    expected = np.concatenate(list(frozen.predict_proba(SENTENCES)))
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_a_frozen_encoder_has_the_same_vectors(classifier, tagger):
    X = ["free money", "lunch today"]
    words = [text.split() for text in X]
    want = classifier.frozen_vectors(X), tagger.frozen_vectors(words)
    for model in (classifier, tagger):
        model.set_params(frozen="encoder")
    np.testing.assert_array_equal(classifier.frozen_vectors(X), want[0])
    np.testing.assert_array_equal(tagger.frozen_vectors(words), want[1])
    assert classifier.frozen == "encoder"


def test_vectors_are_the_same_in_small_blocks(classifier, tagger, monkeypatch):
    asked = (classifier, TEXTS), (tagger, SENTENCES)
    small = [estimator.frozen_vectors(rows) for estimator, rows in asked]
    monkeypatch.setattr(vectors, "BLOCK", 3)
    large = [estimator.frozen_vectors(rows) for estimator, rows in asked]
    for found, expected in zip(large, small, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_head_is_a_classifier_on_scaled_vectors(classifier):
    splits = list(StratifiedKFold(2).split(TEXTS, LABELS))
    found = search(classifier, scoring=spam_f1).fit(TEXTS, LABELS)
    vectors = classifier.frozen_vectors(TEXTS)
    Z = vectors * (heads_data.NORM / np.linalg.norm(vectors, axis=1).mean())
    labels = LABELS
    for params, score in zip(found.heads_["params"], found.heads_["mean_test_score"], strict=True):
        how = dict(lr=heads_data.LR, batch_size=heads_data.BATCH_SIZE[False], random_state=0)
        head = DiceClassifier(max_epochs=classifier.max_epochs, **how).set_params(**params)
        solo = [spam_f1(head.fit(Z[a], labels[a]), Z[b], labels[b]) for a, b in splits]
        assert score == pytest.approx(np.mean(solo))


def test_heads_learn_from_fewer_rows_than_columns(classifier):
    rng = np.random.default_rng(0)
    y = np.array(["ham", "spam"])[(rng.random(600) < 0.15).astype(int)]
    vectors = rng.normal(0.1, 0.3, (600, 384))
    vectors[y == "spam", :24] += 0.7

    class WithVectors(DiceSequenceClassifier):
        def frozen_vectors(self, texts):
            return vectors.copy()

    split = np.arange(100), np.arange(100, 600)
    model = WithVectors(**classifier.get_params()).set_params(max_epochs="auto")
    rows = heads_data.HeadData(model, [str(i) for i in range(600)], y)
    known = y[split[1]] == "spam"
    rival = LogisticRegression(max_iter=1000).fit(vectors[:100], y[:100]).predict(vectors[100:])
    models = [DiceSequenceClassifier(loss=loss) for loss in ("ce", "tversky", "dsc")]
    (heads,) = rows.fit(models, [split[0]])
    for head in rows.predict(heads, split[1]):
        # Each ranks the rows nearly right. At a half "ce" finds fewer positives (F1 0.91), since it
        # begins at the classes' shares, as a full fit does.
        order = average_precision_score(known, head.predict_proba(None)[:, 1])
        assert order > 0.99
        score = f1_score(known, head.predict(None) == "spam")
        assert score > f1_score(known, rival == "spam") - 0.1


def test_a_scorer_that_fails_on_a_head_costs_its_trial_only(classifier):
    calls = []

    def scorer(model, texts, labels):
        calls.append(model)
        model.predict_proba(texts)  # so that no two heads are scored as one
        if len(calls) == 3:
            raise ValueError("no score")
        return spam_f1(model, texts, labels)

    with pytest.warns(UserWarning, match=r"failed .*no score"):
        found = search(classifier, scoring=scorer).fit(TEXTS, LABELS)
    states = list(found.heads_["state"])
    assert states.count("FAIL") == 1
    assert states.count("COMPLETE") == 5


@pytest.mark.parametrize("kind", ["classifier", "tagger"])
def test_heads_predict_other_rows_than_they_are_scored_on(kind, request):
    def turned(model, rows, labels):
        mine, others = model.predict_proba(rows), model.predict_proba(list(rows)[::-1])[::-1]
        for one, other in zip(mine, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)
        asked.append(np.concatenate(list(mine)).std())
        return 0.5

    asked, data = [], {"classifier": (TEXTS, LABELS), "tagger": (SENTENCES, TAGS)}
    model = request.getfixturevalue(kind)
    search(model, scoring=turned, refit=False, n_finalists=1).fit(*data[kind])
    assert min(asked) > 0


def test_the_best_heads_are_fitted_in_full(classifier, tmp_path):
    how = dict(scoring=spam_f1, storage=tmp_path / "study.db", study_name="s")
    found = search(classifier, **how).fit(TEXTS, LABELS)
    heads, results = found.heads_, found.cv_results_
    assert found.strategy_ == "shared"
    assert heads["state"].tolist() == ["COMPLETE"] * 6
    assert results["state"].tolist() == ["COMPLETE"] * 2
    best = np.argsort(-heads["mean_test_score"], kind="stable")[:2]
    assert results["params"] == [heads["params"][i] for i in best]
    # Their scores are those of cross-validation.
    for i, params in enumerate(results["params"]):
        one = DiceSequenceClassifier(**classifier.get_params()).set_params(**params)
        scores = cross_validate(one, TEXTS, LABELS, cv=StratifiedKFold(2), scoring=spam_f1)
        of_folds = [results[f"split{k}_test_score"][i] for k in range(2)]
        np.testing.assert_allclose(of_folds, scores["test_score"])
    assert found.best_score_ == results["mean_test_score"].max()
    assert set(found.predict(TEXTS)) <= {"ham", "spam"}
    # The storage keeps the full fits: none is made again.
    more = search(classifier, **how).fit(TEXTS, LABELS)
    assert more.cv_results_["trial"].tolist() == [0, 1]


def test_finalists_are_the_best_heads_each_once(classifier):
    def surest(model, X, y):
        return float(model.predict_proba(X).max(axis=1).mean())

    space = {"loss": ["ce", "dice", "focal", "tversky"]}
    how = dict(scoring=surest, n_trials=12, n_finalists=3, refit=False)
    found = search(classifier, space, **how).fit(TEXTS, LABELS)
    heads = zip(found.heads_["params"], found.heads_["mean_test_score"], strict=True)
    means = {params["loss"]: mean for params, mean in heads}
    assert len(set(means.values())) == len(means) > 2
    best = sorted(means, key=means.__getitem__)[:0:-1]
    assert [params["loss"] for params in found.cv_results_["params"]] == best


def test_several_labels_have_no_heads(classifier):
    with pytest.raises(ValueError, match="0/1 rows"):
        search(classifier).fit(TEXTS, np.eye(2, dtype=int)[[0, 1] * 8])


def test_auto_is_full_for_text_estimators(classifier):
    found = search(classifier, strategy="auto", n_trials=1).fit(TEXTS, LABELS)
    assert found.strategy_ == "full"
    assert not hasattr(found, "heads_")


def test_heads_of_taggers_are_scored_by_spans(tagger):
    found = search(tagger.set_params(max_epochs=40), cv=KFold(2)).fit(SENTENCES, TAGS)
    own = search(tagger, cv=KFold(2), scoring=make_scorer(span_f1_score)).fit(SENTENCES, TAGS)
    scores = found.heads_["mean_test_score"]
    np.testing.assert_allclose(scores, own.heads_["mean_test_score"])
    assert scores.max() > 0.5  # the heads have learnt something
    assert [len(tags) for tags in found.predict(SENTENCES)] == [len(row) for row in SENTENCES]


def test_after_heads_that_are_stopped_one_full_fit_ends_the_search(classifier):
    how = dict(callbacks=[lambda study, trial: study.stop()], n_trials=32, scoring=spam_f1)
    found = search(classifier, **how).fit(TEXTS, LABELS)
    heads = found.heads_["mean_test_score"]
    assert len(heads) == 16
    assert found.cv_results_["params"] == [found.heads_["params"][heads.argmax()]]
    assert set(found.predict(TEXTS)) <= {"ham", "spam"}


def test_callbacks_are_called_for_heads_and_for_full_fits(classifier):
    seen = []
    how = dict(callbacks=[lambda study, trial: seen.append(trial.value)])
    found = search(classifier, scoring=spam_f1, **how).fit(TEXTS, LABELS)
    of_heads, scores = (t["mean_test_score"] for t in (found.heads_, found.cv_results_))
    assert sorted(seen) == sorted([*of_heads, *scores])
