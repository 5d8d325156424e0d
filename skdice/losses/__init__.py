"""Losses for imbalanced text, usable alone like any `torch.nn` loss.

>>> import torch
>>> from skdice.losses import DSCLoss
>>> logits = torch.zeros(4, 3, requires_grad=True)
>>> DSCLoss(background=0)(logits, torch.tensor([0, 0, 1, 2])).backward()
"""

# ruff: noqa: F403
from skdice.losses._all import *
from skdice.losses._base import Loss as Loss
from skdice.losses._qa import HeadsLoss as HeadsLoss
from skdice.losses._qa import SpanEndsLoss as SpanEndsLoss
from skdice.losses._registry import COMPARED as COMPARED
from skdice.losses._registry import LOSS_NAMES as LOSS_NAMES
from skdice.losses._registry import LOSSES as LOSSES
from skdice.losses._registry import resolve_loss as resolve_loss
from skdice.losses._spaces import OneMinus as OneMinus
from skdice.losses._spaces import Range as Range
from skdice.losses._trainer import for_trainer as for_trainer
