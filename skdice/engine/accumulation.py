"""One update from several micro-batches that equals the update from one big batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from skdice.engine.devices import FitRandomState
from skdice.engine.layouts.layout import Batch, targets_of


def accumulate(net: Any, batch: Sequence[Batch], draws: FitRandomState) -> tuple[Tensor, Tensor]:
    """Gradients of the loss over all micro-batches together, in a micro-batch's memory.

    A set-level loss is no sum over micro-batches, so its gradient with respect to all logits is
    taken first, and each micro-batch is then run again, with the same dropout, to carry its share
    of that gradient down.

    Returns
    -------
    logits, loss : Tensor
    """
    states, parts = [], []
    for inputs, _, _ in batch:
        states.append(draws.states())
        with torch.no_grad():
            parts.append(net.logits_of(inputs))
    outputs = torch.cat(parts).requires_grad_()
    logits = net.of_texts(outputs, batch)
    loss = net.loss_of(logits, *targets_of(batch))
    (gradient,) = torch.autograd.grad(net.scaler_.scale(loss), outputs)
    after = draws.states()
    shares = gradient.split([len(part) for part in parts])
    for (inputs, _, _), state, share in zip(batch, states, shares, strict=True):
        draws.set_states(state)
        net.logits_of(inputs).backward(share)
    draws.set_states(after)
    return logits.detach(), loss
