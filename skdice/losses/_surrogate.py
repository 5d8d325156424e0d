"""The log surrogate of the overlap losses: cross-entropy, weighed by what a batch counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from skdice.losses._checks import Number
from skdice.losses._problem import Problem, finite

TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True)
class Formula:
    """What distinguishes one overlap loss from another."""

    # From scores and targets to soft counts of hits and of errors, none negative, of shape (N, C).
    counts: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    # Of the counts without squares: of hits and of errors by a positive's probability, and of
    # errors by a negative's.
    gradients: tuple[Number, Number, Number]
    # Scores between 0 and 1.
    activation: Callable[[Problem], Tensor] = Problem.p
    # Multiplies log losses by a factor of each example, from the probability of its wrong side.
    modulation: Callable[[Tensor, Tensor], Tensor] = lambda losses, wrong: losses


def at_least_tiny(total: Any) -> Any:
    """A divisor that is never 0; both tensors and the numbers of `numbers_of` are accepted."""
    if not isinstance(total, Tensor):
        return max(total, TINY)
    return total.clamp(min=torch.finfo(total.dtype).tiny)


def numbers_of(sums: Tensor, *others: Number) -> Any:
    """The elements of `sums`, to compute with `others`.

    On a CPU they are Python numbers, which are faster than tensors, unless one of `others` is a
    tensor.
    """
    plain = not any(isinstance(other, Tensor) for other in others)
    if plain and sums.device.type == "cpu" and not torch.compiler.is_compiling():
        with contextlib.suppress(RuntimeError):  # under torch.func.vmap there are no numbers
            return sums.tolist()
    return sums.unbind()


def _prices(
    formula: Formula, hits: Any, errors: Any, smooth: Number, scale: Any, problem: Problem
) -> tuple[Any, Any]:
    """The weights of a positive's and of a negative's log loss."""
    per_hit, per_positive, per_negative = formula.gradients
    # Gradients are averaged over processes, each of which has a share of these sums.
    scale = scale * problem.ranks
    of_positives = scale * (per_hit * errors - per_positive * (hits + smooth))
    return of_positives, scale * per_negative * (hits + smooth)


def _scale(size: Any, total: Any, n: Any) -> Any:
    """The factor that makes the surrogate a mean over examples.

    It is 0 where nothing counts (an empty batch) or, with smooth=0, nothing is predicted positive.
    """
    if not isinstance(total, Tensor):
        return size / n / total**2 if n > 0 and total**2 > TINY else 0.0
    tiny, square = torch.finfo(total.dtype).tiny, total**2
    return torch.where((n > 0) & (square > tiny), size / at_least_tiny(n) / square, 0.0)


def log_surrogate(
    problem: Problem,
    p: Tensor,
    weight: Tensor,
    factors: Tensor,
    formula: Formula,
    hits: Tensor,
    errors: Tensor,
    smooth: Number,
    average: str,
) -> Tensor:
    """Cross-entropy of each example, weighted as the linear ratio weights its probability.

    A factor makes it a mean over examples, as cross-entropy is. The ratio's own gradients are far
    larger, above all in batches with positives, so that clipping a gradient's norm would shrink
    these alone.
    """
    y, modulation = problem.target, formula.modulation
    if average == "micro":
        hits, errors = (factors * hits).sum(), (factors * errors).sum()
    else:
        factors = factors / at_least_tiny(factors.sum())
    total = at_least_tiny(hits + errors + smooth)
    size = total if average == "micro" else (factors * total).sum()
    scale = _scale(size, total, problem.total(problem.element_weight.sum()))
    of_positives, of_negatives = _prices(formula, hits, errors, smooth, scale, problem)
    log_losses = modulation(-y * problem.log_p(), 1 - p)
    positives = (weight * log_losses).sum(0)
    if average == "micro" and problem.kind == "multiclass":
        # A background example is weighted by the probability that it gives to all counted classes.
        given = p * (factors > 0)
        shares = (weight * factors * given).sum(1) / at_least_tiny(given.sum(1))
        background = (log_losses * (factors == 0)).sum(1)
        return (
            of_positives * (factors * positives).sum() + of_negatives * (shares * background).sum()
        )
    negatives = modulation(-weight * (1 - y) * problem.log_not_p(), p).sum(0)
    return (factors * (of_positives * positives + of_negatives * negatives)).sum()


# ---- the same with class indices, without a table of targets


def micro_surrogate(
    problem: Problem, index: Tensor, background: int, formula: Formula, smooth: Number
) -> Tensor:
    """The surrogate of pooled counts, where all classes weigh the same.

    It needs only two probabilities of each position, of the right class and of the background: one
    pass over the logits, as in cross-entropy.
    """
    per_hit, per_positive, per_negative = formula.gradients
    log_p = problem.log_p_of(index)
    with torch.no_grad():
        weight = problem.given_weight
        positive = (index != background).to(log_p.dtype)
        right, wrong = torch.exp(log_p), -torch.expm1(log_p)
        not_background = -torch.expm1(problem.log_p_of(background))
        if weight is not None:
            positive, not_background = positive * weight, not_background * weight
        # Not by matrix products, which autocast would round to 16 bits.
        parts = [(positive * right).sum(), (positive * wrong).sum(), not_background.sum()]
        counted = weight is not None or problem.ranks > 1
        if counted:
            parts.append(problem.weight.sum())
        sums = numbers_of(problem.total(torch.stack(parts)), smooth, *formula.gradients)
        found, missed, called, n = sums if counted else (*sums, index.shape[0])
        false = called - found
        false = false.clamp(min=0) if isinstance(false, Tensor) else max(false, 0.0)
        hits, errors = per_hit * found, per_negative * false - per_positive * missed
        total = at_least_tiny(hits + errors + smooth)
        scale = _scale(total, total, n)
        price, cost = _prices(formula, hits, errors, smooth, scale, problem)
        share = (cost - price) * positive - cost * (1.0 if weight is None else weight)
    return (share * formula.modulation(log_p, wrong)).sum()


class Counts(NamedTuple):
    """Soft counts of each class in a batch, and the probabilities they are computed from."""

    hits: Tensor
    errors: Tensor
    of_class: Tensor
    log_p: Tensor  # of the right class of each position, as a column
    top: Tensor  # the most probable class, as a column
    top_p: Tensor  # its probability,
    rest: Tensor  # and one minus that, to the last digit
    p: Tensor  # of all other classes, and 0 for the most probable


@torch.no_grad()
def right_class_counts(problem: Problem, index: Tensor, formula: Formula) -> Counts:
    """Soft counts of each class against all others.

    Few passes over the logits, since these take the time; a softmax of torch's own is slow for
    few classes.
    """
    per_hit, per_positive, per_negative = formula.gradients
    z, weight = problem.logits, problem.weight
    highest, top = z.max(dim=-1, keepdim=True)
    p = (z - highest).exp_()
    total = p.sum(-1, keepdim=True)
    p.div_(total)
    top_p = p.gather(-1, top)
    p.scatter_add_(-1, top, -top_p)
    log_p = finite(z.gather(-1, index.unsqueeze(-1)) - highest - total.log())

    def by_class(index: Tensor, values: Tensor) -> Tensor:
        return torch.zeros_like(p[0]).index_add(0, index, values)

    right = log_p.squeeze(-1)
    parts = (weight * torch.exp(right), weight * -torch.expm1(right), weight)
    # Not by a matrix product, which autocast would round to 16 bits.
    others = (p if problem.given_weight is None else weight.unsqueeze(-1) * p).sum(0)
    called = others + by_class(top.squeeze(-1), weight * top_p.squeeze(-1))
    sums = problem.total(torch.stack([*(by_class(index, part) for part in parts), called]))
    found, missed, of_class, called = sums.unbind()
    false = (called - found).clamp(min=0)
    errors = per_negative * false - per_positive * missed
    rest = p.sum(-1, keepdim=True)
    return Counts(per_hit * found, errors, of_class, log_p, top, top_p, rest, p)


@torch.no_grad()
def macro_surrogate(
    problem: Problem,
    index: Tensor,
    counts: Counts,
    factors: Tensor,
    formula: Formula,
    smooth: Number,
) -> tuple[Tensor, Tensor]:
    """The surrogate class by class, and its gradient in closed form."""
    factors = factors / at_least_tiny(factors.sum())
    total = at_least_tiny(counts.hits + counts.errors + smooth)
    scale = factors * _scale((factors * total).sum(), total, counts.of_class.sum())
    price, cost = _prices(formula, counts.hits, counts.errors, smooth, scale, problem)
    modulation, column = formula.modulation, index.unsqueeze(-1)
    p, top, top_p = counts.p, counts.top, counts.top_p

    # -log p of the right class.
    right_p, missed = torch.exp(counts.log_p), -torch.expm1(counts.log_p)
    pull = modulation(price[..., column], missed)
    # -log(1 - p) of every wrong class: first of the most probable, whose p may round to 1.
    is_right, rest = top == column, at_least_tiny(counts.rest)
    of_top = torch.where(is_right, 0.0, modulation(cost[..., top], top_p))
    top_push = of_top * top_p / rest
    # Then of all others, in as few tables as there can be.
    p.scatter_add_(-1, column, -p.gather(-1, column))
    not_p, share = 1 - p, modulation(cost, p)
    # d/dz_j: from class j's own 1 - p_j, and through the softmax from all other classes'.
    gradient = share * (p / not_p)
    push = gradient.sum(-1, keepdim=True)
    gradient.add_(p * (pull - push - top_push))
    at_right = -pull * missed - right_p * (push + top_push)
    at_top = torch.where(is_right, 0.0, top_p * (pull + of_top - push))
    gradient.scatter_add_(-1, column, at_right).scatter_add_(-1, top, at_top)

    losses, log_not_p = -pull * counts.log_p - of_top * torch.log(rest), not_p.log_()
    if problem.given_weight is not None:
        weight = problem.given_weight.unsqueeze(-1)
        losses, log_not_p, gradient = weight * losses, weight * log_not_p, weight * gradient
    if share.ndim == 1:
        log_not_p = log_not_p.sum(0)
    return losses.sum() - (share * log_not_p).sum(), gradient


class WithGradient(torch.autograd.Function):
    """A value whose gradient is known."""

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, value: Tensor, gradient: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None, None
