"""Losses for imbalanced data, usable alone like any `torch.nn` loss.

>>> import torch
>>> from skdice.losses import DSCLoss
>>> logits = torch.zeros(4, 3, requires_grad=True)
>>> DSCLoss(background=0)(logits, torch.tensor([0, 0, 1, 2])).backward()
"""

# ruff: noqa: I001
from typing import Any

# A new loss is one file and a line here. They are in the order of all lists.
from skdice.losses.cross_entropy import CrossEntropyLoss as CrossEntropyLoss
from skdice.losses.cross_entropy import WeightedCrossEntropyLoss as WeightedCrossEntropyLoss
from skdice.losses.focal import FocalLoss as FocalLoss
from skdice.losses.dice import DiceLoss as DiceLoss
from skdice.losses.tversky import TverskyLoss as TverskyLoss
from skdice.losses.dsc import DSCLoss as DSCLoss
from skdice.losses.compound import CompoundLoss as CompoundLoss
from skdice.losses.sigmoid_f1 import SigmoidF1Loss as SigmoidF1Loss
from skdice.losses.asymmetric import AsymmetricLoss as AsymmetricLoss
from skdice.losses.mom import MoMLoss as MoMLoss

from skdice.losses.base import LOSSES as LOSSES
from skdice.losses.base import Loss as Loss
from skdice.losses.trainer import for_trainer as for_trainer

LOSS_NAMES: tuple[str, ...] = tuple(LOSSES)
# The rows of a comparison by default: the paper's six losses and `ce_dice`.
COMPARED: tuple[str, ...] = LOSS_NAMES[: LOSS_NAMES.index("ce_dice") + 1]

__all__ = [*(cls.__name__ for cls in LOSSES.values()), "COMPARED", "LOSSES", "LOSS_NAMES", "Loss"]
__all__ += ["for_trainer"]

# Names that were public, and what takes their place.
_CALL_THE_CLASS = "call the class, as in DiceLoss(smooth=0.1)(logits, target)"
_GONE = dict.fromkeys(
    (
        *("functional", "asymmetric_loss", "dice_loss", "dsc_loss", "focal_loss", "mom_loss"),
        *("sigmoid_f1_loss", "tversky_loss", "weighted_cross_entropy"),
    ),
    _CALL_THE_CLASS,
) | {
    "HeadsLoss": "DiceMRCTagger makes it from the losses that it is given",
    "SpanEndsLoss": "DiceQuestionAnswerer makes it from the loss that it is given",
    "OneMinus": "give LossSearchCV a function, lambda params: 1 - params['loss__alpha']",
    "Range": "search_space() holds them, as in DiceLoss.search_space()['smooth'].low",
    "resolve_loss": "LOSSES has the classes by name, as in LOSSES['dice']()",
}


def __getattr__(name: str) -> Any:
    if name in _GONE:  # an AttributeError would lose its message in `from skdice.losses import`
        raise ImportError(f"skdice.losses has no {name} any more: {_GONE[name]}")
    raise AttributeError(f"module 'skdice.losses' has no attribute {name!r}")
