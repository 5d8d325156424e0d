"""Adapters: what is trained, what is saved, and what is merged."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from transformers import AutoModelForTokenClassification

from skdice import (
    BiasTunedTagger,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.backbones import load_encoder
from skdice.engine.fit_plan import encode
from tests.data import LABELS, TEXTS
from tests.estimators import readers
from tests.estimators.test_storage import KINDS, outputs, read_whole

peft = pytest.importorskip("peft")

SETTINGS = dict(max_epochs=2, lr=1e-2, batch_size=4, random_state=0, adapter="lora")


@pytest.fixture(params=["tagger", "native", "mean", "reader", "spans"])
def fitted(request, tiny_backbone, sentences):
    settings = {**SETTINGS, "backbone": tiny_backbone}
    if request.param == "tagger":
        return DiceTokenClassifier(**settings).fit(*sentences), sentences[0]
    if request.param == "reader":
        return DiceQuestionAnswerer(**settings).fit(readers.X, readers.Y), readers.X
    if request.param == "spans":
        model = DiceMRCTagger(**settings)
        return model.fit(readers.SENTENCES, readers.NESTED), readers.SENTENCES
    model = DiceSequenceClassifier(pooling=request.param, **settings)
    return model.fit(TEXTS, LABELS), TEXTS


def raw(model, X):
    """The logits of a few inputs."""
    return np.concatenate([row.ravel() for row in model.net_.logits(encode(model, X))])


def test_only_adapters_and_the_head_are_trained(fitted, tiny_backbone):
    model, _ = fitted
    module = model.net_.module_
    trained = {name for name, p in module.named_parameters() if p.requires_grad}
    assert any("lora_A" in name for name in trained)
    assert all("lora_" in name for name in trained if name.startswith("encoder."))
    assert module.output_layer.weight.requires_grad if hasattr(module, "output_layer") else True
    before = load_encoder(tiny_backbone).state_dict()
    after = module.encoder.state_dict()
    for name, values in before.items():
        inner = name.replace(".weight", ".base_layer.weight").replace(".bias", ".base_layer.bias")
        found = after.get(name, after.get(inner))
        if found is None and "pooler" in name:
            continue
        torch.testing.assert_close(found, values, rtol=0, atol=0)
    moved = [p for n, p in module.named_parameters() if "lora_B" in n and p.abs().max() > 0]
    assert moved


def test_folders_pickles_and_merging_keep_the_predictions(fitted, tmp_path):
    model, X = fitted
    expected = raw(model, X)
    folder = model.save_pretrained(tmp_path / "m")
    assert list(folder.rglob("adapter_config.json"))
    assert not list(folder.rglob("model.safetensors"))
    for other in (type(model).from_pretrained(folder), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(raw(other, X), expected, atol=1e-5)
        assert other.get_params()["adapter"] == "lora"
    read = type(model).from_pretrained(folder)
    again = type(model).from_pretrained(read.save_pretrained(tmp_path / "again"))
    np.testing.assert_allclose(raw(again, X), expected, atol=1e-5)
    assert model.merge_adapter() is model
    np.testing.assert_allclose(raw(model, X), expected, atol=1e-4)
    with pytest.raises(ValueError, match="no adapter to merge"):
        model.merge_adapter()
    model.save_pretrained(folder)  # over the adapter
    assert list(folder.rglob("model.safetensors"))
    assert not list(folder.rglob("adapter_*"))
    merged = type(model).from_pretrained(folder)
    np.testing.assert_allclose(raw(merged, X), expected, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_and_peft_itself(tiny_backbones, kind, sentences, tmp_path):
    X, _ = sentences
    model = DiceTokenClassifier(backbone=tiny_backbones[kind], **SETTINGS).fit(*sentences)
    folder = model.save_pretrained(tmp_path / "m")
    plain = AutoModelForTokenClassification.from_pretrained(
        tiny_backbones[kind], num_labels=len(model.classes_)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, about peft
        adapted = peft.PeftModel.from_pretrained(plain, folder).eval()
    for window, rows in zip(encode(model, X).windows, model.predict_proba(X), strict=True):
        logits = outputs(adapted, window).logits[0, window.positions]
        np.testing.assert_allclose(torch.softmax(logits, -1), rows[window.words], atol=1e-5)
    merged = model.merge_adapter().save_pretrained(tmp_path / "merged")
    read_whole(AutoModelForTokenClassification, merged)


def test_a_configuration_of_peft(tiny_backbone, sentences):
    config = peft.LoraConfig(r=2, target_modules=["query"])
    model = DiceTokenClassifier(backbone=tiny_backbone, **{**SETTINGS, "adapter": config})
    names = [n for n, _ in clone(model).fit(*sentences).net_.module_.named_parameters()]
    assert {n.split(".")[-4] for n in names if "lora_A" in n} == {"query"}
    assert config.modules_to_save is None  # the user's own stays as it was


def test_training_goes_on(tiny_backbone, sentences):
    X, y = sentences
    model = DiceTokenClassifier(
        backbone=tiny_backbone, **{**SETTINGS, "max_epochs": 30, "dropout": 0.0, "lr": 4e-2}
    ).fit(X, y)
    assert model.score(X, y) > 0.8
    before = raw(model, X)
    model.partial_fit(X, y)
    assert np.abs(raw(model, X) - before).max() > 1e-4
    model.set_params(warm_start=True, max_epochs=1).fit(X, y)
    trained = {n for n, p in model.net_.module_.named_parameters() if p.requires_grad}
    assert all("lora_" in name for name in trained if name.startswith("encoder."))
    stopped = clone(model).set_params(early_stopping=True, validation_fraction=0.3).fit(X, y)
    assert "valid_score" in stopped.history_[0]


def test_a_tuned_decision_goes_along(tiny_backbone, sentences, tmp_path):
    X, y = sentences
    tuned = BiasTunedTagger(DiceTokenClassifier(backbone=tiny_backbone, **SETTINGS), cv=2)
    tuned.fit(X, y)
    tuned.bias_ = np.linspace(-1, 2, len(tuned.bias_))
    read = DiceTokenClassifier.from_pretrained(tuned.save_pretrained(tmp_path / "m"))
    assert read.predict(X).tolist() == tuned.predict(X).tolist()


def test_another_backbone_is_refused(build_backbone, sentences, tmp_path):
    """The folder of the backbone is overwritten after the adapter was saved."""
    X, y = sentences
    backbone = build_backbone(str(tmp_path / "base"))
    model = DiceTokenClassifier(backbone=backbone, **SETTINGS).fit(X, y)
    folder = model.save_pretrained(tmp_path / "m")
    expected = model.predict_proba(X)
    config = tmp_path / "base" / "config.json"
    changed = config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"')
    assert changed != config.read_text()
    config.write_text(changed)  # the configuration is that of the saved folder
    read = DiceTokenClassifier.from_pretrained(folder)
    for got, want in zip(read.predict_proba(X), expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)
    again = read.save_pretrained(tmp_path / "again")
    encoder = load_encoder(backbone)
    with torch.no_grad():
        encoder.embeddings.word_embeddings.weight[7, 3] += 1e-3
    encoder.save_pretrained(backbone)
    for saved in (folder, again):
        with pytest.raises(ValueError, match="holds other weights than those that the adapter"):
            DiceTokenClassifier.from_pretrained(saved)


def test_a_backbone_is_not_fetched(build_backbone, sentences, tmp_path, monkeypatch):
    X, y = sentences
    monkeypatch.chdir(tmp_path)
    build_backbone("owner/base")
    model = DiceTokenClassifier(backbone="owner/base", **SETTINGS).fit(X, y)
    folder = model.save_pretrained("m")
    assert DiceTokenClassifier.from_pretrained(folder).predict(X).tolist() == list(model.predict(X))
    (tmp_path / "owner").rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"'owner/base'.* is not on this machine.*hf download"):
        DiceTokenClassifier.from_pretrained(folder)


def test_what_does_not_go_together_is_refused(tiny_backbone, sentences):
    model = DiceTokenClassifier(backbone=tiny_backbone, adapter="lora", frozen="encoder")
    with pytest.raises(ValueError, match="frozen='encoder' and adapter='lora'"):
        model.fit(*sentences)
    with pytest.raises(ValueError, match="The 'adapter' parameter"):
        model.set_params(adapter="prefix").fit(*sentences)
