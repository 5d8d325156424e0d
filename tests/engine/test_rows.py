"""Sentences in rows under a block mask give what padded batches give; the CPU stands for a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skdice.engine.rows import Rows
from tests.engine.test_packing import DROPOUTS, TASKS, fitted_with_data

STYLES = {
    "bert": ("heads", 0),
    "roberta": ("heads", 1),
    "distilbert": ("heads", 0),
    "electra": ("heads", 0),
    "mpnet": ("added", 2),
    "deberta-v2": ("heads", 0),
    "modernbert": ("layers", 0),
    "xlnet": ("perm_mask", None),
    "gpt2": ("causal", 0),
}


@pytest.fixture(scope="module")
def backbones(tmp_path_factory, build_backbone):
    """One of each architecture, without dropout, whose attention is far from even."""
    folders = {}
    for kind in STYLES:
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
    (batch,) = net.batches(dataset, np.arange(len(dataset)), layout)
    net.module_.zero_grad()
    logits = net.logits_of(batch[0])
    loss = net.loss_of(logits, *batch[1:])
    loss.backward()
    if isinstance(layout, Rows):
        logits = logits[batch[2] > 0]
    gradients = {name: p.grad for name, p in net.module_.named_parameters()}
    return batch, loss.detach(), logits.detach(), gradients


def assert_rows_change_nothing(model, dataset, gpu, style):
    net = model.net_
    net.module_.eval()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdice.engine.net.run_cost", lambda device: 10**9)  # one group
        _, *expected = of_batch(net, dataset, None)
    gpu.on = True
    layout = net.layout(dataset)
    assert isinstance(layout, Rows)
    assert (layout.style, layout.first) == style
    batch, *found = of_batch(net, dataset, layout)
    if style[0] is not None:
        assert "sentences" in batch[0][0]
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


@pytest.mark.parametrize("kind", STYLES)
def test_logits_loss_and_gradients_are_those_of_padded_batches(kind, backbones, gpu):
    model, dataset = fitted_with_data("tagger", backbones[kind])
    batch = assert_rows_change_nothing(model, dataset, gpu, STYLES[kind])
    n_rows, length = batch[0][0]["input_ids"].shape
    assert (n_rows, length) == (1, 62 if kind == "mpnet" else 64)  # five sentences in one row
    assert batch[1].shape == batch[2].shape == (length,)


@pytest.mark.parametrize("task", [task for task in TASKS if task != "tagger"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2", "xlnet"])
def test_every_task_can_be_laid_out_in_rows(kind, task, backbones, gpu):
    model, dataset = fitted_with_data(task, backbones[kind])
    style = STYLES[kind]
    model.net_.module_.eval()
    assert_rows_change_nothing(model, dataset, gpu, style)
