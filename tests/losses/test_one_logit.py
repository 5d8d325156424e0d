"""Two classes under a softmax, one of them the background, are one logit: in every loss."""

from __future__ import annotations

import pytest
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
    for_trainer,
)

weights = st.sampled_from([None, [1.0, 3.0], [2.0, 0.5]])
unit = st.floats(0.1, 1.0)


@st.composite
def overlap_losses(draw):
    options = {
        "smooth": draw(st.sampled_from([0.01, 1.0])),
        "average": draw(st.sampled_from(["auto", "samples", "macro", "micro"])),
        "class_weight": draw(weights),
    }
    options["surrogate"] = "none"
    if options["average"] != "samples":
        options["surrogate"] = draw(st.sampled_from(["none", "log"]))
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
@given(losses, st.sampled_from([0, 1]), st.integers(0, 10_000))
def test_two_classes_are_one_logit(loss, background, seed):
    generator = torch.Generator().manual_seed(seed)
    one, two = (clone(loss).prepare([90, 10], background=background) for _ in range(2))
    for _ in range(2):
        odds, shift, weight = torch.randn(3, 8, dtype=torch.float64, generator=generator)
        target = torch.randint(0, 2, (8,), generator=generator)
        odds = (3 * odds).requires_grad_()
        logits = torch.stack([shift, shift + odds], dim=1)
        values = [f(z, target, sample_weight=weight.abs()) for f, z in ((one, odds), (two, logits))]
        torch.testing.assert_close(*values)
        slopes = [torch.autograd.grad(v, odds, retain_graph=True)[0] for v in values]
        torch.testing.assert_close(*slopes)


def odds_and_pair():
    odds = torch.tensor([4.0, -4.0, -1.0, 2.0])
    return odds, torch.stack([torch.zeros(4), odds], dim=1), torch.tensor([0, 1, 1, 1])


@pytest.mark.parametrize("kind", [DiceLoss, DSCLoss, TverskyLoss, FocalLoss])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_background_of_one_logit(kind):
    odds, pair, target = odds_and_pair()
    options = {"alpha": 0.9} if kind is FocalLoss else {}
    usual, turned = (kind(**options, background=b) for b in (0, 1))
    for same in (kind(**options), kind(**options, background=None)):
        assert same(odds, target) == usual(odds, target)
    assert turned(odds, target) != usual(odds, target)
    # With classes named the other way round, it is the usual problem.
    torch.testing.assert_close(turned(odds, target), usual(-odds, 1 - target))
    told = kind(**options).prepare([1, 3], background=1)
    for loss in (turned, told, for_trainer(kind(**options), background=1).loss):
        torch.testing.assert_close(loss(odds, target), turned(pair, target))
    many = torch.func.vmap(turned, in_dims=(0, None))(torch.stack([odds, -odds]), target)
    torch.testing.assert_close(many, torch.stack([turned(odds, target), turned(-odds, target)]))
    torch._dynamo.reset()
    compiled = torch.compile(lambda z, t: turned(z, t), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(odds, target), turned(odds, target))


@pytest.mark.parametrize("loss", [DiceLoss(background=7), FocalLoss(alpha=0.9, background=2)])
def test_one_logit_has_two_classes(loss):
    odds, _, target = odds_and_pair()
    with pytest.raises(ValueError, match=rf"background={loss.background} .* classes 0 to 1"):
        loss(odds, target)
