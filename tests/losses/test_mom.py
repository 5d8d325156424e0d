"""Majority or minority learning against a loop over its formula."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import CrossEntropyLoss, MoMLoss


def mean(pairs):
    """The weighted mean of (loss, weight) pairs; of none, 0."""
    total = sum(weight for _, weight in pairs)
    return sum(loss * weight for loss, weight in pairs) / total if total else 0.0


def by_hand(losses, is_majority, weight, lam):
    pairs = list(zip(losses, weight, strict=True))
    majority = [pair for pair, on in zip(pairs, is_majority, strict=True) if on]
    return lam * mean(pairs) + (1 - lam) * mean(majority)


def softmax_losses(rows, target):
    for row, right in zip(rows, target, strict=True):
        yield math.log(sum(math.exp(z) for z in row)) - row[right]


def sigmoid_losses(logits, target):
    for z, y in zip(logits, target, strict=True):
        yield math.log1p(math.exp(-z if y else z))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**16), st.floats(0, 1), st.sampled_from([0, 1, 2]))
def test_the_formula(seed, lam, majority):
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(7, 3, generator=generator, dtype=torch.float64)
    target = torch.randint(3, (7,), generator=generator)
    weight = torch.rand(7, generator=generator, dtype=torch.float64) + 0.1
    losses = softmax_losses(z.tolist(), target.tolist())
    want = by_hand(losses, (target == majority).tolist(), weight.tolist(), lam)
    counts = [5, 5, 5]
    counts[majority] = 9
    for loss in (
        MoMLoss(lam=lam, background=majority),
        MoMLoss(lam=lam).prepare([5, 5, 5], background=majority),
        MoMLoss(lam=lam).prepare(counts),  # the most frequent class
    ):
        assert loss(z, target, sample_weight=weight).item() == pytest.approx(want)
    # One logit: class 0 is the majority, unless 1 is given.
    odds, y = z[:, 0], target.clamp(max=1)
    for side in (0, 1):
        losses = sigmoid_losses(odds.tolist(), y.tolist())
        want = by_hand(losses, (y == side).tolist(), weight.tolist(), lam)
        loss = MoMLoss(lam=lam, background=side)
        assert loss(odds, y, sample_weight=weight).item() == pytest.approx(want)
    # Labels: what is off.
    labels = torch.randint(2, (7, 3), generator=generator)
    losses = sigmoid_losses(z.flatten().tolist(), labels.flatten().tolist())
    each = weight.repeat_interleave(3).tolist()
    want = by_hand(losses, (labels.flatten() == 0).tolist(), each, lam)
    loss = MoMLoss(lam=lam, multilabel=True)
    assert loss(z, labels, sample_weight=weight).item() == pytest.approx(want)


def test_lam_1_is_cross_entropy_and_elements_average_to_the_loss():
    z, y = torch.randn(9, 3, dtype=torch.float64), torch.tensor([0, 1, 2] * 3)
    torch.testing.assert_close(MoMLoss(lam=1.0, background=0)(z, y), CrossEntropyLoss()(z, y))
    loss = MoMLoss(lam=0.3, background=0)
    elements = MoMLoss(lam=0.3, background=0, reduction="none")(z, y)
    torch.testing.assert_close(elements.mean(), loss(z, y))
    # Where nothing is of the majority, only the first term is left.
    few = y != 0
    torch.testing.assert_close(loss(z[few], y[few]), 0.3 * CrossEntropyLoss()(z[few], y[few]))


def test_what_is_missing_or_wrong_is_named():
    with pytest.raises(ValueError, match=r"lam=1\.5"):
        MoMLoss(lam=1.5)
    with pytest.raises(ValueError, match="majority class"):
        MoMLoss()(torch.zeros(2, 3), torch.tensor([0, 1]))
