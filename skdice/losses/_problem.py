"""Logits and targets in one form: probabilities, sums over examples, and reduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from skdice.losses._checks import Number, PerClass, check_background, class_vector
from skdice.losses._ranks import over_ranks

FEW_CLASSES = 32  # of which torch's softmax over many rows is slow
BLOCK = 2**20  # numbers in a block of rows; larger tables come from fresh memory each time


@dataclass(slots=True)
class Problem:
    """Inputs in one form."""

    kind: str  # "binary", "multiclass" or "multilabel"
    logits: Tensor  # (N, C) in float32 or more; C is 1 for a binary problem
    encoded: Tensor | None  # see `target`; None where `index` is given and nobody has asked
    index: Tensor | None  # (N,): the right class of each position of a multi-class problem
    given_weight: Tensor | None  # (N, 1) or (N, C), 0 where nothing counts; None where all are 1
    shape: tuple[int, ...]  # of the result with reduction="none"
    reduction: str = "mean"
    ranks: int = 1  # processes whose batches count as one
    # Computed once for all parts of a loss. A `cached_property` would break a compiled graph.
    # `replace` forgets them.
    _log_softmax: Tensor | None = field(default=None, init=False)
    _right_log_p: Tensor | None = field(default=None, init=False)

    @property
    def n_classes(self) -> int:
        """Columns of the logits."""
        return self.logits.shape[-1]

    @property
    def target(self) -> Tensor:
        """Class distribution, or 0/1 for each label, of shape (N, C)."""
        if self.encoded is None:
            assert self.index is not None
            classes = torch.arange(self.n_classes, device=self.logits.device)
            self.encoded = (self.index.unsqueeze(-1) == classes).to(self.logits.dtype)
        return self.encoded

    @property
    def weight(self) -> Tensor:
        """Weights of shape (N, 1), or (N, C) of a multi-label problem; 0 where nothing counts."""
        if self.given_weight is not None:
            return self.given_weight
        return torch.ones_like(self.logits if self.kind == "multilabel" else self.logits[:, :1])

    def with_logits(self, logits: Tensor) -> Problem:
        """The same problem with other logits."""
        return replace(self, logits=logits)

    def as_table(self, weight: Tensor | None = None) -> Problem:
        """The same problem with a table of targets in place of class indices, and other weights."""
        kept = self.given_weight if weight is None else weight
        return replace(self, encoded=self.target, index=None, given_weight=kept)

    def as_two_logits(self) -> Problem:
        """A binary problem as a softmax over its two classes."""
        z, y = self.logits, self.target
        logits, target = torch.cat([torch.zeros_like(z), z], -1), torch.cat([1 - y, y], -1)
        return replace(self.with_logits(logits), kind="multiclass", encoded=target)

    def blocks(self) -> list[Problem]:
        """The problem in blocks of rows on a CPU, whose memory is slower than its arithmetic."""
        size = max(1, BLOCK // max(1, self.n_classes))
        if not can_be_read(self.logits) or len(self.logits) <= size:
            return [self]
        tables = (self.logits, self.encoded, self.index, self.given_weight)
        n = -(-len(self.logits) // size)
        rows = [table.split(size) if table is not None else [None] * n for table in tables]
        return [
            replace(self, logits=z, encoded=y, index=index, given_weight=weight)
            for z, y, index, weight in zip(*rows, strict=True)
        ]

    def take_right_log_p(self, blocks: list[Problem]) -> None:
        """Keep what the blocks know, for the other parts of a loss."""
        if all(block._right_log_p is not None for block in blocks):
            self._right_log_p = torch.cat([block.right_log_p() for block in blocks])

    # ---- probabilities

    def p(self) -> Tensor:
        """Probabilities of shape (N, C)."""
        if self.kind != "multiclass":
            return torch.sigmoid(self.logits)
        return torch.exp(self._log_probabilities())

    def log_p(self) -> Tensor:
        """Log-probabilities of shape (N, C), finite also where a logit is -inf."""
        return finite(self._log_probabilities())

    def right_log_p(self) -> Tensor:
        """What `right` takes of `log_p`."""
        if self._right_log_p is None:
            self._right_log_p = finite(self.right(self._log_probabilities()))
        return self._right_log_p

    def log_not_p(self) -> Tensor:
        """log(1 - p) of shape (N, C), finite and differentiable also where p rounds to 1."""
        if self.kind != "multiclass":
            return finite(log_sigmoid(-self.logits))
        if self.n_classes == 2:
            return self.log_p().flip(-1)
        z = self.logits
        top = z.detach().max(dim=-1, keepdim=True).indices  # faster than argmax
        # Only this class can round to 1. Its odds come from the other logits. With the second
        # highest taken off, the sum of their exponentials is neither 0 nor infinite.
        others = z.scatter(-1, top, -torch.inf)
        second = finite(others.detach().amax(dim=-1, keepdim=True))
        others = others.sub_(second).exp_()
        total = at_least_tiny(others.sum(-1, keepdim=True))
        odds_of_top = finite(z.gather(-1, top) - second - torch.log(total))
        p = others * (torch.sigmoid(-odds_of_top) / total)
        return torch.log1p(-p).scatter(-1, top, log_sigmoid(-odds_of_top))

    def _log_probabilities(self) -> Tensor:
        if self.kind != "multiclass":
            return log_sigmoid(self.logits)
        if self._log_softmax is None:
            self._log_softmax = _log_softmax(self.logits)
        return self._log_softmax

    # ---- sums over the examples of a class, and over all others

    def right(self, table: Tensor) -> Tensor:
        """What `by_class` needs of a table of shape (N, C): for class indices only a column."""
        return table if self.index is None else table.gather(-1, self.index.unsqueeze(-1))

    def by_class(self, values: Tensor) -> Tensor:
        """Weighted sums over the examples of each class, of shape (C,), of values by `right`."""
        if self.index is None:
            return (self.weight * self.target * values).sum(0)
        if self.given_weight is not None:
            values = self.given_weight * values
        return values.new_zeros(self.n_classes).index_add(0, self.index, values.squeeze(-1))

    def by_wrong_class(self, table: Tensor) -> Tensor:
        """Weighted sums over the examples that are not of each class, of shape (C,)."""
        if self.index is None:
            return (self.weight * (1 - self.target) * table).sum(0)
        return self.over_rows(table.scatter(-1, self.index.unsqueeze(-1), 0.0))

    def over_rows(self, table: Tensor) -> Tensor:
        """Weighted sums over all examples, of shape (C,)."""
        return (table if self.given_weight is None else self.given_weight * table).sum(0)

    def total(self, values: Tensor) -> Tensor:
        """Sums of this batch added over all processes, with gradients."""
        return over_ranks(values, self.ranks)

    def n_examples(self) -> Tensor:
        """The weight of all examples; a row of a multi-label problem has one for each label."""
        return self.total(self.weight.sum())

    def reduce(self, elements: Tensor) -> Tensor:
        """Losses of shape (N, 1), or (N, C) for a multi-label problem, reduced by `reduction`."""
        if self.given_weight is None and self.reduction == "mean" and self.ranks == 1:
            return elements.mean()
        weighted = elements * self.weight
        if self.reduction == "none":
            return weighted.reshape(self.shape)
        if self.reduction == "sum":
            return weighted.sum()
        # Gradients are averaged over processes, which divides by the number of processes.
        return weighted.sum() * self.ranks / at_least_tiny(self.n_examples())


def log_sigmoid(z: Tensor) -> Tensor:
    """log(sigmoid(z)); torch's own fails on a GPU inside two `vmap`s, where its buffer is empty."""
    return -nn.functional.softplus(-z, threshold=40.0)  # above it softplus(z) rounds to z


def at_least_tiny(total: Tensor) -> Tensor:
    """A divisor that is never 0; gradients stay finite under a loss scale of 2^24, too."""
    return total.clamp(min=torch.finfo(total.dtype).tiny * 2.0**26)


def finite(log_p: Tensor) -> Tensor:
    """A low number in place of -inf, whose product with a target of 0 is NaN.

    It is 2^26 times above the lowest, so that it stays finite under a loss scale of 2^24, too.
    """
    return log_p.clamp(min=torch.finfo(log_p.dtype).min / 2.0**26)


def can_be_read(values: Tensor) -> bool:
    """Whether to read values costs no time: a step on a GPU would wait, a compiled graph break."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def is_true(test: Callable[[Tensor], Tensor], values: Tensor) -> bool:
    """Whether `values` pass `torch.any` or `torch.all`; False where it costs time to know."""
    if not can_be_read(values):
        return False
    try:
        return bool(test(values))
    except RuntimeError:  # under torch.func.vmap a tensor has no single truth value
        return False


def _log_softmax(z: Tensor) -> Tensor:
    if z.shape[-1] <= FEW_CLASSES and len(z) > 4096:  # torch's own is slow over many short rows
        z = z - z.detach().amax(-1, keepdim=True)
        return z - torch.logsumexp(z, dim=-1, keepdim=True)
    return torch.log_softmax(z, dim=-1)


def with_background(problem: Problem, background: int | str | None) -> tuple[Problem, int | None]:
    """The problem, and the index of its background; None where no output stands for one."""
    check_background(background)
    if background is None or isinstance(background, str) or problem.kind == "multilabel":
        return problem, None
    binary = problem.kind == "binary"
    n_classes = 2 if binary else problem.n_classes
    if not 0 <= background < n_classes:
        raise ValueError(
            f"background={background} is no class: these logits have classes 0 to {n_classes - 1}"
        )
    if not binary:
        return problem, int(background)
    # One logit stands for class 1 against class 0, which is therefore its background.
    return (problem, None) if background == 0 else (problem.as_two_logits(), 1)


def class_sides(name: str, value: PerClass, problem: Problem) -> tuple[Number, Number]:
    """Factors of the positive and, for one logit, of the negative side of each class."""
    factors = class_vector(name, value, max(problem.n_classes, 2), problem.logits)
    if factors is None:
        return 1.0, 1.0
    return (factors, 1.0) if problem.n_classes > 1 else (factors[..., 1], factors[..., 0])
