"""The sums of the log surrogate for class indices, in few passes over memory.

`surrogate_sums` computes the same without this file, and slower: what a loss over 1,000 classes
takes is the time in which tables of rows and classes are read and written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skdice.losses._problem import FEW_CLASSES, Problem, is_true

if TYPE_CHECKING:
    from skdice.losses._overlap import Formula

# Below this, second derivatives, which divide by the third power, may be infinite in float32.
LEAST_P = 1e-11


def sums_of_indices(
    problem: Problem, formula: Formula, decayed: Callable[..., Tensor]
) -> tuple[Tensor, Tensor] | None:
    """`surrogate_sums` of a softmax without a background; None where they need the other way."""
    if problem.index is None:
        return None
    few = problem.n_classes <= FEW_CLASSES
    p = problem.p() if few else torch.softmax(problem.logits, -1)  # slow over short rows
    right = problem.index.unsqueeze(-1)
    top = p.detach().max(-1, keepdim=True).indices  # faster than argmax
    apart = torch.cat([top, right], -1)
    p_top, p_right = p.gather(-1, apart).split(1, -1)
    if not is_true(torch.all, p_right > LEAST_P):
        return None
    # Only the highest class can round to 1. It and the right one are apart, so that the others
    # give what is left of 1.
    others = p.scatter(-1, apart, 0.0)
    rest = others.sum(-1, keepdim=True)
    p_wrong = p_top * (top != right)  # of the highest class, 0 where that is the right one
    missed = rest + p_wrong  # 1 - p_right
    of_right = torch.log1p(missed / p_right)  # -log p_right
    of_wrong = torch.log1p(p_wrong / (rest + p_right))  # -log(1 - p_wrong)
    log_others = torch.log(1 - others)
    problem._right_log_p = -of_right

    least = torch.finfo(p.dtype).tiny
    of_right = decayed(of_right, lambda: missed.clamp(min=least).log(), formula)
    of_wrong = decayed(of_wrong, lambda: p_wrong.clamp(min=least).log(), formula)
    log_others = decayed(log_others, lambda: others.detach().clamp(min=least).log_(), formula)
    of_highest = replace(problem, index=top.squeeze(-1))
    negatives = of_highest.by_class(of_wrong) - problem.over_rows(log_others)
    with torch.no_grad():
        TP, FN = problem.by_class(p_right), problem.by_class(missed)
        FP = of_highest.by_class(p_wrong) + problem.over_rows(others)
    counts = torch.stack([formula.tp * TP, formula.fp * FP + formula.fn * FN])
    return counts, torch.stack([problem.by_class(of_right), negatives])
