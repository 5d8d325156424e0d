"""Where the bias of a new head begins, by the loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from skdice.losses import LOSSES, CrossEntropyLoss, FocalLoss, WeightedCrossEntropyLoss

COUNTS = np.array([90.0, 6.0, 4.0])


@pytest.mark.parametrize(
    ("loss", "factors"),
    [
        (CrossEntropyLoss(), [1, 1, 1]),
        (CrossEntropyLoss(class_weight=[1, 2, 5]), [1, 2, 5]),
        (WeightedCrossEntropyLoss(K=2), np.log10((100 - COUNTS) / COUNTS + 2)),
        (WeightedCrossEntropyLoss(class_weight=[1, 3, 3]), [1, 3, 3]),
        (FocalLoss(), [1, 1, 1]),
        (FocalLoss(alpha=0.75), [0.25, 0.75, 0.75]),
        (FocalLoss(alpha=[1, 2, 3]), [1, 2, 3]),
    ],
)
def test_a_head_without_weights_predicts_the_weighted_shares(loss, factors):
    bias = loss.prepare(COUNTS, background=0).start_bias()
    shares = COUNTS * factors / (COUNTS * factors).sum()
    np.testing.assert_allclose(torch.softmax(bias, 0), shares, rtol=1e-6)
    # No other bias has a smaller loss on these targets, where that is the cross-entropy.
    if not isinstance(loss, FocalLoss):
        target = torch.tensor([0, 1, 2]).repeat_interleave(torch.tensor([90, 6, 4]))
        logits = bias.expand(100, 3).clone().requires_grad_()
        loss(logits, target).backward()
        np.testing.assert_allclose(logits.grad.sum(0), 0, atol=1e-6)


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_what_tau_adds_is_left_out(tau):
    loss = CrossEntropyLoss(tau=tau).prepare(COUNTS)
    whole = loss.start_bias() + tau * torch.log(torch.tensor(COUNTS / 100))
    np.testing.assert_allclose(torch.softmax(whole, 0), COUNTS / 100, rtol=1e-6)


@pytest.mark.parametrize(
    ("loss", "positive", "negative"),
    [
        (CrossEntropyLoss(), 1, 1),
        (FocalLoss(alpha=0.8), 0.8, 0.2),
        (
            WeightedCrossEntropyLoss(K=3),
            np.log10((50 - np.array([5.0, 20.0])) / [5, 20] + 3),
            np.log10(np.array([5.0, 20.0]) / [45, 30] + 3),
        ),
    ],
)
def test_each_label_begins_at_its_odds(loss, positive, negative):
    counts = np.array([5.0, 20.0])
    bias = loss.prepare(counts, multilabel=True, n_samples=50).start_bias()
    odds = counts * positive / ((50 - counts) * negative)
    np.testing.assert_allclose(torch.exp(bias), odds, rtol=1e-6)


def test_a_class_without_examples_counts_as_one():
    bias = CrossEntropyLoss().prepare([99, 0]).start_bias()
    np.testing.assert_allclose(torch.softmax(bias, 0), [0.99, 0.01], rtol=1e-6)
    label = CrossEntropyLoss().prepare([0, 10], multilabel=True, n_samples=10).start_bias()
    np.testing.assert_allclose(torch.exp(label), [1 / 9, 10], rtol=1e-6)


def test_which_losses_begin_there():
    begins = {n for n, cls in LOSSES.items() if cls().prepare([9, 1]).start_bias() is not None}
    assert begins == {"ce", "weighted_ce", "focal"}
