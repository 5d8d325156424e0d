"""The asymmetric loss against a loop over its formulas."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import AsymmetricLoss, FocalLoss

gammas = st.floats(0, 5)


def label_by_hand(z, y, gamma_pos, gamma_neg, clip):
    p = 1 / (1 + math.exp(-z))
    if y:
        return -((1 - p) ** gamma_pos) * math.log(p)
    p_m = max(p - clip, 0.0)
    return -(p_m**gamma_neg) * math.log(1 - p_m)


def softmax_by_hand(row, right, gamma_pos, gamma_neg, smoothing):
    total, value = sum(math.exp(z) for z in row), 0.0
    for c, z in enumerate(row):
        p = math.exp(z) / total
        share = (1 - smoothing) * (c == right) + smoothing / len(row)
        factor = (1 - p) ** gamma_pos if c == right else p**gamma_neg
        value -= share * factor * math.log(p)
    return value


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**16), gammas, gammas, st.floats(0, 0.3), st.floats(0, 1))
def test_the_formulas(seed, gamma_pos, gamma_neg, clip, smoothing):
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(2, (6, 3), generator=generator)
    numbers = {"gamma_pos": gamma_pos, "gamma_neg": gamma_neg, "clip": clip}
    loss = AsymmetricLoss(**numbers, label_smoothing=smoothing, reduction="none", multilabel=True)
    want = [
        [label_by_hand(u, y, **numbers) for u, y in zip(row, on, strict=True)]
        for row, on in zip(z.tolist(), labels.tolist(), strict=True)
    ]
    torch.testing.assert_close(loss(z, labels), torch.tensor(want, dtype=torch.float64))
    # One logit is one label, and so are two classes with a background.
    loss.set_params(multilabel=False)
    one = loss(z[:, 0], labels[:, 0])
    assert one.tolist() == pytest.approx([row[0] for row in want])
    pair = torch.stack([z[:, 1], z[:, 0] + z[:, 1]], dim=1)
    torch.testing.assert_close(loss.set_params(background=0)(pair, labels[:, 0]), one)
    swapped = loss.set_params(background=1)(pair.flip(1), 1 - labels[:, 0])
    torch.testing.assert_close(swapped, one)
    # The authors' variant for the classes of a softmax.
    target = torch.randint(3, (6,), generator=generator)
    want = [
        softmax_by_hand(row, right, gamma_pos, gamma_neg, smoothing)
        for row, right in zip(z.tolist(), target.tolist(), strict=True)
    ]
    for background in (None, 0):
        loss.set_params(background=background)
        assert loss(z, target).tolist() == pytest.approx(want)


def test_equal_exponents_without_a_margin_are_the_focal_loss():
    z, y = torch.randn(8, dtype=torch.float64), torch.randint(2, (8,))
    loss = AsymmetricLoss(gamma_pos=2.0, gamma_neg=2.0, clip=0.0)
    torch.testing.assert_close(loss(z, y), FocalLoss(gamma=2.0)(z, y))
    rows, classes = torch.randn(8, 3), torch.randint(3, (8,))
    loss = AsymmetricLoss(gamma_pos=2.0, label_smoothing=0.0)
    torch.testing.assert_close(loss(rows, classes), FocalLoss(gamma=2.0)(rows, classes))


@pytest.mark.parametrize(
    "params", [{"gamma_pos": -1}, {"gamma_neg": -1}, {"clip": 2}, {"label_smoothing": -0.1}]
)
def test_bad_parameters_are_named(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        AsymmetricLoss(**params)
