"""Losses for imbalanced data, usable alone like any `torch.nn` loss.

>>> import torch
>>> from skdice.losses import DSCLoss
>>> logits = torch.zeros(4, 3, requires_grad=True)
>>> DSCLoss(background=0)(logits, torch.tensor([0, 0, 1, 2])).backward()
"""

# ruff: noqa: I001

# A new loss is one file and a line here. They are in the order of all lists.
from skdice.losses.cross_entropy import CrossEntropyLoss as CrossEntropyLoss
from skdice.losses.cross_entropy import WeightedCrossEntropyLoss as WeightedCrossEntropyLoss
from skdice.losses.focal import FocalLoss as FocalLoss
from skdice.losses.dice import DiceLoss as DiceLoss
from skdice.losses.tversky import TverskyLoss as TverskyLoss
from skdice.losses.dsc import DSCLoss as DSCLoss
from skdice.losses.compound import CompoundLoss as CompoundLoss

from skdice.losses.base import LOSSES as LOSSES
from skdice.losses.base import Loss as Loss
from skdice.losses.trainer import for_trainer as for_trainer

LOSS_NAMES: tuple[str, ...] = tuple(LOSSES)

__all__ = [*(cls.__name__ for cls in LOSSES.values()), "LOSSES", "LOSS_NAMES", "Loss"]
__all__ += ["for_trainer"]
