"""sigmoidF1 against a loop over its formula."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import DiceLoss, SigmoidF1Loss
from skdice.losses.base import resolve_loss


def by_hand(scores, target, weight, columns, beta, eta, average):
    """One minus F1 of the sums of S over rows, for each column or over all of them."""
    counts = []
    for c in columns:
        tp = fp = fn = 0.0
        for u, y, w in zip(scores, target, weight, strict=True):
            s = 1 / (1 + math.exp(-beta * (u[c] + eta)))
            tp += w * s * y[c]
            fp += w * s * (1 - y[c])
            fn += w * (1 - s) * y[c]
        counts.append((tp, fp, fn))
    if average == "micro":
        counts = [tuple(map(sum, zip(*counts, strict=True)))]
    return sum(1 - 2 * tp / (2 * tp + fp + fn) for tp, fp, fn in counts) / len(counts)


def log_odds(row):
    total = [math.exp(z) for z in row]
    return [math.log(e / (sum(total) - e)) for e in total]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**16), st.floats(0.5, 3), st.floats(-2, 2))
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_the_formula_over_labels_classes_and_one_logit(average, seed, beta, eta):
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(7, 3, generator=generator, dtype=torch.float64)
    weight = torch.rand(7, generator=generator, dtype=torch.float64) + 0.1
    labels = torch.randint(2, (7, 3), generator=generator)
    rest = (weight.tolist(), beta, eta, average)

    def want(scores, target, columns):
        return by_hand(scores, target, rest[0], columns, *rest[1:])

    loss = SigmoidF1Loss(beta=beta, eta=eta, average=average, multilabel=True)
    found = loss(z, labels, sample_weight=weight)
    assert found.item() == pytest.approx(want(z.tolist(), labels.tolist(), range(3)))

    loss.set_params(multilabel=False, background=0)
    target = torch.randint(3, (7,), generator=generator)
    rows = torch.nn.functional.one_hot(target, 3).tolist()
    found = loss(z, target, sample_weight=weight)
    odds = [log_odds(row) for row in z.tolist()]
    assert found.item() == pytest.approx(want(odds, rows, (1, 2)))

    one = loss(z[:, 0], labels[:, 0], sample_weight=weight)
    assert one.item() == pytest.approx(want(z.tolist(), labels.tolist(), (0,)))
    pair = torch.stack([torch.zeros(7), z[:, 0]], dim=1)
    torch.testing.assert_close(loss(pair, labels[:, 0], sample_weight=weight), one)


def test_with_beta_1_and_eta_0_it_is_the_dice_loss_without_squares():
    z, y = torch.randn(9, 4, dtype=torch.float64), torch.randint(4, (9,))
    dice = DiceLoss(squared=False, smooth=0.0, surrogate="none", background=0)
    torch.testing.assert_close(resolve_loss("sigmoid_f1").prepare([1] * 4, 0)(z, y), dice(z, y))


@pytest.mark.parametrize(
    "params", [{"beta": 0.0}, {"eta": math.inf}, {"average": "samples"}, {"background": "O"}]
)
def test_bad_parameters_are_named(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        SigmoidF1Loss(**params)
