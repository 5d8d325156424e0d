"""Graphs of ONNX: equal to torch at several lengths and batch sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from scipy.special import softmax

from skdice import (
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.export import export_onnx
from tests.data import LABELS, TEXTS
from tests.estimators import readers
from tests.estimators.test_storage import SETTINGS

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow  # torch writes a graph in 5 to 10 seconds

LONG = [*TEXTS, "win " * 30, "a"]


def logits_of(path, model, texts):
    """Logits of a graph, and the inputs that they were made of; it knows no padding of ours."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    split = not isinstance(texts[0], str) and model.task.name == "tagging"
    columns = [texts] if split or isinstance(texts[0], str) else [*zip(*texts, strict=True)]
    inputs = model.tokenizer_(
        *map(list, columns), is_split_into_words=split, padding=True, return_tensors="pt"
    )
    feed = {node.name: inputs[node.name].numpy() for node in session.get_inputs()}
    return session.run(None, feed)[0], inputs


def assert_same_logits(model, path, texts, folder):
    """As plain transformers gives them from the saved folder, in batches of several sizes."""
    plain = getattr(transformers, f"AutoModelFor{model.task.head}")
    plain = plain.from_pretrained(model.save_pretrained(folder)).eval()
    for size in (1, 3, len(texts)):
        found, inputs = logits_of(path, model, texts[-size:])
        with torch.no_grad():
            given = plain(**inputs)
        expected = getattr(given, "logits", None)
        if expected is None:
            expected = torch.stack([given.start_logits, given.end_logits], dim=-1)
        inside = inputs["attention_mask"].bool().numpy() if model.task.per_position else ...
        np.testing.assert_allclose(found[inside], expected.numpy()[inside], atol=1e-4)


# BERT is below. ModernBERT's second layer sees a part of the text.
@pytest.mark.parametrize(("kind", "n_layers"), [("roberta", 1), ("modernbert", 2)])
def test_a_tagger(build_backbone, kind, n_layers, sentences, tmp_path):
    X, y = sentences
    backbone = build_backbone(str(tmp_path / "backbone"), kind, num_hidden_layers=n_layers)
    model = DiceTokenClassifier(backbone=backbone, **SETTINGS).fit(X, y)
    folder = export_onnx(model, tmp_path / "onnx")
    rows = [row for row in [*X, ["win"] * 40] if row]
    assert_same_logits(model, folder / "model.onnx", rows, tmp_path / "plain")
    config = json.loads((folder / "config.json").read_text())
    assert list(config["id2label"].values()) == model.classes_.tolist()
    assert transformers.AutoTokenizer.from_pretrained(folder).is_fast


@pytest.mark.parametrize("pooling", ["native", "mean"])
def test_a_classifier(tiny_backbone, pooling, tmp_path):
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling=pooling, **SETTINGS)
    model.fit(TEXTS, LABELS)
    folder = export_onnx(model, tmp_path / "onnx", int8=True)
    for name, atol in (("model.onnx", 1e-4), ("model_int8.onnx", 0.1)):
        logits, _ = logits_of(folder / name, model, LONG)
        expected = model.predict_proba(LONG)
        np.testing.assert_allclose(softmax(logits, axis=1), expected, atol=atol)
    assert not np.allclose(softmax(logits, axis=1), expected, atol=1e-6)


def test_a_reader_and_an_adapter(tiny_backbone, tmp_path):
    model = DiceQuestionAnswerer(backbone=tiny_backbone, adapter="lora", **SETTINGS)
    path = export_onnx(model.fit(readers.X, readers.Y), tmp_path / "onnx") / "model.onnx"
    assert model.net_.module_.adapted  # exporting merged a copy
    assert_same_logits(model.merge_adapter(), path, readers.X, tmp_path / "plain")


def test_what_cannot_be_exported_is_refused(tiny_backbones, tmp_path):
    spans = readers.tagger(tiny_backbones["bert"]).fit(readers.SENTENCES, readers.NESTED)
    assert isinstance(spans, DiceMRCTagger)
    with pytest.raises(TypeError, match="heads that no server knows"):
        export_onnx(spans, tmp_path / "onnx")


def test_a_conversion_that_fails_leaves_nothing(tiny_backbone, tmp_path, monkeypatch):
    def fails(*args, **kwargs):
        raise torch.onnx.errors.OnnxExporterError("no such operator")

    monkeypatch.setattr("torch.onnx.export", fails)
    model = DiceSequenceClassifier(backbone=tiny_backbone, **SETTINGS).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="cannot convert bert to ONNX"):
        export_onnx(model, tmp_path / "onnx")
    assert not list(tmp_path.iterdir())


def test_a_saved_estimator_is_not_exported_over(tiny_backbone, tmp_path):
    model = DiceSequenceClassifier(backbone=tiny_backbone, **SETTINGS).fit(TEXTS, LABELS)
    folder = model.save_pretrained(tmp_path / "m")
    with pytest.raises(ValueError, match=r"m' holds a saved estimator.*such as .*onnx"):
        export_onnx(model, folder)
    DiceSequenceClassifier.from_pretrained(folder)


def test_an_export_replaces_an_export_and_nothing_else(tiny_backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "torch.onnx.export", lambda model, args, path, **options: Path(path).write_text("new")
    )
    model = DiceSequenceClassifier(backbone=tiny_backbone, **SETTINGS).fit(TEXTS, LABELS)
    for name in ("model.onnx", "model_int8.onnx", "model.safetensors", "notes.md"):
        (tmp_path / name).write_text("old")
    export_onnx(model, tmp_path)
    assert (tmp_path / "model.onnx").read_text() == "new"
    assert not (tmp_path / "model_int8.onnx").exists()  # of another model
    assert (tmp_path / "model.safetensors").read_text() == "old"
    assert (tmp_path / "notes.md").read_text() == "old"
