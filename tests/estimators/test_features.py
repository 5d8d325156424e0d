"""TransformerFeatures: vectors equal to a hand-made forward pass."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from transformers import AutoModel, AutoTokenizer

from skdice import DiceSequenceClassifier, TransformerFeatures
from skdice.estimators import features as features_module
from tests import data
from tests.data import UNEVEN_TEXTS

TEXTS, PAIRS = [*UNEVEN_TEXTS[:4], UNEVEN_TEXTS[1]], data.PAIRS[:3]  # a text twice


@pytest.fixture
def features(tiny_backbone):
    return TransformerFeatures(backbone=tiny_backbone)


def by_hand(backbone, text, pooling):
    model, tokenizer = AutoModel.from_pretrained(backbone), AutoTokenizer.from_pretrained(backbone)
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        hidden = model.eval()(**inputs).last_hidden_state[0]
    last = model.config.model_type == "xlnet"
    cls = hidden[-1] if last else hidden[0]
    return {"cls": cls, "mean": hidden.mean(0), "max": hidden.amax(0)}[pooling].numpy()


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "xlnet"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_vectors_equal_a_forward_pass(tiny_backbones, kind, pooling):
    backbone = tiny_backbones[kind]
    features = TransformerFeatures(backbone=backbone, pooling=pooling)
    table = features.fit_transform(TEXTS)
    assert table.shape == (5, 16)
    assert table.dtype == np.float32
    expected = [by_hand(backbone, text, pooling) for text in TEXTS]
    np.testing.assert_allclose(table, expected, atol=1e-5)


def test_pairs(features):
    u = features.fit(TEXTS).transform([pair[0] for pair in PAIRS])
    v = features.transform([pair[1] for pair in PAIRS])
    separate = features.fit_transform(PAIRS)
    np.testing.assert_allclose(separate, np.hstack([u, v, np.abs(u - v), u * v]), atol=1e-6)
    assert len(features.get_feature_names_out()) == separate.shape[1] == 64
    with pytest.raises(ValueError, match="X holds texts, but fit saw pairs"):
        features.transform(TEXTS)


def test_the_batch_makes_no_difference(features):
    whole = features.fit(TEXTS).transform(TEXTS)
    alone = np.vstack([features.transform([text]) for text in TEXTS])
    np.testing.assert_allclose(whole, alone, atol=1e-5)
    small = features.set_params(batch_size=1).fit_transform(TEXTS)
    np.testing.assert_allclose(small, whole, atol=1e-5)


def encoded(features, texts):
    """The table of some texts, and the number of texts that the encoder was given for it."""
    features.fit(texts)
    sizes = []
    features.encoder_.register_forward_pre_hook(
        lambda encoder, args, inputs: sizes.append(len(inputs["input_ids"])), with_kwargs=True
    )
    return features.transform(texts), sum(sizes)


def test_equal_texts_are_encoded_once(features):
    assert encoded(features, TEXTS)[1] == 4


def test_a_pipeline_with_a_memory_encodes_the_same_texts_once(features, tmp_path, monkeypatch):
    calls, run = [], features_module.run_encoder
    monkeypatch.setattr(
        features_module, "run_encoder", lambda *a, **k: calls.append(1) or run(*a, **k)
    )
    rows = []
    for C in (1.0, 2.0):
        model = Pipeline(
            [("features", features), ("model", LogisticRegression(C=C))], memory=str(tmp_path)
        )
        rows.append(model.fit(TEXTS, [1, 0, 0, 0, 0]).named_steps["features"].transform(TEXTS))
    assert len(calls) == 3  # one fit, and `transform` twice
    np.testing.assert_array_equal(*rows)


def test_columns_in_another_order_are_refused(features):
    pairs = pd.DataFrame({"a": TEXTS[:2], "b": TEXTS[2:4]})
    features.fit(pairs)
    assert features.transform(pairs).shape[0] == 2
    with pytest.raises(ValueError, match="same order"):
        features.transform(pairs[["b", "a"]])
    assert not hasattr(features.fit(TEXTS), "feature_names_in_")


def test_set_output_and_column_transformer(features):
    frame = pd.DataFrame({"text": TEXTS, "length": [4.0, 1.0, 5.0, 4.0, 1.0]})
    out = features.set_output(transform="pandas").fit_transform(frame[["text"]])
    assert out.columns.tolist() == features.get_feature_names_out().tolist()
    assert out.columns[0] == "transformerfeatures0"
    assert features.feature_names_in_.tolist() == ["text"]
    both = make_column_transformer((features, "text"), (StandardScaler(), ["length"]))
    assert both.fit_transform(frame).shape == (5, 17)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_length": 65}, "max_length=65 is more than the 64 subwords"),
        ({"pooling": "sum"}, "'pooling' parameter"),
        ({"device": "gpu"}, "device='gpu'"),
        ({"backbone": "no/such/folder"}, "no/such/folder"),
    ],
)
def test_bad_parameters_are_named(features, params, message):
    with pytest.raises(ValueError, match=message):
        features.set_params(**params).fit(TEXTS)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "modernbert", "xlnet"])
def test_a_backbone_without_a_tokenizer_is_refused(tiny_backbones, kind, tmp_path):
    AutoModel.from_pretrained(tiny_backbones[kind]).save_pretrained(tmp_path)
    for model in (
        TransformerFeatures(backbone=str(tmp_path)),
        DiceSequenceClassifier(backbone=str(tmp_path)),
    ):
        message = rf"backbone='{tmp_path}' .*tokenizer\.save_pretrained\(folder\)"
        with pytest.raises(ValueError, match=f"(?s){message}"):
            model.fit(TEXTS, [1, 0, 0, 0, 0])
    AutoTokenizer.from_pretrained(tiny_backbones[kind]).save_pretrained(tmp_path)
    TransformerFeatures(backbone=str(tmp_path)).fit(TEXTS)


def test_a_backbone_that_lacks_weights_is_refused(tiny_backbone, tmp_path):
    folder = shutil.copytree(tiny_backbone, tmp_path / "m")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(ValueError, match=r"holds no weights for 16 tensors .*'encoder\.layer\.1\."):
        TransformerFeatures(backbone=str(folder)).fit(TEXTS)


def test_the_first_subword_of_a_decoder_is_refused(tiny_backbones, tmp_path, build_backbone):
    folder = build_backbone(str(tmp_path / "gpt2"), "gpt2")
    texts, labels = ["win a prize", "the bus"] * 4, [1, 0] * 4
    how = {"backbone": folder, "pooling": "cls"}
    for model in (TransformerFeatures(**how), DiceSequenceClassifier(max_epochs=1, **how)):
        with pytest.raises(ValueError, match=r"pooling='cls' .* decoder .* give pooling='mean'"):
            model.fit(texts, labels)
    mean = TransformerFeatures(backbone=folder).fit(texts)
    with pytest.raises(ValueError, match=r"pooling='cls'"):
        mean.set_params(pooling="cls").transform(texts)
