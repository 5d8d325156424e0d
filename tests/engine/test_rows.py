"""Sentences in rows under a block mask give what padded batches give; the CPU stands for a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skdice.engine.layouts.architectures import (
    ARCHITECTURES,
    as_numbers,
    of_heads,
    of_layers,
    of_the_past,
    of_xlnet,
)
from skdice.engine.layouts.layout import Padded
from skdice.engine.layouts.rows import Rows, RowsOfOne
from tests.engine.test_grouped import DROPOUTS, TASKS, fitted_with_data

# The form of its mask, and the position id of its first subword with the padding's id 0 (MPNet: 1).
NEEDS = {
    "albert": (of_heads, 0),
    "bert": (of_heads, 0),
    "camembert": (of_heads, 1),
    "deberta": (of_heads, 0),
    "deberta-v2": (of_heads, 0),
    "distilbert": (of_heads, 0),
    "electra": (of_heads, 0),
    "gpt2": (of_the_past, 0),
    "modernbert": (of_layers, 0),
    "mpnet": (as_numbers, 2),
    "roberta": (of_heads, 1),
    "xlm-roberta": (of_heads, 1),
    "xlnet": (of_xlnet, None),
}


@pytest.fixture(scope="module")
def backbones(tmp_path_factory, build_backbone):
    """One of each architecture, without dropout, whose attention is far from even."""
    folders = {}
    for kind in NEEDS:
        config = {**dict.fromkeys(DROPOUTS, 0.0), "initializer_range": 0.5}
        if kind == "modernbert":
            config |= {"local_attention": 4, "global_attn_every_n_layers": 2}
        folders[kind] = build_backbone(str(tmp_path_factory.mktemp(kind)), kind, **config)
    return folders


@pytest.fixture
def gpu(gpu):
    """None at first."""
    gpu.on = False
    return gpu


def of_batch(net, dataset, layout):
    """Loss, logits without those of padding, and gradients, of all windows in one batch."""
    net.batch_size = len(dataset)
    update = dataset.update(layout, np.arange(len(dataset)), len(dataset))
    net.module_.zero_grad()
    logits = net.infer(update)
    loss = net.get_loss(logits, update.target, update)
    loss.backward()
    if isinstance(layout, Rows):
        logits = logits[update.weight > 0]
    gradients = {name: p.grad for name, p in net.module_.named_parameters()}
    return update, loss.detach(), logits.detach(), gradients


def assert_rows_change_nothing(model, dataset, gpu, needs):
    net = model.net_
    net.module_.eval()
    further = net.module_.further_inputs
    padded = Padded(padding=net.padding, further=further, unit=10**9)  # one group
    _, *expected = of_batch(net, dataset, padded)
    gpu.on = True
    layout = net.layout(dataset)
    assert isinstance(layout, Rows)
    assert (layout.mask, layout.first) == needs
    batch, *found = of_batch(net, dataset, layout)
    assert "sentences" in batch.parts[0].groups[0]
    # The order within the padded batch is by length.
    order = np.argsort(dataset.lengths, kind="stable")
    sizes = [max(dataset.windows[int(i)].n_predictions, 1) for i in order]
    if len(dataset.windows[0].positions) == 0:
        sizes = [1] * len(dataset)
    pieces = dict(zip(order.tolist(), expected[1].split(sizes), strict=True))
    expected[1] = torch.cat([pieces[i] for i in range(len(dataset))])
    close = {"rtol": 1e-4, "atol": 2e-5}
    torch.testing.assert_close(found[0], expected[0], **close)
    torch.testing.assert_close(found[1], expected[1], **close)
    for name, gradient in expected[2].items():
        if gradient is None:
            assert found[2][name] is None, name
        else:
            torch.testing.assert_close(found[2][name], gradient, **close, msg=name)
    return batch


@pytest.mark.parametrize("kind", NEEDS)
def test_logits_loss_and_gradients_are_those_of_padded_batches(kind, backbones, gpu):
    model, dataset = fitted_with_data("tagger", backbones[kind])
    batch = assert_rows_change_nothing(model, dataset, gpu, NEEDS[kind])
    n_rows, length = batch.parts[0].groups[0]["input_ids"].shape
    assert (n_rows, length) == (1, 62 if kind == "mpnet" else 64)  # five sentences in one row
    assert batch.target.shape == batch.weight.shape == (length,)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "tagger"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "xlnet"])
def test_every_task_can_be_laid_out_in_rows(kind, task, backbones, gpu):
    model, dataset = fitted_with_data(task, backbones[kind])
    needs = NEEDS[kind]
    model.net_.module_.eval()
    assert_rows_change_nothing(model, dataset, gpu, needs)


def test_the_table_holds_what_is_tested():
    assert NEEDS.keys() == ARCHITECTURES.keys()


@pytest.mark.parametrize("why", ["unknown", "attention", "decoder"])
def test_what_the_table_does_not_know_is_padded(why, backbones, gpu, monkeypatch):
    model, dataset = fitted_with_data("tagger", backbones["bert"])
    net, config = model.net_, model.net_.module_.encoder.config
    if why == "unknown":
        monkeypatch.delitem(ARCHITECTURES, "bert")
    elif why == "attention":
        net.module_.encoder.set_attn_implementation("eager")
    else:
        config.is_decoder = True
    expected = net.logits(dataset)
    gpu.on = True
    assert type(net.layout(dataset)) is RowsOfOne
    for found, logits in zip(net.logits(dataset), expected, strict=True):
        np.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-5)


def test_no_mask_is_tried(backbones, gpu, monkeypatch):
    """Nothing runs before the first update: not even with the first data."""
    model, dataset = fitted_with_data("tagger", backbones["bert"])
    gpu.on = True
    monkeypatch.setattr(
        type(model.net_.module_), "forward", lambda *args, **kwargs: pytest.fail("it tries")
    )
    assert isinstance(model.net_.layout(dataset), Rows)
