"""Losses by name."""

from __future__ import annotations

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


# Beside the paper's six.
COMPOUNDS: dict[str, type[Loss]] = {"ce_dice": CompoundLoss}


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
    known = {**LOSSES, **COMPOUNDS}
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} must be one of {list(known)} or an skdice loss object")
    if loss not in known:
        raise ValueError(f"loss={loss!r} is unknown: use one of {list(known)}, or a loss object")
    return known[loss]()
