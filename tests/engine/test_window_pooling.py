"""Logits of texts from those of their windows, against loops over texts and windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skdice import DiceSequenceClassifier
from skdice.engine.accumulation import accumulate
from skdice.engine.fit_plan import encode
from skdice.engine.layouts.grouped import Grouped
from skdice.engine.layouts.layout import PADDED
from skdice.engine.layouts.rows import Rows
from skdice.engine.window_pooling import TextDataset, WindowPooling

SIZES = [1, 3, 2, 5]


def naive(rows, how, positive):
    """Logits of one text from a table (n_windows, n_classes), by the words of the documentation."""
    if how == "mean":
        return rows.mean(0)
    if positive is None:
        return rows.max(0).values
    odds = (rows[:, positive] - rows[:, 1 - positive]).max()
    return torch.stack([odds if c == positive else 0 * odds for c in range(2)])


@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize(("n_classes", "positive"), [(2, 0), (2, 1), (2, None), (4, None)])
def test_pooling_against_a_loop(how, n_classes, positive):
    torch.manual_seed(0)
    logits = torch.randn(len(SIZES), max(SIZES), n_classes, dtype=torch.float64)
    inside = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
    pooled = WindowPooling(how, positive)(logits, inside)
    for row, z, size in zip(pooled, logits, SIZES, strict=True):
        expected = naive(z[:size], how, positive)
        if positive is not None:  # only the difference of two logits matters
            row, expected = row.diff(), expected.diff()
        torch.testing.assert_close(row, expected)
    assert torch.equal(pooled[0], logits[0, 0])  # bit for bit, where there is one window
    if how != "max":  # whose gradient jumps
        logits.requires_grad_()
        torch.autograd.gradcheck(lambda z: WindowPooling(how, positive)(z, inside), logits)


@pytest.mark.parametrize("batch_size", [1, 64], ids=["several runs", "one run"])
@pytest.mark.parametrize("how", ["max", "mean"])
@pytest.mark.parametrize("in_rows", [False, True])
def test_an_update_is_that_of_a_loop_over_windows(tiny_backbone, how, batch_size, in_rows, gpu):
    gpu.on = False
    texts = ["anna met bob", "rain sun old " * 12, "the bus " * 40, "a good lunch " * 9]
    settings = dict(loss="ce", max_epochs=1, dropout=0.0, max_length=16, random_state=0)
    settings |= dict(window_pooling=how, batch_size=batch_size)
    clf = DiceSequenceClassifier(backbone=tiny_backbone, **settings).fit(texts, [1, 0, 1, 0])
    net, weights = clf.net_, np.array([1.0, 2.0, 0.5, 1.0])
    for part in net.module_.modules():
        if "p" in vars(part):
            part.p = 0.0
    dataset = encode(clf, texts, np.array([1, 0, 1, 0]), weights)
    assert isinstance(dataset, TextDataset)
    assert len(dataset) == 4
    net._set_training(True)
    rows = np.array([2, 0, 2, 3, 1])  # a sampler may draw a text twice
    gpu.on = in_rows
    layout = net.layout(dataset)
    assert isinstance(layout, Rows if in_rows else Grouped)
    batch = dataset.update(layout, rows, net.batch_size)
    assert (len(batch.parts) > 1) == (batch_size == 1)
    net.optimizer_.zero_grad()
    if len(batch.parts) == 1:
        loss = net.get_loss(net.infer(batch), batch.target, batch)
        loss.backward()
    else:
        _, loss = accumulate(net, batch)
    gradients = {n: p.grad.clone() for n, p in net.module_.named_parameters() if p.grad is not None}

    net.optimizer_.zero_grad()
    expected, total = 0.0, 0.0
    for i in rows:
        logits = []
        for window in dataset.windows:
            if window.row == i:
                inputs, _ = PADDED.place([window])
                logits.append(net.module_(**inputs)[0])
        z = naive(torch.stack(logits), how, clf.positive_)
        expected = expected - weights[i] * z.log_softmax(0)[[1, 0, 1, 0][i]]
        total += weights[i]
    (expected / total).backward()
    torch.testing.assert_close(loss.detach(), (expected / total).detach())
    for name, p in net.module_.named_parameters():
        if name in gradients:
            torch.testing.assert_close(gradients[name], p.grad, atol=1e-6, rtol=1e-4)
