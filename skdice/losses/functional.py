"""The losses as pure functions; every keyword is a parameter of the class of the same name.

>>> import torch
>>> from skdice.losses.functional import dice_loss
>>> logits, target = torch.zeros(4, 3), torch.tensor([0, 0, 1, 2])
>>> dice_loss(logits, target, background=0, surrogate="none", smooth=0.0)
tensor(0.5385)
"""

# ruff: noqa: F403
from inspect import isfunction

from skdice.losses import _all
from skdice.losses._all import *

__all__ = [name for name, found in vars(_all).items() if isfunction(found)]
