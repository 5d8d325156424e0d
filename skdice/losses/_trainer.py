"""skdice's losses in the Hugging Face Trainer."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses._overlap import OverlapLoss
from skdice.losses._registry import resolve_loss

__all__ = ["for_trainer"]


class for_trainer:
    """Wrap a loss for ``transformers.Trainer(compute_loss_func=...)``.

    Parameters
    ----------
    loss : str or Loss
    gradient_accumulation_steps : int, default=1
        The Trainer's setting of that name, which a set-level loss must know.

    Notes
    -----
    With gradient accumulation, the Trainer hands over the number of targets in the whole update;
    losses that are means over examples divide their sum by it. A set-level loss is one ratio for
    each micro-batch, averaged over the micro-batches: near to, but not the same as, the ratio of
    one big batch, which skdice's own estimators compute.

    Examples
    --------
    >>> from skdice.losses import for_trainer
    >>> compute_loss_func = for_trainer("dsc")  # Trainer(..., compute_loss_func=compute_loss_func)
    """

    def __init__(self, loss: str | Loss, gradient_accumulation_steps: int = 1) -> None:
        self.loss = resolve_loss(loss)
        self.gradient_accumulation_steps = gradient_accumulation_steps

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss of `outputs.logits` (or ``outputs["logits"]``, or the first of a tuple)."""
        if isinstance(outputs, dict):
            logits = outputs["logits"]
        else:
            logits = getattr(outputs, "logits", None)
            logits = outputs[0] if logits is None else logits
        if num_items_in_batch is None or isinstance(self.loss, OverlapLoss):
            return self.loss(logits, labels) / self.gradient_accumulation_steps
        total = copy.copy(self.loss)
        total.reduction = "sum"
        return total(logits, labels) / num_items_in_batch
