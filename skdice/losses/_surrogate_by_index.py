"""The log surrogate of class indices, in few passes over tables of rows and classes.

`_surrogate` computes the same without this file, and slower: what a loss over many classes takes is
the time in which tables are read and written.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from skdice.losses._inputs import LossInputs, at_least_tiny, is_true, on_cpu
from skdice.losses._parameters import Number, PerClass
from skdice.losses._soft_counts import Formula, class_factors
from skdice.losses._surrogate import decayed, surrogate_weights, true_class_losses

# Below this, second derivatives, which divide by the third power, may be infinite in float32.
LEAST_P = 1e-11


def pooled_surrogate(
    inputs: LossInputs,
    formula: Formula,
    background: int | None,
    class_weight: PerClass,
    smooth: Number,
) -> Tensor:
    """The log surrogate with counts pooled over all classes, from a column for each term."""
    assert inputs.index is not None
    losses = true_class_losses(inputs, formula)
    is_positive: Tensor | None = None
    of_positive: Number = 1.0  # factors of a positive and of a negative
    of_negative: Number = 1.0
    with torch.no_grad():
        log_p = inputs.true_class_log_p()
        hit, missed = torch.exp(log_p), -torch.expm1(log_p)
        false = missed
        if class_weight is not None:
            p, factors = inputs.p(), class_factors(inputs.logits, class_weight, background)
            of_positive, counted = factors[inputs.index].unsqueeze(-1), (p @ factors).unsqueeze(-1)
            is_positive, hit, missed = of_positive > 0, of_positive * hit, of_positive * missed
            # A negative weighs as much as the classes that it is taken for.
            of_negative = counted / at_least_tiny((p @ (factors > 0).to(p)).unsqueeze(-1))
        elif background is not None:
            is_positive = (inputs.index != background).unsqueeze(-1)
            counted = -torch.expm1(inputs.log_p_of(background))
            hit, missed = hit * is_positive, missed * is_positive
        if is_positive is not None:
            false = (counted - hit).clamp(min=0)
        TP, FP, FN = inputs.total(inputs.sum_rows(torch.cat([hit, false, missed], -1))).unbind()
    errors, share = formula.fp * FP + formula.fn * FN, inputs.share_of_example()
    weights = surrogate_weights(formula.tp * TP, errors, formula, share, smooth)
    weight = weights[0]
    if is_positive is not None:
        weight = torch.where(is_positive, of_positive * weight, of_negative * weights[1])
    return inputs.weighted(weight * losses).sum()


def sums_of_indices(inputs: LossInputs, formula: Formula) -> tuple[Tensor, Tensor] | None:
    """`surrogate_sums` for each class by itself; None where they need the other way."""
    if inputs.index is None or not on_cpu(inputs.logits):
        return None
    p = torch.softmax(inputs.logits, -1)
    true_class = inputs.index.unsqueeze(-1)
    top = p.detach().max(-1, keepdim=True).indices  # faster than argmax
    apart = torch.cat([top, true_class], -1)
    p_top, p_true = p.gather(-1, apart).split(1, -1)
    if not is_true(torch.all, p_true > LEAST_P):
        return None
    # Only the highest class can round to 1. It and the true one are apart, so that the others give
    # what is left of 1.
    others = p.scatter(-1, apart, 0.0)
    rest = others.sum(-1, keepdim=True)
    p_wrong = p_top * (top != true_class)  # of the highest class, 0 where that is the true one
    missed = rest + p_wrong  # 1 - p_true
    of_true = torch.log1p(missed / p_true)  # -log p_true
    of_wrong = torch.log1p(p_wrong / (rest + p_true))  # -log(1 - p_wrong)
    log_others = torch.log(1 - others)
    inputs._true_class_log_p = -of_true

    least = torch.finfo(p.dtype).tiny
    of_true = decayed(of_true, lambda: missed.clamp(min=least).log(), formula)
    of_wrong = decayed(of_wrong, lambda: p_wrong.clamp(min=least).log(), formula)
    log_others = decayed(log_others, lambda: others.detach().clamp(min=least).log_(), formula)
    of_highest = replace(inputs, index=top.squeeze(-1))
    negatives = of_highest.sum_positives(of_wrong) - inputs.sum_rows(log_others)
    with torch.no_grad():
        TP, FN = inputs.sum_positives(p_true), inputs.sum_positives(missed)
        FP = of_highest.sum_positives(p_wrong) + inputs.sum_rows(others)
    counts = torch.stack([formula.tp * TP, formula.fp * FP + formula.fn * FN])
    return counts, torch.stack([inputs.sum_positives(of_true), negatives])
