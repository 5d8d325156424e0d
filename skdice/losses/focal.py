"""Focal loss (Lin et al., 2017; Li et al., 2020, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses._checks import (
    Number,
    PerClass,
    check_background,
    check_number,
    check_per_class,
    class_vector,
)
from skdice.losses._problem import Inputs, Problem, as_problem, with_background
from skdice.losses._spaces import Range

__all__ = ["FocalLoss", "focal_loss"]


def focal_loss(
    logits: Tensor,
    target: Tensor,
    *,
    gamma: Number = 2.0,
    alpha: Number | PerClass = None,
    background: int | str | None = None,
    **inputs: Unpack[Inputs],
) -> Tensor:
    """Focal loss; see `FocalLoss`."""
    _check_focal(gamma, alpha, background)
    given: Any = alpha
    problem, negative = with_background(as_problem(logits, target, **inputs), background)
    if problem.index is not None:
        return problem.reduce(_of_right_class(problem, problem.index, gamma, given, negative))
    log_p, log_not_p = problem.log_p(), problem.log_not_p()
    target, n_classes = problem.target, problem.target.shape[-1]
    right = -target * torch.exp(gamma * log_not_p) * log_p
    if problem.kind == "multiclass":
        if not _is_number(given):
            given = class_vector("alpha", given, n_classes, target)
        elif negative is not None:
            is_negative = torch.arange(n_classes, device=target.device) == negative
            given = torch.where(is_negative, 1.0 - given, 1.0 * given).to(target)
        return problem.reduce((right if given is None else given * right).sum(-1))
    wrong = -(1 - target) * torch.exp(gamma * log_p) * log_not_p
    if _is_number(given):
        right, wrong = given * right, (1.0 - given) * wrong
    elif given is not None:
        given = class_vector("alpha", given, max(n_classes, 2), target)
        if n_classes == 1:
            right, wrong = given[..., 1] * right, given[..., 0] * wrong
        else:
            right = given * right
    elements = right + wrong
    return problem.reduce(elements[:, 0] if problem.kind == "binary" else elements)


def _of_right_class(
    problem: Problem, index: Tensor, gamma: Number, alpha: Any, negative: int | None
) -> Tensor:
    """The losses from the probability of each position's right class alone."""
    log_p = problem.log_p_of(index)
    # Below 0, where log(1 - p) is finite; the loss is 0 there, and its gradient.
    log_p = log_p.clamp(max=-torch.finfo(log_p.dtype).tiny)
    losses = -torch.exp(gamma * torch.log(-torch.expm1(log_p))) * log_p
    if not _is_number(alpha):
        factors = class_vector("alpha", alpha, problem.logits.shape[-1], losses)
        return losses if factors is None else losses * factors[..., index]
    if negative is None:
        return losses
    return losses * torch.where(index == negative, 1.0 - alpha, 1.0 * alpha).to(losses)


def _check_focal(gamma: Any, alpha: Any, background: Any) -> None:
    check_background(background)
    check_number("gamma", gamma, 0)
    if _is_number(alpha):
        check_number("alpha", alpha, 0, 1)
    else:
        check_per_class("alpha", alpha)


def _is_number(alpha: Any) -> bool:
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
        the background or negative class. A sequence has 2 factors for one logit, and for a
        multi-label problem one for the positives of each label.
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
    kernel = staticmethod(focal_loss)
    check_own = staticmethod(_check_focal)
    searched = {"gamma": Range(0.0, 5.0)}

    gamma: Number = 2.0
    alpha: Number | PerClass = None
    background: int | str | None = "auto"
