"""Logits and targets of every shape in one form, with probabilities and reduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from skdice.losses._checks import PerClass, check_background, check_choice, class_vector

REDUCTIONS = ("mean", "sum", "none")


class Inputs(TypedDict, total=False):
    """Keywords that every loss function takes beside its own.

    Parameters
    ----------
    ignore_index : int, default=-100
        Target of positions that do not count.
    multilabel : bool, default=False
        Targets are 0/1 rows and each class has a sigmoid of its own.
    reduction : {"mean", "sum", "none"}, default="mean"
    sample_weight : Tensor of shape (N,) or of the target's shape, default=None
    mask : bool Tensor of shape (N,) or of the target's shape, default=None
        Positions that count.
    all_ranks : bool, default=True
        Where torch.distributed runs, count over the batches of all processes; see `Loss`.
    problem : Problem, default=None
        Logits, target and the keywords above, already in one form. Replaces all of them.
    """

    ignore_index: int
    multilabel: bool
    reduction: str
    sample_weight: Tensor | None
    mask: Tensor | None
    all_ranks: bool
    problem: Problem | None


@dataclass(slots=True)
class Problem:
    """Inputs in one form."""

    kind: str  # "binary", "multiclass" or "multilabel"
    logits: Tensor  # (N, C) in float32 or more; C is 1 for a binary problem
    encoded: Tensor | None  # see `target`; None where `index` is given and nobody has asked
    index: Tensor | None  # (N,): the right class of each position of a multi-class problem
    given_weight: Tensor | None  # see `weight`; None where all weights are 1
    shape: tuple[int, ...]  # of the result with reduction="none"
    reduction: str = "mean"
    ranks: int = 1  # processes whose batches count as one
    # Computed once for all parts of a loss. (A `cached_property` would break a compiled graph.)
    _odds: Tensor | None = None
    _log_softmax: Tensor | None = None

    @property
    def target(self) -> Tensor:
        """Class distribution, or 0/1 for each label, of shape (N, C)."""
        if self.encoded is None:
            assert self.index is not None
            classes = torch.arange(self.logits.shape[-1], device=self.logits.device)
            self.encoded = (self.index.unsqueeze(-1) == classes).to(self.logits.dtype)
        return self.encoded

    def total(self, values: Tensor) -> Tensor:
        """Sums of this batch added over all processes, with gradients."""
        return over_ranks(values, self.ranks)

    @property
    def weight(self) -> Tensor:
        """Weights of shape (N,), or (N, C) of a multi-label problem; 0 where nothing counts."""
        if self.given_weight is None:
            return torch.ones_like(self.logits[..., 0])
        return self.given_weight

    @property
    def element_weight(self) -> Tensor:
        """Weights of shape (N, 1) or (N, C)."""
        return self.weight if self.weight.ndim == 2 else self.weight.unsqueeze(-1)

    def with_logits(self, logits: Tensor) -> Problem:
        """The same problem with other logits."""
        return replace(self, logits=logits, _odds=None, _log_softmax=None)

    def as_two_logits(self) -> Problem:
        """A binary problem as a softmax over its two classes."""
        z, y = self.logits, self.target
        logits, target = torch.cat([torch.zeros_like(z), z], -1), torch.cat([1 - y, y], -1)
        return replace(self.with_logits(logits), kind="multiclass", encoded=target)

    def _log_odds(self) -> Tensor | None:
        """log(p / (1 - p)) of shape (N, C), where the logits give it without a softmax."""
        if self.kind != "multiclass":
            return self.logits
        if self._odds is None and self.logits.shape[-1] == 2:
            # torch computes a softmax over two numbers many times slower than a sigmoid.
            odds = self.logits[:, 1] - self.logits[:, 0]
            self._odds = torch.stack([-odds, odds], dim=-1)
        return self._odds

    def p(self) -> Tensor:
        """Probabilities of shape (N, C)."""
        odds = self._log_odds()
        return torch.softmax(self.logits, dim=-1) if odds is None else torch.sigmoid(odds)

    def log_p(self) -> Tensor:
        """Log-probabilities of shape (N, C), finite also where a logit is -inf."""
        return finite(self._log_probabilities(self._log_odds()))

    def log_p_of(self, index: Tensor | int) -> Tensor:
        """Log-probability of one class at each position, of shape (N,), finite.

        That of an int, which is the same class everywhere, may be -inf.
        """
        # In a small batch a softmax over two numbers is cheap, and saves steps.
        odds = self._log_odds() if self.logits.shape[0] > 4096 else None
        table = self._log_probabilities(odds)
        if isinstance(index, int):
            return table[..., index]
        return finite(table.gather(-1, index.unsqueeze(-1)).squeeze(-1))

    def _log_probabilities(self, odds: Tensor | None) -> Tensor:
        if odds is not None:
            return nn.functional.logsigmoid(odds)
        if self._log_softmax is None:
            self._log_softmax = _log_softmax(self.logits)
        return self._log_softmax

    def log_not_p(self) -> Tensor:
        """log(1 - p) of shape (N, C), finite and differentiable also where p rounds to 1."""
        odds = self._log_odds()
        if odds is not None:
            return finite(nn.functional.logsigmoid(-odds))
        z = self.logits
        total = torch.logsumexp(z, dim=-1, keepdim=True)
        top = z.detach().argmax(dim=-1, keepdim=True)
        is_top = torch.arange(z.shape[-1], device=z.device) == top
        # Only the largest class can round to 1: its complement is taken from the other logits.
        others = torch.logsumexp(z.masked_fill(is_top, torch.finfo(z.dtype).min), -1, keepdim=True)
        p = torch.exp(z - total).masked_fill(is_top, 0.0)
        return torch.where(is_top, others - total, torch.log1p(-p))

    def reduce(self, elements: Tensor) -> Tensor:
        """Losses of shape (N,), or (N, C) for a multi-label problem, reduced by `reduction`."""
        if self.given_weight is None and self.reduction == "mean" and self.ranks == 1:
            return elements.mean()
        weight = self.weight
        if elements.ndim == 2 and weight.ndim == 1:
            weight = weight.unsqueeze(-1).expand_as(elements)
        weighted = elements * weight
        if self.reduction == "none":
            return weighted.reshape(self.shape)
        if self.reduction == "sum":
            return weighted.sum()
        total = self.total(weight.sum()).clamp(min=torch.finfo(weight.dtype).tiny)
        # Gradients are averaged over processes, which divides by the number of processes.
        return weighted.sum() * self.ranks / total


class _Sum(torch.autograd.Function):
    """A sum over processes; its gradient is the sum of the gradients of all processes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.detach().clone()
        torch.distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Tensor:
        total = upstream.clone()
        torch.distributed.all_reduce(total)
        return total


def over_ranks(values: Tensor, ranks: int) -> Tensor:
    """Values added over processes, with gradients."""
    if ranks == 1:
        return values
    found: Tensor = _Sum.apply(values)
    return found


def n_ranks(all_ranks: bool) -> int:
    """Processes of torch.distributed that train together; 1 where nothing is trained."""
    if not (all_ranks and torch.is_grad_enabled() and torch.distributed.is_available()):
        return 1
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def has_few_classes(z: Tensor) -> bool:
    """Whether torch's softmax, which vectorises along a row, is slow over many such rows."""
    return z.shape[-1] <= 32


def _log_softmax(z: Tensor) -> Tensor:
    if not has_few_classes(z) or len(z) <= 4096:
        return torch.log_softmax(z, dim=-1)
    z = z - z.detach().amax(-1, keepdim=True)
    return z - torch.logsumexp(z, dim=-1, keepdim=True)


def finite(log_p: Tensor) -> Tensor:
    """The lowest finite number in place of -inf, whose product with a target of 0 is NaN."""
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)


def checked_problem(
    logits: Tensor, target: Tensor, reduction: str, all_ranks: bool
) -> Problem | None:
    """A multi-class problem of class indices that were checked before; None for other inputs."""
    if logits.ndim != 2 or logits.shape[-1] < 2 or target.dtype != torch.int64 or target.ndim != 1:
        return None
    z = logits.to(torch.promote_types(logits.dtype, torch.float32))
    ranks = n_ranks(all_ranks)
    return Problem("multiclass", z, None, target, None, tuple(target.shape), reduction, ranks)


def with_background(problem: Problem, background: int | str | None) -> tuple[Problem, int | None]:
    """The problem, and the index of its background; None where no output stands for one."""
    check_background(background)
    if background is None or isinstance(background, str) or problem.kind == "multilabel":
        return problem, None
    binary = problem.kind == "binary"
    n_classes = 2 if binary else problem.logits.shape[-1]
    if not 0 <= background < n_classes:
        raise ValueError(
            f"background={background} is no class: these logits have classes 0 to {n_classes - 1}"
        )
    if not binary:
        return problem, int(background)
    # One logit stands for class 1 against class 0, which is therefore its background.
    return (problem, None) if background == 0 else (problem.as_two_logits(), 1)


def class_sides(
    name: str, value: PerClass, problem: Problem
) -> tuple[Tensor | None, Tensor | None]:
    """Factors of the positive and, for one logit, of the negative side of each class."""
    n_classes = problem.logits.shape[-1]
    factors = class_vector(name, value, max(n_classes, 2), problem.logits)
    if factors is None or n_classes > 1:
        return factors, None
    return factors[..., 1], factors[..., 0]


def as_problem(
    logits: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    multilabel: bool = False,
    reduction: str = "mean",
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
    all_ranks: bool = True,
    problem: Problem | None = None,
) -> Problem:
    """Logits and target of any allowed shape in one form; `Loss` lists the shapes and errors."""
    if problem is not None:
        return problem
    check_choice("reduction", reduction, REDUCTIONS)
    for name, given in (("logits", logits), ("target", target)):
        if not isinstance(given, Tensor):
            raise TypeError(f"{name} is a {type(given).__name__}: give a torch.Tensor")
        if given.layout is not torch.strided:
            raise TypeError(f"{name} is a tensor of layout {given.layout}: give {name}.to_dense()")
    wrong = ValueError(
        f"logits of shape {tuple(logits.shape)} and target of shape {tuple(target.shape)} and "
        f"{target.dtype} do not fit: give (N,) and 0/1 (N,); (N, C) and class indices, which "
        "are integers, (N,), or distributions, which are floats, (N, C); (N, L, C) and class "
        "indices (N, L); or with multilabel=True (N, C) and 0/1 (N, C)"
    )
    if not logits.is_floating_point():
        raise ValueError(f"logits have dtype {logits.dtype}: they must be floating point")
    if logits.ndim == 0:
        raise wrong
    shape, n_classes, is_float = tuple(target.shape), logits.shape[-1], target.is_floating_point()
    indices = distributions = False
    if multilabel:
        kind, fits = "multilabel", logits.shape == target.shape and logits.ndim > 1
    elif logits.ndim == 1 or n_classes == 1:
        kind, n_classes = "binary", 1
        fits = target.numel() == logits.numel() and target.shape[:1] == logits.shape[:1]
    else:
        kind, indices, distributions = "multiclass", not is_float, is_float
        fits = shape == (logits.shape if is_float else logits.shape[:-1])
        shape = tuple(logits.shape[:-1])
    if not fits:
        raise wrong
    z = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n_classes)
    values = (target if is_float else target.long()).reshape(-1, 1 if indices else n_classes)
    valid = torch.ones_like(z[:, :1], dtype=torch.bool)
    if not distributions:
        valid = values != ignore_index
    like = valid if kind == "multilabel" else valid[:, 0]
    if mask is not None:
        valid = valid & (_like(mask, "mask", like, shape) != 0).reshape(valid.shape)
    _check_target(values, valid, n_classes - 1 if indices else 1, distributions, ignore_index)
    # Positions that do not count get some legal target; their weight is 0.
    values = torch.where(valid, values, torch.zeros_like(values))
    weight = valid.to(z.dtype)
    if sample_weight is not None:
        given = _like(sample_weight, "sample_weight", like, shape).to(z.dtype)
        given = given.reshape(weight.shape)
        if _is_true(torch.any, valid & ~((given >= 0) & torch.isfinite(given))):
            raise ValueError("sample_weight holds a negative, infinite or NaN value")
        weight = torch.where(valid, given, torch.zeros_like(given))
    # A weight of 0 must also stop NaN or infinite logits of padding.
    counts = weight > 0
    all_count = _is_true(torch.all, counts)
    if not all_count:
        z = z.masked_fill(~counts, 0.0)
    all_ones = all_count and sample_weight is None and len(z) > 0
    given_weight = None if all_ones else weight if kind == "multilabel" else weight[:, 0]
    encoded, index = (None, values[:, 0]) if indices else (values.to(z.dtype), None)
    return Problem(kind, z, encoded, index, given_weight, shape, reduction, n_ranks(all_ranks))


def _like(values: Tensor, name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask or weights in the shape of `like`; the target's own shape is `shape`."""
    values = torch.as_tensor(values, device=like.device)
    # (N, 1) is taken as (N,); a transposed array is refused.
    if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
        return values.reshape(like.shape)
    if tuple(values.shape) == shape[: values.ndim]:
        spread = values.reshape(*values.shape, *[1] * (len(shape) - values.ndim)).expand(shape)
        return spread.reshape(like.shape)
    raise ValueError(
        f"{name} has shape {tuple(values.shape)}, but the target's is {shape}: give one value "
        "for each element, or one for each example"
    )


def _check_target(
    values: Tensor, valid: Tensor, top: int, distributions: bool, ignore_index: int
) -> None:
    wrong = valid & ~((values >= 0) & (values <= top))
    if _is_true(torch.any, wrong):
        value = values[wrong][0].item()
        raise ValueError(
            f"target holds {value!r}: it must be from 0 to {top}, or ignore_index={ignore_index}"
        )
    if distributions:
        total = values.sum(-1, keepdim=True)
        wrong = valid & ((total - 1).abs() > 0.02)  # bfloat16 keeps two to three digits
        if _is_true(torch.any, wrong):
            raise ValueError(
                f"target has a row that sums to {total[wrong][0].item():.4g}: distributions "
                "over classes sum to 1; for 0/1 rows of independent labels give "
                "multilabel=True"
            )


def can_be_read(values: Tensor) -> bool:
    """Whether to read values costs no time: a step on a GPU would wait, a compiled graph break."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def _is_true(test: Callable[[Tensor], Tensor], values: Tensor) -> bool:
    """Whether `values` pass `torch.any` or `torch.all`; False where it costs time to know."""
    if not can_be_read(values):
        return False
    try:
        return bool(test(values))
    except RuntimeError:  # under torch.func.vmap a tensor has no single truth value
        return False
