"""Losses of readers: over the positions of a window, and for several heads."""

from __future__ import annotations

import math

import pytest
import torch

from skdice.losses import LOSSES, CompoundLoss, CrossEntropyLoss, DiceLoss
from skdice.losses.base import resolve_loss
from skdice.losses.span_ends import HeadsLoss, SpanEndsLoss


def test_cross_entropy_is_a_softmax_over_the_positions_of_a_window():
    torch.manual_seed(0)
    logits = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    target = torch.zeros(9, 3)
    target[[0, 4], 2] = 1
    target[[2, 4], 0] = 1
    target[[3, 8], 1] = 1
    expected = 0.0
    for side, places in ((0, (2, 0)), (1, (3, 4))):
        for rows, place in zip((slice(0, 4), slice(4, 9)), places, strict=True):
            z = logits[rows, side].float()
            expected = expected + torch.nn.functional.cross_entropy(z, torch.tensor(place)) / 4
    loss = SpanEndsLoss(CrossEntropyLoss())
    torch.testing.assert_close(loss(logits, target), expected)
    weight = torch.tensor([2.0] * 4 + [0.0] * 5)
    first = loss(logits[:4], target[:4])
    torch.testing.assert_close(loss(logits, target, sample_weight=weight), first)
    smooth = SpanEndsLoss(CrossEntropyLoss(label_smoothing=0.1))(logits[:4], target[:4])
    sides = [
        torch.nn.functional.cross_entropy(
            logits[:4, side].float(), torch.tensor(place), label_smoothing=0.1
        )
        for side, place in ((0, 2), (1, 3))
    ]
    torch.testing.assert_close(smooth, sum(sides) / 2)
    with pytest.raises(ValueError, match="class_weight"):
        SpanEndsLoss(CrossEntropyLoss(class_weight=[1.0, 2.0]))
    with pytest.raises(ValueError, match=r"tau=0\.5"):
        SpanEndsLoss(CrossEntropyLoss(tau=0.5))


def test_other_losses_see_each_position_against_those_of_its_window():
    torch.manual_seed(0)
    logits, target = torch.randn(9, 2, dtype=torch.float64), torch.zeros(9, 3)
    target[[0, 4], 2] = 1
    target[[2, 4], 0] = 1
    target[[3, 8], 1] = 1
    dice = DiceLoss().prepare([7, 2])
    expected = 0.0
    for side in (0, 1):
        odds = torch.zeros(9)
        for rows in (range(4), range(4, 9)):
            for i in rows:
                rest = sum(math.exp(logits[j, side]) for j in rows if j != i)
                odds[i] = logits[i, side] - math.log(rest)
        expected = expected + dice(odds, target[:, side]) / 2
    torch.testing.assert_close(SpanEndsLoss(dice)(logits, target), expected)


def test_the_parts_of_a_compound_loss_are_what_they_are_alone():
    torch.manual_seed(0)
    logits, target = torch.randn(6, 2), torch.eye(6)[:, :3]
    target[0, 2] = 1
    both = CompoundLoss("ce", DiceLoss(), weight=0.25).prepare([4, 2])
    alone = [SpanEndsLoss(loss)(logits, target) for loss in (CrossEntropyLoss(), DiceLoss())]
    value = SpanEndsLoss(both)(logits, target)
    torch.testing.assert_close(value, 0.75 * alone[0] + 0.25 * alone[1])
    with pytest.raises(ValueError, match=r"tau=0\.5"):
        SpanEndsLoss(CompoundLoss(CrossEntropyLoss(tau=0.5), "dice"))


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"ce"}))
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_sure_positions_have_finite_slopes(loss, scale):
    torch.manual_seed(0)
    target = torch.zeros(12, 3)
    target[[0, 6, 11], 2] = 1  # the last window has one position
    target[[2, 6, 11], 0] = 1
    target[[3, 9, 11], 1] = 1
    logits = (scale * torch.randn(12, 2)).requires_grad_()
    value = SpanEndsLoss(resolve_loss(loss).prepare([9, 3]))(logits, target)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()
    if scale == 1.0:
        assert logits.grad.abs().sum() > 0


def test_heads_are_told_apart():
    torch.manual_seed(0)
    logits = torch.randn(8)
    heads = torch.tensor([0.0, 0, 1, 1, 3, 2, 2, 2])
    target = torch.stack([(torch.rand(8) > 0.5).float(), heads], dim=1)
    losses = [CrossEntropyLoss() for _ in range(4)]
    parts = [
        torch.nn.functional.binary_cross_entropy_with_logits(
            logits[heads == h], target[heads == h, 0]
        )
        for h in range(4)
    ]
    found = HeadsLoss(losses, [1.0, 0.5, 2.0, 0.0])(logits, target)
    torch.testing.assert_close(found, parts[0] + 0.5 * parts[1] + 2 * parts[2])
