"""Identities, extremes, and how losses behave as objects."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from functools import partial

import pytest
import torch
from sklearn.base import clone

from skdice.losses import (
    LOSSES,
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
    for_trainer,
)
from skdice.losses.base import resolve_loss
from tests.losses.formulas import formula

COUNTS = [80.0, 10.0, 7.0, 3.0]


SET_LEVEL = [
    formula(DiceLoss, average="macro"),
    formula(DiceLoss, background=0),
    formula(DSCLoss, background=0),
    formula(TverskyLoss, background=0),
]
ALL = [
    *(cls() for cls in LOSSES.values() if not hasattr(cls, "literal") and cls is not CompoundLoss),
    *(formula(cls) for cls in LOSSES.values() if hasattr(cls, "literal")),
    CompoundLoss("ce", formula(DiceLoss)),
    *SET_LEVEL,
    formula(DiceLoss, average="samples", squared=False),
    formula(DSCLoss, average="samples", exponent=1.0),
]
BY_NAME = [resolve_loss(name) for name in ("dice", "tversky", "dsc", "ce_dice")]


def prepared(loss, background=0):
    return copy.deepcopy(loss).prepare(COUNTS, background=background)


def batch(n=12, c=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, c, generator=generator, dtype=dtype)
    return logits, torch.randint(c, (n,), generator=generator)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_gradients_are_right(loss):
    logits, target = batch(6)
    loss = prepared(loss)
    assert torch.autograd.gradcheck(lambda z: loss(z, target), logits.requires_grad_())


@pytest.mark.parametrize("loss", ALL, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_extreme_logits_stay_finite(loss, dtype):
    loss = prepared(loss)
    for size in (10.0, 17.0, 1e4):
        signs = torch.tensor(
            [[1, -1, -1, -1], [-1, 1, -1, -1], [1, 1, -1, 0], [0, 0, 0, 0], [-1, -1, -1, 1]]
        )
        logits = (size * signs).to(dtype).requires_grad_()
        value = loss(logits, torch.tensor([0, 1, 2, 3, 0]))
        value.backward()
        assert value.dtype == torch.float32
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_order_of_classes_and_examples_does_not_matter(loss):
    logits, target = batch()
    if loss.get_params().get("background") == 0:
        loss = loss.__sklearn_clone__().set_params(background="auto")
    value = loss.__sklearn_clone__().prepare(COUNTS, background=0)(logits, target)
    order = torch.tensor([2, 0, 3, 1])
    inverse = order.argsort()
    moved = loss.__sklearn_clone__()
    moved.prepare([COUNTS[i] for i in order], background=int(inverse[0]))
    torch.testing.assert_close(moved(logits[:, order], inverse[target]), value)
    rows = torch.randperm(len(target), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(prepared(loss)(logits[rows], target[rows]), value)


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_positions_that_do_not_count_change_nothing(loss):
    loss = prepared(loss)
    logits, target = batch(6)
    value = loss(logits, target)
    noise = torch.full((3, 4), float("nan"), dtype=torch.float64)
    noise[0] = 1e4
    longer = torch.cat([logits, noise]).requires_grad_()
    ignored = loss(longer, torch.cat([target, torch.full((3,), -100)]))
    torch.testing.assert_close(ignored, value)
    ignored.backward()
    assert (longer.grad[6:] == 0).all()
    weight = (torch.arange(9) < 6).double()
    weightless = loss(longer, torch.cat([target, torch.tensor([1, 2, 0])]), sample_weight=weight)
    torch.testing.assert_close(weightless, value)
    # (N, L, C) is (N * L, C).
    table = loss(logits.reshape(2, 3, 4), target.reshape(2, 3))
    torch.testing.assert_close(table, value)
    by_row = loss(
        logits.reshape(2, 3, 4),
        target.reshape(2, 3),
        sample_weight=torch.tensor([[1, 1, 1], [0, 0, 0]]),
    )
    torch.testing.assert_close(by_row, loss(logits[:3], target[:3]))


@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_a_weight_of_two_is_the_example_twice(loss):
    loss = prepared(loss)
    logits, target = batch(5)
    weight = torch.tensor([2.0, 1, 1, 1, 1])
    twice = loss(torch.cat([logits, logits[:1]]), torch.cat([target, target[:1]]))
    torch.testing.assert_close(loss(logits, target, sample_weight=weight), twice)
    # One weight for each sentence holds for all of its tokens.
    spread = loss(
        logits[:4].reshape(2, 2, 4), target[:4].reshape(2, 2), sample_weight=torch.tensor([3.0, 1])
    )
    flat = loss(logits[:4], target[:4], sample_weight=torch.tensor([3.0, 3, 1, 1]))
    torch.testing.assert_close(spread, flat)


@pytest.mark.parametrize("loss", ALL + BY_NAME, ids=repr)
def test_an_empty_batch_is_worth_nothing(loss):
    loss = prepared(loss)
    for logits, target in (
        (torch.zeros(2, 4), torch.full((2,), -100)),
        (torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)),
    ):
        logits.requires_grad_()
        value = loss(logits, target)
        value.backward()
        assert value.item() == 0
        assert torch.isfinite(logits.grad).all()
    logits, target = batch(6)
    assert loss(logits, target, sample_weight=torch.zeros(6)).item() == 0


@pytest.mark.parametrize("how", ["macro", "micro"])
def test_negatives_that_nothing_calls_positive_are_worth_nothing(how):
    loss = DiceLoss(surrogate="log", smooth=0.0, average=how, background=0)
    for far in (60.0, 1e4):
        logits = torch.tensor([[far, 0.0, 0.0]] * 3, requires_grad=True)
        value = loss(logits, torch.zeros(3, dtype=torch.long))
        value.backward()
        assert value.item() == 0
        assert logits.grad.eq(0).all()


@pytest.mark.parametrize("loss", ALL + BY_NAME, ids=repr)
def test_a_class_that_a_logit_of_minus_infinity_rules_out(loss):
    logits = torch.tensor([[1.0, -math.inf, 0.0, 2.0], [0.0, 2.0, -math.inf, 0.5]] * 2)
    target = torch.tensor([0, 1, 3, 3])
    loss = prepared(loss)
    low = logits.clamp(min=-1e4).requires_grad_()
    loss(low, target).backward()
    logits.requires_grad_()
    value = loss(logits, target)
    value.backward()
    torch.testing.assert_close(value, loss(low, target))
    torch.testing.assert_close(logits.grad, low.grad)
    two = torch.tensor([[1.0, -math.inf], [-math.inf, 0.0]], requires_grad=True)
    value = prepared(CrossEntropyLoss())(two, torch.tensor([0, 1]))
    value.backward()
    assert value.item() == 0
    assert two.grad.eq(0).all()


@pytest.mark.parametrize("kind", ["one logit", "softmax", "tags", "square", "multilabel"])
@pytest.mark.parametrize("loss", ALL + BY_NAME, ids=repr)
def test_no_weights_are_weights_of_one(loss, kind):
    # "square" has as many rows as labels, where a weight of a row could pass for one of a label.
    shape = {"one logit": (12,), "tags": (3, 4, 4), "square": (4, 4)}.get(kind, (12, 4))
    multilabel = kind in ("square", "multilabel")
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    like = shape if multilabel or kind == "one logit" else shape[:-1]
    top = 2 if multilabel or kind == "one logit" else 4
    target = torch.randint(top, like, generator=torch.Generator().manual_seed(1))
    loss = clone(loss).set_params(multilabel=multilabel)
    if kind == "one logit":
        loss.prepare(COUNTS[:2])
    else:
        loss.prepare(COUNTS, background=None if multilabel else 0, n_samples=120)
    rows = torch.ones(like[0], dtype=torch.float64)
    values = []
    for weight in (None, rows, torch.ones(like), torch.ones(like, dtype=torch.bool)):
        z = logits.clone().requires_grad_()
        value = loss(z, target, sample_weight=weight)
        values.append((value, *torch.autograd.grad(value, z)))
    for other in values[1:]:
        torch.testing.assert_close(other, values[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_gradients_over_labels_are_as_large_as_those_of_cross_entropy(average):
    # Nothing is predicted yet: positives weigh 2 - 0, and all labels have as many of them.
    logits = torch.full((12, 3), -12.0, dtype=torch.float64)
    target = (torch.arange(12)[:, None] % 4 == torch.arange(3)).long()
    slopes = []
    for loss in (
        CrossEntropyLoss(multilabel=True),
        DiceLoss(multilabel=True, average=average, smooth=0.0),
        TverskyLoss(multilabel=True, average=average, smooth=0.0),
    ):
        z = logits.clone().requires_grad_()
        slopes.append(torch.autograd.grad(loss(z, target), z)[0][target == 1])
    for slope in slopes[1:]:
        torch.testing.assert_close(slope, 2 * slopes[0], rtol=1e-4, atol=0)
    # One label that is not known takes one element away, and rescales nothing else.
    one_less = target.clone()
    one_less[0, 2] = -100
    z = logits.clone().requires_grad_()
    loss = DiceLoss(multilabel=True, average=average, smooth=0.0)
    less = torch.autograd.grad(loss(z, one_less), z)[0][target == 1]
    torch.testing.assert_close(less, 2 * slopes[0] * 36 / 35, rtol=1e-3, atol=0)


@pytest.mark.parametrize("kind", ["one logit", "softmax", "multilabel"])
@pytest.mark.parametrize(
    "make",
    [
        *(partial(cls, smooth=0.0) for cls in (DiceLoss, DSCLoss, TverskyLoss)),
        *(
            partial(cls.literal, smooth=0.0, **more)
            for cls in (DiceLoss, TverskyLoss)
            for more in ({}, {"average": "macro"}, {"average": "micro"}, {"squared": True})
        ),
    ],
)
def test_no_gradient_is_nan_under_a_loss_scale(make, kind):
    shape = (6,) if kind == "one logit" else (6, 3)
    target = torch.zeros(6, dtype=torch.long) if kind != "multilabel" else torch.zeros(6, 3)
    loss = make(multilabel=kind == "multilabel")
    for size in (1.0, 15.0, 44.0, 60.0, 88.0, 100.0, 1e4):
        for first in (-size, size):
            logits = torch.full(shape, -size)
            logits[..., 0] = first
            logits.requires_grad_()
            (gradient,) = torch.autograd.grad(65_536 * loss(logits, target), logits)
            assert torch.isfinite(gradient).all(), (size, first)


@pytest.mark.parametrize("name", LOSSES)
def test_infinite_logits_of_sigmoids_have_gradients_under_a_loss_scale(name):
    right = torch.tensor([[math.inf, -math.inf], [-math.inf, math.inf]])
    for logits, target in ((right, torch.eye(2)), (right[0], torch.eye(2)[0])):
        loss = LOSSES[name](multilabel=logits.ndim == 2).prepare([1, 1], n_samples=2)
        z = logits.clone().requires_grad_()
        value = loss(z, target)
        (gradient,) = torch.autograd.grad(65_536 * value, z)
        assert value.item() == pytest.approx(0, abs=1e-6)
        torch.testing.assert_close(gradient, torch.zeros_like(z))


def test_a_single_alpha_of_focal_has_the_precision_of_the_logits():
    logits = torch.tensor([[0.3, -0.2, 0.9]] * 2, dtype=torch.float64)
    value = FocalLoss(alpha=0.7, gamma=0.0, background=0)(logits, torch.tensor([0, 2]))
    z = [0.3, -0.2, 0.9]
    total = math.log(sum(map(math.exp, z)))
    expected = (0.3 * (total - z[0]) + 0.7 * (total - z[2])) / 2
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_reduction_means_what_it_says():
    logits, target = batch(6)
    target[2] = -100
    for cls in (CrossEntropyLoss, FocalLoss):
        parts = cls(reduction="none")(logits, target)
        assert parts.shape == (6,)
        assert parts[2] == 0
        torch.testing.assert_close(cls(reduction="sum")(logits, target), parts.sum())
        torch.testing.assert_close(cls(reduction="mean")(logits, target), parts.sum() / 5)
    rows = CrossEntropyLoss(reduction="none")(logits.reshape(2, 3, 4), target.reshape(2, 3))
    assert rows.shape == (2, 3)
    for how, shape in (("samples", (6,)), ("macro", (4,)), ("micro", ())):
        assert formula(DiceLoss, average=how, reduction="none")(logits, target).shape == shape
    classes = formula(DiceLoss, average="macro", reduction="none")(logits, target)
    torch.testing.assert_close(formula(DiceLoss, average="macro")(logits, target), classes.mean())
    total = formula(DiceLoss, average="macro", reduction="sum")(logits, target)
    torch.testing.assert_close(total, classes.sum())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("loss", ALL, ids=repr)
def test_compiles_without_a_break(loss):
    loss = prepared(loss)
    logits, target = batch(dtype=torch.float32)
    target[1] = -100
    torch._dynamo.reset()
    compiled = torch.compile(lambda z, t: loss(z, t), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(logits, target), loss(logits, target))


@pytest.mark.parametrize("name", LOSSES)
def test_parameters_clone_pickle_and_repr(name):
    loss = resolve_loss(name)
    assert resolve_loss(loss) is loss
    assert clone(loss) is not loss
    assert clone(loss).get_params() == loss.get_params()
    loss.prepare(COUNTS, background=0)
    assert not hasattr(clone(loss), "class_counts_")
    logits, target = batch()
    read = pickle.loads(pickle.dumps(loss))
    torch.testing.assert_close(read(logits, target), loss(logits, target))
    assert eval(repr(loss), dict(vars(__import__("skdice.losses", fromlist=["x"])))).get_params()
    with pytest.raises(ValueError, match="nonsense"):
        loss.set_params(nonsense=1)
    loss.set_params(ignore_index=-1)
    assert "ignore_index=-1" in repr(loss)


def test_in_the_trainers_terms():
    logits, target = batch(8)
    target[0] = -100
    whole = CrossEntropyLoss()(logits, target)
    loss = for_trainer("ce")
    parts = [
        loss({"logits": logits[rows]}, target[rows], num_items_in_batch=7)
        for rows in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(sum(parts), whole)
    torch.testing.assert_close(loss((logits,), target), whole)
    # A mean of means is weighed by its share of the targets, and whole where that is all.
    for both in (CompoundLoss("ce", "focal"), resolve_loss("ce_dice")):
        loss = for_trainer(both.prepare([2, 2, 2, 1], background=0))
        want = both(logits, target)
        torch.testing.assert_close(loss((logits,), target, num_items_in_batch=7), want)
    parts = [
        for_trainer(CompoundLoss("ce", "focal"))((logits[rows],), target[rows], 7)
        for rows in (slice(0, 4), slice(4, 8))
    ]
    torch.testing.assert_close(sum(parts), CompoundLoss("ce", "focal")(logits, target))
    whole = DiceLoss(background=0)(logits, target)
    wrapped = for_trainer(DiceLoss(background=0))
    torch.testing.assert_close(wrapped({"logits": logits}, target), whole)


def test_in_the_trainers_terms_the_background_is_told():
    logits, target = batch(8)
    want = DSCLoss(background=0)(logits, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = for_trainer(DSCLoss(), background=0)
        torch.testing.assert_close(told((logits,), target), want)
        told = for_trainer(CompoundLoss("ce", DSCLoss(), weight=0.5), background=0)
        both = (CrossEntropyLoss()(logits, target) + want) / 2
        torch.testing.assert_close(told((logits,), target), both)
        for_trainer("dsc", background=None)((logits,), target)
        for_trainer("dsc")((logits[:, 0],), target.clamp(max=1))
        told = for_trainer("weighted_ce", class_counts=[5, 1, 1, 1])
        want = WeightedCrossEntropyLoss().prepare([5, 1, 1, 1])(logits, target)
        torch.testing.assert_close(told((logits,), target), want)
    mine = DSCLoss()
    with pytest.warns(UserWarning, match="counts all 4 as positive"):
        for_trainer(mine)((logits,), target)
    assert mine.background == "auto"
    with pytest.raises(ValueError, match="ignore_index=0"):
        for_trainer(CrossEntropyLoss(ignore_index=0))
    with pytest.raises(ValueError, match="background='O'"):
        for_trainer("dsc", background="O")


def test_the_prior_is_added_in_training_only():
    logits, target = batch(8)
    loss = CrossEntropyLoss(tau=1.0).prepare([9, 3, 3, 1])
    assert loss(logits, target) != CrossEntropyLoss()(logits, target)
    told = for_trainer(loss)
    assert told((logits,), target) == loss(logits, target)
    plain = loss.eval()(logits, target)
    torch.testing.assert_close(plain, CrossEntropyLoss()(logits, target))
    with torch.no_grad():
        torch.testing.assert_close(told((logits,), target), plain)
