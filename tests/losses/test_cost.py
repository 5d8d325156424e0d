"""What a call of a loss costs: the kernels that a GPU starts, and what a reader has to read."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from skdice.losses import inputs
from skdice.losses.base import resolve_loss

# Operators that start no kernel.
VIEWS = {"view", "reshape", "expand", "unsqueeze", "squeeze", "detach", "select", "slice", "alias"}
VIEWS |= {"_unsafe_view", "t", "transpose", "unbind", "split", "permute", "promote_types"}


class Operators(TorchDispatchMode):
    """Counts operators."""

    n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.n += function.overloadpacket.__name__ not in VIEWS
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "most"), [("ce", 35), ("dice", 75), ("ce_dice", 100)])
def test_kernels_of_a_loss_on_a_gpu(monkeypatch, name, most):
    """Forward and backward, of tokens with weights. No value is checked that nobody reads."""
    monkeypatch.setattr(inputs, "on_cpu", lambda values: False)
    loss = resolve_loss(name).prepare([100] + [10] * 8, background=0)
    logits = torch.randn(64, 9, generator=torch.Generator().manual_seed(0)).requires_grad_()
    target, weight = torch.arange(64) % 9, torch.ones(64)
    with Operators() as counted:
        loss(logits, target, sample_weight=weight).backward()
    assert counted.n <= most
