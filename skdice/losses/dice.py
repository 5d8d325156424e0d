"""Dice loss (Li et al., ACL 2020, Eq. 5 to 8; equations are numbered as in the ACL print)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from skdice._checks import KINDS
from skdice.losses._overlap import Formula, OverlapLoss
from skdice.losses.search_ranges import Range, Ranges


def dice_formula(squared: bool = True) -> Formula:
    """A hit counts 2, an error 1: with squares, 2 p y + (p - y)^2 is p^2 + y^2."""
    return Formula(tp=2.0, fp=1.0, fn=1.0, squared=squared, squares_targets=squared)


@dataclass(kw_only=True, eq=False, repr=False)
class DiceLoss(OverlapLoss):
    """Dice loss: one minus a soft F1.

    What trains is cross-entropy, in which a batch's soft F1, F, weighs each example::

        (1/n) sum w (-log p),  w = 2 - F for a positive, F for a negative

    ``DiceLoss.literal()`` is the formula as printed. With p the probability of a positive, and y 1
    for a positive and 0 for a negative, F and the formula over a batch (Eq. 8) are::

        F = (2 sum p y + smooth) / (sum p + sum y + smooth)
        1 - (2 sum p y + smooth) / (sum p^2 + sum y^2 + smooth)

    Here -log p is that of the right side: -log(1 - p) for a negative. F is a constant in the
    backward pass. In a batch of several classes with a background, F is pooled over the other
    classes. Without a background, each class c has its own F_c against all others, with denominator
    D_c. The loss is the mean over the classes, each times mean(D) / D_c: a rare class weighs more.

    The naive loops of ``tests/losses/test_surrogate.py`` and ``test_formulas.py`` check all of it.

    Parameters
    ----------
    squared : bool, default=True
        Square the terms of the denominator (Eq. 7; Milletari et al., 2016). False is Eq. 6. Has no
        effect with ``surrogate="log"``.
    smooth : float, default=0.01
        Added to numerator and denominator (gamma in Eq. 6). With 0, a class without examples
        costs 1 unless its probabilities are 0 as well.
    average : {"auto", "micro", "macro", "samples"}, default="auto"
        What the counts are summed over before the ratio is taken. ``"samples"``: nothing, as in the
        paper's Table 2; the ratios are averaged. ``"macro"``: the batch, for each class.
        ``"micro"``: the batch and all counted classes, a soft micro F1. ``"auto"`` is micro with a
        background class or one logit, and macro otherwise. With ``"macro"``, a class without an
        example in the batch can only push its probabilities down. It counts, except with the
        surrogate in a softmax without background, where most classes may be absent.
    background : "auto", int or None, default="auto"
        The class that is not counted, such as ``O``: its examples are negatives of the others.
        ``"auto"`` is what `prepare` was told, or None if it was not called. One logit has classes 0
        and 1, and counts class 1 (background 0) unless that is the background.
    class_weight : sequence of float, "balanced", dict or None, default=None
        A factor for each class, as in `CrossEntropyLoss`: of its loss ("macro", "samples") or of
        its counts ("micro"). With the surrogate and "micro", an example of the background weighs as
        much as the classes that it is taken for.
    surrogate : {"log", "none"}, default="log"
        ``"log"`` is the weighted cross-entropy above, with the weights that the formula without
        squares gives to an example. Negatives weigh nothing at first, and as much as positives only
        where F reaches 1; below, too many positives are called, and the decision should be tuned.
        No gradient vanishes where p is close to 0, and gradients are as large as those of
        cross-entropy, so that clipping treats both alike. ``"none"`` is the formula alone. It can
        end with every example predicted negative, since its gradient vanishes where p is close
        to 0. The surrogate is not the paper's, and new: it may change.
    ignore_index : int, default=-100
        Target of positions that do not count.
    multilabel : bool, default=False
        Targets are 0/1 rows and each class has a sigmoid of its own.
    reduction : {"mean", "sum", "none"}, default="mean"
        With ``"none"``: one loss for each example ("samples") or for each class ("macro"). The mean
        is weighted by `sample_weight` and `class_weight`. With "micro" there is one number, under
        each reduction.

    See Also
    --------
    DiceLoss.literal : the formula as printed.

    Notes
    -----
    Two softmax classes with a background are the same problem as one logit: one class is counted.
    With counts pooled over *all* classes of a softmax, it is a soft accuracy.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020, Eq. 5 to 8.

    F. Milletari, N. Navab, S. Ahmadi, "V-Net: Fully Convolutional Neural Networks for Volumetric
    Medical Image Segmentation", 3DV 2016.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss
    >>> logits = torch.tensor([[3.0, 0.0], [0.0, 3.0], [3.0, 0.0]], requires_grad=True)
    >>> loss = DiceLoss(background=0)(logits, torch.tensor([0, 1, 0]))
    >>> round(loss.item(), 4)
    0.0475
    >>> loss.backward()
    >>> DiceLoss.literal()
    DiceLoss(average='samples', smooth=1.0, surrogate='none')
    """

    name = "dice"
    _parameter_constraints = {**OverlapLoss._parameter_constraints, "squared": [KINDS["bool"]]}
    formula: ClassVar[Callable[..., Formula]] = staticmethod(dice_formula)
    searched: ClassVar[Ranges] = {"smooth": Range(0.01, 10.0, log=True)}

    squared: bool = True
