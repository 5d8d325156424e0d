"""DiceEntityRecognizer: what every user of it counts on."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import torch
import transformers
from imblearn.pipeline import make_pipeline as make_imblearn_pipeline
from sklearn.base import clone

from skdice import BiasTunedTagger, DiceEntityRecognizer, DiceTokenClassifier
from skdice.exceptions import ServingWarning
from skdice.inspection import (
    SpanConfusionDisplay,
    html_report,
    show_entities,
)
from skdice.model_selection import LossSearchCV, compare_losses, out_of_fold
from skdice.resampling import TagOverSampler
from skdice.text import Entity, pipeline_entities

TEXTS = [
    "Anna went to Paris.",
    "the bus was old",
    "Bob Dan works at Acme, in Oslo",
    "rain today!",
    "Carla met Bob (near the river)",
    "",
    "the market in Oslo is new.",
    "Globex saw the report",
]
NAMES = {"Anna": "PER", "Bob Dan": "PER", "Carla": "PER", "Bob": "PER", "Paris": "LOC"}
NAMES |= {"Oslo": "LOC", "Acme": "ORG", "Globex": "ORG"}


def marked(text):
    """Each name of NAMES in a text, the longest first."""
    found = []
    for name in sorted(NAMES, key=len, reverse=True):
        at = text.find(name)
        if at >= 0 and all(at + len(name) <= a or at >= b for a, b, _ in found):
            found.append((at, at + len(name), NAMES[name]))
    return sorted(found)


X = TEXTS * 3
y = [marked(text) for text in X]


def recognizer(backbone, **params):
    settings = dict(max_epochs=12, lr=1e-2, batch_size=4, dropout=0.0, random_state=0, loss="ce")
    return DiceEntityRecognizer(backbone=backbone, **{**settings, **params})


@pytest.fixture(scope="module")
def fitted(tiny_backbone):
    return recognizer(tiny_backbone).fit(X, y)


def test_texts_in_entities_out(fitted):
    predicted = fitted.predict(X)
    assert isinstance(predicted, np.ndarray)
    assert predicted.shape == (len(X),)
    assert predicted.dtype == object
    assert [[entity[:3] for entity in row] for row in predicted] == y
    for text, row in zip(X, predicted, strict=True):
        for entity in row:
            assert isinstance(entity, Entity)
            assert text[entity.start : entity.end] == entity.text
            assert 0 < entity.score <= 1
    assert fitted.score(X, y) == 1
    assert fitted.classes_.tolist() == ["LOC", "ORG", "PER"]
    assert fitted.tags_.tolist() == ["B-LOC", "B-ORG", "B-PER", "I-PER", "O"]


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_a_served_pipeline_finds_the_same(kind, raw_text_backbones, tmp_path):
    model = recognizer(raw_text_backbones[kind], max_epochs=3).fit(X, y)
    with torch.no_grad():  # the model finds something everywhere, right or wrong
        model.module_.output_layer.bias.zero_()[model.tags_.tolist().index("O")] -= 2
    model.save_pretrained(tmp_path / "m")
    pipe = transformers.pipeline(
        "token-classification", str(tmp_path / "m"), aggregation_strategy="first", device="cpu"
    )
    texts = [
        *TEXTS, "Don't @bob: U.S. 3.5% (Acme-Globex)\tin\nOslo", "a_b,c", "東京にいる Bob🎉 x",
        "  Zoë, café… ", "[SEP] <s> Anna", "\u200b", "!" * 40,
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "Tokenizer does not support real words"
        served = pipeline_entities(pipe, texts)
        plain = pipe([t for t in texts if t]) if kind == "bert" else None
    ours = model.predict(texts)
    assert [[e[:3] for e in row] for row in served] == [[e[:3] for e in row] for row in ours]
    assert sum(map(len, ours)) > 12
    if plain is not None:
        found = [[(e["start"], e["end"], e["entity_group"]) for e in row] for row in plain]
        assert found == [[e[:3] for e in row] for t, row in zip(texts, ours, strict=True) if t]


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta"])
def test_no_character_is_in_two_entities(kind, raw_text_backbones):
    model = recognizer(raw_text_backbones[kind], max_epochs=1).fit(X, y)
    with torch.no_grad():  # something is found everywhere, most often of one word
        model.module_.output_layer.bias.zero_()[model.tags_.tolist().index("O")] -= 2
    # Of a rare character a byte-level tokenizer makes several subwords, with the same offsets.
    texts = [
        "\ud55c\uad6d Bob\u3000\U0001f44d\U0001f3fd \u0301\xa0\u1e9e",
        "x\u200b \ufdfd\t\u0e17\u0e22",
    ]
    for text, row in zip(texts, model.predict(texts), strict=True):
        assert row
        assert [text[e.start : e.end] for e in row] == [e.text.strip() for e in row]
        ends = [0, *(e.end for e in row)]
        assert all(e.start >= end for e, end in zip(row, ends, strict=False))


def test_an_entity_at_a_border_of_windows_is_found_once(fitted):
    texts = ["rain " * k + "Bob Dan" + " today" * 40 for k in range(20)]
    model = clone(fitted).set_params(max_length=16).fit(texts, [*map(marked, texts)])
    found = [[entity.text for entity in row] for row in model.predict(texts)]
    assert found == [["Bob Dan"]] * 20


# ---- what the tagger can


def test_tuned_spans_are_the_entities(fitted):
    tuned = BiasTunedTagger(fitted, cv="prefit").fit(X, y)
    predicted = tuned.predict(X)
    assert sum(map(len, predicted))
    for estimator in (tuned, fitted):
        spans, entities = estimator.predict_spans(X), estimator.predict(X)
        for found, row in zip(spans, entities, strict=True):
            assert found == [(e.label, e.start, e.end, e.score) for e in row]


def test_a_tuned_decision(tiny_backbone, tmp_path):
    model = recognizer(tiny_backbone, max_epochs=2)
    tuned = BiasTunedTagger(model, cv=0.3, random_state=0).fit(X, y)
    assert tuned.bias_.shape == tuned.estimator_.tags_.shape
    assert tuned.score(X, y) == tuned.evaluate(X, y)["f1"]
    predicted = tuned.predict(X)
    assert all(isinstance(entity, Entity) for row in predicted for entity in row)
    tuned.save_pretrained(tmp_path / "m")
    saved = DiceEntityRecognizer.from_pretrained(tmp_path / "m").predict(X)
    assert [[e[:3] for e in r] for r in saved] == [[e[:3] for e in r] for r in predicted]
    scores = [[e.score for r in rows for e in r] for rows in (saved, predicted)]
    np.testing.assert_allclose(*scores, atol=1e-5)
    held = BiasTunedTagger(model).fit(X, y, X_val=TEXTS, y_val=[marked(t) for t in TEXTS])
    assert held.evaluate(X, y)["f1"] > 0


def test_comparing_losses_samplers_and_tuned_decisions(tiny_backbone):
    rows = ["ce", "dice + TagOverSampler", "ce + tuned"]
    test = {"X_test": TEXTS, "y_test": [marked(t) for t in TEXTS]}
    model = recognizer(tiny_backbone, max_epochs=1)
    found = compare_losses(model, X, y, losses=rows, seeds=1, **test)
    assert [len(row.runs) for row in found.rows] == [1, 1, 1]
    assert found.measure == "spans, micro"


def test_a_search_over_losses(tiny_backbone):
    search = LossSearchCV(
        recognizer(tiny_backbone, max_epochs=1), {"loss": ["ce", "dice"]}, n_trials=2, cv=2,
        random_state=0,
    )  # fmt: skip
    assert search.fit(X, y).predict(TEXTS).shape == (len(TEXTS),)
    with pytest.raises(ValueError, match="finds its words in texts"):
        clone(search).set_params(strategy="shared").fit(X, y)


def test_samplers_draw_texts(tiny_backbone):
    sampler = TagOverSampler(random_state=0)
    model = recognizer(tiny_backbone, max_epochs=1, sampler=sampler).fit(X, y)
    drawn, entities = sampler.fit_resample(X, y)
    assert [marked(text) for text in drawn] == entities
    counts = [sum(e[2] == kind for row in entities for e in row) for kind in model.classes_]
    assert min(counts) >= max(sum(e[2] == kind for r in y for e in r) for kind in model.classes_)
    piped = make_imblearn_pipeline(sampler, recognizer(tiny_backbone, max_epochs=1)).fit(X, y)
    assert piped.predict(TEXTS).shape == (len(TEXTS),)


def test_out_of_fold(tiny_backbone):
    found = out_of_fold(recognizer(tiny_backbone, max_epochs=1), X, y, cv=2)
    assert found.predictions.shape == (len(X),)
    assert found.probabilities[0].shape == (5, 5)  # words and tags


def test_further_training(tiny_backbone, fitted):
    model = recognizer(tiny_backbone).partial_fit(X[:4], y[:4], classes=["LOC", "ORG", "PER"])
    assert model.tags_.tolist() == ["B-LOC", "B-ORG", "B-PER", "I-LOC", "I-ORG", "I-PER", "O"]
    for _ in range(8):
        model.partial_fit(X, y)
    assert model.score(X, y) > 0.5
    warm = pickle.loads(pickle.dumps(fitted)).set_params(warm_start=True, max_epochs=1, lr=1e-6)
    assert warm.fit(X, y).score(X, y) == 1


@pytest.mark.parametrize("classes", ["LOC", 3, ["LOC", None], [7], [""], np.array(3)])
def test_types_of_further_training_are_named(tiny_backbone, classes):
    with pytest.raises((TypeError, ValueError), match="classes"):
        recognizer(tiny_backbone).partial_fit(X[:4], y[:4], classes=classes)


def test_an_outside_label_is_no_type(tiny_backbone):
    model = recognizer(tiny_backbone).partial_fit(X[:4], y[:4], classes=np.array(["ORG", "O"]))
    assert "ORG" in model.classes_.tolist()
    assert "B-O" not in model.tags_.tolist()


@pytest.mark.parametrize("texts", [None, "Ann", ["Ann", 3], ["\ud800"], [["Ann", "sings"]], []])
def test_a_pipeline_is_given_texts(fitted, tmp_path, texts):
    fitted.save_pretrained(tmp_path / "m")
    load = partial(transformers.pipeline, "token-classification", str(tmp_path / "m"), device="cpu")
    with pytest.raises((TypeError, ValueError), match="texts"):
        pipeline_entities(load(aggregation_strategy="first"), texts)
    with pytest.raises(ValueError, match="aggregation_strategy='first'"):
        pipeline_entities(load(), TEXTS)
    with pytest.raises(TypeError, match="pipeline=None"):
        pipeline_entities(None, TEXTS)


def test_validation_checkpoints_and_weights(tiny_backbone, tmp_path):
    params = dict(max_epochs=3, checkpoint_dir=tmp_path / "c", checkpoint_every=1)
    model = recognizer(tiny_backbone, early_stopping=True, **params)
    model.fit(X, y, X_val=TEXTS, y_val=[marked(t) for t in TEXTS])
    assert model.history_[-1]["valid_score"] == model.score(TEXTS, [marked(t) for t in TEXTS])
    again = clone(model).fit(X, y, X_val=TEXTS, y_val=[marked(t) for t in TEXTS])
    assert again.predict(X).tolist() == model.predict(X).tolist()
    held = recognizer(tiny_backbone, early_stopping=True, max_epochs=1).fit(
        X + [f"{text} now" for text in X], y + y, sample_weight=np.ones(2 * len(X))
    )
    assert "valid_score" in held.history_[0]


def test_another_backbone_has_other_words(raw_text_backbones, tiny_backbone):
    model = recognizer(tiny_backbone, max_epochs=1).fit(X, y)
    model.set_params(backbone=raw_text_backbones["roberta"]).fit(X, y)
    assert "Roberta" in type(model.tokenizer_).__name__
    assert model.words(["the bus."])[0][-1] == (7, 8)


def test_the_model_card(fitted, raw_text_backbones, tmp_path):
    card = (fitted.save_pretrained(tmp_path / "a") / "README.md").read_text()
    assert 'aggregation_strategy="first"' in card
    assert "`B-PER` | 12 |" in card
    other = recognizer(raw_text_backbones["xlm-roberta"], max_epochs=1).fit(X, y)
    card = (other.save_pretrained(tmp_path / "b") / "README.md").read_text()
    assert "pipeline_entities(model" in card


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["O", "B-PER", "I-PER"], ["B-PER", "I-PER", "O"]),
        (["PER", "O", "LOC"], ["I-LOC", "I-PER", "O"]),
        (["O", "B-PER", "E-PER", "I-PER", "S-PER"], None),
    ],
)
def test_models_of_others(labels, names, tiny_backbone, tmp_path):
    model = transformers.AutoModelForTokenClassification.from_pretrained(
        tiny_backbone, num_labels=len(labels), id2label=dict(enumerate(labels))
    )
    model.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(tiny_backbone).save_pretrained(tmp_path)
    if names is None:
        with pytest.raises(ValueError, match=r"scheme 'bioes'.*DiceTokenClassifier"):
            DiceEntityRecognizer.from_transformers(tmp_path)
        return
    wrapped = DiceEntityRecognizer.from_transformers(tmp_path)
    assert wrapped.tags_.tolist() == names
    pipe = transformers.pipeline("token-classification", str(tmp_path), device="cpu")
    served = pipe(TEXTS[0], aggregation_strategy="first", ignore_labels=["O"])
    found = [(e["start"], e["end"], e["entity_group"]) for e in served]
    assert [e[:3] for e in wrapped.predict(TEXTS[:1])[0]] == found


def test_reports_and_pictures(fitted):
    texts = [*TEXTS, "one <b>\nand Anna"]
    entities = [*map(marked, TEXTS), [(0, 3, "PER"), (12, 16, "PER"), (4, 5, None)]]
    page = html_report(fitted, texts, entities)
    assert "&lt;b&gt;<br>and" in page
    assert "<td>PER</td>" in page
    display = SpanConfusionDisplay.from_estimator(fitted, TEXTS, [marked(t) for t in TEXTS])
    assert display.counts.diagonal()[:3].tolist() == [3, 2, 4]
    shown = show_entities(TEXTS[:1], fitted.predict(TEXTS[:1]))
    assert str(shown) == "[Anna PER] went to [Paris LOC]."
    assert "went to <mark" in shown._repr_html_()
    assert str(show_entities("a b", [(0, 3, "X"), (2, 3, "Y")])) == "[a b X]"


def test_vectors_of_words(fitted, tiny_backbone):
    vectors = fitted.frozen_vectors(["the bus, now", "", "rain"])
    tagger = DiceTokenClassifier(backbone=tiny_backbone)
    of_tokens = tagger.frozen_vectors([["the", "bus", ",", "now"], [], ["rain"]])
    np.testing.assert_allclose(vectors, of_tokens, atol=1e-6)


def test_regions_that_nobody_annotated(tiny_backbone):
    known = [[*row, (0, len(text), None)] for text, row in zip(X, y, strict=True)]
    some = [row if i < len(TEXTS) else known[i] for i, row in enumerate(y)]
    model = recognizer(tiny_backbone).fit(X, some)
    assert model.score(X, y) == 1
    counts = dict(zip(model.tags_.tolist(), model.class_counts_.tolist(), strict=False))
    assert counts["B-PER"] == 12
    assert counts["O"] == sum(map(len, model.words(TEXTS))) - sum(
        len(model.words([text[a:b]])[0]) for text in TEXTS for a, b, _ in marked(text)
    )


def test_texts_in_which_only_some_entities_were_marked(tiny_backbone):
    outside = [
        [*row, (max(text.find(" "), 0), len(text), "O")] for text, row in zip(X, y, strict=True)
    ]
    unmarked = [[*row, (0, len(text), None)] for text, row in zip(X, outside, strict=True)]
    model = recognizer(tiny_backbone).fit(X, unmarked)
    words = [word for text in X for word in model.words([text])[0]]
    # Inside the marked regions all is known, as if the first words alone had not been annotated.
    first = [
        [*row, (0, max(text.find(" "), 0), None)] if text else row
        for text, row in zip(X, y, strict=True)
    ]
    other = recognizer(tiny_backbone).fit(X, first)
    assert model.class_counts_.tolist() == other.class_counts_.tolist()
    assert 0 < model.n_samples_seen_ < len(words)
    for a, b in zip(model.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_scores_of_texts_in_which_only_some_entities_were_marked(fitted):
    model, region = fitted, [[(0, len(text), None)] for text in X]
    some = [row[:1] + more for row, more in zip(y, region, strict=True)]
    assert model.evaluate(X, some) == {"precision": 1, "recall": 1, "f1": 1}  # others are unknown
    assert str(show_entities("Anna went", [(0, 4, "PER"), (5, 9, "O")])) == "[Anna PER] went"
    predicted = model.predict(X[:1])[0]
    wrong = [(predicted[0].start, predicted[0].end, "O")]
    assert model.evaluate(X[:1], [[*wrong, predicted[1], *region[0]]])["precision"] == 0.5


def test_entities_alone_teach_nothing(tiny_backbone):
    unmarked = [[*row, (0, len(text), None)] for text, row in zip(X, y, strict=True)]
    with pytest.raises(ValueError, match=r"mark some regions without entities.*'O'"):
        recognizer(tiny_backbone).fit(X, unmarked)


GLUED = [
    "@anna_b met Anna today",
    "see #Paris and #Rome (Rome)!",
    "ann@Paris.org wrote to @Bob",
    "the bus was old",
]


def test_glued_words_do_not_count_in_training(tiny_backbone):
    y = [[(12, 16, "PER")], [(4, 10, "LOC"), (22, 26, "LOC")], [], []]
    unknown = [[(1, 5), (6, 7)], [(16, 20)], [(4, 9), (10, 13), (24, 27)], []]  # read by eye
    by_hand = [
        [*row, *((a, b, None) for a, b in more)] for row, more in zip(y, unknown, strict=True)
    ]
    skipping = recognizer(tiny_backbone, glued="skip", max_epochs=2).fit(GLUED, y)
    other = recognizer(tiny_backbone, max_epochs=2).fit(GLUED, by_hand)
    assert skipping.class_counts_.tolist() == other.class_counts_.tolist()
    for a, b in zip(skipping.predict_proba(GLUED), other.predict_proba(GLUED), strict=True):
        np.testing.assert_array_equal(a, b)
    assert clone(skipping).glued == pickle.loads(pickle.dumps(skipping)).glued == "skip"
    with pytest.raises(ValueError, match="glued"):
        recognizer(tiny_backbone, glued="drop").fit(GLUED, y)


def test_no_entity_begins_with_a_glued_word(fitted, tmp_path):
    model = pickle.loads(pickle.dumps(fitted))
    texts = ["@Anna met Anna", "Anna met bob@Anna", "#Oslo (Oslo) Anna-Bob"]
    allowed = [[10], [0, 9], [7, 13]]
    before = model.predict(texts)
    after = model.set_params(glued="skip").predict(texts)
    for all_of_them, kept, starts in zip(before, after, allowed, strict=True):
        assert kept == [entity for entity in all_of_them if entity.start in starts]
    assert sum(map(len, before)) > sum(map(len, after)) > 0
    assert [span[1:3] for span in model.predict_spans(texts)[0]] == [e[:2] for e in after[0]]
    with pytest.warns(ServingWarning, match=r"glued='skip'.*pipeline_entities"):
        model.save_pretrained(tmp_path)
    card = (tmp_path / "README.md").read_text()
    assert 'aggregation_strategy="first"' in card
    assert 'pipeline_entities(model, ["Ann lives in Rome."], glued="skip")' in card
    again = DiceEntityRecognizer.from_pretrained(tmp_path)
    assert again.glued == "skip"
    served = transformers.pipeline(
        "token-classification", str(tmp_path), aggregation_strategy="first", device="cpu"
    )
    expected = [[e[:3] for e in row] for row in after]
    found = pipeline_entities(served, texts, glued="skip")
    assert [[e[:3] for e in row] for row in found] == expected
    with pytest.raises(ValueError, match="glued"):
        pipeline_entities(served, texts, glued="no")
    assert [[e[:3] for e in row] for row in again.predict(texts)] == expected
