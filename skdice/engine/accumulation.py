"""One update from several micro-batches that equals the update from one big batch."""

from __future__ import annotations

import torch
from skorch import NeuralNet

from skdice.engine.devices import random_states, set_random_states
from skdice.engine.encoded import Update


def accumulate(net: NeuralNet, batch: Update) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of the loss over all micro-batches together, in a micro-batch's memory.

    A set-level loss is no sum over micro-batches, so its gradient with respect to all logits is
    taken first, and each micro-batch is then run again, with the same dropout, to carry its share
    of that gradient down.

    Returns
    -------
    logits, loss : Tensor
    """
    states, outputs = [], []
    for part in batch.parts:
        states.append(random_states(net.device))
        with torch.no_grad():
            outputs.append(net.outputs(part.groups))
    joined = torch.cat(outputs).requires_grad_()
    logits = batch.of_texts(joined, net.device)
    loss = net.get_loss(logits, batch.target, batch)
    (gradient,) = torch.autograd.grad(net.scaler_.scale(loss), joined)
    after = random_states(net.device)
    shares = gradient.split([len(of_part) for of_part in outputs])
    for part, state, share in zip(batch.parts, states, shares, strict=True):
        set_random_states(state, net.device)
        net.outputs(part.groups).backward(share)
    set_random_states(after, net.device)
    return logits.detach(), loss
