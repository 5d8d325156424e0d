"""The losses as functions; every keyword is a parameter of the class of the same name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses.cross_entropy import CrossEntropyLoss, WeightedCrossEntropyLoss
from skdice.losses.dice import DiceLoss
from skdice.losses.dsc import DSCLoss
from skdice.losses.focal import FocalLoss
from skdice.losses.tversky import TverskyLoss

__all__ = [
    "cross_entropy",
    "dice_loss",
    "dsc_loss",
    "focal_loss",
    "tversky_loss",
    "weighted_cross_entropy",
]


def _call(
    loss: Loss, logits: Tensor, target: Tensor, weight: Tensor | None, mask: Tensor | None
) -> Tensor:
    return loss(logits, target, sample_weight=weight, mask=mask)


def _told(loss: Loss, class_counts: Any) -> Loss:
    return loss if class_counts is None else loss.prepare(class_counts)


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    class_counts: Any = None,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Cross-entropy, with `tau` from `class_counts`; see `CrossEntropyLoss`.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses.functional import cross_entropy
    >>> cross_entropy(torch.zeros(2, 2), torch.tensor([0, 1]))
    tensor(0.6931)
    """
    return _call(
        _told(CrossEntropyLoss(**params), class_counts), logits, target, sample_weight, mask
    )


def weighted_cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    class_counts: Any = None,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Weighted cross-entropy from `class_counts` or `class_weight`.

    See `WeightedCrossEntropyLoss`.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses.functional import weighted_cross_entropy
    >>> weighted_cross_entropy(torch.zeros(2, 2), torch.tensor([0, 1]), class_counts=[90, 10])
    tensor(0.3624)
    """
    loss = _told(WeightedCrossEntropyLoss(**params), class_counts)
    return _call(loss, logits, target, sample_weight, mask)


def focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Focal loss; see `FocalLoss`."""
    return _call(FocalLoss(**params), logits, target, sample_weight, mask)


def dice_loss(
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Dice loss; see `DiceLoss`."""
    return _call(DiceLoss(**params), logits, target, sample_weight, mask)


def tversky_loss(
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Tversky loss; see `TverskyLoss`."""
    return _call(TverskyLoss(**params), logits, target, sample_weight, mask)


def dsc_loss(
    logits: Tensor,
    target: Tensor,
    *,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    **params: Any,
) -> Tensor:
    """Self-adjusting dice loss; see `DSCLoss`."""
    return _call(DSCLoss(**params), logits, target, sample_weight, mask)
