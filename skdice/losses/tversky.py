"""Tversky loss (Salehi et al., 2017; Li et al., ACL 2020, Eq. 9 and 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from skdice._checks import KINDS
from skdice.losses._overlap import Formula, OverlapLoss
from skdice.losses._parameters import Number, is_above_zero, number
from skdice.losses.search_ranges import OneMinus, Range, Ranges


def tversky_formula(alpha: Number = 0.3, beta: Number = 0.7, squared: bool = True) -> Formula:
    """A hit counts 1, a false positive alpha and a false negative beta."""
    return Formula(tp=1.0, fp=alpha, fn=beta, squared=squared)


@dataclass(kw_only=True, eq=False, repr=False)
class TverskyLoss(OverlapLoss):
    """Tversky loss: a dice loss with separate weights for false positives and false negatives.

    By default it is cross-entropy with the weights that this formula without squares gives to the
    examples of a batch; see `DiceLoss`. With p the probability of a positive, and y 1 for a
    positive and 0 for a negative (Eq. 10, over a batch)::

        1 - (TP + smooth) / (TP + alpha FP + beta FN + smooth)

    where TP = sum p y, FP = sum p^2 (1 - y), FN = sum (1 - p)^2 y; without the squares if
    ``squared=False``. Alpha = beta = 1/2 is the dice loss with half its `smooth`.

    Parameters
    ----------
    alpha : float, default=0.3
        Weight of false positives. A larger weight favours precision.
    beta : float, default=0.7
        Weight of false negatives. A larger weight favours recall.
    squared : bool, default=True
        Has no effect with ``surrogate="log"``.
    smooth, average, background, class_weight, surrogate
        As in `DiceLoss`.
    ignore_index, multilabel, reduction
        As in `DiceLoss`.

    See Also
    --------
    TverskyLoss.literal : the formula as printed.

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
    >>> loss = TverskyLoss(alpha=0.3, beta=0.7, background=0, smooth=0.0, surrogate="none")
    >>> round(loss(logits, target).item(), 4)
    0.4444
    """

    name = "tversky"
    _parameter_constraints = {
        **OverlapLoss._parameter_constraints,
        "alpha": number(0),
        "beta": number(0),
        "squared": [KINDS["bool"]],
    }
    formula: ClassVar[Callable[..., Formula]] = staticmethod(tversky_formula)
    searched: ClassVar[Ranges] = {"alpha": Range(0.1, 0.9), "beta": OneMinus("alpha")}
    literal_params: ClassVar[dict[str, Any]] = {**OverlapLoss.literal_params, "squared": False}

    alpha: Number = 0.3
    beta: Number = 0.7
    squared: bool = True

    def _check(self) -> None:
        super()._check()
        if not (is_above_zero(self.alpha) or is_above_zero(self.beta)):
            raise ValueError("alpha=0 and beta=0 count no error at all: set one of them above 0")
