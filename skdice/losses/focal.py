"""Focal loss (Lin et al., 2017; Li et al., 2020, Table 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from skdice.losses._parameters import BACKGROUND, PER_CLASS, Number, PerClass, number
from skdice.losses.base import Loss
from skdice.losses.cross_entropy import log_losses, prior_of
from skdice.losses.inputs import LossInputs, class_sides, resolve_background, scalar
from skdice.losses.search_ranges import Range, Ranges


def focal(
    inputs: LossInputs, *, gamma: Number, alpha: Number | PerClass, background: int | None
) -> Tensor:
    """Focal loss; see `FocalLoss`."""
    inputs, background = resolve_background(inputs, background)
    return inputs.reduce(log_losses(inputs, *_sides(inputs, alpha, background), gamma=gamma))


def _sides(inputs: LossInputs, alpha: Any, background: int | None) -> tuple[Number, Number]:
    """Factors of the positive and of the negative side of each class."""
    if not _is_scalar(alpha):
        return class_sides("alpha", alpha, inputs)
    if inputs.kind != "multiclass":
        return alpha, 1.0 - alpha
    if background is None:  # there is nothing to weigh the positives against
        return 1.0, 1.0
    alpha = scalar(alpha, inputs.logits)  # in the precision of the logits
    classes = torch.arange(inputs.n_classes, device=inputs.logits.device)
    return torch.where(classes == background, 1.0 - alpha, alpha), 1.0


def _is_scalar(alpha: Any) -> bool:
    return isinstance(alpha, (int, float, np.number)) or (
        isinstance(alpha, Tensor) and alpha.ndim == 0
    )


@dataclass(kw_only=True, eq=False, repr=False)
class FocalLoss(Loss):
    """Focal loss: -alpha (1 - p)^gamma log p of the right class.

    Parameters
    ----------
    gamma : float, default=2.0
        How fast well-classified examples lose weight. 0 is cross-entropy.
    alpha : float, sequence of float or None, default=None
        Factor for each class. A number alpha is the factor of the positives, and 1 - alpha that of
        the background or negative class; it has no effect where there is none. A sequence has 2
        factors for one logit, and for a multi-label problem one for the positives of each label.
    background : "auto", int or None, default="auto"
        The class that a single `alpha` takes as negative. ``"auto"`` is what `prepare` was told.
        One logit has classes 0 and 1, of which 0 is negative unless 1 is given.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean", "sum", "none"}, default="mean"

    References
    ----------
    T. Lin, P. Goyal, R. Girshick, K. He, P. Dollar, "Focal Loss for Dense Object Detection",
    ICCV 2017, Eq. 5.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import FocalLoss
    >>> FocalLoss(gamma=2.0)(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.1733)
    """

    name = "focal"
    heeds_weights = True
    kernel: ClassVar[Callable[..., Tensor]] = staticmethod(focal)
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "gamma": number(0),
        "alpha": [*PER_CLASS, *number(0, 1)],
        "background": BACKGROUND,
    }
    searched: ClassVar[Ranges] = {"gamma": Range(0.0, 5.0)}

    gamma: Number = 2.0
    alpha: Number | PerClass = None
    background: int | str | None = "auto"

    def start_bias(self) -> Tensor:
        """The log-prior, weighted as the loss is (section 4.1 of Lin et al.)."""
        alpha: Any = self.alpha
        if not _is_scalar(alpha):
            return prior_of(self, alpha)
        if self.is_multilabel:
            return prior_of(self, alpha, 1.0 - alpha)
        background = self.background_ if self.background == "auto" else self.background
        if background is None:
            return prior_of(self)
        factors = [alpha] * len(self.class_counts_)
        factors[int(background)] = 1.0 - alpha
        return prior_of(self, factors)
