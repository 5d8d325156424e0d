"""Asymmetric loss (Ridnik et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from skdice.losses._parameters import BACKGROUND, Number, number
from skdice.losses.base import Loss
from skdice.losses.cross_entropy import log_losses
from skdice.losses.inputs import LossInputs, resolve_background, scalar
from skdice.losses.search_ranges import Range, Ranges


def asymmetric(
    inputs: LossInputs,
    *,
    gamma_pos: Number,
    gamma_neg: Number,
    clip: Number,
    label_smoothing: Number,
    background: int | None,
) -> Tensor:
    """Asymmetric loss; see `AsymmetricLoss`."""
    inputs, background = resolve_background(inputs, background)
    if inputs.kind == "multiclass" and (background is None or inputs.n_classes > 2):
        return inputs.reduce(_of_softmax(inputs, gamma_pos, gamma_neg, label_smoothing))
    log_p, log_not_p, y = inputs.log_p(), inputs.log_not_p(), inputs.target
    positive = torch.exp(gamma_pos * log_not_p) * log_p
    # log(1 - p_m) for p_m = max(p - clip, 0), finite also where 1 - p rounds to 0.
    margin = scalar(clip, y)
    log_not_p_m = torch.logaddexp(log_not_p, torch.log(margin)).clamp(max=0)
    # Not 0, where a power below 1 has no finite gradient.
    p_m = (inputs.p() - margin).clamp(min=torch.finfo(y.dtype).tiny)
    elements = -(y * positive + (1 - y) * p_m**gamma_neg * log_not_p_m)
    if background is not None:  # of two classes, the other one
        elements = elements[:, 1 - background].unsqueeze(-1)
    return inputs.reduce(elements)


def _of_softmax(
    inputs: LossInputs, gamma_pos: Number, gamma_neg: Number, label_smoothing: Number
) -> Tensor:
    log_p = inputs.log_p()
    negative = torch.exp(gamma_neg * log_p) * log_p
    even = label_smoothing / inputs.n_classes
    if inputs.index is not None:
        positive = -log_losses(inputs, gamma=gamma_pos)
        others = negative.sum(-1, keepdim=True) - inputs.of_true_class(negative)
        return -((1 - label_smoothing + even) * positive + even * others)
    y = inputs.target
    positive = torch.exp(gamma_pos * inputs.log_not_p()) * log_p
    share = (1 - label_smoothing) * y + even
    return -(share * (y * positive + (1 - y) * negative)).sum(-1, keepdim=True)


@dataclass(kw_only=True, eq=False, repr=False)
class AsymmetricLoss(Loss):
    """Asymmetric loss: a focal loss in which easy negatives lose more weight than positives.

    For a label, with p its probability and p_m = max(p - clip, 0) (Eq. 4 to 7)::

        -(1 - p)^gamma_pos log p          where it is on
        -p_m^gamma_neg log(1 - p_m)       where it is off

    Parameters
    ----------
    gamma_pos : float, default=0.0
        How fast well-classified positives lose weight.
    gamma_neg : float, default=4.0
        How fast well-classified negatives lose weight.
    clip : float, default=0.05
        Margin m. A negative with a lower probability costs nothing. Has no effect on the classes of
        a softmax.
    label_smoothing : float, default=0.1
        Share of the target that is spread evenly over the classes of a softmax. Has no effect on
        multi-label problems and one logit.
    background : "auto", int or None, default="auto"
        The negative class of two. ``"auto"`` is what `prepare` was told. One logit has classes 0
        and 1, of which 0 is negative unless 1 is given.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean", "sum", "none"}, default="mean"

    Notes
    -----
    One logit is one label, and so are two classes of which one is the background. Other classes of
    a softmax get what the authors' code calls ``ASLSingleLabel``: cross-entropy with label
    smoothing, with the factor (1 - p)^gamma_pos for the right class and p^gamma_neg for the others.
    Without label smoothing that is the focal loss.

    References
    ----------
    T. Ridnik, E. Ben-Baruch, N. Zamir, A. Noy, I. Friedman, M. Protter, L. Zelnik-Manor,
    "Asymmetric Loss for Multi-Label Classification", ICCV 2021.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import AsymmetricLoss
    >>> AsymmetricLoss(reduction="none")(torch.tensor([0.0, 0.0]), torch.tensor([1, 0]))
    tensor([0.6931, 0.0245])
    """

    name = "asymmetric"
    heeds_weights = True
    kernel: ClassVar[Callable[..., Tensor]] = staticmethod(asymmetric)
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "gamma_pos": number(0),
        "gamma_neg": number(0),
        "clip": number(0, 1),
        "label_smoothing": number(0, 1),
        "background": BACKGROUND,
    }
    searched: ClassVar[Ranges] = {
        "gamma_pos": Range(0.0, 2.0),
        "gamma_neg": Range(0.0, 6.0),
        "clip": Range(0.0, 0.2),
    }

    gamma_pos: Number = 0.0
    gamma_neg: Number = 4.0
    clip: Number = 0.05
    label_smoothing: Number = 0.1
    background: int | str | None = "auto"
