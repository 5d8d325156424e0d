"""Sums over the processes that train together."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Sum(torch.autograd.Function):
    """A sum over processes; its gradient is the sum of the gradients of all processes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.detach().clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        total = upstream.clone()
        torch.distributed.all_reduce(total)
        return total


def over_ranks(values: Tensor, ranks: int) -> Tensor:
    """Values added over processes, with gradients."""
    if ranks == 1:
        return values
    total: Tensor = _Sum.apply(values)
    return total


def n_ranks(all_ranks: bool) -> int:
    """Processes of torch.distributed that train together; 1 where nothing is trained."""
    if not (all_ranks and torch.is_grad_enabled() and torch.distributed.is_available()):
        return 1
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
