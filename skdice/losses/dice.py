"""Dice loss (Li et al., 2020, Eq. 5 to 8)."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from skdice.losses._overlap import OverlapLoss

__all__ = ["DiceLoss"]


class DiceLoss(OverlapLoss):
    """Dice loss: one minus a soft F1.

    For one class, with p its probability and y 1 for its examples (Eq. 7, squared)::

        1 - (2 sum p y + smooth) / (sum p^2 + sum y^2 + smooth)

    Parameters
    ----------
    squared : bool, default=True
        Squares in the denominator (Milletari et al., 2016); False leaves them out (Eq. 6).
    smooth : float, default=1.0
        Added to numerator and denominator (gamma in Eq. 5). With 0, a class without examples
        costs 1 unless its probabilities are 0 as well.
    aggregation : {"auto", "pooled", "class", "example"}, default="auto"
        Over what counts are summed before the ratio is taken. "example": over nothing, as in the
        paper's Table 2, then averaged over the counted classes. "class": over the batch, for each
        class. "pooled": over the batch and all counted classes, a soft micro F1. Auto is pooled
        where there is a background class or one logit, and class otherwise.
    background : "auto", int or None, default="auto"
        The class that is no class of its own, such as ``O``: its examples are negatives of the
        others. Auto is what `prepare` was told, and None without it. One logit has classes 0
        and 1, and counts class 1 (background 0) unless that is the background.
    absent : {"auto", "include", "ignore"}, default="auto"
        Whether a class without an example in the batch counts, with ``aggregation="class"``; it
        can then only push its probabilities down. Auto includes it, save with ``surrogate="log"``
        where every class of a softmax counts and no memory knows of earlier batches: with many
        classes most are absent, and their pushes would outweigh the pulls of the others.
    class_weight : sequence of float or None, default=None
        A factor for each class: of its loss ("class", "example") or of its counts ("pooled").
    ohem_ratio : float, default=0.0
        Online hard example mining: above 0, each class keeps only as many of its most probable
        negatives as it has positives, times this ratio, rounded down (at least one, also
        without positives). Examples are counted here, not their weights.
    surrogate : {"none", "log"}, default="none"
        With "log" an example is pulled by its log-probability, as in cross-entropy, with the weight
        that the linear loss gives to its probability in this batch: 2 - F to a positive and F to a
        negative, F being the batch's soft F1. So negatives weigh nothing at first and as much as
        positives when F1 is 1, and no gradient vanishes where p is next to 0. The mean over
        examples is taken, so that slopes are as large as cross-entropy's and clipping treats both
        alike. `squared` is then without meaning. A loss asked for by name, as in
        ``loss="dice"``, has "log" and ``smooth=0.01``; the classes are the formulas alone.
    ema_decay : float, default=0.0
        Above 0, counts are a moving average over the batches of training, in which each batch
        before the last weighs this much less than the next: a batch of 8 rarely holds a rare
        class, and its own counts say nothing of it. 0.99 looks back over about 100 batches. Slopes
        are still the batch's own. `prepare` forgets earlier batches. After ``eval()``, or without
        gradients, the batch's own counts are taken, and not remembered.
    ignore_index : int, default=-100
        Target of positions that do not count.
    multilabel : bool, default=False
        Targets are 0/1 rows and each class has a sigmoid of its own.
    reduction : {"mean", "sum", "none"}, default="mean"
        With "none": one loss an example ("example"), one a class ("class"), or one ("pooled").
        The sum is theirs; the mean is weighted by `sample_weight` and `class_weight`, over what
        mining kept. "pooled" is one number, whatever the reduction.

    Notes
    -----
    Two softmax classes with a background are the same problem as one logit: one class is counted.
    Pooled over *all* classes of a softmax, this is a soft accuracy.

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
    0.0023
    >>> loss.backward()
    """

    def __init__(
        self,
        *,
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

    def _counts(self, p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if self.squared:
            return 2 * p * target, (p - target) ** 2
        return 2 * p * target, p * (1 - target) + (1 - p) * target

    def _prices(self) -> tuple[float, float, float]:
        return 2.0, -1.0, 1.0
