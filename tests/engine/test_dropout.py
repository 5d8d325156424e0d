from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from skdice import DiceSequenceClassifier
from skdice.engine.parts import FastDropout, _drawn_attention, drop


@pytest.mark.parametrize("p", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(100_001,), (333, 301)])
def test_a_share_of_p_is_dropped_and_the_others_are_scaled(p, shape):
    torch.manual_seed(0)
    values = torch.rand(shape) + 0.5
    found = drop(values, p)
    kept = found != 0
    spread = (p * (1 - p) / values.numel()) ** 0.5
    assert abs((~kept).float().mean().item() - p) < 5 * spread
    torch.testing.assert_close(found[kept], values[kept] / (1 - p), rtol=1e-3, atol=0)


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    dropped = drop(torch.ones(400_000), 0.3) == 0
    for shift in (1, 2, 3, 4):
        both = (dropped[shift:] & dropped[:-shift]).float().mean().item()
        assert abs(both - 0.09) < 0.003


def test_the_seed_decides():
    draws = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        draws.append(drop(torch.ones(1000), 0.5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_the_gradient_is_that_of_the_scaled_mask():
    values = torch.randn(500, requires_grad=True)
    found = drop(values, 0.4)
    (gradient,) = torch.autograd.grad(found.sum(), values)
    torch.testing.assert_close(gradient * values, found)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_and_everything(p):
    torch.testing.assert_close(drop(torch.ones(7), p), torch.full((7,), 1.0 - p))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_type_stays(dtype):
    assert drop(torch.ones(10, dtype=dtype), 0.5).dtype == dtype


def test_evaluation_changes_nothing():
    values = torch.randn(50)
    assert FastDropout(0.5).eval()(values) is values


def test_attention_has_the_expectation_of_attention_without_dropout():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 2, 5, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])[:, None, None]
    expected = F.scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close(_drawn_attention(q, k, v, mask, 0.0, None), expected)
    draws = torch.stack([_drawn_attention(q, k, v, mask, 0.2, None) for _ in range(4000)])
    error = draws.std(dim=0) / 4000**0.5
    assert ((draws.mean(dim=0) - expected).abs() < 5 * error + 1e-3).all()


def test_every_dropout_of_a_model_is_fast(tiny_backbone):
    model = DiceSequenceClassifier(backbone=tiny_backbone, pooling="native", max_epochs=1)
    module = model.fit(["win money", "lunch"], [1, 0]).net_.module_
    kinds = {type(part) for part in module.modules() if isinstance(part, nn.Dropout)}
    assert kinds == {FastDropout}
