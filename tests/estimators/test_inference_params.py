"""Parameters of a fitted estimator: what `set_params` changes at once, and what waits for `fit`."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from skdice import (
    DiceClassifier,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TransformerFeatures,
)
from skdice.engine.net import FineTuningNet
from skdice.estimators._net_estimator import INFERENCE_PARAMS
from tests.data import UNEVEN, UNEVEN_QUESTIONS, UNEVEN_TAGS, UNEVEN_TEXTS
from tests.fits import UNEVEN_TASKS, numbers_of

ROWS = np.random.default_rng(0).normal(size=(30, 3))
CLASSES = (ROWS[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def fitted(tiny_backbone):
    """A fitted estimator of each kind, to be copied."""
    models = {
        name: cls(backbone=tiny_backbone, max_epochs=1, random_state=0, lr=1e-2).fit(X, y)
        for name, (cls, X, y) in UNEVEN_TASKS.items()
    }
    models["numbers"] = DiceClassifier(max_epochs=2, random_state=0).fit(ROWS, CLASSES)
    return lambda name: pickle.loads(pickle.dumps(models[name]))


def data_of(name):
    return ROWS if name == "numbers" else UNEVEN_TASKS[name][1]


@pytest.fixture
def passes(monkeypatch):
    """Precisions and devices in which nets ran."""
    seen, logits = [], FineTuningNet.outputs

    def noting(self, inputs):
        found = logits(self, inputs)
        seen.append((self.precision, self.device, len(next(iter(inputs[0].values())))))
        return found

    monkeypatch.setattr(FineTuningNet, "outputs", noting)
    return seen


@pytest.mark.parametrize("name", UNEVEN_TASKS)
def test_precision_acts_at_once(name, fitted):
    model = fitted(name)
    full = numbers_of(model, data_of(name))
    half = numbers_of(model.set_params(precision="bf16"), data_of(name))
    assert not np.array_equal(full, half)
    np.testing.assert_allclose(half, full, atol=0.05)
    back = numbers_of(model.set_params(precision="fp32"), data_of(name))
    np.testing.assert_array_equal(back, full)
    # As if it had been fitted with it.
    again = fitted(name).set_params(precision="bf16")
    for copied in (pickle.loads(pickle.dumps(again)), copy.deepcopy(again)):
        np.testing.assert_array_equal(numbers_of(copied, data_of(name)), half)


@pytest.mark.parametrize("name", [*UNEVEN_TASKS, "numbers"])
def test_device_acts_at_once(name, fitted, passes, monkeypatch):
    model = fitted(name).set_params(device="cpu")
    numbers_of(model, data_of(name))
    assert {device for _, device, _ in passes} == {"cpu"}
    moved = []
    monkeypatch.setattr("skdice.estimators._net_estimator.check_device", lambda device: "cuda")
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, device: moved.append(device) or self)
    monkeypatch.setattr(FineTuningNet, "initialize_optimizer", lambda self: self)
    model.set_params(device="cuda:0")
    model._check_fitted()
    assert model.net_.device == "cuda:0"
    assert set(moved) == {"cuda:0"}
    model._check_fitted()
    assert len(moved) == 2  # module and criterion, once


def test_a_model_on_meta_really_moves(fitted):
    """Weights, loss and optimiser go to a device that torch has everywhere."""
    model = fitted("tagger")
    model.net_.apply_runtime_params(32, "meta", "fp32")
    assert all(p.is_meta for p in model.net_.module_.parameters())
    groups = model.net_.optimizer_.param_groups
    assert all(p.is_meta for group in groups for p in group["params"])


def test_batch_size_acts_at_once(fitted, passes):
    many = UNEVEN_TEXTS * 60
    model = fitted("texts")
    expected = model.predict_proba(many)
    largest = max(size for *_, size in passes)
    assert largest <= 64
    passes.clear()
    model.set_params(batch_size=300)
    np.testing.assert_allclose(model.predict_proba(many), expected, atol=1e-6)
    assert max(size for *_, size in passes) > 64 >= largest


@pytest.mark.parametrize("name", [*UNEVEN_TASKS, "numbers"])
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"device": "cuda"}, "there is none"),
        ({"device": "quantum"}, "not a torch device"),
        ({"batch_size": 0}, "batch_size"),
        ({"precision": "fp16"}, "needs a GPU"),
        ({"precision": "fp8"}, "precision"),
        ({"max_length": 65}, "max_length=65 is more than the 64 subwords"),
        ({"max_length": "long"}, "max_length"),
        ({"stride": -1}, "stride"),
        ({"constrained": "maybe"}, "constrained"),
        ({"max_answer_length": 0}, "max_answer_length"),
        ({"max_question_length": 0}, "max_question_length"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_and_may_be_set_back(name, params, message, fitted):
    model = fitted(name)
    before = {key: getattr(model, key, None) for key in params}
    if not set(params) <= set(model.get_params()):
        return
    if (name, params) == ("numbers", {"batch_size": 0}):
        return  # numbers are predicted in batches of their own
    expected = numbers_of(model, data_of(name))
    model.set_params(**params)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            model.predict(data_of(name))
    np.testing.assert_array_equal(numbers_of(model.set_params(**before), data_of(name)), expected)


def test_decoding_acts_at_once(fitted):
    tagger = fitted("tagger")
    tables = tagger.predict_proba(UNEVEN)
    whole = tagger.set_params(max_length=5, stride=1).predict_proba(UNEVEN)
    assert not np.allclose(whole[0], tables[0])  # in several windows
    reader, longest = fitted("reader"), []
    for most in (reader.max_answer_length, 1):
        rows = reader.set_params(max_answer_length=most).predict_spans(UNEVEN_QUESTIONS, n_best=9)
        longest.append(max(len(spot["text"].split()) for row in rows for spot in row))
    assert longest[0] > longest[1] == 1


@pytest.mark.parametrize("name", [*UNEVEN_TASKS, "numbers"])
def test_all_other_parameters_wait_for_the_next_fit(name, fitted):
    model = fitted(name)
    expected = numbers_of(model, data_of(name))
    others = {
        "loss": "ce", "backbone": "no such backbone", "max_epochs": 9, "lr": 1.0, "dropout": 0.9,
        "frozen": "encoder", "weight_decay": 1.0, "schedule": "cosine", "pooling": "max",
        "scheme": "plain", "threshold": 0.01, "null_threshold": 5.0, "queries": {"PER": "who"},
        "max_span_length": 1, "pos_label": 0, "hidden_layer_sizes": (7,), "random_state": 7,
        "early_stopping": True, "gradient_checkpointing": True, "warm_start": True,
        "gradient_accumulation": 2,
    }  # fmt: skip
    known = model.get_params(deep=False)
    model.set_params(**{key: value for key, value in others.items() if key in known})
    np.testing.assert_array_equal(numbers_of(model, data_of(name)), expected)
    assert not set(others) & set(INFERENCE_PARAMS)


def test_partial_fit_obeys_too(tiny_backbone, passes):
    model = DiceTokenClassifier(backbone=tiny_backbone, random_state=0, precision="fp32")
    model.partial_fit(UNEVEN, UNEVEN_TAGS)
    passes.clear()
    model.set_params(precision="bf16", batch_size=1).partial_fit(UNEVEN, UNEVEN_TAGS)
    assert {precision for precision, *_ in passes} == {"bf16"}
    assert len(passes) == len(UNEVEN)  # one for each sentence
    assert model.net_.optimizer_.state  # moments of the series are kept


def test_net_params_come_first(tiny_backbone):
    model = DiceTokenClassifier(
        backbone=tiny_backbone, random_state=0, max_epochs=1, net_params={"precision": "fp32"}
    ).fit(UNEVEN, UNEVEN_TAGS)
    before = numbers_of(model, UNEVEN)
    np.testing.assert_array_equal(numbers_of(model.set_params(precision="bf16"), UNEVEN), before)


def test_features_obey_or_refuse(tiny_backbone):
    features = TransformerFeatures(backbone=tiny_backbone).fit(UNEVEN_TEXTS)
    full = features.transform(UNEVEN_TEXTS)
    half = features.set_params(precision="bf16").transform(UNEVEN_TEXTS)
    assert not np.array_equal(full, half)
    np.testing.assert_allclose(half, full, atol=0.05)
    for params in ({"precision": "fp16"}, {"max_length": 65}, {"batch_size": 0}):
        before = {key: getattr(features, key) for key in params}
        with pytest.raises(ValueError, match=next(iter(params))):
            features.set_params(**params).transform(UNEVEN_TEXTS)
        features.set_params(**before)
    np.testing.assert_array_equal(features.transform(UNEVEN_TEXTS), half)


def test_a_prediction_asks_for_what_it_reads_alone(tiny_backbone):
    """A rate is a fit's business, whether or not what a prediction reads was set as well."""
    texts, labels = ["win a prize", "the bus"] * 4, [1, 0] * 4
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    expected = model.fit(texts, labels).predict_proba(texts)
    model.set_params(lr=-1)
    np.testing.assert_allclose(model.predict_proba(texts), expected)
    np.testing.assert_allclose(model.set_params(batch_size=3).predict_proba(texts), expected, 1e-5)
    with pytest.raises(ValueError, match="'batch_size'"):
        model.set_params(batch_size=0).predict(texts)
    with pytest.raises(ValueError, match="'lr'"):
        model.set_params(batch_size=3).fit(texts, labels)


def test_further_training_refuses_another_backbone(tiny_backbones, tmp_path):
    texts, labels = ["win a prize", "the bus"] * 4, [1, 0] * 4
    model = DiceSequenceClassifier(
        backbone=tiny_backbones["bert"], max_epochs=1, random_state=0, warm_start=True
    ).fit(texts, labels)
    saved = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "m"))
    for fitted in (model, saved):
        before = fitted.predict_proba(texts)
        fitted.set_params(backbone=tiny_backbones["roberta"])
        for train in (fitted.fit, fitted.partial_fit):
            with pytest.raises(ValueError, match=r"backbone=.* which was .*bert.*warm_start=False"):
                train(texts, labels)
        np.testing.assert_array_equal(fitted.predict_proba(texts), before)
        fitted.set_params(backbone=tiny_backbones["bert"], adapter="lora")
        with pytest.raises(ValueError, match=r"adapter='lora' is not what .* was None"):
            fitted.fit(texts, labels)
        fitted.set_params(adapter=None, warm_start=True).fit(texts, labels)


def test_one_more_epoch_refuses_another_frozen(tiny_backbone):
    texts, labels = ["win a prize", "the bus"] * 4, [1, 0] * 4
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model.fit(texts, labels).set_params(frozen="encoder")
    with pytest.raises(ValueError, match=r"frozen='encoder' is not what .* which was None"):
        model.partial_fit(texts, labels)
    model.set_params(warm_start=True).fit(texts, labels)  # which freezes anew
    model.partial_fit(texts, labels)
    with pytest.raises(ValueError, match=r"frozen=None is not what .* which was 'encoder'"):
        model.set_params(frozen=None).partial_fit(texts, labels)


def test_further_training_compares_all_of_an_adapter(tiny_backbone):
    peft = pytest.importorskip("peft")
    texts, labels = ["win a prize", "the bus"] * 4, [1, 0] * 4
    model = DiceSequenceClassifier(
        backbone=tiny_backbone, adapter=peft.LoraConfig(r=2), max_epochs=1, warm_start=True
    ).fit(texts, labels)
    model.set_params(adapter=peft.LoraConfig(r=2)).fit(texts, labels)
    with pytest.raises(ValueError, match=r"adapter=LoraConfig.* is not what"):
        model.set_params(adapter=peft.LoraConfig(r=4)).fit(texts, labels)
    model.set_params(adapter=peft.LoraConfig(r=2)).merge_adapter()
    with pytest.raises(ValueError, match=r"adapter=LoraConfig.* is not what .* which was None"):
        model.fit(texts, labels)
    model.set_params(adapter=None).fit(texts, labels)
