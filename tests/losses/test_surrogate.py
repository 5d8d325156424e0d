"""surrogate="log": cross-entropy with the weights that the ratio without squares gives."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from skdice.losses import LOSSES, CompoundLoss, DiceLoss, DSCLoss, TverskyLoss
from skdice.losses.base import resolve_loss
from tests.losses.formulas import formula

torch.manual_seed(0)


LINEAR = {
    "dice": (formula(DiceLoss, squared=False), DiceLoss(smooth=1.0), (2, 1, 1, 1)),
    "tversky": (
        formula(TverskyLoss, alpha=0.2, beta=0.9, squared=False, smooth=0.3),
        TverskyLoss(alpha=0.2, beta=0.9, surrogate="log", smooth=0.3),
        (1, 0.2, 0.9, 0.3),
    ),
    "dsc": (
        formula(DSCLoss, exponent=0, squared=False),
        DSCLoss(exponent=0, smooth=1.0),
        (2, 1, 1, 1),
    ),
}


def slope(loss, logits, target, **options):
    logits = logits.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(loss(logits, target, **options), logits)
    return found


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("multilabel", [False, True])
def test_the_slope_is_the_linear_losses_over_the_probability(name, multilabel):
    # dL/dz of the linear loss is dL/dp p (1 - p); here log p, or log(1 - p), stands for p. What the
    # ratio divides by (its mean over classes) goes, in units in which a hit counts 2; the number of
    # elements comes in its place, over which cross-entropy is a mean, too.
    shape = (12, 3) if multilabel else (12,)
    logits, target = torch.randn(shape, dtype=torch.float64), torch.randint(0, 2, shape)
    linear, log, (per_hit, per_false, per_missed, smooth) = LINEAR[name]
    for loss in (linear, log):
        loss.set_params(multilabel=multilabel)
    p = torch.sigmoid(logits)
    weight = torch.rand(12, dtype=torch.float64)
    of_each = weight[:, None].expand(12, 3) if multilabel else weight
    total = (of_each * target * (per_hit * p + per_missed * (1 - p))).sum(0)
    total = total + (of_each * (1 - target) * per_false * p).sum(0) + smooth
    want = slope(linear, logits, target, sample_weight=weight) / torch.where(target == 1, p, 1 - p)
    want = want * total.mean() * 2 / per_hit * (3 if multilabel else 1) / of_each.sum()
    torch.testing.assert_close(slope(log, logits, target, sample_weight=weight), want)


def test_weights_of_classes_by_hand():
    logits, weights = torch.randn(5, 3, dtype=torch.float64), [7.0, 2.0, 0.5]
    target = torch.tensor([0, 1, 0, 2, 0])
    p = torch.softmax(logits, 1).tolist()
    hits = errors = 0.0
    for i, t in enumerate(target.tolist()):
        for c in (1, 2):
            hits += weights[c] * 2 * p[i][c] * (c == t)
            errors += weights[c] * abs((c == t) - p[i][c])
    total = hits + errors + 0.5
    f1 = (hits + 0.5) / total
    want = 0.0
    for i, t in enumerate(target.tolist()):
        if t:
            price = weights[t] * (2 - f1) / 5
        else:  # by the weights of the classes that it is taken for
            price = (weights[1] * p[i][1] + weights[2] * p[i][2]) / (p[i][1] + p[i][2])
            price *= f1 / 5
        want -= price * math.log(p[i][t])
    loss = DiceLoss(surrogate="log", background=0, smooth=0.5, class_weight=weights)
    assert loss(logits, target).item() == pytest.approx(want)


def test_a_batch_of_entities_by_hand():
    logits = torch.randn(7, 4, dtype=torch.float64)
    target = torch.tensor([0, 0, 2, 0, 1, 3, 0])
    p = torch.softmax(logits, 1).tolist()
    hits = sum(p[i][t] for i, t in enumerate(target.tolist()) if t)
    missed = sum(1 - p[i][t] for i, t in enumerate(target.tolist()) if t)
    false = sum(p[i][c] for i, t in enumerate(target.tolist()) for c in (1, 2, 3) if c != t)
    total = 2 * hits + missed + false + 0.5
    f1 = (2 * hits + 0.5) / total
    want = 0.0
    for i, t in enumerate(target.tolist()):
        price = (2 - f1) / 7 if t else f1 / 7
        want -= price * math.log(p[i][t])
    loss = DiceLoss(surrogate="log", background=0, smooth=0.5)
    assert loss(logits, target).item() == pytest.approx(want)
    # The self-adjusting factor is how wrong an example is.
    want = 0.0
    for i, t in enumerate(target.tolist()):
        price = (2 - f1) / 7 if t else f1 / 7
        want -= price * (1 - p[i][t]) ** 0.3 * math.log(p[i][t])
    loss = DSCLoss(surrogate="log", background=0, smooth=0.5, exponent=0.3)
    assert loss(logits, target).item() == pytest.approx(want)


@pytest.mark.parametrize("name", ["dice", "tversky", "dsc"])
def test_of_many_classes_those_that_a_batch_lacks_are_left_out(name):
    logits, target = torch.randn(4, 30), torch.tensor([3, 3, 7, 1])
    seen, rows = torch.tensor([1, 3, 7]), torch.nn.functional.one_hot(target, 30)
    weight = torch.zeros(30).index_fill(0, seen, 1.0)  # leaves the absent classes out
    loss, chosen = resolve_loss(name), resolve_loss(name).set_params(class_weight=weight)
    assert loss(logits, target) == chosen(logits, target)
    # Not where something else knows of them: a background, other labels. Nor in the formula.
    for make in (
        lambda: resolve_loss(name).set_params(average="macro", background=0),
        lambda: resolve_loss(name).set_params(multilabel=True),
        lambda: formula(LOSSES[name]),
    ):
        y = rows if make().multilabel else target
        assert make()(logits, y) != make().set_params(class_weight=weight)(logits, y)


def test_each_class_by_itself_and_absent_ones():
    logits, target = torch.randn(8, 3, dtype=torch.float64), torch.tensor([0, 0, 1, 0, 1, 0, 0, 1])
    p = torch.softmax(logits, 1)
    losses, totals = [], []
    for c in range(3):
        y = (target == c).double()
        hits, total = 2 * (p[:, c] * y).sum(), p[:, c].sum() + y.sum() + 1.0
        f1 = (hits + 1) / total
        pull = -(y * torch.log(p[:, c])).sum() * (2 - f1) / total
        push = -((1 - y) * torch.log(1 - p[:, c])).sum() * f1 / total
        losses.append((pull + push).item())
        totals.append(total.item() / 8)  # of 8 examples
    loss = DiceLoss(smooth=1.0, average="macro")
    assert loss(logits, target).item() == pytest.approx(sum(losses[:2]) / 2 * sum(totals[:2]) / 2)


@pytest.mark.parametrize("name", ["dice", "tversky", "dsc", "ce_dice"])
@pytest.mark.parametrize("n_classes", [9, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_indices_are_distributions_of_one_class(name, n_classes, weighted):
    torch.manual_seed(0)
    # Some rows are sure of a wrong class, whose probability rounds to 1 in the last of them.
    logits = (5 * torch.randn(50, n_classes, dtype=torch.float64)).requires_grad_()
    logits.data[-1, 3] = 100
    target = torch.randint(n_classes - 1, (50,))
    target[-1] = 4
    weight = torch.rand(50, dtype=torch.float64) if weighted else None
    # Distributions take another way: a table of all targets.
    expected = F.one_hot(target, n_classes).double()
    loss, values = resolve_loss(name), []
    for y in (target, expected):
        value = loss(logits, y, sample_weight=weight)
        values.append((value, *torch.autograd.grad(3 * value, logits)))
    torch.testing.assert_close(*values, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_a_head_of_one_number_ends_with_odds_that_the_weights_raise(share):
    """As docs/guide/losses.md says: by (2 - F) / F, which is 1 only where F is 1."""
    target = (torch.arange(200) < 200 * share).long()
    low, high = -20.0, 20.0
    for _ in range(60):  # the logit at which the slope is 0
        middle = (low + high) / 2
        logits = torch.full((200,), middle, dtype=torch.float64)
        low, high = (low, middle) if slope(DiceLoss(), logits, target).sum() > 0 else (middle, high)
    p = 1 / (1 + math.exp(-middle))
    f = (2 * share * p * 200 + 0.01) / (p * 200 + share * 200 + 0.01)
    assert p / (1 - p) == pytest.approx(share / (1 - share) * (2 - f) / f, rel=1e-6)


@pytest.mark.parametrize("name", ["dice", "tversky", "dsc"])
def test_slopes_are_no_larger_than_twice_those_of_cross_entropy(name):
    # Clipping a gradient's norm, as trainers do by default, treats both alike.
    target = (torch.arange(32) == 0).long()
    for logits in (torch.full((32,), -5.0), torch.full((32,), 3.0), torch.randn(32)):
        logits = logits.double()
        found, usual = (slope(resolve_loss(n), logits, target) for n in (name, "ce"))
        assert (found.abs() <= 2.001 * usual.abs()).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("loss", [log for _, log, _ in LINEAR.values()])
def test_confident_errors_have_a_slope_and_no_nan(loss, dtype):
    loss = loss.set_params(multilabel=False)
    logits = torch.tensor([1e4, -1e4, 1e4, -1e4, 0.0], dtype=dtype)
    target = torch.tensor([0, 1, 1, 0, 1])
    found = slope(loss, logits, target)
    assert torch.isfinite(found).all()
    assert found[0] > 0  # a false positive that is sure of itself is pushed down,
    assert found[1] < 0  # and a missed positive up, where the loss itself is flat
    assert slope(loss, logits[:0], target[:0]).shape == (0,)


@pytest.mark.parametrize("background", [None, 0])
def test_second_derivatives_are_those_of_weighted_cross_entropy(background):
    logits = torch.randn(4, 3, dtype=torch.float64)
    target = torch.tensor([0, 1, 2, 1])
    p, y = torch.softmax(logits, -1), F.one_hot(target, 3).double()
    counted = [c for c in range(3) if c != background]
    f1 = [(2 * (p * y)[:, c].sum() + 0.5) / ((p + y)[:, c].sum() + 0.5) for c in range(3)]
    total = [(p + y)[:, c].sum() + 0.5 for c in range(3)]
    if background == 0:
        hits = sum((p * y)[:, c].sum() for c in counted)
        pooled = (2 * hits + 0.5) / (sum((p + y)[:, c].sum() for c in counted) + 0.5)

    def naive(z):
        log_p = torch.log_softmax(z, -1)
        if background == 0:
            weights = [2 - pooled if t else pooled for t in target.tolist()]
            return -sum(w * log_p[i, target[i]] for i, w in enumerate(weights)) / 4
        loss, size = 0.0, sum(total) / 3
        for i, t in enumerate(target.tolist()):
            for c in range(3):
                each = (
                    -(2 - f1[c]) * log_p[i, c]
                    if c == t
                    else -f1[c] * torch.log1p(-log_p.exp()[i, c])
                )
                loss = loss + each / total[c] * size / 4 / 3
        return loss

    dice = DiceLoss(smooth=0.5, background=background)
    for loss, share in ((dice, 1.0), (CompoundLoss("ce", dice), 0.9)):
        of_loss, wanted = (
            (f(logits), torch.autograd.functional.hessian(f, logits))
            for f in (
                partial(loss, target=target),
                lambda z, share=share: share * naive(z) + (1 - share) * F.cross_entropy(z, target),
            )
        )
        torch.testing.assert_close(of_loss, wanted)
        assert of_loss[1].abs().max() > 0.01


@pytest.mark.parametrize("lead", [20.0, 90.0, 1000.0])
@pytest.mark.parametrize("name", ["dice", "tversky", "dsc", "ce_dice"])
def test_a_wrong_class_far_ahead_has_its_exact_loss(name, lead):
    logits = torch.tensor([[lead, 1.0, -0.5, 0.2], [0.3, 2.0, -1.0, 0.1]])
    target = torch.tensor([2, 1])
    loss, values = resolve_loss(name), []
    for z in (logits.requires_grad_(), logits.detach().double().requires_grad_()):
        value = loss(z, target)
        values.append((value.double(), torch.autograd.grad(value, z)[0].double()))
    torch.testing.assert_close(*values, rtol=1e-5, atol=1e-6)
    # By hand, in float64: -log(1 - p) of the class ahead is its lead over the others' logsumexp.
    z = logits.detach().double()
    others = torch.logsumexp(z[0, 1:], 0)
    ahead = torch.logsumexp(z[0], 0) - others
    assert ahead > lead - 2
