"""Graphs of ONNX: equal to torch at several lengths and batch sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from skdice import (
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit_plan import encode
from skdice.export import export_onnx, with_onnx
from tests.data import LABELS, TEXTS
from tests.estimators import readers
from tests.estimators.test_storage import SETTINGS

pytestmark = pytest.mark.slow  # torch writes a graph in 5 to 10 seconds

LONG = [*TEXTS, "win " * 30, "a"]


def assert_same_logits(model, graph, windows):
    for size in (1, 3, 64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("skdice.engine.net.WINDOWS_TO_PREDICT", size)
            for m in (model, graph):
                patch.setattr(m.net_, "batch_size", size)
            rows = [m.net_.logits(EncodedDataset(windows)) for m in (model, graph)]
        for a, b in zip(*rows, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)


# BERT is below. ModernBERT's second layer sees a part of the text.
@pytest.mark.parametrize(("kind", "n_layers"), [("roberta", 1), ("modernbert", 2)])
def test_a_tagger(build_backbone, kind, n_layers, sentences, tmp_path, monkeypatch):
    X, y = sentences
    backbone = build_backbone(str(tmp_path / "backbone"), kind, num_hidden_layers=n_layers)
    model = DiceTokenClassifier(backbone=backbone, **SETTINGS).fit(X, y)
    folder = export_onnx(model, tmp_path / "onnx")
    graph = with_onnx(model, folder / "model.onnx")
    assert_same_logits(model, graph, encode(model, [*X, ["win"] * 40]).windows)
    assert graph.predict(X).tolist() == model.predict(X).tolist()
    config = json.loads((folder / "config.json").read_text())
    assert list(config["id2label"].values()) == model.classes_.tolist()
    assert AutoTokenizer.from_pretrained(folder).is_fast
    expected = model.predict(X).tolist()
    # As if there were a GPU, on which nothing can be computed.
    monkeypatch.setattr("skdice.engine.net.resolve_device", {"auto": "meta", "cpu": "cpu"}.get)
    assert graph.set_params(batch_size=2).predict(X).tolist() == expected


@pytest.mark.parametrize("pooling", ["native", "mean"])
def test_a_classifier(tiny_backbone, pooling, tmp_path):
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling=pooling, **SETTINGS)
    model.fit(TEXTS, LABELS)
    folder = export_onnx(model, tmp_path / "onnx", int8=True)
    graph = with_onnx(model, folder / "model.onnx")
    assert_same_logits(model, graph, encode(model, LONG).windows)
    small = with_onnx(model, folder / "model_int8.onnx").predict_proba(LONG)
    np.testing.assert_allclose(small, model.predict_proba(LONG), atol=0.1)
    assert not np.allclose(small, model.predict_proba(LONG), atol=1e-6)


def test_a_reader_and_an_adapter(tiny_backbone, tmp_path):
    model = DiceQuestionAnswerer(backbone=tiny_backbone, adapter="lora", **SETTINGS)
    model.fit(readers.X, readers.Y)
    graph = with_onnx(model, export_onnx(model, tmp_path / "onnx") / "model.onnx")
    assert_same_logits(model, graph, model.task.encode(model, readers.X))
    assert model.net_.module_.adapted  # exporting merged a copy


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
