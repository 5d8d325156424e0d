"""Class indices against a table of targets.

The formulas of the table are held to naive loops elsewhere. `on_cpu` decides which way a GPU goes.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
    inputs,
)

share, above = st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.5, 2.0])
average = st.sampled_from(["micro", "macro"])
of_overlap = {
    "average": average,
    "smooth": st.sampled_from([0.0, 0.01, 1.0]),
    "surrogate": st.sampled_from(["log", "none"]),
    "squared": st.booleans(),
}
OPTIONS = {
    CrossEntropyLoss: {"label_smoothing": share, "tau": above},
    WeightedCrossEntropyLoss: {"K": st.sampled_from([1.0, 3.0])},
    FocalLoss: {"gamma": above, "alpha": st.sampled_from([None, 0.3])},
    DiceLoss: of_overlap,
    TverskyLoss: {**of_overlap, "alpha": st.sampled_from([0.2, 0.8])},
    DSCLoss: {**of_overlap, "exponent": above},
}


@pytest.mark.parametrize("cpu", [True, False])
@pytest.mark.parametrize("cls", OPTIONS)
@settings(deadline=None, max_examples=15)
@given(
    data=st.data(),
    seed=st.integers(0, 2**16),
    n=st.integers(1, 9),
    n_classes=st.integers(2, 6),
    spread=st.sampled_from([0.1, 1.0, 5.0, 12.0, 40.0]),
    background=st.sampled_from([None, 0, 1]),
    weighted=st.booleans(),
    sure=st.booleans(),
    by_class=st.booleans(),
    compound=st.booleans(),
)
def test_indices_are_a_table(
    cls, cpu, data, seed, n, n_classes, spread, background, weighted, sure, by_class, compound
):
    loss = cls(**{name: data.draw(values, name) for name, values in OPTIONS[cls].items()})
    generator = torch.Generator().manual_seed(seed)
    logits, direction = torch.randn(2, n, n_classes, generator=generator, dtype=torch.float64)
    logits = spread * logits
    target = torch.randint(n_classes, (n,), generator=generator)
    target = logits.argmax(-1) if sure else target
    weight = torch.rand(n, generator=generator, dtype=torch.float64) if weighted else None
    if by_class and "class_weight" in loss.get_params():
        loss.set_params(class_weight=[0.0, 2.0, 0.7, 1.0, 3.0, 0.1][-n_classes:])
    if compound:
        loss = CompoundLoss("ce", loss, weight=0.5)
    loss.prepare(torch.bincount(target, minlength=n_classes) + 1.0, background)
    smooth = getattr(loss, "gamma", 1.0) != 0.5  # a power whose slope is infinite at 0
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "on_cpu", lambda values: cpu)
        for y in (target, F.one_hot(target, n_classes).double()):
            z = logits.clone().requires_grad_()
            value = loss(z, y, sample_weight=weight)
            (first,) = torch.autograd.grad(value, z, create_graph=True)
            second = torch.zeros_like(z)
            if smooth and first.requires_grad:
                (second,) = torch.autograd.grad((first * direction).sum(), z)
            results.append((value.detach(), first.detach(), second))
            loss.prepare(loss.class_counts_, background)  # which forgets earlier batches
    torch.testing.assert_close(*results, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("background", [None, 0])
@pytest.mark.parametrize("cls", [DiceLoss, TverskyLoss, DSCLoss])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_many_rows_in_few_digits(cls, background, dtype):
    # Counts of a class that is nearly always right are differences of large sums.
    generator = torch.Generator().manual_seed(0)
    target = (torch.rand(200_000, generator=generator) < 0.01).long()
    logits = 9 * (F.one_hot(target, 3) - 0.5) + torch.randn(len(target), 3, generator=generator)
    results = []
    for z in (logits.to(dtype), logits.to(dtype).double()):
        z.requires_grad_()
        value = cls(background=background)(z, target)
        results.append((value.detach().double(), torch.autograd.grad(value, z)[0].double()))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-3, atol=0)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-2, atol=1e-7)
