"""Two classes under a softmax, the first of them the background, are one logit: in every loss."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)

weights = st.sampled_from([None, [1.0, 3.0], [2.0, 0.5]])
unit = st.floats(0.1, 1.0)


@st.composite
def overlap_losses(draw):
    options = {
        "smooth": draw(st.sampled_from([0.01, 1.0])),
        "aggregation": draw(st.sampled_from(["auto", "example", "class", "pooled"])),
        "absent": draw(st.sampled_from(["auto", "include", "ignore"])),
        "class_weight": draw(weights),
        "ohem_ratio": draw(st.sampled_from([0.0, 2.0])),
    }
    if options["aggregation"] != "example":
        options["surrogate"] = draw(st.sampled_from(["none", "log"]))
        options["ema_decay"] = draw(st.sampled_from([0.0, 0.5]))
    kind = draw(st.sampled_from([DiceLoss, DSCLoss, TverskyLoss]))
    if kind is DSCLoss:
        options["exponent"] = draw(unit)
    if kind is TverskyLoss:
        options["alpha"], options["beta"] = draw(unit), draw(unit)
    return kind(squared=draw(st.booleans()), **options)


losses = st.one_of(
    overlap_losses(),
    st.builds(CrossEntropyLoss, class_weight=weights, label_smoothing=unit, tau=unit),
    st.builds(WeightedCrossEntropyLoss, K=st.sampled_from([1.0, 5.0])),
    st.builds(FocalLoss, gamma=unit, alpha=st.one_of(unit, weights)),
    st.builds(CompoundLoss, second=overlap_losses(), weight=unit),
)


@settings(max_examples=150, deadline=None)
@given(losses, st.integers(0, 10_000))
def test_two_classes_are_one_logit(loss, seed):
    generator = torch.Generator().manual_seed(seed)
    one, two = (clone(loss).prepare([90, 10], background=0) for _ in range(2))
    for _ in range(2):  # the second batch remembers the first
        odds, shift, weight = torch.randn(3, 8, dtype=torch.float64, generator=generator)
        target = torch.randint(0, 2, (8,), generator=generator)
        odds = (3 * odds).requires_grad_()
        logits = torch.stack([shift, shift + odds], dim=1)
        values = [f(z, target, sample_weight=weight.abs()) for f, z in ((one, odds), (two, logits))]
        torch.testing.assert_close(*values)
        slopes = [torch.autograd.grad(v, odds, retain_graph=True)[0] for v in values]
        torch.testing.assert_close(*slopes)
