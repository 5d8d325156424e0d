"""Which negatives an overlap loss counts, and over which batches."""

from __future__ import annotations

import torch
from torch import Tensor

from skdice.losses._checks import Number, is_above_zero
from skdice.losses._problem import Problem


def hard_negatives(problem: Problem, ratio: Number) -> Tensor:
    """1 for the positives and the hardest negatives of each class, 0 for the rest."""
    # Log-odds also order probabilities that round to 0 or 1.
    log_odds = (problem.log_p() - problem.log_not_p()).detach()
    valid = problem.weight > 0
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


def moving_average(
    counts: Tensor, running: Tensor | None, decay: Number
) -> tuple[Tensor, Tensor | None]:
    """Counts averaged over this batch and earlier ones, and the counts to remember."""
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
