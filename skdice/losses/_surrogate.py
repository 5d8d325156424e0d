"""The log surrogate of an overlap loss: cross-entropy with the weights of its ratio.

The weights are those that the ratio without squares gives to an example, with D its denominator
(see `_soft_counts`). They are constants in the backward pass::

    of -log p of a positive:            (tp (fp FP + fn FN) + fn (tp TP + s)) / D^2
    of -log(1 - p) of a negative:       fp (tp TP + s) / D^2

It is a mean over examples, as cross-entropy is, with a hit counted as 2. The ratio's own gradients
are far larger, above all in batches with positives, so that clipping a gradient's norm would shrink
these alone. `tests/losses/test_surrogate.py` holds all of it to naive loops.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from skdice.losses._constraints import Number
from skdice.losses._soft_counts import Formula, soft_counts
from skdice.losses.inputs import LossInputs, at_least_tiny, finite


def surrogate_sums(
    inputs: LossInputs, formula: Formula, average: str, factors: Tensor
) -> tuple[Tensor, Tensor]:
    """The counts of each class, and the log losses of its positives and negatives: (2, C) each."""
    counts = soft_counts(inputs, inputs.p().detach(), formula)
    losses = true_class_losses(inputs, formula)
    positives = inputs.sum_positives(losses)
    if average == "micro" and inputs.kind == "multiclass":
        negatives = _of_background(inputs, losses, positives, factors)
    else:
        losses = decayed(-inputs.log_not_p(), inputs.log_p, formula)
        negatives = factors * inputs.sum_negatives(losses)
    return counts, torch.stack([factors * positives, negatives])


def true_class_losses(inputs: LossInputs, formula: Formula) -> Tensor:
    """-log p of the true class of each example, or its column of such losses."""
    log_p = inputs.true_class_log_p()
    return decayed(-log_p, lambda: finite(torch.log(-torch.expm1(log_p))), formula)


def decayed(losses: Tensor, log_wrong: Callable[[], Tensor], formula: Formula) -> Tensor:
    """Log losses times DSC's power of the probability of the wrong side, from its logarithm."""
    if formula.exponent is None:
        return losses
    return losses * (formula.exponent * log_wrong().detach()).exp_()


def _of_background(inputs: LossInputs, losses: Tensor, sums: Tensor, factors: Tensor) -> Tensor:
    """-log p of the background for its examples: negatives of all counted classes at once."""
    if inputs.index is not None:  # all counted classes weigh the same
        return sums * (factors == 0)
    # An example weighs as much as the classes that it is taken for.
    p = inputs.p().detach() * (factors > 0)
    share = (inputs.weight * factors * p).sum(-1, keepdim=True) / at_least_tiny(p.sum(-1, True))
    return (share * inputs.target * losses * (factors == 0)).sum(0)


def surrogate_weights(
    hits: Tensor,
    errors: Tensor,
    formula: Formula,
    share: Number,
    smooth: Number,
    factors: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The weights of positives and of negatives, from the counts of each class or of all at once.

    `share` is that of one example in the mean. `factors` are those of the classes that are averaged
    over; each class then has its own ratio.
    """
    denominator = at_least_tiny(hits + errors + smooth)
    # The ratio's weights, times its denominator (a mean over classes), with a hit counted as 2.
    scale: Number = share * 2
    if factors is not None:
        scale = scale * (factors * denominator).sum() / denominator
    of_errors, of_hits = errors / denominator, (hits + smooth) / denominator
    of_positive = scale * of_errors + scale * formula.fn / formula.tp * of_hits
    return of_positive, scale * formula.fp / formula.tp * of_hits
