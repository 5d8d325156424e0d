"""Overlap losses: one minus a ratio of soft counts of true and false positives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses._checks import (
    Number,
    PerClass,
    check_choice,
    check_number,
    class_vector,
    is_above_zero,
    scalar,
)
from skdice.losses._problem import Inputs, Problem, as_problem, with_background
from skdice.losses._surrogate import (
    Formula,
    WithGradient,
    at_least_tiny,
    log_surrogate,
    macro_surrogate,
    micro_surrogate,
    right_class_counts,
)
from skdice.losses.cross_entropy import cross_entropy

AVERAGES = ("auto", "micro", "macro", "samples")
ABSENT = ("auto", "include", "ignore")
SURROGATES = ("none", "log")


class OverlapOptions(Inputs, total=False):
    """Keywords of every overlap loss's function; see `DiceLoss`."""

    smooth: Number
    average: str
    background: int | str | None
    absent: str
    class_weight: PerClass
    ohem_ratio: Number
    surrogate: str
    ema_decay: Number


OPTIONS = tuple(
    name for name in OverlapOptions.__annotations__ if name not in Inputs.__annotations__
)


def overlap_loss(
    logits: Tensor,
    target: Tensor,
    formula: Formula,
    *,
    smooth: Number = 0.01,
    average: str = "auto",
    background: int | str | None = None,
    absent: str = "auto",
    class_weight: PerClass = None,
    ohem_ratio: Number = 0.0,
    surrogate: str = "log",
    ema_decay: Number = 0.0,
    running: Tensor | None = None,
    mix: Number | None = None,
    **inputs: Any,
) -> tuple[Tensor, Tensor | None]:
    """An overlap loss, and the counts to remember for the next batch.

    Every class is a one-vs-rest problem. The formula gives the soft counts of each example; the
    options, as in `DiceLoss`, decide what they are summed over before the ratio is taken. `running`
    holds the counts of earlier batches and how many there were, each decayed: (3, C). With `mix` it
    is (1 - mix) cross-entropy + mix times the loss.
    """
    problem = as_problem(logits, target, **inputs)
    reduction = problem.reduction
    _check_options(smooth, average, absent, ohem_ratio, surrogate, ema_decay, reduction)
    problem, background = with_background(problem, background)
    if average == "auto":
        # Over all classes of a softmax, pooled false positives equal false negatives.
        average = "micro" if background is not None or problem.kind == "binary" else "macro"
    if absent == "auto" and problem.kind == "multiclass" and background is None:
        remembers = is_above_zero(ema_decay)
        absent = "ignore" if surrogate == "log" and not remembers else "include"
    of_indices = surrogate == "log" and not is_above_zero(ohem_ratio)
    index = problem.index if of_indices else None
    plain = class_weight is None and not is_above_zero(ema_decay)
    if index is not None and background is not None and average == "micro" and plain:
        return micro_surrogate(problem, index, background, formula, smooth, mix), None
    factors = _class_factors(problem.logits, class_weight, background)
    if index is not None and average == "macro" and problem.logits.shape[-1] > 2:
        counts = right_class_counts(problem, index, formula)
        if absent == "ignore":
            factors = factors * (counts.of_class > 0)
        hits, errors, running = _moving_average(counts.hits, counts.errors, running, ema_decay)
        counts = counts._replace(hits=hits, errors=errors)
        of_log = macro_surrogate(problem, counts, factors, formula, smooth, mix)
        return WithGradient.apply(problem.logits, *of_log), running
    y = problem.target
    weight = problem.element_weight.expand_as(y)
    if is_above_zero(ohem_ratio):
        weight = weight * _hard_negatives(problem, weight, ohem_ratio)
    if average == "macro" and absent == "ignore":
        factors = factors * (problem.total((weight * y).sum(0)) > 0)

    if surrogate == "log":
        p = problem.p().detach()
        hits, errors = problem.total(torch.stack(_linear_counts(p, y, weight, formula)))
        hits, errors, running = _moving_average(hits, errors, running, ema_decay)
        loss = log_surrogate(problem, p, weight, factors, formula, hits, errors, smooth, average)
    elif average == "samples":
        hits, errors = formula.counts(formula.activation(problem), y)
        loss = _mean_over_samples(problem, weight, factors, _ratio(hits, errors, smooth))
    else:
        parts = formula.counts(formula.activation(problem), y)
        hits, errors = problem.total(torch.stack([(weight * part).sum(0) for part in parts]))
        hits, errors, running = _moving_average(hits, errors, running, ema_decay)
        if average == "micro":
            loss = _ratio((factors * hits).sum(), (factors * errors).sum(), smooth)
        else:
            loss = factors * _ratio(hits, errors, smooth)
            loss = loss if reduction == "none" else loss.sum()
            loss = loss / at_least_tiny(factors.sum()) if reduction == "mean" else loss
    if mix is not None:
        loss = torch.lerp(cross_entropy(logits, target, problem=problem), loss, scalar(mix, loss))
    return loss, running


def _check_options(
    smooth: Number,
    average: str,
    absent: str,
    ohem_ratio: Number,
    surrogate: str,
    ema_decay: Number,
    reduction: str,
) -> None:
    check_choice("average", average, AVERAGES)
    check_choice("absent", absent, ABSENT)
    check_number("smooth", smooth, 0)
    check_number("ohem_ratio", ohem_ratio, 0)
    check_number("ema_decay", ema_decay, 0, 1)
    if average == "samples" and is_above_zero(ema_decay):
        raise ValueError(
            f"ema_decay={ema_decay!r} with average='samples', which counts nothing "
            "over batches: take 'auto', 'macro' or 'micro', or ema_decay=0"
        )
    check_choice("surrogate", surrogate, SURROGATES)
    if surrogate == "log" and (average == "samples" or reduction != "mean"):
        raise ValueError(
            f"surrogate='log' with average={average!r} and reduction={reduction!r}: it weighs the "
            "examples of a batch by its counts, so take 'auto', 'macro' or 'micro', and 'mean', or "
            "surrogate='none'"
        )


def _ratio(hits: Tensor, errors: Tensor, smooth: Number) -> Tensor:
    # 1 - (hits + smooth) / (hits + errors + smooth) in a form that is never below 0 or above 1 and
    # exact where the loss is small. It is 0 where that would be 0/0: smooth=0, no positives, and
    # no probability.
    return errors / at_least_tiny(hits + errors + smooth)


def _class_factors(like: Tensor, class_weight: PerClass, background: int | None) -> Tensor:
    """A factor for each class, 0 for the background."""
    n_classes = like.shape[-1]
    factors = class_vector("class_weight", class_weight, n_classes, like)
    if factors is None:
        factors = torch.ones(n_classes, dtype=like.dtype, device=like.device)
    if background is not None:
        factors = factors * (torch.arange(n_classes, device=like.device) != background)
    return factors


def _hard_negatives(problem: Problem, weight: Tensor, ratio: Number) -> Tensor:
    """1 for the positives and the hardest negatives of each class, 0 for the rest."""
    # Log-odds also order probabilities that round to 0 or 1, whatever the activation does.
    log_odds = (problem.log_p() - problem.log_not_p()).detach()
    valid = weight > 0
    positive = valid & (problem.target > 0.5)
    negative = valid & ~positive
    # With the thousandth, 100 positives at ratio 0.29 keep 29 negatives; 28.99... rounds to 28.
    k = (positive.sum(0) * ratio + 1e-3).floor().clamp(min=1)
    score = torch.where(negative, log_odds, torch.full_like(log_odds, -torch.inf))
    rank = score.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    kept = positive | (negative & (rank < k))
    if isinstance(ratio, Tensor):  # no branch on a tensor's value
        kept = kept | (valid & (ratio <= 0))
    return kept.to(log_odds.dtype)


def _moving_average(
    hits: Tensor, errors: Tensor, running: Tensor | None, decay: Number
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Counts averaged over this batch and earlier ones, and the counts to remember."""
    if not is_above_zero(decay):
        return hits, errors, running
    total = torch.stack([hits, errors, torch.ones_like(hits)]).detach()
    # A batch that overflowed, as fp16 may, is not remembered.
    total = torch.where(total.isfinite().all(), total, 0.0)
    if running is not None:
        # `running` starts as zeros for each class; a problem of one logit counts one of two.
        total = total + decay * running.to(total)[..., : hits.shape[-1]]
    mean = total[:2] / total[2]
    # The average's value and the batch's own gradient.
    return mean[0] + (hits - hits.detach()), mean[1] + (errors - errors.detach()), total


def _mean_over_samples(problem: Problem, weight: Tensor, factors: Tensor, losses: Tensor) -> Tensor:
    """One ratio for each example and class, reduced."""
    share = weight * factors
    if problem.reduction == "mean":
        return (losses * share).sum() * problem.ranks / at_least_tiny(problem.total(share.sum()))
    losses = losses * weight * factors / at_least_tiny(factors.sum())
    losses = losses * len(factors) if problem.kind == "multilabel" else losses.sum(-1)
    return losses.sum() if problem.reduction == "sum" else losses.reshape(problem.shape)


def _linear_counts(p: Tensor, y: Tensor, weight: Tensor, formula: Formula) -> tuple[Tensor, Tensor]:
    """Hits and errors of each class without squares; the ratio divides by their sum."""
    per_hit, per_positive, per_negative = formula.gradients
    positives = weight * y
    missed, false = (positives * (1 - p)).sum(0), (weight * (1 - y) * p).sum(0)
    return per_hit * (positives * p).sum(0), per_negative * false - per_positive * missed


@dataclass(kw_only=True, eq=False, repr=False)
class OverlapLoss(Loss):
    """Base of the dice and Tversky losses; see `DiceLoss` for the shared parameters.

    A subclass gives `formula`, a function of the parameters that it adds to those below.
    """

    formula: ClassVar[Callable[..., Formula]]
    check_own = staticmethod(_check_options)
    leaves_background_out = True
    printed: ClassVar[dict[str, Any]] = {"average": "samples", "smooth": 1.0, "surrogate": "none"}

    smooth: Number = 0.01
    average: str = "auto"
    background: int | str | None = "auto"
    absent: str = "auto"
    class_weight: PerClass = None
    ohem_ratio: Number = 0.0
    surrogate: str = "log"
    ema_decay: Number = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        # Counts of earlier batches and how many there were, each decayed: (3, C).
        self.register_buffer("running_", None)

    def _check(self) -> None:
        self.formula(**self._arguments_of(self.formula))
        super()._check()

    @classmethod
    def literal(cls, **params: Any) -> Self:
        """The formula as printed (Table 2): one ratio for each example, without the surrogate.

        Parameters
        ----------
        **params
            Other parameters, and those of the formula to change.
        """
        return cls(**{**cls.printed, **params})

    @property
    def is_set_level(self) -> bool:
        """Whether it is more than a mean over examples, so that losses of batches do not add up."""
        return self.average != "samples" or is_above_zero(self.ohem_ratio)

    @property
    def remembers(self) -> bool:
        """Whether it averages over the batches of training."""
        return is_above_zero(self.ema_decay)

    def prepare(self, class_counts: Any, *args: Any, **kwargs: Any) -> Self:
        """Tell the loss about the training data and forget earlier batches; see `Loss.prepare`."""
        super().prepare(class_counts, *args, **kwargs)
        self.running_ = torch.zeros(3, len(self.class_counts_)) if self.remembers else None
        return self

    def compute(
        self,
        problem: Problem,
        params: Mapping[str, Any],
        state: Mapping[str, Tensor],
        mix: Number | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """`functional_loss` of a `Problem`; of the state, only what changes is returned.

        With `mix` it is (1 - mix) cross-entropy + mix times the loss.
        """
        keywords = self._keywords(params, state)
        of_formula = [name for name in self._own_names if name not in OPTIONS]
        formula = self.formula(**{name: keywords.pop(name) for name in of_formula})
        learns = self.training and torch.is_grad_enabled()
        keywords |= {"running": state.get("running_") if learns else None, "mix": mix}
        logits = problem.logits
        loss, running = overlap_loss(logits, logits, formula, problem=problem, **keywords)
        return loss, {"running_": running} if learns and running is not None else {}
