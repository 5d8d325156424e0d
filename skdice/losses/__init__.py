"""Losses for imbalanced text, usable alone like any `torch.nn` loss.

>>> import torch
>>> from skdice.losses import DSCLoss
>>> logits = torch.zeros(4, 3, requires_grad=True)
>>> DSCLoss(background=0)(logits, torch.tensor([0, 0, 1, 2])).backward()
"""

from skdice.losses._base import Loss
from skdice.losses._qa import HeadsLoss, SpanEndsLoss
from skdice.losses._registry import LOSSES, resolve_loss
from skdice.losses._trainer import for_trainer
from skdice.losses.compound import CompoundLoss
from skdice.losses.cross_entropy import CrossEntropyLoss, WeightedCrossEntropyLoss
from skdice.losses.dice import DiceLoss
from skdice.losses.dsc import DSCLoss
from skdice.losses.focal import FocalLoss
from skdice.losses.functional import (
    cross_entropy,
    dice_loss,
    dsc_loss,
    focal_loss,
    tversky_loss,
    weighted_cross_entropy,
)
from skdice.losses.tversky import TverskyLoss

__all__ = [
    "LOSSES",
    "CompoundLoss",
    "CrossEntropyLoss",
    "DSCLoss",
    "DiceLoss",
    "FocalLoss",
    "HeadsLoss",
    "Loss",
    "SpanEndsLoss",
    "TverskyLoss",
    "WeightedCrossEntropyLoss",
    "cross_entropy",
    "dice_loss",
    "dsc_loss",
    "focal_loss",
    "for_trainer",
    "resolve_loss",
    "tversky_loss",
    "weighted_cross_entropy",
]
