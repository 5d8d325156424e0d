"""Inputs of a loss in one form: probabilities, sums over the examples of classes, reduction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from skdice.losses._class_factors import class_vector
from skdice.losses._constraints import Number, PerClass
from skdice.losses._ranks import over_ranks


@dataclass(slots=True)
class LossInputs:
    """Logits, targets and weights of a batch, read by `read_inputs`."""

    kind: str  # "binary", "multiclass" or "multilabel"
    logits: Tensor  # (N, C) in float32 or more; C is 1 for a binary problem
    encoded: Tensor | None  # see `target`; None where `index` is given and nobody has asked
    index: Tensor | None  # (N,): the true class of each position of a multi-class problem
    given_weight: Tensor | None  # (N, 1) or (N, C), 0 where nothing counts; None where all are 1
    shape: tuple[int, ...]  # of the result with reduction="none"
    reduction: str = "mean"
    ranks: int = 1  # processes whose batches count as one
    # Computed once for all parts of a loss. A `cached_property` would break a compiled graph.
    # `replace` forgets them.
    _log_softmax: Tensor | None = field(default=None, init=False)

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

    def with_logits(self, logits: Tensor) -> LossInputs:
        """The same problem with other logits."""
        return replace(self, logits=logits)

    def as_table(self, weight: Tensor | None = None) -> LossInputs:
        """The same problem with a table of targets in place of class indices, and other weights."""
        kept = self.given_weight if weight is None else weight
        return replace(self, encoded=self.target, index=None, given_weight=kept)

    def as_two_logits(self) -> LossInputs:
        """A binary problem as a softmax over its two classes."""
        z, y = self.logits, self.target
        logits, target = torch.cat([torch.zeros_like(z), z], -1), torch.cat([1 - y, y], -1)
        return replace(self.with_logits(logits), kind="multiclass", encoded=target)

    # ---- probabilities

    def p(self) -> Tensor:
        """Probabilities of shape (N, C)."""
        if self.kind != "multiclass":
            return torch.sigmoid(self.logits)
        return torch.exp(self._log_probabilities())

    def log_p(self) -> Tensor:
        """Log-probabilities of shape (N, C), finite also where a logit is -inf."""
        return finite(self._log_probabilities())

    def true_class_log_p(self) -> Tensor:
        """Log-probability of the true class: what `gather_true_class` takes of `log_p`."""
        return finite(self.gather_true_class(self._log_probabilities()))

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
            self._log_softmax = torch.log_softmax(self.logits, dim=-1)
        return self._log_softmax

    # ---- sums over the examples of a class (its positives), and over all others (its negatives)

    def gather_true_class(self, table: Tensor) -> Tensor:
        """The column of the true class, (N, 1), of a table (N, C); the table if none is known."""
        return table if self.index is None else table.gather(-1, self.index.unsqueeze(-1))

    def sum_positives(self, values: Tensor) -> Tensor:
        """Weighted sums over the positives of each class, (C,), of `gather_true_class` values."""
        if self.index is None:
            return (self.weight * self.target * values).sum(0)
        values = self.weighted(values)
        if on_cpu(values):
            return values.new_zeros(self.n_classes).index_add(0, self.index, values.squeeze(-1))
        # A GPU adds by index in a changing order, so that a seed would not give the same weights.
        table = torch.zeros_like(self.logits).scatter(-1, self.index.unsqueeze(-1), values)
        return table.sum(0)

    def sum_negatives(self, table: Tensor) -> Tensor:
        """Weighted sums over the negatives of each class, (C,), of a table (N, C)."""
        if self.index is None:
            return (self.weight * (1 - self.target) * table).sum(0)
        return self.sum_rows(table.scatter(-1, self.index.unsqueeze(-1), 0.0))

    def sum_rows(self, table: Tensor) -> Tensor:
        """Weighted sums over all examples, (C,), of a table (N, C)."""
        return self.weighted(table).sum(0)

    def weighted(self, values: Tensor) -> Tensor:
        """Values of shape (N, 1) or (N, C) times the weights of the examples."""
        return values if self.given_weight is None else self.given_weight * values

    def total(self, values: Tensor) -> Tensor:
        """Sums of this batch added over all processes, with gradients."""
        return over_ranks(values, self.ranks)

    def n_examples(self) -> Tensor:
        """The weight of all examples; a row of a multi-label problem has one for each label."""
        return self.total(self.weight.sum())

    def share_of_example(self) -> Number:
        """The factor of an example of weight 1 in a mean over all examples."""
        if self.given_weight is None and self.ranks == 1:
            n_labels = self.n_classes if self.kind == "multilabel" else 1
            return 1.0 / max(1, len(self.logits) * n_labels)
        # Gradients are averaged over processes, which divides by the number of processes.
        return self.ranks / at_least_tiny(self.n_examples())

    def reduce(self, elements: Tensor) -> Tensor:
        """Losses of shape (N, 1), or (N, C) for a multi-label problem, reduced by `reduction`."""
        elements = self.weighted(elements)
        if self.reduction == "none":
            return elements.reshape(self.shape)
        total = elements.sum()
        return total * self.share_of_example() if self.reduction == "mean" else total


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


def on_cpu(values: Tensor) -> bool:
    """Return True on a CPU, where sums by index keep their order."""
    return values.device.type == "cpu"


def can_be_read(values: Tensor) -> bool:
    """Return True if reading costs no time: a GPU step would wait, a compiled graph break."""
    return on_cpu(values) and not torch.compiler.is_compiling()


def is_true(test: Callable[[Tensor], Tensor], values: Tensor) -> bool:
    """Apply `torch.any` or `torch.all` to `values`; False where it costs time to know."""
    if not can_be_read(values):
        return False
    try:
        return bool(test(values))
    except RuntimeError:  # under torch.func.vmap a tensor has no single truth value
        return False


def resolve_background(
    inputs: LossInputs, background: int | str | None
) -> tuple[LossInputs, int | None]:
    """The inputs, and the index of its background; None where no output stands for one."""
    if background is None or isinstance(background, str) or inputs.kind == "multilabel":
        return inputs, None
    binary = inputs.kind == "binary"
    n_classes = 2 if binary else inputs.n_classes
    if not 0 <= background < n_classes:
        raise ValueError(
            f"background={background} is no class: these logits have classes 0 to {n_classes - 1}"
        )
    if not binary:
        return inputs, int(background)
    # One logit stands for class 1 against class 0, which is therefore its background.
    return (inputs, None) if background == 0 else (inputs.as_two_logits(), 1)


def class_sides(name: str, value: PerClass, inputs: LossInputs) -> tuple[Number, Number]:
    """Factors of the positive and, for one logit, of the negative side of each class."""
    factors = class_vector(name, value, max(inputs.n_classes, 2), inputs.logits)
    if factors is None:
        return 1.0, 1.0
    return (factors, 1.0) if inputs.n_classes > 1 else (factors[..., 1], factors[..., 0])
