"""ema_decay: counts averaged over the batches of training."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from skdice.losses import CompoundLoss, DiceLoss, DSCLoss, SpanEndsLoss

torch.manual_seed(0)
BATCHES = [(torch.randn(6, dtype=torch.float64), torch.randint(0, 2, (6,))) for _ in range(4)]


def formula(cls, **params):
    """The formula without the surrogate, over the batch."""
    return cls(**{"smooth": 1.0, "surrogate": "none", **params})


def slope(loss, logits, target):
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits, target)
    (found,) = torch.autograd.grad(value, logits)
    return value.item(), found


def by_hand(logits, target, decay, upto, squared):
    """Hits and errors of `upto`'s batch and of those before it, averaged."""
    hits = errors = total = 0.0
    for age, (z, t) in enumerate(reversed(BATCHES[: upto + 1])):
        for logit, positive in zip(z.tolist(), t.tolist(), strict=True):
            p = 1 / (1 + np.exp(-logit))
            power = 2 if squared else 1
            hits += decay**age * 2 * p * positive
            errors += decay**age * ((1 - p) ** power if positive else p**power)
        total += decay**age
    return hits / total, errors / total


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("squared", [True, False])
def test_the_value_is_that_of_averaged_counts(decay, squared):
    loss = formula(DiceLoss, squared=squared, smooth=0.3, ema_decay=decay)
    for step, (logits, target) in enumerate(BATCHES):
        hits, errors = by_hand(logits, target, decay, step, squared)
        want = 1 - (hits + 0.3) / (hits + errors + 0.3)
        assert loss(logits, target).item() == pytest.approx(want)


def test_the_slope_is_the_batchs_own_at_the_averaged_counts():
    loss = formula(DiceLoss, squared=False, smooth=0.3, ema_decay=0.8)
    for step, (logits, target) in enumerate(BATCHES):
        _, found = slope(loss, logits, target)
        hits, errors = by_hand(logits, target, 0.8, step, False)
        total = hits + errors + 0.3
        p = torch.sigmoid(logits)
        # L = errors / total, where p of a positive adds 2 to the hits and takes 1 from the errors.
        of_positive = (-1 * total - errors * 1) / total**2
        of_negative = (1 * total - errors * 1) / total**2
        want = p * (1 - p) * torch.where(target == 1, of_positive, of_negative)
        torch.testing.assert_close(found, want)


def test_the_surrogate_takes_its_weights_from_averaged_counts():
    loss = DiceLoss(surrogate="log", smooth=0.3, ema_decay=0.8)
    for step, (logits, target) in enumerate(BATCHES):
        value, _ = slope(loss, logits, target)
        hits, errors = by_hand(logits, target, 0.8, step, False)
        total = hits + errors + 0.3
        f1 = (hits + 0.3) / total
        p = torch.sigmoid(logits)
        prices = torch.where(target == 1, -(2 - f1) * torch.log(p), -f1 * torch.log(1 - p))
        assert value == pytest.approx(prices.mean().item())


def test_a_batch_that_overflowed_is_forgotten():
    logits, target = torch.randn(4, 3, requires_grad=True), torch.tensor([0, 1, 2, 0])
    for before in (0, 2):
        loss, other = (formula(DiceLoss, ema_decay=0.9) for _ in range(2))
        for _ in range(before):
            assert loss(logits, target) == other(logits, target)
        assert loss(torch.full((4, 3), float("nan"), requires_grad=True), target).isnan()
        value = loss(logits, target)
        value.backward()
        assert torch.isfinite(logits.grad).all()
        if not before:
            assert value == other(logits, target)


def test_a_class_counts_for_itself():
    logits, target = torch.randn(2, 9, 3, dtype=torch.float64), torch.randint(0, 3, (2, 9))
    loss = formula(DiceLoss, squared=False, ema_decay=0.5, average="macro", smooth=0.1)
    loss(logits[0], target[0])
    p = torch.softmax(logits, -1)
    want = 0.0
    for c in range(3):
        hits = errors = 0.0
        for batch, share in ((0, 1 / 3), (1, 2 / 3)):
            y = (target[batch] == c).double()
            hits += share * 2 * (p[batch, :, c] * y).sum()
            errors += share * (p[batch, :, c] - y).abs().sum()
        want += (errors / (hits + errors + 0.1)) / 3
    torch.testing.assert_close(loss(logits[1], target[1]), want)


def test_only_training_is_remembered_and_prepare_forgets():
    (first, y), (second, t) = BATCHES[:2]
    loss, fresh = formula(DiceLoss, ema_decay=0.9), formula(DiceLoss)
    loss(first, y)
    with torch.no_grad():
        torch.testing.assert_close(loss(second, t), fresh(second, t))
    torch.testing.assert_close(loss.eval()(second, t), fresh(second, t))
    remembered = copy.deepcopy(loss).train()(second, t)
    assert remembered != fresh(second, t)
    torch.testing.assert_close(loss.train()(second, t), remembered)
    loss.prepare([3, 3])
    torch.testing.assert_close(loss(second, t), fresh(second, t))


def test_starts_and_ends_are_counted_apart():
    both = SpanEndsLoss(formula(DiceLoss, ema_decay=0.9))
    sides = formula(DiceLoss, ema_decay=0.9), formula(DiceLoss, ema_decay=0.9)
    for _ in range(3):
        logits = torch.randn(8, 2)
        target = torch.zeros(8, 3)
        target[0, 2] = 1
        others = [[j for j in range(8) if j != i] for i in range(8)]
        odds = torch.stack(
            [z - logits[j].logsumexp(0) for z, j in zip(logits, others, strict=True)]
        )
        target[torch.randint(8, (1,)), 0] = target[torch.randint(8, (3,)), 1] = 1
        want = sum(loss(odds[:, i], target[:, i]) for i, loss in enumerate(sides)) / 2
        torch.testing.assert_close(both(logits, target), want)


# 1,000 rows with 30 positives, of which a batch of 8 holds 0.24 on average.
@pytest.mark.parametrize(
    ("n_epochs", "n_updates", "decay"),
    [
        (100, 12_500, 1 - 0.24 / 30),
        (1, 125, 1 - 10 / 125),  # of a short training, a tenth
        (1, 8, 0.0),  # and of one of ten updates, nothing
        (10, 150, 0.0),  # two positives in a batch
        (1000, 1_000_000, 0.999),
    ],
)
def test_auto_reaches_back_over_thirty_positives(n_epochs, n_updates, decay):
    loss = DiceLoss().prepare([970, 30], 0, n_epochs=n_epochs, n_updates=n_updates)
    fixed = DiceLoss(ema_decay=decay).prepare([970, 30], 0)
    assert loss.is_stateful == fixed.is_stateful == (decay > 0)
    for logits, target in BATCHES:
        logits = logits.clone().requires_grad_()
        torch.testing.assert_close(loss(logits, target), fixed(logits, target))


@pytest.mark.parametrize(
    ("loss", "inputs", "positives"),
    [
        # A background: all other classes have one ratio.
        (DiceLoss(), {"class_counts": [900, 60, 40], "background": 0}, 0.1),
        # Each class has its own: the rarest that training holds.
        (DiceLoss(), {"class_counts": [900, 60, 40]}, 0.04),
        (DiceLoss(), {"class_counts": [900, 60, 40, 0]}, 0.04),
        (DiceLoss(average="macro"), {"class_counts": [900, 60, 40], "background": 0}, 0.04),
        (DiceLoss(average="macro"), {"class_counts": [40, 60, 900], "background": 0}, 0.06),
        (
            DiceLoss(),
            {"class_counts": [300, 20], "multilabel": True, "n_samples": 1000},
            0.02,
        ),
        (DSCLoss(), {"class_counts": [960, 40], "background": 0}, 0.04),
    ],
)
def test_auto_counts_what_a_ratio_counts(loss, inputs, positives):
    loss.prepare(**inputs, n_epochs=10, n_updates=10_000)
    assert loss.ema_decay_ == pytest.approx(min(1 - positives / 30, 0.999))
    part = CompoundLoss(second=loss).prepare(**inputs, n_epochs=10, n_updates=10_000).second
    assert part.ema_decay_ == loss.ema_decay_


def test_auto_remembers_nothing_unless_it_knows_the_batches():
    formula = DiceLoss(surrogate="none").prepare([99, 1], 0, n_epochs=9, n_updates=900)
    untold, zero = DiceLoss().prepare([99, 1], 0), DiceLoss(ema_decay=0)
    zero.prepare([99, 1], 0, n_epochs=9, n_updates=900)
    assert not any(loss.is_stateful for loss in (DiceLoss(), formula, untold, zero))


@pytest.mark.parametrize(
    ("decay", "error"), [(-0.1, ValueError), (1.1, ValueError), ("always", ValueError)]
)
def test_a_decay_outside_its_range_is_named(decay, error):
    with pytest.raises(error, match="ema_decay"):
        DiceLoss(ema_decay=decay)


@pytest.mark.parametrize("name", ["n_epochs", "n_updates"])
@pytest.mark.parametrize("value", [0, -1, 10**20])
def test_passes_and_updates_outside_their_range_are_named(name, value):
    for loss in (DiceLoss(), CompoundLoss()):
        with pytest.raises(ValueError, match=f"{name}=.* must be an int in the range"):
            loss.prepare([90, 10], **{"n_updates": 3, name: value})


def test_a_loss_for_each_example_has_nothing_to_remember():
    with pytest.raises(ValueError, match=r"ema_decay=0\.9 with average='samples'"):
        DSCLoss(average="samples", ema_decay=0.9)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_new_loss_takes_the_state_of_one_that_trained(prepared):
    (first, y), (second, t) = BATCHES[:2]
    loss, other = (
        DiceLoss(ema_decay=0.9).prepare([3, 3]) if prepared else DiceLoss(ema_decay=0.9)
        for _ in range(2)
    )
    loss(first.requires_grad_(), y)
    other.load_state_dict(loss.state_dict())
    torch.testing.assert_close(other.running_, loss.running_)
    torch.testing.assert_close(other(second, t), loss(second, t))
