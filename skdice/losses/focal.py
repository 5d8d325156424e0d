"""Focal loss (Lin et al., 2017; Li et al., 2020, Table 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from skdice.losses._base import (
    Loss,
    Problem,
    check_background,
    check_number,
    check_per_class,
    class_vector,
)

__all__ = ["FocalLoss"]


class FocalLoss(Loss):
    """Focal loss: -alpha (1 - p)^gamma log p of the right class.

    Parameters
    ----------
    gamma : float, default=2.0
        How fast examples that are already right lose weight; 0 is cross-entropy.
    alpha : float, sequence of float or None, default=None
        Factor for each class. A number is the factor of the positives, whose complement to 1 the
        background or negative class gets. A sequence has (2,) factors for one logit, and for a
        multi-label problem those of each label's positives.
    background : "auto", int or None, default="auto"
        The class that a single `alpha` takes as negative; auto is what `prepare` was told. One
        logit has classes 0 and 1, of which 0 is negative unless 1 is given.
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

    def __init__(
        self,
        *,
        gamma: float = 2.0,
        alpha: Any = None,
        background: int | str | None = "auto",
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha
        self.background = background
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction
        self._check()
        check_background(background)
        check_number("gamma", gamma, 0)
        if isinstance(alpha, (int, float, np.number)):
            check_number("alpha", alpha, 0, 1)
        else:
            check_per_class("alpha", alpha)

    def _elements(self, problem: Problem) -> Tensor:
        problem, background = self._with_background(problem)
        log_p, log_not_p = problem.log_p(), problem.log_not_p()
        target, gamma = problem.target, self.gamma
        n_classes = target.shape[-1]
        alpha: Any = self.alpha
        number = alpha is not None and (
            isinstance(alpha, (int, float, np.number))
            or (isinstance(alpha, Tensor) and alpha.ndim == 0)
        )
        if problem.kind == "multiclass":
            factor: Any = 1.0
            if number:
                factor = alpha
                if background is not None:
                    classes = torch.arange(n_classes, device=target.device)
                    negative = classes.eq(background)
                    factor = torch.where(negative, 1.0 - alpha, 1.0 * alpha).to(target)
            elif alpha is not None:
                factor = class_vector("alpha", alpha, n_classes, target)
            return -(factor * target * torch.exp(gamma * log_not_p) * log_p).sum(-1)
        positive, negative_factor = (
            (1.0, 1.0) if alpha is None else (alpha, 1.0 - alpha if number else 1.0)
        )
        if alpha is not None and not number:
            if n_classes == 1:
                pair = class_vector("alpha", alpha, 2, target)
                assert pair is not None
                positive, negative_factor = pair[..., 1], pair[..., 0]
            else:
                positive = class_vector("alpha", alpha, n_classes, target)
        elements = -(
            positive * target * torch.exp(gamma * log_not_p) * log_p
            + negative_factor * (1 - target) * torch.exp(gamma * log_p) * log_not_p
        )
        return elements[:, 0] if problem.kind == "binary" else elements
