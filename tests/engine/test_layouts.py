"""The interface of layouts is all that the rest of the package knows of them."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig

import skdice
from skdice.backbones import class_with_head
from skdice.engine.layouts.architectures import ARCHITECTURES
from skdice.engine.layouts.grouped import Grouped
from skdice.engine.layouts.layout import Padded
from skdice.engine.layouts.rows import Rows
from skdice.engine.module import TaskModel
from tests.engine.test_grouped import fitted_with_data

FOLDER = Path(skdice.__file__).parent
INTERFACE = {
    *("layout_to_train", "layout_to_predict", "mask_no_embeddings", "Layout", "Padding", "PADDED"),
    *("MicroBatch", "nothing_further", "pool", "grown", "architecture_of"),
}


def names_of_layouts(path):
    """The names that a file takes from the folder of layouts."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in froms if (node.module or "").startswith("skdice.engine.layouts")]
    return {alias.name for node in ours for alias in node.names}


def test_no_other_file_knows_one_of_the_three():
    found = set()
    for path in FOLDER.rglob("*.py"):
        if path.parent != FOLDER / "engine" / "layouts":
            found |= names_of_layouts(path)
    assert found <= INTERFACE
    assert {"Layout", "layout_to_train", "layout_to_predict"} <= found


def test_a_cpu_groups_a_gpu_has_rows_and_the_rest_is_padded(gpu, tiny_backbones, monkeypatch):
    gpu.on = False
    model, dataset = fitted_with_data("tagger", tiny_backbones["bert"])
    net = model.net_
    assert type(net.layout(dataset)) is Grouped
    gpu.on = True
    assert type(net.layout(dataset)) is Rows
    gpu.on = False
    monkeypatch.delitem(ARCHITECTURES, "bert")
    assert type(net.layout(dataset)) is Padded


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_every_window_gets_its_own_predictions(device, gpu, tiny_backbones, monkeypatch):
    """In the order of the windows, whatever the order and the shapes of batches."""
    gpu.on = False
    model, dataset = fitted_with_data("tagger", tiny_backbones["bert"])
    net, layout = model.net_, Padded(padding=model.net_.padding)
    alone = [net.outputs([layout.lay([window])]).detach().numpy() for window in dataset.windows]
    gpu.on = device == "gpu"
    net.batch_size = 2
    monkeypatch.setattr("skdice.engine.net.WINDOWS_TO_PREDICT", 2)
    for found, expected in zip(net.logits(dataset), alone, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [*ARCHITECTURES, "roformer"])
@pytest.mark.parametrize("head", ["TokenClassification", "QuestionAnswering"])
def test_a_head_gives_the_same_where_something_is_predicted(kind, head):
    """That of an unknown architecture runs on every subword."""
    sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    if kind == "xlnet":
        sizes = dict(d_model=16, n_layer=1, n_head=2, d_inner=32)
    elif kind == "gpt2":
        sizes = dict(n_embd=16, n_layer=1, n_head=2)
    elif kind == "distilbert":
        sizes = dict(dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    config = AutoConfig.for_model(kind, vocab_size=50, pad_token_id=0, **sizes)
    found = class_with_head(head, config)
    assert found is not None
    module = TaskModel(found(config), head, dropout=0.0).eval()
    assert bool(module.steps) == (kind != "roformer")
    ids = torch.arange(5, 15).view(2, 5)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    where = torch.tensor([1, 3, 8])
    expected = module.all_logits(inputs).flatten(0, 1)[where]
    torch.testing.assert_close(module(positions=where, **inputs), expected)
