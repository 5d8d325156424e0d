"""Tversky loss (Salehi et al., 2017; Li et al., 2020, Eq. 9 and 10)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from skdice.losses._base import check_number
from skdice.losses._overlap import OverlapLoss

__all__ = ["TverskyLoss"]


class TverskyLoss(OverlapLoss):
    """Tversky loss: a dice loss that weighs false positives and false negatives apart.

    For one class, with p its probability and y 1 for its examples::

        1 - (TP + smooth) / (TP + alpha FP + beta FN + smooth)

    where TP = sum p y, FP = sum p^2 (1 - y), FN = sum (1 - p)^2 y; without squares if not
    `squared`. Alpha = beta = 1/2 is the dice loss with half its `smooth`.

    Parameters
    ----------
    alpha : float, default=0.3
        Weight of false positives; a larger one favours precision.
    beta : float, default=0.7
        Weight of false negatives; a larger one favours recall.
    squared : bool, default=True
    smooth, aggregation, background, absent, class_weight, ohem_ratio, surrogate, ema_decay
        As in `DiceLoss`.
    ignore_index, multilabel, reduction
        As in `DiceLoss`.

    Notes
    -----
    Under a softmax, soft counts summed over *all* classes have FP = FN, so that alpha and beta
    only matter through their sum. They act where there is a background, or class by class.

    References
    ----------
    S. Salehi, D. Erdogmus, A. Gholipour, "Tversky loss function for image segmentation using 3D
    fully convolutional deep networks", MLMI 2017.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import TverskyLoss
    >>> logits, target = torch.zeros(4, 2), torch.tensor([0, 0, 0, 1])
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7, background=0, smooth=0.0)
    >>> round(loss(logits, target).item(), 4)
    0.4444
    """

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        beta: float = 0.7,
        squared: bool = True,
        smooth: float = 1.0,
        aggregation: str = "auto",
        background: int | str | None = "auto",
        absent: str = "auto",
        class_weight: Any = None,
        ohem_ratio: float = 0.0,
        surrogate: str = "none",
        ema_decay: float = 0.0,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.alpha = alpha
        self.beta = beta
        self.squared = squared
        self.smooth = smooth
        self.aggregation = aggregation
        self.background = background
        self.absent = absent
        self.class_weight = class_weight
        self.ohem_ratio = ohem_ratio
        self.surrogate = surrogate
        self.ema_decay = ema_decay
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction
        self._check()
        check_number("alpha", alpha, 0)
        check_number("beta", beta, 0)
        numbers = not isinstance(alpha, Tensor) and not isinstance(beta, Tensor)
        if numbers and alpha + beta == 0:
            raise ValueError("alpha=0 and beta=0 count no error at all: set one of them above 0")

    def _counts(self, p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        hit, missed, power = p * target, 1 - p, 2 if self.squared else 1
        false_positive = p**power * (1 - target)
        false_negative = missed**power * target
        return hit, self.alpha * false_positive + self.beta * false_negative

    def _prices(self) -> tuple[Any, Any, Any]:
        return 1.0, -self.beta, self.alpha
