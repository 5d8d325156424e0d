"""The log surrogate of the overlap losses: cross-entropy, weighed by what a batch counts."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from skdice.losses._checks import Number
from skdice.losses._problem import Problem, can_be_read, finite, has_few_classes

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
    # Log losses are multiplied by this power of the probability of the wrong side; None is 0.
    exponent: Number | None = None

    def modulated(self, losses: Tensor, log_wrong: Callable[[], Tensor]) -> Tensor:
        """`losses` times that power, from the logarithm of the probability."""
        if self.exponent is None:
            return losses
        # On a CPU torch computes powers of 2 in a third of the time of others.
        return losses * torch.exp2(self.exponent / math.log(2) * finite(log_wrong()))


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
    if plain and can_be_read(sums):
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
    y, modulated = problem.target, formula.modulated
    if average == "micro":
        hits, errors = (factors * hits).sum(), (factors * errors).sum()
    else:
        factors = factors / at_least_tiny(factors.sum())
    total = at_least_tiny(hits + errors + smooth)
    size = total if average == "micro" else (factors * total).sum()
    scale = _scale(size, total, problem.total(problem.element_weight.sum()))
    of_positives, of_negatives = _prices(formula, hits, errors, smooth, scale, problem)
    log_losses = modulated(-y * problem.log_p(), lambda: problem.log_not_p().detach())
    positives = (weight * log_losses).sum(0)
    if average == "micro" and problem.kind == "multiclass":
        # A background example is weighted by the probability that it gives to all counted classes.
        given = p * (factors > 0)
        shares = (weight * factors * given).sum(1) / at_least_tiny(given.sum(1))
        background = (log_losses * (factors == 0)).sum(1)
        return (
            of_positives * (factors * positives).sum() + of_negatives * (shares * background).sum()
        )
    log_losses = -weight * (1 - y) * problem.log_not_p()
    negatives = modulated(log_losses, lambda: problem.log_p().detach()).sum(0)
    return (factors * (of_positives * positives + of_negatives * negatives)).sum()


# ---- the same with class indices, without a table of targets


def _share_of_cross_entropy(mix: Number, n: Any, problem: Problem) -> Any:
    """The weight of each row's -log p in (1 - mix) cross-entropy + mix surrogate, of n rows."""
    return (1 - mix) * problem.ranks / at_least_tiny(n)


def micro_surrogate(
    problem: Problem,
    index: Tensor,
    background: int,
    formula: Formula,
    smooth: Number,
    mix: Number | None = None,
) -> Tensor:
    """The surrogate of pooled counts, where all classes weigh the same.

    It needs only two probabilities of each position, of the right class and of the background: one
    pass over the logits, as in cross-entropy, of which it can be a mixture.
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
        each = 1.0 if weight is None else weight
        share = formula.modulated((cost - price) * positive - cost * each, wrong.log)
        if mix is not None:
            share = mix * share - _share_of_cross_entropy(mix, n, problem) * each
    return (share * log_p).sum()


class Counts(NamedTuple):
    """Soft counts of each class in a batch, and what they are computed from.

    Columns hold a number of each row. Tables of probabilities come in blocks of rows.
    """

    hits: Tensor
    errors: Tensor
    of_class: Tensor
    right: Tensor  # column: the right class
    log_p: Tensor  # column: its log-probability
    top: Tensor  # column: the most probable class; where none is above 1/2, any
    top_p: Tensor  # column: its probability,
    rest: Tensor  # column: and one minus that, to the last digit
    total: Tensor  # column: the log of the sum of all exponentials
    p: list[Tensor]  # tables: of all other classes, and 0 for the most probable


# Numbers in a block, which a CPU's cache holds through all passes over them.
BLOCK = 2**16


def _block_size(z: Tensor) -> int:
    """Rows in a block; all of them off the CPU."""
    return max(1, BLOCK // z.shape[-1] if can_be_read(z) else len(z))


def _softmax(z: Tensor, highest: Tensor) -> Tensor:
    if not has_few_classes(z):
        return torch.softmax(z, dim=-1)
    p = (z - highest).exp_()
    return p.div_(p.sum(-1, keepdim=True))


def _most_probable(z: Tensor, highest: Tensor, highest_p: Tensor, index: Tensor) -> Tensor:
    """The most probable class of each row where that is above 1/2, and elsewhere any."""
    if can_be_read(z) and not has_few_classes(z):
        # To find it among many classes takes longer than their softmax.
        with contextlib.suppress(RuntimeError):  # under torch.func.vmap nothing can be picked
            wrong = (highest_p > 0.5) & (z.gather(-1, index) < highest)
            rows = wrong.squeeze(-1).nonzero().squeeze(-1)
            return index.index_put((rows,), z[rows].argmax(-1, keepdim=True))
    return z.argmax(-1, keepdim=True)


def _by_class(like: Tensor, classes: Tensor, values: Tensor) -> Tensor:
    return torch.zeros_like(like).index_add(0, classes.squeeze(-1), values.squeeze(-1))


@torch.no_grad()
def right_class_counts(problem: Problem, index: Tensor, formula: Formula) -> Counts:
    """Soft counts of each class against all others.

    Few passes over the logits, since these take the time.
    """
    per_hit, per_positive, per_negative = formula.gradients
    z, index, size = problem.logits, index.unsqueeze(-1), _block_size(problem.logits)
    weight, plain = problem.element_weight, problem.given_weight is None
    highest = z.amax(-1, keepdim=True)
    blocks = [_softmax(*parts) for parts in zip(z.split(size), highest.split(size), strict=True)]
    highest_p = torch.cat([p.amax(-1, keepdim=True) for p in blocks])
    log_total = highest - highest_p.log()
    log_p = finite(z.gather(-1, index) - log_total)
    top = _most_probable(z, highest, highest_p, index)
    of_top, rest, called = [], [], z.new_zeros(z.shape[-1])
    for p, column, part in zip(blocks, top.split(size), weight.split(size), strict=True):
        of_top.append(p.gather(-1, column))
        p.scatter_add_(-1, column, -of_top[-1])
        rest.append(p.sum(-1, keepdim=True))
        # Not by a matrix product, which autocast would round to 16 bits.
        called = called + (p if plain else part * p).sum(0)
    top_p = torch.cat(of_top)
    parts = (weight * torch.exp(log_p), weight * -torch.expm1(log_p), weight)
    sums = [_by_class(called, index, part) for part in parts]
    sums.append(called + _by_class(called, top, weight * top_p))
    found, missed, of_class, all_called = problem.total(torch.stack(sums)).unbind()
    false = (all_called - found).clamp(min=0)
    errors = per_negative * false - per_positive * missed
    columns = (index, log_p, top, top_p, torch.cat(rest), log_total)
    return Counts(per_hit * found, errors, of_class, *columns, blocks)


@torch.no_grad()
def macro_surrogate(
    problem: Problem,
    counts: Counts,
    factors: Tensor,
    formula: Formula,
    smooth: Number,
    mix: Number | None = None,
) -> tuple[Tensor, ...]:
    """The surrogate class by class, and its gradient in closed form, in blocks of rows.

    It can be a mixture with cross-entropy, which only weighs -log p of the right class more.
    """
    _, _, _, index, log_p, top, top_p, rest, log_total, blocks = counts
    factors = factors / at_least_tiny(factors.sum())
    total = at_least_tiny(counts.hits + counts.errors + smooth)
    n = counts.of_class.sum()
    scale = factors * _scale((factors * total).sum(), total, n)
    price, cost = _prices(formula, counts.hits, counts.errors, smooth, scale, problem)
    if mix is not None:
        price, cost = mix * price, mix * cost
    modulated, weight = formula.modulated, problem.element_weight
    plain = problem.given_weight is None

    # -log p of the right class.
    right_p, missed = torch.exp(log_p), -torch.expm1(log_p)
    pull = modulated(price[..., index], missed.log)
    if mix is not None:
        pull = pull + _share_of_cross_entropy(mix, n, problem)
    # -log(1 - p) of every wrong class: first of the most probable, whose p may round to 1.
    wrong, rest = top != index, at_least_tiny(rest)
    of_top = torch.where(wrong, modulated(cost[..., top], top_p.log), 0.0)
    top_push = of_top * top_p / rest
    value = -(weight * (pull * log_p + of_top * torch.log(rest))).sum()
    # Then of all others.
    top_p = torch.where(wrong, top_p, 0.0)
    at_right, at_top = -pull * missed - right_p * top_push, top_p * (pull + of_top)
    own, z = pull - top_push, problem.logits
    tables = (z, log_total, index, top, weight, own, at_right, right_p, at_top, top_p)
    size, gradients = _block_size(z), []
    for parts in zip(*(table.split(size) for table in tables), strict=True):
        p = blocks.pop(0)  # so that its memory serves the next
        z, log_total, index, top, weight, own, at_right, right_p, at_top, top_p = parts
        p.scatter_add_(-1, index, -p.gather(-1, index))
        not_p, share = 1 - p, modulated(cost, partial(torch.sub, z, log_total))
        # d/dz_j: from class j's own 1 - p_j, and through the softmax from all other classes'.
        of_own = (share / not_p).mul_(p)
        push = of_own.sum(-1, keepdim=True)
        gradient = torch.addcmul(of_own, p, own - push)
        gradient.scatter_add_(-1, index, at_right - right_p * push)
        gradient.scatter_add_(-1, top, at_top - top_p * push)
        if plain and share.ndim == 1 and not has_few_classes(p):
            # One logarithm of many factors of 1/2 or more; of 100 it is no less than 2^-100.
            logs: Any = sum(rows.prod(0).log() for rows in not_p.split(100))
        else:
            logs = not_p.log_()
        if not plain:
            gradient, logs = gradient.mul_(weight), weight * logs
        value = value - (share * logs).sum()
        gradients.append(gradient)
    return value, *gradients


class WithGradient(torch.autograd.Function):
    """A value whose gradient is known, by blocks of rows."""

    generate_vmap_rule = True

    @staticmethod
    def forward(logits: Tensor, value: Tensor, *gradient: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        blocks = ctx.saved_tensors
        nothing = [None] * (1 + len(blocks))
        if len(blocks) == 1:
            return upstream * blocks[0], *nothing
        gradient, factor = torch.cat(blocks), numbers_of(upstream.view(1))[0]
        return gradient * factor if isinstance(factor, Tensor) else gradient.mul_(factor), *nothing
