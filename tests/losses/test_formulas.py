"""Every loss against a naive loop over its formula."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import (
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.losses.cross_entropy import class_weights
from tests.losses.formulas import formula

seeds = st.integers(0, 2**16)
sizes = st.tuples(st.integers(1, 7), st.integers(2, 5))
SLOW = settings(deadline=None, max_examples=12)


def softmax(row):
    top = max(row)
    e = [math.exp(v - top) for v in row]
    return [v / sum(e) for v in e]


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


def draw(seed, n, c):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, c, generator=generator, dtype=torch.float64)
    target = torch.randint(c, (n,), generator=generator)
    weight = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
    return logits, target, weight


def naive_weighted_mean(losses, weight):
    return sum(x * w for x, w in zip(losses, weight, strict=True)) / sum(weight)


def naive_score(kind, counts, smooth, alpha=None, beta=None):
    """One minus the ratio; counts are (p, t, weight) triples, p after any decay."""
    if kind == "tversky":
        tp = sum(w * p * t for p, t, w in counts)
        fp = sum(w * p**2 * (1 - t) for p, t, w in counts)
        fn = sum(w * (1 - p) ** 2 * t for p, t, w in counts)
        return 1 - (tp + smooth) / (tp + alpha * fp + beta * fn + smooth)
    tp = sum(w * p * t for p, t, w in counts)
    power = 2 if kind == "squared" else 1
    below = sum(w * (p**power + t**power) for p, t, w in counts)
    return 1 - (2 * tp + smooth) / (below + smooth)


def naive_overlap(kind, probabilities, onehot, weight, columns, how, smooth, **params):
    """Aggregate over nothing, over the batch for each class, or over batch and classes."""
    if how == "micro":
        triples = [
            (p[c], t[c], w)
            for p, t, w in zip(probabilities, onehot, weight, strict=True)
            for c in columns
        ]
        return naive_score(kind, triples, smooth, **params)
    if how == "macro":
        losses = []
        for c in columns:
            triples = [
                (p[c], t[c], w) for p, t, w in zip(probabilities, onehot, weight, strict=True)
            ]
            losses.append(naive_score(kind, triples, smooth, **params))
        return sum(losses) / len(losses)
    losses = [
        sum(naive_score(kind, [(p[c], t[c], 1)], smooth, **params) for c in columns) / len(columns)
        for p, t in zip(probabilities, onehot, strict=True)
    ]
    return naive_weighted_mean(losses, weight)


OVERLAPS = {
    "dice squared": ("squared", lambda **k: formula(DiceLoss, squared=True, **k), 0.0, {}),
    "dice linear": ("linear", lambda **k: formula(DiceLoss, squared=False, **k), 0.0, {}),
    "dsc": ("squared", lambda **k: formula(DSCLoss, exponent=0.7, **k), 0.7, {}),
    "dsc linear": (
        "linear",
        lambda **k: formula(DSCLoss, exponent=1.5, squared=False, **k),
        1.5,
        {},
    ),
    "tversky": (
        "tversky",
        lambda **k: formula(TverskyLoss, alpha=0.2, beta=0.9, **k),
        0.0,
        {"alpha": 0.2, "beta": 0.9},
    ),
}


@pytest.mark.parametrize("how", ["samples", "macro", "micro"])
@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("background", [None, 0, 1])
@SLOW
@given(seeds, sizes, st.sampled_from([0.01, 1.0, 3.0]))
def test_overlap_losses_multiclass(name, how, background, seed, size, smooth):
    kind, make, exponent, params = OVERLAPS[name]
    logits, target, weight = draw(seed, *size)
    loss = make(average=how, background=background, smooth=smooth)
    got = loss(logits, target, sample_weight=weight)
    probabilities = [[(1 - p) ** exponent * p for p in softmax(row)] for row in logits.tolist()]
    onehot = [[float(c == t) for c in range(size[1])] for t in target.tolist()]
    columns = [c for c in range(size[1]) if c != background]
    want = naive_overlap(
        kind, probabilities, onehot, weight.tolist(), columns, how, smooth, **params
    )
    assert got.item() == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("how", ["samples", "macro", "micro"])
@pytest.mark.parametrize("name", OVERLAPS)
@SLOW
@given(seeds, sizes)
def test_overlap_losses_with_sigmoids(name, how, seed, size):
    kind, make, exponent, params = OVERLAPS[name]
    n, c = size
    logits, _, weight = draw(seed, n, c)
    onehot = (torch.rand(n, c, generator=torch.Generator().manual_seed(seed)) > 0.5).double()
    probabilities = [
        [(1 - sigmoid(z)) ** exponent * sigmoid(z) for z in row] for row in logits.tolist()
    ]
    got = make(average=how, multilabel=True)(logits, onehot, sample_weight=weight)
    want = naive_overlap(
        kind, probabilities, onehot.tolist(), weight.tolist(), range(c), how, 1.0, **params
    )
    assert got.item() == pytest.approx(want, abs=1e-9)
    one = naive_overlap(
        kind,
        [[p[0]] for p in probabilities],
        [[t[0]] for t in onehot.tolist()],
        weight.tolist(),
        [0],
        how,
        1.0,
        **params,
    )
    for z, t in (
        (logits[:, 0], onehot[:, 0]),
        (logits[:, :1], onehot[:, :1]),
        (logits[:, 0], onehot[:, 0].long()),
    ):
        binary = make(average=how)(z, t, sample_weight=weight)
        assert binary.item() == pytest.approx(one, abs=1e-9)


@SLOW
@given(seeds, sizes, st.floats(0, 4))
def test_focal(seed, size, gamma):
    logits, target, weight = draw(seed, *size)
    losses = []
    for row, t in zip(logits.tolist(), target.tolist(), strict=True):
        p = softmax(row)[t]
        losses.append(-((1 - p) ** gamma) * math.log(p))
    got = FocalLoss(gamma=gamma)(logits, target, sample_weight=weight)
    assert got.item() == pytest.approx(naive_weighted_mean(losses, weight.tolist()), abs=1e-9)
    # A single alpha is for the positives, its complement for the background.
    factors = [0.25 if t == 0 else 0.75 for t in target.tolist()]
    got = FocalLoss(gamma=gamma, alpha=0.75, background=0, reduction="none")(logits, target)
    expected = [f * x for f, x in zip(factors, losses, strict=True)]
    assert got.tolist() == pytest.approx(expected, abs=1e-9)
    one = FocalLoss(gamma=gamma, alpha=0.75, reduction="none")(logits[:, 0], target.clamp(max=1))
    want = []
    for z, t in zip(logits[:, 0].tolist(), target.clamp(max=1).tolist(), strict=True):
        p = sigmoid(z) if t else 1 - sigmoid(z)
        want.append(-(0.75 if t else 0.25) * (1 - p) ** gamma * math.log(p))
    assert one.tolist() == pytest.approx(want, abs=1e-9)
    # Without a background there is nothing to weigh them against, for indices and distributions.
    alike = FocalLoss(gamma=gamma, alpha=0.75, reduction="none")
    soft = torch.nn.functional.one_hot(target, logits.shape[1]).to(logits)
    assert alike(logits, target).tolist() == pytest.approx(losses, abs=1e-9)
    assert alike(logits, soft).tolist() == pytest.approx(losses, abs=1e-9)


@SLOW
@given(seeds, sizes, st.sampled_from([1.0, 2.0, 5.0]))
def test_weighted_cross_entropy(seed, size, K):
    logits, target, weight = draw(seed, *size)
    counts = [10.0 * (c + 1) ** 2 for c in range(size[1])]
    n = sum(counts)
    alpha = [math.log10((n - c) / c + K) for c in counts]
    losses = [
        -alpha[t] * math.log(softmax(row)[t])
        for row, t in zip(logits.tolist(), target.tolist(), strict=True)
    ]
    loss = WeightedCrossEntropyLoss(K=K).prepare(counts)
    got = loss(logits, target, sample_weight=weight)
    assert got.item() == pytest.approx(naive_weighted_mean(losses, weight.tolist()), abs=1e-9)
    assert loss.weights_.tolist() == pytest.approx(alpha)
    # It divides by N, where torch divides by the sum of the class weights.
    given_weights = WeightedCrossEntropyLoss(class_weight=alpha)(logits, target)
    assert given_weights.item() == pytest.approx(sum(losses) / len(losses), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-4, 0.01, 100.0])
@pytest.mark.parametrize("multilabel", [False, True])
def test_class_counts_may_be_sums_of_small_weights(scale, multilabel):
    # scikit-learn's boosting gives weights that sum to 1.
    logits = torch.tensor([[0.3, -1.0, 2.0], [2.0, 0.1, 0.4]], dtype=torch.float64)
    target = torch.tensor([[0, 1, 1], [1, 0, 0]]) if multilabel else torch.tensor([2, 0])
    counts, small = [70.0, 25.0, 5.0], [70.0 * scale, 25.0 * scale, 5.0 * scale]
    for loss in (WeightedCrossEntropyLoss(K=2.0), CrossEntropyLoss(tau=1.0)):
        want = loss.prepare(counts, multilabel=multilabel, n_samples=100)(logits, target)
        got = loss.prepare(small, multilabel=multilabel, n_samples=100 * scale)
        torch.testing.assert_close(got(logits, target), want)
    # A label that is always on: what is left of the sum is rounding, and no count.
    n = 0.7 + 1e-14
    assert class_weights(torch.tensor([n - 0.7, 0.4]), n, K=2.0).max() < 1
    # An absent class is finite all the same, and no more common than the others.
    weights = WeightedCrossEntropyLoss().prepare([9 * scale, scale, 0]).weights_
    assert torch.isfinite(weights).all()
    assert weights[2] >= weights[1] > weights[0]


def test_weighted_cross_entropy_weighs_both_sides_of_each_label():
    logits = torch.tensor([[0.3, -1.0], [2.0, 0.1], [-0.4, 0.5]], dtype=torch.float64)
    target = torch.tensor([[1, 0], [0, 0], [0, 1]])
    counts, n = [10.0, 40.0], 100
    loss = WeightedCrossEntropyLoss().prepare(counts, multilabel=True, n_samples=n)
    want = 0.0
    for row, labels in zip(logits.tolist(), target.tolist(), strict=True):
        for z, t, count in zip(row, labels, counts, strict=True):
            p = sigmoid(z) if t else 1 - sigmoid(z)
            mine = count if t else n - count
            want -= math.log10((n - mine) / mine + 1) * math.log(p)
    assert loss(logits, target).item() == pytest.approx(want / 6)


@pytest.mark.parametrize("tau", [0.25, 1.0, torch.tensor(0.5)])
def test_cross_entropy_with_the_log_prior_added_to_the_logits(tau):
    logits = torch.tensor([[0.3, -1.0, 2.0], [2.0, 0.1, 0.4]], dtype=torch.float64)
    counts, n = [70.0, 25.0, 5.0], 100
    strength = float(tau)

    target = torch.tensor([2, 0])
    want = 0.0
    for row, t in zip(logits.tolist(), target.tolist(), strict=True):
        shifted = [z + strength * math.log(c / n) for z, c in zip(row, counts, strict=True)]
        want -= math.log(softmax(shifted)[t]) / 2
    got = CrossEntropyLoss(tau=tau).prepare(counts)(logits, target)
    assert got.item() == pytest.approx(want)

    labels = torch.tensor([[1, 0, 0], [0, 1, 1]])
    want = 0.0
    for row, ts in zip(logits.tolist(), labels.tolist(), strict=True):
        for z, t, c in zip(row, ts, counts, strict=True):
            p = sigmoid(z + strength * math.log(c / (n - c)))
            want -= math.log(p if t else 1 - p) / 6
    loss = CrossEntropyLoss(tau=tau).prepare(counts, multilabel=True, n_samples=n)
    assert loss(logits, labels).item() == pytest.approx(want)

    p = sigmoid(0.3 + strength * math.log(10 / 90))
    loss = CrossEntropyLoss(tau=tau).prepare([90, 10])
    assert loss(logits[:1, 0], torch.tensor([1])).item() == pytest.approx(-math.log(p))


@SLOW
@given(seeds, sizes, st.floats(0, 1))
def test_cross_entropy_is_torchs(seed, size, smoothing):
    logits, target, _ = draw(seed, *size)
    class_weight = torch.rand(size[1], generator=torch.Generator().manual_seed(seed)).double()
    for reduction in ("mean", "sum", "none"):
        ours = CrossEntropyLoss(label_smoothing=smoothing, reduction=reduction)(logits, target)
        theirs = torch.nn.functional.cross_entropy(
            logits, target, label_smoothing=smoothing, reduction=reduction
        )
        torch.testing.assert_close(ours, theirs)
    ours = CrossEntropyLoss(class_weight=class_weight, label_smoothing=smoothing, reduction="none")
    theirs = torch.nn.functional.cross_entropy(
        logits, target, class_weight, label_smoothing=smoothing, reduction="none"
    )
    torch.testing.assert_close(ours(logits, target), theirs)
    soft = torch.softmax(logits.flip(0), -1)
    expected = torch.nn.functional.cross_entropy(logits, soft)
    torch.testing.assert_close(CrossEntropyLoss()(logits, soft), expected)
    labels = (soft > 1 / size[1]).double()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    torch.testing.assert_close(CrossEntropyLoss(multilabel=True)(logits, labels), expected)


def test_soft_targets_of_dice():
    logits, _, _ = draw(0, 5, 3)
    soft = torch.softmax(draw(1, 5, 3)[0], -1)
    p = [softmax(row) for row in logits.tolist()]
    want = naive_overlap("squared", p, soft.tolist(), [1] * 5, [1, 2], "micro", 1.0)
    got = formula(DiceLoss, background=0)(logits, soft)
    assert got.item() == pytest.approx(want, abs=1e-9)
