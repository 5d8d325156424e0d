"""Overlap losses: one minus a ratio of soft counts of true and false positives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from skdice.losses._base import Loss, Problem, check_number, class_vector

__all__ = ["AGGREGATIONS", "OverlapLoss"]

AGGREGATIONS = ("auto", "example", "class", "pooled")


class OverlapLoss(Loss):
    """Base of the dice and Tversky losses; see `DiceLoss` for the shared parameters.

    Every class is a one-vs-rest problem. A subclass says what a score is in terms of soft counts;
    here it is decided over what they are summed before the ratio is taken.
    """

    squared: bool
    smooth: Any
    aggregation: str
    background: int | str | None
    absent: str
    class_weight: Any
    ohem_ratio: float

    def _check(self) -> None:
        super()._check()
        if self.aggregation not in AGGREGATIONS:
            raise ValueError(f"aggregation={self.aggregation!r} must be one of {AGGREGATIONS}")
        if self.absent not in ("include", "ignore"):
            raise ValueError(f"absent={self.absent!r} must be 'include' or 'ignore'")
        check_number("smooth", self.smooth, 0)
        check_number("ohem_ratio", self.ohem_ratio, 0)
        wrong = isinstance(self.background, str) and self.background != "auto"
        if wrong or not isinstance(self.background, (int, str, type(None))):
            raise ValueError(
                f"background={self.background!r} must be 'auto', None or the index of a class"
            )

    # ---- what a subclass defines

    def _activation(self, p: Tensor, log_not_p: Tensor) -> Tensor:
        """What stands in for the probability."""
        return p

    def _counts(self, p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Soft counts of shape (N, C): numerator and denominator, without smooth."""
        raise NotImplementedError

    def _score(self, numerator: Tensor, denominator: Tensor) -> Tensor:
        tiny = torch.finfo(denominator.dtype).tiny
        # clamp: with smooth=0, no positives and no probability the ratio would be 0/0.
        return (numerator + self.smooth) / (denominator + self.smooth).clamp(min=tiny)

    # ---- aggregation

    def _loss(self, problem: Problem) -> Tensor:
        n_classes = problem.logits.shape[-1]
        columns, how = self._columns(problem, n_classes)
        target = problem.target
        log_not_p = problem.log_not_p()
        p = self._activation(torch.exp(problem.log_p()), log_not_p)
        weight = problem.element_weight.expand_as(target)
        if self.ohem_ratio:
            weight = weight * self._hard(p, target, weight)
        numerator, denominator = self._counts(p, target)
        if how == "example":
            losses = 1 - self._score(numerator, denominator)
            if self.ohem_ratio:
                losses = losses * (weight > 0)
            share = columns / columns.sum().clamp(min=torch.finfo(p.dtype).tiny)
            elements = (losses * share).sum(-1)
            if problem.kind == "multilabel":
                elements = losses * columns
            return self._reduce(elements, problem)
        numerator, denominator = (weight * numerator).sum(0), (weight * denominator).sum(0)
        alive = (problem.weight.sum() > 0).to(p.dtype)  # an empty batch has no loss, and no NaN
        if how == "pooled":
            numerator, denominator = (columns * numerator).sum(), (columns * denominator).sum()
            return alive * (1 - self._score(numerator, denominator))
        losses = alive * (1 - self._score(numerator, denominator))
        if self.absent == "ignore":
            present = ((weight * target).sum(0) > 0).to(p.dtype)
            columns = columns * present
        if self.reduction == "none":
            return losses * columns
        if self.reduction == "sum":
            return (losses * columns).sum()
        return (losses * columns).sum() / columns.sum().clamp(min=torch.finfo(p.dtype).tiny)

    def _columns(self, problem: Problem, n_classes: int) -> tuple[Tensor, str]:
        """A factor for each class, 0 for the background, and over what to aggregate."""
        like = problem.target
        columns = class_vector("class_weight", self.class_weight, n_classes, like)
        if columns is None:
            columns = torch.ones(n_classes, dtype=like.dtype, device=like.device)
        background = self.background
        if background == "auto":
            background = getattr(self, "background_", None)
        if problem.kind != "multiclass":
            background = None  # a sigmoid problem has no output for "none of these"
        if background is not None:
            if not 0 <= int(background) < n_classes:
                raise ValueError(
                    f"background={background} is no class: the logits have {n_classes} classes"
                )
            columns = columns * (torch.arange(n_classes, device=like.device) != int(background))
        how = self.aggregation
        if how == "auto":
            # Over all classes of a softmax, pooled false positives equal false negatives.
            pooled = background is not None or problem.kind == "binary"
            how = "pooled" if pooled else "class"
        return columns, how

    def _hard(self, p: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """1 for the positives and the hardest negatives of each class, 0 for the rest."""
        valid = weight > 0
        positive = valid & (target > 0.5)
        negative = valid & ~positive
        k = (positive.sum(0) * self.ohem_ratio).floor().clamp(min=1)
        score = torch.where(negative, p.detach(), torch.full_like(p, -1.0))
        rank = score.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
        return (positive | (negative & (rank < k))).to(p.dtype)
