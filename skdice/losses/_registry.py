"""Losses by name."""

from __future__ import annotations

from typing import Any

from skdice.losses._base import Loss
from skdice.losses.compound import CompoundLoss
from skdice.losses.cross_entropy import CrossEntropyLoss, WeightedCrossEntropyLoss
from skdice.losses.dice import DiceLoss
from skdice.losses.dsc import DSCLoss
from skdice.losses.focal import FocalLoss
from skdice.losses.tversky import TverskyLoss

__all__ = ["COMPOUNDS", "LOSSES", "resolve_loss"]

LOSSES: dict[str, type[Loss]] = {
    "ce": CrossEntropyLoss,
    "weighted_ce": WeightedCrossEntropyLoss,
    "focal": FocalLoss,
    "dice": DiceLoss,
    "tversky": TverskyLoss,
    "dsc": DSCLoss,
}


# What a name stands for where that is not the class's own default: the formula alone can end with
# every example called negative, since its gradient vanishes where p is next to 0, and so can a
# mean of halves. Measured: docs/evidence.md.
TRAINED: dict[str, Any] = {"smooth": 0.01, "surrogate": "log"}
BY_NAME: dict[str, dict[str, Any]] = {
    "dice": TRAINED,
    "tversky": TRAINED,
    "dsc": TRAINED,
    "ce_dice": {"weight": 0.9},
}

# Beside the paper's six.
COMPOUNDS: dict[str, type[Loss]] = {"ce_dice": CompoundLoss}


def resolve_loss(loss: str | Loss) -> Loss:
    """A loss from its name; a loss object is returned as it is.

    By name the overlap losses come with ``surrogate="log"`` and ``smooth=0.01``, which train where
    the formulas alone do not; their classes are the formulas. "ce_dice" is a tenth cross-entropy,
    the rest dice.

    Raises
    ------
    ValueError
        If there is no loss of that name.
    TypeError
        If `loss` is neither.

    Examples
    --------
    >>> from skdice.losses import resolve_loss
    >>> resolve_loss("focal"), resolve_loss("dsc")
    (FocalLoss(), DSCLoss(smooth=0.01, surrogate='log'))
    """
    if isinstance(loss, Loss):
        return loss
    known = {**LOSSES, **COMPOUNDS}
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} must be one of {list(known)} or an skdice loss object")
    if loss not in known:
        raise ValueError(f"loss={loss!r} is unknown: use one of {list(known)}, or a loss object")
    return known[loss](**BY_NAME.get(loss, {}))
