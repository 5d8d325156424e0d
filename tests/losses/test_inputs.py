"""What losses make of odd inputs and settings, and the corners of their averages."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import (
    LOSSES,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
    for_trainer,
)
from skdice.losses._parameters import EACH, TENSOR
from skdice.losses.base import resolve_loss
from tests.losses.formulas import formula

NAN = float("nan")


MADE = {
    **LOSSES,
    **{f"{name}, formula": partial(formula, LOSSES[name]) for name in ("dice", "tversky", "dsc")},
}


def prepared(name):
    return MADE[name]().prepare([6, 3, 2], background=0)


@pytest.mark.parametrize("name", MADE)
def test_positions_that_do_not_count_may_hold_anything(name):
    loss = prepared(name)
    logits = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    want = loss(logits[:2], torch.tensor([1, 2]))
    logits[2] = NAN
    ignored = torch.tensor([1, 2, -100]), torch.tensor([1.0, 1.0, NAN])
    torch.testing.assert_close(loss(logits, *ignored), want)
    weight = torch.tensor([1, 1, 0])
    torch.testing.assert_close(loss(logits, torch.eye(3)[[1, 2, 0]], weight), want)
    z = logits[:, :1]
    one = MADE[name]().prepare([6, 3])
    got = one(z, torch.tensor([[1.0], [0.0], [1.0]]), weight)
    torch.testing.assert_close(got, one(z[:2, 0], torch.tensor([1, 0])))


@pytest.mark.parametrize("name", MADE)
def test_ignored_labels_of_a_row_change_nothing(name):
    """In multi-label rows, single labels can be unknown."""
    loss = MADE[name](multilabel=True).prepare([6, 3, 2], n_samples=11)
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([[1, 0, 0], [0, -100, 1], [1, 1, 0], [0, 0, -100]])
    other = logits.clone()
    other[1, 1], other[3, 2] = NAN, 1e4
    torch.testing.assert_close(loss(other, target), loss(logits, target))
    rows = torch.tensor([2.0, 1, 1, 1])
    twice = loss(torch.cat([logits, logits[:1]]), torch.cat([target, target[:1]]))
    torch.testing.assert_close(loss(logits, target, sample_weight=rows), twice)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.bool, torch.float16])
def test_binary_targets_of_any_type(dtype):
    z, y = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1, 0, 1])
    torch.testing.assert_close(DiceLoss()(z, y.to(dtype)), DiceLoss()(z, y))
    if dtype != torch.float16:
        two = torch.stack([torch.zeros(3), z], 1)
        torch.testing.assert_close(CrossEntropyLoss()(two, y.to(dtype)), CrossEntropyLoss()(two, y))


@pytest.mark.parametrize(
    ("logits", "target", "message"),
    [
        (torch.zeros(2, 2), torch.tensor([[0.5, 0.5], [NAN, 1.0]]), "holds nan"),
        (torch.zeros(2, 3), torch.tensor([[1.0, 1, 0], [0, 0, 1]]), "multilabel=True"),
        (torch.zeros(2, 3), torch.tensor([[1, 1, 0], [0, 0, 1]]), "multilabel=True"),
        (torch.zeros(2, 3), torch.zeros(2, 2), r"\(2, 3\).*\(2, 2\)"),
        (torch.zeros(2, 3), torch.tensor([0.0, 1.0]), "integers"),
        (torch.tensor(1.0), torch.tensor(1.0), "do not fit"),
        (torch.zeros(4, 1), torch.zeros(3), "do not fit"),
        (torch.zeros(3, 0), torch.zeros(3).long(), "do not fit"),
        (torch.zeros(0, 0), torch.zeros(0, 0), "do not fit"),
        (torch.zeros(3, 4), torch.tensor([0, 4, 1]), "holds 4"),
        (torch.zeros(3), torch.tensor([0, 2, 1]), "holds 2"),
        (torch.zeros(3).long(), torch.zeros(3), "floating"),
        (torch.zeros(3, 2), torch.zeros(3, dtype=torch.complex64), "do not fit"),
    ],
)
@pytest.mark.parametrize("name", ["ce", "focal", "dice"])
def test_wrong_targets_are_named(name, logits, target, message):
    with pytest.raises(ValueError, match=message):
        LOSSES[name]()(logits, target)


def test_wrong_weights_are_named():
    logits, target = torch.zeros(2, 3, 4), torch.zeros(2, 3).long()
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3, 2\)"):
        DiceLoss()(logits, target, sample_weight=torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(6,\)"):
        DiceLoss()(logits, target, sample_weight=torch.ones(6))
    for value in (-1.0, NAN, math.inf):
        with pytest.raises(ValueError, match="sample_weight holds"):
            DiceLoss()(logits, target, sample_weight=torch.tensor([1.0, value]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: DiceLoss(class_weight="even"), TypeError, "class_weight='even'"),
        (lambda: DiceLoss(class_weight={0: "a"}), TypeError, "class_weight="),
        (lambda: CrossEntropyLoss(class_weight=[-1, 2]), ValueError, "class_weight="),
        (lambda: CrossEntropyLoss(class_weight=[1, NAN]), ValueError, "class_weight="),
        (lambda: FocalLoss(alpha=[1.0, -1.0]), ValueError, "alpha="),
        (lambda: FocalLoss(gamma=True), TypeError, "gamma=True"),
        (lambda: TverskyLoss(alpha="x"), TypeError, "alpha='x'"),
        (lambda: TverskyLoss(alpha=0, beta=0.0), ValueError, "alpha=0 and beta=0"),
        (lambda: DiceLoss(smooth=math.inf), ValueError, "smooth=inf"),
        (lambda: DiceLoss(smooth=NAN), ValueError, "smooth=nan"),
        (lambda: DiceLoss(background=True), ValueError, "background=True"),
        (lambda: FocalLoss(background="O"), ValueError, "background='O'"),
        (lambda: call(FocalLoss(alpha=0.3, background=7)), ValueError, "background=7"),
        (lambda: call(CrossEntropyLoss(tau=1.0).prepare([5, 2])), ValueError, "needs 3"),
        (lambda: DiceLoss().prepare([3, -1]), ValueError, "class_counts="),
        (lambda: DiceLoss().prepare([3, 1], multilabel=True), ValueError, "n_samples="),
        (
            lambda: for_trainer(DiceLoss(multilabel=True), class_counts=[3, 1]),
            ValueError,
            "n_samples=",
        ),
        (lambda: DiceLoss().prepare([3, 1], background=2), ValueError, "background=2"),
        (lambda: TverskyLoss(alpha=-0.1), ValueError, "alpha=-0.1"),
        (lambda: TverskyLoss(beta=-1), ValueError, "beta=-1"),
        (lambda: FocalLoss(gamma=-1), ValueError, "gamma=-1"),
        (lambda: FocalLoss(alpha=1.5), ValueError, "alpha=1.5"),
        (lambda: DSCLoss(exponent=-1), ValueError, "exponent=-1"),
        (lambda: DiceLoss(average="batch"), ValueError, "average='batch'"),
        (lambda: DiceLoss(reduction="avg"), ValueError, "reduction='avg'"),
        (lambda: DiceLoss(surrogate="hinge"), ValueError, "surrogate='hinge'"),
        (lambda: DiceLoss(average="samples"), ValueError, "average='samples'"),
        (lambda: DiceLoss(reduction="none"), ValueError, "'none'"),
        (lambda: CrossEntropyLoss(label_smoothing=2), ValueError, "label_smoothing=2"),
        (lambda: CrossEntropyLoss(tau=-1), ValueError, "tau=-1"),
        (lambda: call(CrossEntropyLoss(tau=1)), ValueError, "class counts"),
        (lambda: WeightedCrossEntropyLoss(K=0), ValueError, "K=0"),
        (lambda: call(WeightedCrossEntropyLoss()), ValueError, "class counts"),
        (lambda: call(CrossEntropyLoss(class_weight=[1.0, 2.0])), ValueError, "class_weight"),
        (lambda: resolve_loss("dise"), ValueError, "'dise'"),
    ],
)
def test_wrong_settings_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


def call(loss):
    return loss(torch.zeros(4, 3), torch.tensor([0, 0, 1, 2]))


def test_the_background_may_be_a_number_of_numpy():
    assert call(DiceLoss(background=np.int64(0))) == call(DiceLoss(background=0))


def test_a_refused_setting_changes_nothing():
    loss = TverskyLoss(alpha=0.2, beta=0.8)
    with pytest.raises(ValueError, match="beta=-1"):
        loss.set_params(alpha=0.5, beta=-1)
    assert loss.get_params() == TverskyLoss(alpha=0.2, beta=0.8).get_params()
    assert FocalLoss(alpha=np.float32(0.25)).alpha == np.float32(0.25)


def test_weights_are_never_negative():
    weights = WeightedCrossEntropyLoss(K=0.5).prepare([95, 5]).weights_
    assert weights[0] == 0
    assert weights[1].item() == pytest.approx(math.log10(95 / 5 + 0.5))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**16),
    st.sampled_from(["samples", "macro", "micro"]),
    st.booleans(),
    st.sampled_from([0.0, 1e-3, 1.0]),
    st.sampled_from([1.0, 20.0, 200.0]),
    st.sampled_from([DiceLoss, DSCLoss, TverskyLoss]),
)
def test_overlap_losses_are_between_0_and_1(seed, how, squared, smooth, scale, cls):
    generator = torch.Generator().manual_seed(seed)
    logits = (scale * torch.randn(9, 3, generator=generator)).requires_grad_()
    target = torch.randint(3, (9,), generator=generator)
    loss = formula(cls, average=how, squared=squared, smooth=smooth, reduction="none")
    values = loss(logits, target)
    assert ((values >= 0) & (values <= 1)).all()
    values.sum().backward()
    assert torch.isfinite(logits.grad).all()
    right = 60.0 * torch.nn.functional.one_hot(target, 3).float()
    if cls is not DSCLoss and (smooth > 0 or how == "micro"):
        assert loss(right, target).abs().max() < 1e-6


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_the_literal_dsc_has_its_optimum_at_one_over_one_plus_exponent(exponent):
    loss = formula(DSCLoss, exponent=exponent, squared=False, average="samples", reduction="none")
    p = torch.linspace(0.05, 0.95, 1801, dtype=torch.float64)
    logits = torch.logit(p).requires_grad_()
    positive = loss(logits, torch.ones(len(p)))
    best = 1 / (1 + exponent)
    assert p[positive.argmin()].item() == pytest.approx(best, abs=1e-3)
    (slope,) = torch.autograd.grad(positive.sum(), logits)
    assert (slope[p < best - 1e-3] < 0).all()
    assert (slope[p > best + 1e-3] > 0).all()
    # And a false positive beyond it is pushed on towards 1.
    (slope,) = torch.autograd.grad(loss(logits, torch.zeros(len(p))).sum(), logits)
    assert (slope[p > best + 1e-3] < 0).all()


def test_class_weights_mean_the_same_in_all_kinds():
    logits = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    labels = (torch.randn(6, 3, generator=torch.Generator().manual_seed(1)) > 0).float()
    weight = [1.0, 2.0, 0.5]
    for how in ("samples", "macro"):
        parts = [formula(DiceLoss, average=how)(logits[:, c], labels[:, c]) for c in range(3)]
        want = sum(w * part for w, part in zip(weight, parts, strict=True)) / 3.5
        got = formula(DiceLoss, average=how, class_weight=weight, multilabel=True)
        torch.testing.assert_close(got(logits, labels), want)
    # With one counted class its own weight cancels; pooled counts are weighed against smooth.
    z, y = logits[:, 0], labels[:, 0]
    for options in ({"average": "macro"}, {"average": "micro", "smooth": 0.0}):
        weighted = formula(DiceLoss, class_weight=[1, 5], **options)
        torch.testing.assert_close(weighted(z, y), formula(DiceLoss, **options)(z, y))


@pytest.mark.parametrize("background", [0, None])
@pytest.mark.parametrize("name", LOSSES)
def test_autocast_rounds_no_loss(name, background):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(500, 4, generator=generator)
    target = torch.randint(4, (500,), generator=generator)
    counts = torch.bincount(target, minlength=4).tolist()
    found = []
    for enabled in (False, True):
        loss = LOSSES[name]().prepare(counts, background=background)
        z = logits.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            value = loss(z, target)
        value.backward()
        found.append((value.detach(), z.grad))
    (value, gradient), (mixed, of_mixed) = found
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, value, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(of_mixed, gradient, rtol=1e-5, atol=1e-8)


Z, Y = torch.zeros(4, 3), torch.tensor([0, 1, 2, 0])


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_reach_the_logits_alone(name):
    """Targets and weights may come with gradients, as from another model."""
    z, soft = Z.clone().requires_grad_(), torch.eye(3)[Y].requires_grad_()
    weight = torch.ones(4, requires_grad=True)
    prepared(name)(z, soft, sample_weight=weight).backward()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("cls", LOSSES.values())
def test_every_parameter_has_a_constraint_of_scikit_learn(cls):
    parts = cls().parts
    assert set(cls().get_params(deep=False)) == {*cls._parameter_constraints, *parts}
    for name, rules in cls._parameter_constraints.items():
        assert any(rule.is_satisfied_by(getattr(cls(), name)) for rule in rules)
        with pytest.raises((TypeError, ValueError), match=rf"{name}=.*object object"):
            cls(**{name: object()})


def test_a_parameter_of_torch_is_no_number():
    for cls in LOSSES.values():
        for key in (key for key, rules in cls._parameter_constraints.items() if TENSOR in rules):
            with pytest.raises((TypeError, ValueError), match=rf"(?s){key}=.*detach"):
                cls(**{key: torch.nn.Parameter(torch.tensor(0.5))})
            if EACH not in str(cls._parameter_constraints[key]):
                with pytest.raises((TypeError, ValueError), match=rf"(?s){key}=.*of one number"):
                    cls(**{key: torch.full((2,), 0.5)})
