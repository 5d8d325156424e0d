"""Soft counts of hits, false alarms and misses, and the ratio that an overlap loss makes of them.

With p the probability of a class and y 1 for its examples, summed over a batch::

    TP = sum p y      FP = sum p^2 (1 - y)      FN = sum (1 - p)^2 y

    1 - (tp TP + s) / (tp TP + fp FP + fn FN + s)

`Formula` holds tp, fp and fn; s is `smooth`; ``squared=False`` leaves out the squares.
`tests/losses/test_formulas.py` holds all of it to naive loops.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from skdice.losses._class_factors import class_vector
from skdice.losses._constraints import Number, PerClass, is_above_zero
from skdice.losses.inputs import LossInputs, at_least_tiny


class Formula(NamedTuple):
    """The constants that tell one overlap loss from another."""

    tp: Number  # what a hit counts,
    fp: Number  # a false alarm,
    fn: Number  # and a miss
    squared: bool = True  # whether errors are squared
    exponent: Number | None = None  # a of DSC, which replaces p by (1 - p)^a p
    # Whether a soft target y counts as y^2, so that the errors of dice are (p - y)^2.
    squares_targets: bool = False


def scores(inputs: LossInputs, formula: Formula) -> Tensor:
    """p, or (1 - p)^a p, of shape (N, C)."""
    p = inputs.p()
    if formula.exponent is None:
        return p
    # Through the logarithm: a power of 1 - p has no finite gradient where p rounds to 1.
    return torch.exp(formula.exponent * inputs.log_not_p()) * p


def soft_counts(inputs: LossInputs, p: Tensor, formula: Formula, each: bool = False) -> Tensor:
    """The counts tp TP and fp FP + fn FN of each class, of shape (2, C).

    With `each` they are those of each example by itself, of shape (2, N, C).
    """
    of_true_class = inputs.gather_true_class(p)
    missed, false = 1 - of_true_class, p
    if formula.squared:
        missed, false = missed**2, false**2
    if formula.squares_targets and inputs.index is None:
        # p^2 (1 - y) + (1 - p)^2 y - y (1 - y) = (p - y)^2
        missed = missed - (1 - inputs.target)
    if each:
        y = inputs.target
        TP, FP, FN = y * of_true_class, (1 - y) * false, y * missed
    else:
        TP, FN = inputs.sum_positives(of_true_class), inputs.sum_positives(missed)
        FP = inputs.sum_negatives(false)
    return torch.stack([formula.tp * TP, formula.fp * FP + formula.fn * FN])


def ratio(counts: Tensor, smooth: Number) -> Tensor:
    """1 - (hits + smooth) / (hits + errors + smooth), exact where it is close to 0.

    It is 0 where that would be 0/0: smooth=0, no positives and no probability.
    """
    hits, errors = counts.unbind()
    return errors / at_least_tiny(hits + errors + smooth)


def class_factors(like: Tensor, class_weight: PerClass, background: int | None) -> Tensor:
    """A factor for each class, 0 for the background."""
    n_classes = like.shape[-1]
    factors = class_vector("class_weight", class_weight, n_classes, like)
    if factors is None:
        factors = torch.ones(n_classes, dtype=like.dtype, device=like.device)
    if background is not None:
        factors = factors * (torch.arange(n_classes, device=like.device) != background)
    return factors


def hard_negatives(inputs: LossInputs, ratio: Number) -> Tensor:
    """1 for the positives and the hardest negatives of each class, 0 for the rest."""
    # Log-odds also order probabilities that round to 0 or 1.
    log_odds = (inputs.log_p() - inputs.log_not_p()).detach()
    valid = inputs.weight > 0
    positive = valid & (inputs.target > 0.5)
    negative = valid & ~positive
    # With the thousandth, 100 positives at ratio 0.29 keep 29 negatives; 28.99... rounds to 28.
    k = (positive.sum(0) * ratio + 1e-3).floor().clamp(min=1)
    score = torch.where(negative, log_odds, torch.full_like(log_odds, -torch.inf))
    rank = score.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    kept = positive | (negative & (rank < k))
    if isinstance(ratio, Tensor):  # no branch on a tensor's value
        kept = kept | (valid & (ratio <= 0))
    return kept.to(log_odds.dtype)


def moving_average(
    counts: Tensor, running: Tensor | None, decay: Number
) -> tuple[Tensor, Tensor | None]:
    """Average counts over this batch and earlier ones; also the counts to remember."""
    if not is_above_zero(decay):
        return counts, running
    total = torch.cat([counts, torch.ones_like(counts[:1])]).detach()
    # A batch that overflowed, as fp16 may, is not remembered.
    total = torch.where(total.isfinite().all(), total, 0.0)
    if running is not None:
        # `running` starts as zeros for each class; a problem of one logit counts one of two.
        total = total + decay * running.to(total)[..., : counts.shape[-1]]
    # The average's value and the batch's own gradient.
    return total[:2] / total[2] + (counts - counts.detach()), total
