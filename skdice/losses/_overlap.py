"""Overlap losses: one minus a ratio of soft counts of hits, false alarms and misses.

With p the probability of a class and y 1 for its examples, summed over a batch::

    TP = sum p y      FP = sum p^2 (1 - y)      FN = sum (1 - p)^2 y

    1 - (tp TP + s) / (tp TP + fp FP + fn FN + s)

`Formula` holds tp, fp and fn; s is `smooth`; ``squared=False`` leaves out the squares. The log
surrogate is cross-entropy with the weights that the ratio without squares gives to an example, with
D its denominator. The weights are constants in the backward pass::

    of -log p of a positive:            (tp (fp FP + fn FN) + fn (tp TP + s)) / D^2
    of -log(1 - p) of a negative:       fp (tp TP + s) / D^2

`tests/losses/test_formulas.py` and `test_surrogate.py` hold all of it to naive loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from skdice.losses._checks import Number, PerClass, class_vector, is_above_zero
from skdice.losses._counting import hard_negatives, moving_average
from skdice.losses._index_sums import sums_of_indices
from skdice.losses._problem import Problem, at_least_tiny, finite


class Formula(NamedTuple):
    """What distinguishes one overlap loss from another."""

    tp: Number  # what a hit counts,
    fp: Number  # a false alarm,
    fn: Number  # and a miss
    squared: bool = True  # whether errors are squared
    exponent: Number | None = None  # a of DSC, which replaces p by (1 - p)^a p
    # Whether a soft target y counts as y^2, so that the errors of dice are (p - y)^2.
    squares_targets: bool = False


# ---- the formula


def scores(problem: Problem, formula: Formula) -> Tensor:
    """p, or (1 - p)^a p, of shape (N, C)."""
    p = problem.p()
    if formula.exponent is None:
        return p
    # Through the logarithm: a power of 1 - p has no finite gradient where p rounds to 1.
    return torch.exp(formula.exponent * problem.log_not_p()) * p


def soft_counts(problem: Problem, p: Tensor, formula: Formula, each: bool = False) -> Tensor:
    """The counts tp TP and fp FP + fn FN of each class, of shape (2, C).

    With `each` they are those of each example by itself, of shape (2, N, C).
    """
    right = problem.right(p)
    missed, false = 1 - right, p
    if formula.squared:
        missed, false = missed**2, false**2
    if formula.squares_targets and problem.index is None:
        # p^2 (1 - y) + (1 - p)^2 y - y (1 - y) = (p - y)^2
        missed = missed - (1 - problem.target)
    if each:
        y = problem.target
        TP, FP, FN = y * right, (1 - y) * false, y * missed
    else:
        TP, FN = problem.by_class(right), problem.by_class(missed)
        FP = problem.by_wrong_class(false)
    return torch.stack([formula.tp * TP, formula.fp * FP + formula.fn * FN])


def ratio(counts: Tensor, smooth: Number) -> Tensor:
    """1 - (hits + smooth) / (hits + errors + smooth), exact where it is close to 0.

    It is 0 where that would be 0/0: smooth=0, no positives and no probability.
    """
    hits, errors = counts.unbind()
    return errors / at_least_tiny(hits + errors + smooth)


def decayed(losses: Tensor, log_wrong: Callable[[], Tensor], formula: Formula) -> Tensor:
    """Log losses times DSC's power of the probability of the wrong side, from its logarithm."""
    if formula.exponent is None:
        return losses
    return losses * (formula.exponent * log_wrong().detach()).exp_()


def surrogate_sums(
    problem: Problem, formula: Formula, average: str, factors: Tensor
) -> tuple[Tensor, Tensor]:
    """The counts of each class, and the log losses of its positives and negatives: (2, C) each."""
    sums = sums_of_indices(problem, formula, decayed) if average == "macro" else None
    if sums is not None:
        return sums[0], factors * sums[1]
    counts = soft_counts(problem, problem.p().detach(), formula)
    right = problem.right_log_p()
    losses = decayed(-right, lambda: finite(torch.log(-torch.expm1(right))), formula)
    positives = problem.by_class(losses)
    if average == "micro" and problem.kind == "multiclass":
        negatives = _of_background(problem, losses, positives, factors)
    else:
        losses = decayed(-problem.log_not_p(), problem.log_p, formula)
        negatives = factors * problem.by_wrong_class(losses)
    return counts, torch.stack([factors * positives, negatives])


def log_surrogate(
    losses: Tensor,
    formula: Formula,
    counts: Tensor,
    share: Tensor,
    factors: Tensor,
    smooth: Number,
    average: str,
) -> Tensor:
    """Cross-entropy, weighted as the ratio without squares weights its examples.

    It is a mean over examples, as cross-entropy is, with a hit counted as 2; `share` is that of one
    example. The ratio's own gradients are far larger, above all in batches with positives, so that
    clipping a gradient's norm would shrink these alone.
    """
    hits, errors = counts.unbind()
    denominator = at_least_tiny(hits + errors + smooth)
    size = denominator
    if average == "macro":
        size = (factors * denominator).sum()
    # The ratio's weights, times its denominator (a mean over classes), with a hit counted as 2.
    of_errors, of_hits = errors / denominator, (hits + smooth) / denominator
    scale = share * size / denominator * 2 / formula.tp
    positives, negatives = losses.unbind()
    of_positive = scale * (formula.tp * of_errors + formula.fn * of_hits)
    of_negative = scale * formula.fp * of_hits
    return (of_positive * positives + of_negative * negatives).sum()


def _of_background(problem: Problem, losses: Tensor, sums: Tensor, factors: Tensor) -> Tensor:
    """-log p of the background for its examples: negatives of all counted classes at once."""
    if problem.index is not None:  # all counted classes weigh the same
        return sums * (factors == 0)
    # An example weighs as much as the classes that it is taken for.
    p = problem.p().detach() * (factors > 0)
    share = (problem.weight * factors * p).sum(-1, keepdim=True) / at_least_tiny(p.sum(-1, True))
    return (share * problem.target * losses * (factors == 0)).sum(0)


# ---- from the formula to a loss


def overlap_loss(
    problem: Problem,
    formula: Formula,
    *,
    smooth: Number,
    average: str,
    background: int | None,
    class_weight: PerClass,
    absent: str = "include",
    ohem_ratio: Number = 0.0,
    surrogate: str = "none",
    ema_decay: Number = 0.0,
    running: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """An overlap loss, and the counts to remember for the next batch.

    Every class is a problem of its own against the rest. `DiceLoss` has the options. `running`
    holds the counts of earlier batches and how many there were, each decayed: (3, C).
    `background` is one by `with_background`.
    """
    average = resolve_average(problem, average, background)
    n = problem.n_examples()
    if average == "macro" and problem.kind == "multilabel":
        n = n / problem.n_classes  # each class has its own mean
    if is_above_zero(ohem_ratio):
        problem = problem.as_table(problem.weight * hard_negatives(problem, ohem_ratio))
    elif class_weight is not None or problem.logits.device.type != "cpu":
        problem = problem.as_table()  # a GPU adds by index in a changing order
    factors = _class_factors(problem.logits, class_weight, background)
    if absent == "auto" and problem.kind == "multiclass" and background is None:
        unknown = surrogate == "log" and not is_above_zero(ema_decay)
        absent = "ignore" if unknown else "include"
    if average == "macro" and absent == "ignore":
        ones = torch.ones_like(problem.right(problem.logits))
        factors = factors * (problem.total(problem.by_class(ones)) > 0)
    if average == "samples":
        return _mean_over_samples(problem, formula, factors, smooth), running

    losses = None
    if surrogate == "log":
        if average == "macro":
            factors = factors / at_least_tiny(factors.sum())
        linear = formula._replace(squared=False, squares_targets=False)
        blocks = problem.blocks()
        parts = [surrogate_sums(block, linear, average, factors) for block in blocks]
        problem.take_right_log_p(blocks)
        counts, losses = (torch.stack(tables).sum(0) for tables in zip(*parts, strict=True))
    else:
        counts = soft_counts(problem, scores(problem, formula), formula)
    counts, running = moving_average(problem.total(counts), running, ema_decay)
    if average == "micro":
        counts = (factors * counts).sum(-1)
    if losses is not None:
        # A mean over examples. Gradients are averaged over processes, each with a share of these.
        share = problem.ranks / at_least_tiny(n)
        return log_surrogate(losses, formula, counts, share, factors, smooth, average), running
    loss = ratio(counts, smooth)
    if average == "macro":
        loss = factors * loss
        loss = loss if problem.reduction == "none" else loss.sum()
        loss = loss / at_least_tiny(factors.sum()) if problem.reduction == "mean" else loss
    return loss, running


def resolve_average(problem: Problem, average: str, background: int | None) -> str:
    """What "auto" is: over all classes of a softmax, pooled FP equal FN, so it is macro there."""
    if average != "auto":
        return average
    return "micro" if background is not None or problem.kind == "binary" else "macro"


def _class_factors(like: Tensor, class_weight: PerClass, background: int | None) -> Tensor:
    """A factor for each class, 0 for the background."""
    n_classes = like.shape[-1]
    factors = class_vector("class_weight", class_weight, n_classes, like)
    if factors is None:
        factors = torch.ones(n_classes, dtype=like.dtype, device=like.device)
    if background is not None:
        factors = factors * (torch.arange(n_classes, device=like.device) != background)
    return factors


def _mean_over_samples(
    problem: Problem, formula: Formula, factors: Tensor, smooth: Number
) -> Tensor:
    """One ratio for each example and class, reduced."""
    problem = problem.as_table()
    share = problem.weight * factors
    counts = soft_counts(problem, scores(problem, formula), formula, each=True)
    losses = share * ratio(counts, smooth)
    if problem.reduction == "mean":
        total = problem.total(share.expand_as(losses).sum())
        return losses.sum() * problem.ranks / at_least_tiny(total)
    losses = losses / at_least_tiny(factors.sum())
    losses = losses * len(factors) if problem.kind == "multilabel" else losses.sum(-1)
    return losses.sum() if problem.reduction == "sum" else losses.reshape(problem.shape)
