"""Overlap losses: one minus a ratio of soft counts of true and false positives."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from skdice.losses._base import (
    Loss,
    Problem,
    check_background,
    check_number,
    class_vector,
)

__all__ = ["AGGREGATIONS", "OverlapLoss"]

AGGREGATIONS = ("auto", "example", "class", "pooled")
ABSENT = ("auto", "include", "ignore")
SURROGATES = ("none", "log")


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
    surrogate: str
    ema_decay: Any

    # Counts of earlier batches and how many there were, each decayed: (3, C), or None at first.
    running_: Tensor | None = None

    def _check(self) -> None:
        super()._check()
        if self.aggregation not in AGGREGATIONS:
            raise ValueError(f"aggregation={self.aggregation!r} must be one of {AGGREGATIONS}")
        if self.absent not in ABSENT:
            raise ValueError(f"absent={self.absent!r} must be one of {ABSENT}")
        check_number("smooth", self.smooth, 0)
        check_number("ohem_ratio", self.ohem_ratio, 0)
        check_number("ema_decay", self.ema_decay, 0, 1)
        if self.aggregation == "example" and self._remembers:
            raise ValueError(
                f"ema_decay={self.ema_decay!r} with aggregation='example', which counts nothing "
                "over batches: take 'auto', 'class' or 'pooled', or ema_decay=0"
            )
        if self.surrogate not in SURROGATES:
            raise ValueError(f"surrogate={self.surrogate!r} must be one of {SURROGATES}")
        if self.surrogate == "log" and (self.aggregation == "example" or self.reduction != "mean"):
            raise ValueError(
                f"surrogate='log' with aggregation={self.aggregation!r} and reduction="
                f"{self.reduction!r}: it weighs the examples of a batch by its counts, so take "
                "'auto', 'class' or 'pooled', and 'mean', or surrogate='none'"
            )
        check_background(self.background)

    @property
    def is_set_level(self) -> bool:
        """Whether it is more than a mean over examples, so that batches do not add up."""
        mines = isinstance(self.ohem_ratio, Tensor) or self.ohem_ratio > 0
        return self.aggregation != "example" or mines

    def prepare(self, *args: Any, **kwargs: Any) -> Self:
        """Tell the loss about the training data and forget earlier batches; see `Loss.prepare`."""
        self.running_ = None
        return super().prepare(*args, **kwargs)

    # ---- what a subclass defines

    def _activation(self, problem: Problem) -> Tensor:
        """Probabilities, or what stands in for them."""
        return problem.p()

    def _counts(self, p: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Soft counts of shape (N, C): of what agrees and of what does not, none negative."""
        raise NotImplementedError

    def _prices(self) -> tuple[Any, Any, Any]:
        """Hits and errors that a unit of p makes of a positive, and errors that it makes of a
        negative, where counts are not squared.
        """
        raise NotImplementedError

    def _focused(self, losses: Tensor, wrong: Tensor) -> Tensor:
        """Losses of examples, weighed by how wrong each is; only with a surrogate."""
        return losses

    def _ratio(self, hits: Tensor, errors: Tensor) -> Tensor:
        # The same as 1 - (hits + smooth) / (hits + errors + smooth), but never below 0 or above 1,
        # and exact where the loss is small.
        total = hits + errors + self.smooth
        # clamp: with smooth=0, no positives and no probability the ratio would be 0/0; it is 0.
        return errors / total.clamp(min=torch.finfo(total.dtype).tiny)

    # ---- aggregation

    def _loss(self, problem: Problem) -> Tensor:
        problem, background = self._with_background(problem)
        n_classes = problem.logits.shape[-1]
        columns, how, ignores = self._columns(problem, background)
        target = problem.target
        weight = problem.element_weight.expand_as(target)
        if isinstance(self.ohem_ratio, Tensor) or self.ohem_ratio > 0:
            # By log-odds: they order also what rounds to 0 or 1, and what an activation bends.
            log_odds = (problem.log_p() - problem.log_not_p()).detach()
            weight = weight * self._kept(log_odds, target, weight)
        if how == "class" and ignores:
            columns = columns * ((weight * target).sum(0) > 0)
        if self.surrogate == "log":
            return self._pulled(problem, weight, columns, how)
        p = self._activation(problem)
        hits, errors = self._counts(p, target)
        tiny = torch.finfo(p.dtype).tiny
        if how == "example":
            losses = self._ratio(hits, errors)
            if self.reduction == "mean":
                share = weight * columns
                return (losses * share).sum() / share.sum().clamp(min=tiny)
            losses = losses * weight * columns / columns.sum().clamp(min=tiny)
            losses = losses * n_classes if problem.kind == "multilabel" else losses.sum(-1)
            return losses.sum() if self.reduction == "sum" else losses.reshape(problem.shape)
        hits, errors = self._averaged((weight * hits).sum(0), (weight * errors).sum(0))
        if how == "pooled":
            return self._ratio((columns * hits).sum(), (columns * errors).sum())
        losses = self._ratio(hits, errors)
        if self.reduction == "mean":
            return (losses * columns).sum() / columns.sum().clamp(min=tiny)
        return (losses * columns).sum() if self.reduction == "sum" else losses * columns

    @property
    def _remembers(self) -> bool:
        return isinstance(self.ema_decay, Tensor) or self.ema_decay > 0

    def _averaged(self, hits: Tensor, errors: Tensor) -> tuple[Tensor, Tensor]:
        """Counts of the batch; in training, their moving average over batches."""
        if not (self._remembers and self.training and torch.is_grad_enabled()):
            return hits, errors
        total = torch.stack([hits, errors, torch.ones_like(hits)]).detach()
        # A batch that overflowed, as fp16 may, is not remembered.
        total = torch.where(total.isfinite().all(), total, 0.0)
        if self.running_ is not None:
            total = total + self.ema_decay * self.running_.to(total)
        self.running_ = total
        mean = total[:2] / total[2]
        # The average's value and the batch's own slope.
        return mean[0] + (hits - hits.detach()), mean[1] + (errors - errors.detach())

    def _pulled(self, problem: Problem, weight: Tensor, columns: Tensor, how: str) -> Tensor:
        """Cross-entropy of each example, weighed as the linear ratio weighs its probability.

        Up to a factor that makes it a mean over examples, as cross-entropy is. The ratio's own
        slopes are larger by far, and most so in batches with positives: clipping a gradient's norm
        would take from these alone.
        """
        target, p = problem.target, problem.p().detach()
        tiny = torch.finfo(p.dtype).tiny
        per_hit, per_right, per_wrong = self._prices()
        right = weight * target
        # Of the linear counts, as the prices are; hits + errors + smooth is what it divides by.
        hits = per_hit * (right * p).sum(0)
        missed, false = (right * (1 - p)).sum(0), (weight * (1 - target) * p).sum(0)
        hits, errors = self._averaged(hits, per_wrong * false - per_right * missed)
        if how == "pooled":
            hits, errors = (columns * hits).sum(), (columns * errors).sum()
        else:
            columns = columns / columns.sum().clamp(min=tiny)
        total = (hits + errors + self.smooth).clamp(min=tiny)
        size = total if how == "pooled" else (columns * total).sum()
        n, square = problem.element_weight.sum(), total**2
        # Where nothing counts (an empty batch) or, with smooth=0, nothing is called positive, 0.
        scale = torch.where((n > 0) & (square > tiny), size / n.clamp(min=tiny) / square, 0.0)
        gain = scale * (per_hit * errors - per_right * (hits + self.smooth))
        cost = scale * per_wrong * (hits + self.smooth)
        pulled = self._focused(-target * problem.log_p(), 1 - p)
        pulls = (weight * pulled).sum(0)
        if how == "pooled" and problem.kind == "multiclass":
            # An example of the background costs by what it gives to all the classes at once.
            given = p * (columns > 0)
            prices = (weight * columns * given).sum(1) / given.sum(1).clamp(min=tiny)
            lost = (pulled * (columns == 0)).sum(1)
            return gain * (columns * pulls).sum() + cost * (prices * lost).sum()
        pushes = self._focused(-weight * (1 - target) * problem.log_not_p(), p).sum(0)
        return (columns * (gain * pulls + cost * pushes)).sum()

    def _columns(self, problem: Problem, background: int | None) -> tuple[Tensor, str, bool]:
        """A factor for each class, 0 for the background; over what to aggregate; and whether
        classes that are absent from the batch are ignored.
        """
        like = problem.target
        n_classes = like.shape[-1]
        columns = class_vector("class_weight", self.class_weight, n_classes, like)
        if columns is None:
            columns = torch.ones(n_classes, dtype=like.dtype, device=like.device)
        if background is not None:
            columns = columns * (torch.arange(n_classes, device=like.device) != background)
        how = self.aggregation
        if how == "auto":
            # Over all classes of a softmax, pooled false positives equal false negatives.
            pooled = background is not None or problem.kind == "binary"
            how = "pooled" if pooled else "class"
        ignores = self.absent == "ignore"
        if self.absent == "auto" and problem.kind == "multiclass" and background is None:
            ignores = self.surrogate == "log" and not self._remembers
        return columns, how, ignores

    def _kept(self, log_odds: Tensor, target: Tensor, weight: Tensor) -> Tensor:
        """1 for the positives and the hardest negatives of each class, 0 for the rest."""
        valid = weight > 0
        positive = valid & (target > 0.5)
        negative = valid & ~positive
        # The thousandth: 100 positives at ratio 0.29 are 29 negatives, not 28.99... rounded down.
        k = (positive.sum(0) * self.ohem_ratio + 1e-3).floor().clamp(min=1)
        score = torch.where(negative, log_odds, torch.full_like(log_odds, -torch.inf))
        rank = score.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
        mined = positive | (negative & (rank < k))
        if isinstance(self.ohem_ratio, Tensor):  # no branch on a tensor's value
            mined = mined | (valid & (self.ohem_ratio <= 0))
        return mined.to(log_odds.dtype)
