"""Soft F1 over sigmoids of a chosen slope and offset (Bénédict et al., 2022)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from skdice._compat import StrOptions
from skdice.losses._overlap import overlap_loss, resolve_average
from skdice.losses._parameters import (
    BACKGROUND,
    CLASS_WEIGHT,
    MOST,
    ClassWeight,
    Number,
    PerClass,
    number,
)
from skdice.losses.base import Loss
from skdice.losses.dice import dice_formula
from skdice.losses.inputs import LossInputs, resolve_background
from skdice.losses.search_ranges import Range, Ranges


def sigmoid_f1(
    inputs: LossInputs,
    *,
    beta: Number,
    eta: Number,
    average: str,
    background: int | None,
    class_weight: PerClass,
) -> Tensor:
    """One minus a soft F1 of steeper or shifted sigmoids; see `SigmoidF1Loss`."""
    inputs, background = resolve_background(inputs, background)
    average = resolve_average(inputs, average, background)
    # Each class is a label of its own, whose score is its log-odds.
    scored = replace(
        inputs.with_logits(beta * (inputs.log_p() - inputs.log_not_p() + eta)),
        kind="multilabel",
    )
    return overlap_loss(
        scored,
        dice_formula(squared=False),
        smooth=0.0,
        average=average,
        background=background,
        class_weight=class_weight,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class SigmoidF1Loss(Loss):
    """sigmoidF1: one minus a soft F1 whose counts are steeper or shifted sigmoids.

    A score u counts as a positive by ``S(u) = 1 / (1 + exp(-beta (u + eta)))``, and over a batch::

        1 - 2 TP / (2 TP + FP + FN)

    where TP = sum S y, FP = sum S (1 - y), FN = sum (1 - S) y.

    Parameters
    ----------
    beta : float, default=1.0
        Slope of the sigmoid. The larger it is, the closer the counts are to those of hard
        decisions.
    eta : float, default=0.0
        Offset. Above 0, slightly negative scores count as positives, too. With beta 1 and eta 0, S
        is the probability and the loss is the dice loss without squares.
    average : {"auto", "micro", "macro"}, default="auto"
        ``"micro"`` is one F1 of counts over all classes. ``"macro"`` is the mean of one F1 for each
        class, as in the authors' code. ``"auto"`` is micro with a background class or one logit,
        and macro otherwise.
    background : "auto", int or None, default="auto"
        The class that is not counted. ``"auto"`` is what `prepare` was told. See `DiceLoss`.
    class_weight : sequence of float, "balanced", dict or None, default=None
        A factor for each class, as in `CrossEntropyLoss`: of its loss ("macro") or of its
        counts ("micro").
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean", "sum", "none"}, default="mean"
        Of the classes' losses; "micro" is one number, whatever the reduction.

    Notes
    -----
    The paper is about multi-label problems, where the score is the logit. Here the score of a
    softmax class is its log-odds, ``log(p / (1 - p))``: each class is a problem of its own against
    the rest, and two classes with a background are the same as one logit.

    References
    ----------
    G. Bénédict, V. Koops, D. Odijk, M. de Rijke, "sigmoidF1: A Smooth F1 Score Surrogate Loss for
    Multilabel Classification", TMLR 2022.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import SigmoidF1Loss
    >>> logits, target = torch.tensor([2.0, -1.0, 0.5]), torch.tensor([1, 0, 0])
    >>> round(SigmoidF1Loss(beta=5.0)(logits, target).item(), 4)
    0.3176
    """

    name = "sigmoid_f1"
    heeds_weights = True
    kernel: ClassVar[Callable[..., Tensor]] = staticmethod(sigmoid_f1)
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "beta": number(0, closed="right"),
        "eta": number(-MOST),
        "average": [StrOptions({"auto", "micro", "macro"})],
        "background": BACKGROUND,
        "class_weight": CLASS_WEIGHT,
    }
    searched: ClassVar[Ranges] = {"beta": Range(0.5, 10.0, log=True), "eta": Range(-2.0, 2.0)}
    excludes_background = True
    is_set_level = True

    beta: Number = 1.0
    eta: Number = 0.0
    average: str = "auto"
    background: int | str | None = "auto"
    class_weight: ClassWeight = None
