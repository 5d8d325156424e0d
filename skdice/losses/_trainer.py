"""skdice's losses in the Hugging Face Trainer."""

from __future__ import annotations

import copy
from typing import Any

from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses._registry import resolve_loss
from skdice.losses.compound import CompoundLoss

__all__ = ["for_trainer"]


class for_trainer:
    """Wrap a loss for ``transformers.Trainer(compute_loss_func=...)``.

    Parameters
    ----------
    loss : str or Loss
        Its ``reduction`` must give one number.
    gradient_accumulation_steps : int or None, default=None
        Divide a set-level loss by this number. None weighs each micro-batch by its share of the
        update's targets, which the Trainer tells.

    Raises
    ------
    ValueError
        If the loss is unknown, has ``reduction="none"``, or a batch has no labels.

    Notes
    -----
    With gradient accumulation, the Trainer hands over the number of targets in the whole update;
    losses that are means over examples divide their sum by it. A set-level loss is one ratio for
    each micro-batch, averaged over the micro-batches: near to, but not the same as, the ratio of
    one big batch, which skdice's own estimators compute.

    The Trainer has no training counts to give: a loss that needs them (``weighted_ce``, and
    ``background="auto"``) must be told by `Loss.prepare` or its parameters.

    Examples
    --------
    >>> from skdice.losses import for_trainer
    >>> compute_loss_func = for_trainer("dsc")  # Trainer(..., compute_loss_func=compute_loss_func)
    """

    def __init__(self, loss: str | Loss, gradient_accumulation_steps: int | None = None) -> None:
        self.loss = resolve_loss(loss)
        self.gradient_accumulation_steps = gradient_accumulation_steps
        if self.loss.reduction == "none":
            raise ValueError(f"loss={loss!r} gives no single number: set reduction='mean'")

    def __repr__(self) -> str:
        return f"for_trainer({self.loss!r})"

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        """The loss of `outputs.logits` (or ``outputs["logits"]``, or the first of a tuple)."""
        if labels is None:
            raise ValueError("labels=None: each example of the data set needs 'labels'")
        logits = _logits(outputs)
        # A compound loss has no sum over examples either.
        set_level = isinstance(self.loss, CompoundLoss) or getattr(self.loss, "is_set_level", False)
        if set_level and self.gradient_accumulation_steps is not None:
            return self.loss(logits, labels) / self.gradient_accumulation_steps
        if num_items_in_batch is None:
            return self.loss(logits, labels)
        if set_level:
            # Without accumulation the share is 1.
            share = labels.ne(-100).sum() / num_items_in_batch
            return self.loss(logits, labels) * share
        multilabel = self.loss.multilabel or getattr(self.loss, "multilabel_", False)
        if labels.shape == logits.shape and not multilabel and logits.ndim > 1:
            # The Trainer counts every entry of a row that is one target.
            num_items_in_batch = num_items_in_batch / logits.shape[-1]
        total = copy.copy(self.loss)
        total.reduction = "sum"
        return total(logits, labels) / num_items_in_batch


def _logits(outputs: Any) -> Tensor:
    if isinstance(outputs, dict):
        return outputs["logits"]
    logits = getattr(outputs, "logits", None)
    return outputs[0] if logits is None else logits
