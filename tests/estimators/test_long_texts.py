"""Texts longer than the input of a classifier: in windows, or cut with a warning."""

from __future__ import annotations

import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from transformers import pipeline

from skdice import (
    BiasTunedClassifier,
    DiceEntityRecognizer,
    DiceSequenceClassifier,
    TransformerFeatures,
)
from skdice.engine.vectors import unfitted_copy
from skdice.exceptions import TruncationWarning
from skdice.inspection import span_probabilities
from skdice.model_selection import LossSearchCV
from tests.data import UNEVEN_LABELS as LABELS
from tests.data import UNEVEN_TEXTS as SHORT
from tests.fits import assert_same_weights, killed_at

FILLER = "the old bus was near the river bank in rome today "
# The word that makes a text positive stands behind the first window.
LONG = [FILLER * 4 + ("money " if i % 2 else "road ") * 6 + FILLER * (i % 3) for i in range(12)]
OF_LONG = [i % 2 for i in range(12)]


@pytest.fixture
def make(calm_backbone):
    def classifier(**params):
        settings = {"backbone": calm_backbone, "max_epochs": 2, "lr": 1e-2, "max_length": 24}
        return DiceSequenceClassifier(**settings | {"loss": "ce", "random_state": 0} | params)

    return classifier


@pytest.mark.parametrize("how", ["max", "mean"])
def test_short_texts_are_as_without_windows(make, how):
    whole = make(window_pooling=how).fit(SHORT, LABELS)
    cut = make(long_texts="truncate").fit(SHORT, LABELS)
    assert_same_weights(whole, cut)
    np.testing.assert_array_equal(whole.predict_proba(SHORT), cut.predict_proba(SHORT))
    # A long text beside them changes nothing about theirs, but for the batch that they run in.
    mixed = whole.predict_proba([*SHORT, LONG[0]])
    np.testing.assert_allclose(mixed[:-1], cut.predict_proba(SHORT), atol=1e-6)


def test_what_stands_behind_the_first_window_is_learned(make):
    model = make(max_epochs=12, batch_size=4).fit(LONG, OF_LONG)
    assert model.score(LONG, OF_LONG) == 1.0
    with pytest.warns(TruncationWarning):  # all begin alike
        beginnings = model.set_params(long_texts="truncate").decision_function(LONG)
    assert np.ptp(beginnings) < 1e-5


def alone(model, text):
    """The probabilities of the windows of a text, each as a text of its own."""
    return model.predict_proba([text[w.start : w.end] for w in model.task.encode(model, [text])])


def test_a_text_has_the_probability_of_its_best_window(make):
    model = make().fit([*SHORT, *LONG], [*LABELS, *OF_LONG])
    for text, (_, found) in zip(LONG, model.predict_proba(LONG), strict=True):
        assert found == pytest.approx(alone(model, text)[:, model.positive_].max(), abs=1e-6)


def test_several_labels_have_each_its_best_window(make):
    words = ["money", "lunch", "report"]
    X = [FILLER * (i % 4) + words[i % 3] + " " + FILLER * 3 for i in range(12)]
    several = make(max_epochs=12).fit(X, [[words[i % 3], words[(i + 1) % 3]] for i in range(12)])
    for text, total in zip(X, several.predict_proba(X), strict=True):
        np.testing.assert_allclose(total, alone(several, text).max(axis=0), atol=1e-6)


def test_pairs_are_read_by_the_second_text(make):
    pairs = [("is it money", text) for text in LONG]
    model = make(max_epochs=20).fit(pairs, OF_LONG)
    assert model.score(pairs, OF_LONG) == 1.0
    with pytest.warns(TruncationWarning, match=r"12 of 12 .* put the longer text second"):
        model.predict([(text, text) for text in LONG])


def test_cut_texts_are_counted_once(make):
    X = [*SHORT, *LONG]
    n = len(LONG)

    def warned(call):
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            call()
        return [str(w.message) for w in record if w.category is TruncationWarning]

    cut = make(long_texts="truncate")
    (message,) = warned(lambda: cut.fit(X, [*LABELS, *OF_LONG], X_val=X, y_val=LABELS + OF_LONG))
    size = sum(len(cut.tokenizer_(text, add_special_tokens=False)["input_ids"]) for text in LONG)
    share = f"{1 - 22 * n / size:.0%} of their {2 * size} subwords"
    assert f"{2 * n} of {2 * len(X)} texts do not fit in max_length=24" in message
    assert share in message
    assert "long_texts='windows'" in message
    for call in (cut.predict, cut.predict_proba, cut.frozen_vectors):
        assert len(warned(lambda call=call: call(X))) == 1
    assert warned(lambda: cut.predict(SHORT)) == []
    cut.set_params(long_texts="windows")  # acts at once
    assert warned(lambda: cut.predict(X)) == []
    assert warned(lambda: make(early_stopping=True).fit(X, [*LABELS, *OF_LONG])) == []


def test_weights_and_samplers_count_texts(make):
    settings = {"dropout": 0.0, "batch_size": 64, "max_epochs": 3}
    X, y = [*SHORT, *LONG[:4]], [*LABELS, *OF_LONG[:4]]
    weighted = make(**settings).fit(X, y, sample_weight=[1, 1, 1, 1, 1, 1, 1, 2, 1])
    doubled = make(**settings).fit([*X, X[7]], [*y, y[7]])
    assert_same_weights(weighted, doubled, atol=2e-3, rtol=1e-2)
    from imblearn.over_sampling import RandomOverSampler

    sampled = make(sampler=RandomOverSampler(random_state=0)).fit(LONG[:7], OF_LONG[:7])
    assert sampled.n_iter_ == 2


def test_batches_are_the_same_in_any_memory(make):
    """More micro-batches for one update change nothing but rounding."""
    settings = {"dropout": 0.0, "max_epochs": 3}
    whole = make(batch_size=8, **settings).fit(LONG, OF_LONG)
    parts = make(batch_size=2, gradient_accumulation=4, **settings).fit(LONG, OF_LONG)
    assert_same_weights(whole, parts, atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize("how", ["max", "mean"])
def test_it_is_cloned_searched_pickled_and_saved(make, how, tmp_path):
    model = make(window_pooling=how, long_texts="windows").fit(LONG, OF_LONG)
    assert clone(model).get_params() == model.get_params()
    before = model.predict_proba(LONG)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(LONG), before)
    read = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "one"))
    np.testing.assert_array_equal(read.predict_proba(LONG), before)
    # A temperature and biases in the head give the probabilities of the tuned classifier.
    tuned = BiasTunedClassifier(model, cv="prefit", n_bootstraps=0).fit(LONG, OF_LONG)
    assert tuned.temperature_ != 1
    folded = DiceSequenceClassifier.from_pretrained(tuned.save_pretrained(tmp_path / "two"))
    np.testing.assert_allclose(folded.predict_proba(LONG), tuned.predict_proba(LONG), atol=1e-5)
    again = DiceSequenceClassifier.from_pretrained(folded.save_pretrained(tmp_path / "three"))
    np.testing.assert_array_equal(again.predict_proba(LONG), folded.predict_proba(LONG))
    partial = again.partial_fit(LONG, OF_LONG)
    assert partial.predict(LONG).shape == (12,)


def test_heads_are_refused_by_name(make):
    search = LossSearchCV(make(), {"loss": ["ce", "dice"]}, n_trials=2, strategy="shared", cv=2)
    with pytest.raises(ValueError, match="'shared' is not possible: some texts are read"):
        search.fit(LONG, OF_LONG)


def test_a_fit_goes_on_from_a_checkpoint(make, tmp_path):
    settings = {"max_epochs": 3, "checkpoint_every": 1, "batch_size": 4}
    whole = make(**settings).fit(LONG, OF_LONG)

    model = make(checkpoint_dir=str(tmp_path), **settings)
    with killed_at(4):
        model.fit(LONG, OF_LONG)
    model.fit(LONG, OF_LONG)
    assert_same_weights(whole, model)


def test_vectors_of_windows_are_averaged(tiny_backbone):
    settings = {"backbone": tiny_backbone, "max_length": 24}
    X = [*SHORT[:2], LONG[0], LONG[1]]
    for pooling, join in (("mean", np.mean), ("cls", np.mean), ("max", np.max)):
        features = TransformerFeatures(pooling=pooling, **settings).fit(X)
        cut = clone(features).set_params(long_texts="truncate").fit(X)
        with pytest.warns(TruncationWarning, match="2 of 4 texts"):
            expected = cut.transform(X)
        table = features.transform(X)
        np.testing.assert_allclose(table[:2], expected[:2], atol=1e-6)
        model = DiceSequenceClassifier(**settings, pooling=pooling)
        np.testing.assert_allclose(model.frozen_vectors(X), table, atol=1e-5)
        model = unfitted_copy(model)
        for text, vector in zip(X, table, strict=True):
            parts = [text[w.start : w.end] for w in model.task.encode(model, [text])]
            alone = features.transform(parts)
            np.testing.assert_allclose(vector, join(alone, axis=0), atol=1e-5)
        np.testing.assert_array_equal(features.transform(X[:2]), cut.transform(X[:2]))


def test_the_card_says_what_a_pipeline_does(make, tmp_path):
    folder = make(pooling="native").fit(LONG, OF_LONG).save_pretrained(tmp_path / "model")
    card = (folder / "README.md").read_text()
    assert "truncation=True" in card
    assert "windows" in card
    assert json.loads((folder / "skdice.json").read_text())["params"]["long_texts"] == "windows"
    own = make(pooling="mean").fit(SHORT, LABELS).save_pretrained(tmp_path / "own")
    card = (own / "README.md").read_text()
    assert "skdice reads them in windows" in card
    assert "pipeline" not in card.partition("## Use")[2]  # none reads this head


def test_the_card_of_a_recognizer_says_what_a_pipeline_does(build_backbone, tmp_path):
    backbone = build_backbone(str(tmp_path / "short"), max_position_embeddings=64)
    texts = ["anna bob met carla in rome", "the bus was old"] * 8
    spans = [[(0, 8, "PER"), (13, 18, "PER"), (22, 26, "LOC")], []] * 8
    settings = {"max_epochs": 8, "lr": 1e-2, "batch_size": 4, "random_state": 0}
    model = DiceEntityRecognizer(backbone=backbone, **settings).fit(texts, spans)
    folder = model.save_pretrained(tmp_path / "model")
    card = (folder / "README.md").read_text()
    assert "texts of more than 64 subwords in windows" in card
    find = pipeline("token-classification", str(folder), aggregation_strategy="first")
    late = texts[1] + " " + "the bus was old " * 20 + texts[0]
    assert "set that to 64 if it is larger, or such texts are an error" in card
    with pytest.raises(RuntimeError):
        find(late)
    find.tokenizer.model_max_length = 64
    behind = len(late) - len(texts[0])
    assert all(entity["start"] < behind for entity in find(late))
    parts = [entity["start"] for entity in find(late, stride=32)]
    assert {e.start for e in model.predict([late])[0]} >= {behind} <= {*parts}
    # The score of "anna bob" there is a mean, and here the probability of this one span.
    (pair, *_), table = find(texts[0]), model.predict_proba(texts[:1])[0]
    assert (pair["start"], pair["end"]) == (0, 8)
    assert pair["score"] == pytest.approx(table[:2].max(axis=1).mean(), abs=1e-5)
    span = model.predict(texts[:1])[0][0]
    assert span.score == pytest.approx(
        span_probabilities([table], [[("PER", 0, 2)]], model.outputs_)[0][0], abs=1e-5
    )
