"""Losses by name."""

from __future__ import annotations

from skdice.losses import _all
from skdice.losses._base import Loss

LOSSES: dict[str, type[Loss]] = {
    cls.name: cls for cls in vars(_all).values() if isinstance(cls, type) and issubclass(cls, Loss)
}
LOSS_NAMES: tuple[str, ...] = tuple(LOSSES)
# What a comparison runs by default: the paper's six losses and `ce_dice`.
COMPARED: tuple[str, ...] = LOSS_NAMES[: LOSS_NAMES.index("ce_dice") + 1]


def resolve_loss(loss: str | Loss) -> Loss:
    """Make a loss from its name, with default parameters. A loss object is returned as it is.

    Parameters
    ----------
    loss : str or Loss

    Returns
    -------
    Loss

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
    (FocalLoss(), DSCLoss())
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} must be one of {list(LOSSES)} or an skdice loss object")
    if loss not in LOSSES:
        raise ValueError(f"loss={loss!r} is unknown: use one of {list(LOSSES)}, or a loss object")
    return LOSSES[loss]()
