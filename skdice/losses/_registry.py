"""Losses by name."""

from __future__ import annotations

from skdice.losses._base import Loss
from skdice.losses.cross_entropy import CrossEntropyLoss, WeightedCrossEntropyLoss
from skdice.losses.dice import DiceLoss
from skdice.losses.dsc import DSCLoss
from skdice.losses.focal import FocalLoss
from skdice.losses.tversky import TverskyLoss

__all__ = ["LOSSES", "resolve_loss"]

LOSSES: dict[str, type[Loss]] = {
    "ce": CrossEntropyLoss,
    "weighted_ce": WeightedCrossEntropyLoss,
    "focal": FocalLoss,
    "dice": DiceLoss,
    "tversky": TverskyLoss,
    "dsc": DSCLoss,
}


def resolve_loss(loss: str | Loss) -> Loss:
    """A loss from its name; a loss object is returned as it is.

    Raises
    ------
    ValueError
        If there is no loss of that name.
    TypeError
        If `loss` is neither.

    Examples
    --------
    >>> from skdice.losses import resolve_loss
    >>> resolve_loss("dsc")
    DSCLoss()
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} must be one of {list(LOSSES)} or an skdice loss object")
    if loss not in LOSSES:
        raise ValueError(f"loss={loss!r} is unknown: use one of {list(LOSSES)}, or a loss object")
    return LOSSES[loss]()
