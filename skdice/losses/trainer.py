"""skdice's losses in the Hugging Face Trainer."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from skdice._checks import KINDS, check_value, checked, naming, shown
from skdice._compat import InvalidParameterError
from skdice._warn import warn
from skdice.exceptions import CollapseWarning
from skdice.losses._parameters import BACKGROUND, Number, number
from skdice.losses.base import Loss, resolve_loss
from skdice.losses.inputs import n_ranks, over_ranks


class for_trainer:  # noqa: N801 - it is used as a function
    """Wrap a loss for ``transformers.Trainer(compute_loss_func=...)``.

    Parameters
    ----------
    loss : str or Loss
        Its ``reduction`` must give one number.
    background : "auto", int or None, default="auto"
        Index of the background class: ``O``, or the negatives. ``"auto"`` is the loss's own
        `background`, or what `Loss.prepare` was told.
    class_counts : array of shape (n_classes,), default=None
        Training examples of each class, for the losses that need them (``weighted_ce``). For
        several labels a row call `Loss.prepare` before, which takes the number of rows too.

    Raises
    ------
    ValueError
        If the loss is unknown, has ``reduction="none"`` or an `ignore_index` other than the
        Trainer's -100, or a batch has no labels.

    Notes
    -----
    With gradient accumulation, the Trainer hands over the number of targets in the whole update;
    losses that are means over examples divide their sum by it. A set-level loss is one ratio for
    each micro-batch, averaged over the micro-batches by their targets: near to, but not the same
    as, the ratio of one big batch, which skdice's own estimators compute. On several devices its
    ratio is that of all devices' rows, with the Trainer's default
    ``average_tokens_across_devices=True``.

    The estimators know the background and the class counts from the data; here an overlap loss of
    several classes that was not told its background counts every class, and warns.

    Examples
    --------
    >>> from skdice.losses import for_trainer
    >>> compute_loss_func = for_trainer("dsc", background=0)  # for Trainer(compute_loss_func=...)
    """

    @checked
    def __init__(
        self,
        loss: str | Loss,
        *,
        background: int | str | None = "auto",
        class_counts: Any = None,
    ) -> None:
        check_value("background", background, BACKGROUND)
        self.loss: Loss = copy.deepcopy(resolve_loss(loss))  # since it is changed below
        if self.loss.reduction == "none":
            raise ValueError(f"loss={loss!r} gives no single number: set reduction='mean'")
        if self.loss.ignore_index != -100:
            raise ValueError(
                f"loss={loss!r} has ignore_index={self.loss.ignore_index!r}, but the Trainer "
                "counts the labels that are not -100: mark with -100 what is to be ignored"
            )
        parts: list[Any] = [part for part in self.loss.modules() if hasattr(part, "background")]
        if background != "auto":
            for part in parts:
                part.set_params(background=background)
        self._untold = any(
            part.excludes_background
            and part.background == "auto"
            and not hasattr(part, "background_")
            for part in parts
        )
        if class_counts is not None:
            before = getattr(self.loss, "background_", None)
            known = before if isinstance(background, str) else background
            self.loss.prepare(class_counts, background=known)

    def __repr__(self) -> str:
        return f"for_trainer({self.loss!r})"

    def __call__(
        self, outputs: Any, labels: Tensor | None, num_items_in_batch: Number | None = None
    ) -> Tensor:
        """The loss of `outputs.logits` (or ``outputs["logits"]``, or the first of a tuple)."""
        if not isinstance(labels, Tensor):
            raise ValueError(
                f"labels={shown(labels)} is no tensor: each example of the data set needs 'labels'"
            )
        rules = [KINDS["None"], *number(0, closed="right")]
        check_value("num_items_in_batch", num_items_in_batch, rules, InvalidParameterError)
        with naming({"logits": "outputs", "target": "labels"}):
            return self._loss_of(_logits(outputs), labels, num_items_in_batch)

    def _loss_of(self, logits: Tensor, labels: Tensor, num_items_in_batch: Any) -> Tensor:
        multilabel = self.loss.is_multilabel
        if self._untold and logits.ndim > 1 and logits.shape[-1] > 1 and not multilabel:
            self._untold = False
            warn(
                f"{self.loss!r} was not told which class is the background, and counts all "
                f"{logits.shape[-1]} as positive: give for_trainer its index, as background=0, or "
                "None if there is none",
                CollapseWarning,
            )
        self.loss.train(torch.is_grad_enabled())  # the Trainer does not say when it evaluates
        # A compound loss has no sum over examples either.
        set_level = self.loss.is_set_level or "sum" not in self.loss.reductions
        if num_items_in_batch is None:
            return self.loss(logits, labels)
        if set_level:
            # A micro-batch has its share of the update's targets; without accumulation that is 1.
            ranks = n_ranks(self.loss.all_ranks)
            n_targets = over_ranks(labels.ne(-100).sum().to(logits.dtype), ranks)
            # A loss that gets the number of targets is multiplied by the number of devices.
            return self.loss(logits, labels) * n_targets / (num_items_in_batch * ranks)
        if labels.shape == logits.shape and not multilabel and logits.ndim > 1:
            # The Trainer counts each entry of a distribution, which is one target.
            num_items_in_batch = num_items_in_batch / logits.shape[-1]
        total = copy.copy(self.loss)
        total.reduction = "sum"
        return total(logits, labels) / num_items_in_batch


def _logits(outputs: Any) -> Tensor:
    try:
        logits = getattr(outputs, "logits", None)
        if logits is None:
            logits = outputs["logits" if isinstance(outputs, dict) else 0]
    except (KeyError, IndexError, TypeError):
        logits = None
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"outputs={shown(outputs)} must hold a tensor of 'logits', or have it first"
        )
    return logits
