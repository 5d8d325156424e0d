"""What a kernel gets: logits, targets and weights of any shape, checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skdice._checks import shown
from skdice.losses._parameters import Number, PerClass


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

    def as_table(self) -> LossInputs:
        """The same problem with a table of targets in place of class indices."""
        return replace(self, encoded=self.target, index=None)

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
        """Log-probability of the true class: what `of_true_class` takes of `log_p`."""
        return finite(self.of_true_class(self._log_probabilities()))

    def log_not_p(self) -> Tensor:
        """log(1 - p) of shape (N, C), finite and differentiable also where p rounds to 1."""
        if self.kind != "multiclass":
            return finite(log_sigmoid(-self.logits))
        log_p = self.log_p()
        top = log_p.detach().max(dim=-1, keepdim=True).indices  # faster than argmax
        # Only this class can round to 1. Its 1 - p is the sum of the others.
        others = log_p.scatter(-1, top, -torch.inf)
        of_top = torch.logsumexp(others, dim=-1, keepdim=True)
        return torch.log1p(-torch.exp(others)).scatter(-1, top, of_top)

    def _log_probabilities(self) -> Tensor:
        if self.kind != "multiclass":
            return log_sigmoid(self.logits)
        if self._log_softmax is None:
            self._log_softmax = torch.log_softmax(self.logits, dim=-1)
        return self._log_softmax

    # ---- sums over the examples

    def of_true_class(self, table: Tensor) -> Tensor:
        """The column of the true class, (N, 1), of a table (N, C); the table if none is known."""
        return table if self.index is None else table.gather(-1, self.index.unsqueeze(-1))

    def weighted(self, values: Tensor) -> Tensor:
        """Values of shape (..., N, 1) or (..., N, C) times the weights of the examples."""
        return values if self.given_weight is None else self.given_weight * values

    def sum_rows(self, table: Tensor) -> Tensor:
        """Weighted sums over the examples of all processes, (..., C), of a table (..., N, C)."""
        return over_ranks(self.weighted(table).sum(-2), self.ranks)

    def n_examples(self) -> Tensor:
        """The weight of all examples; a row of a multi-label problem has one for each label."""
        return over_ranks(self.weight.sum(), self.ranks)

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


# ---- reading


def read_inputs(
    loss: Any,
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
) -> LossInputs:
    """Logits and target of any allowed shape in one form; `Loss` lists the shapes and errors."""
    kind, n_classes, shape = _problem(loss.is_multilabel, logits, target)
    is_float = target.is_floating_point()
    indices = kind == "multiclass" and not is_float
    distributions = kind == "multiclass" and is_float
    z = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n_classes)
    values = (target if is_float else target.long()).reshape(-1, 1 if indices else n_classes)
    valid = values != loss.ignore_index
    if distributions:
        valid = torch.ones_like(z[:, :1], dtype=torch.bool)
    counts, weight = valid, None
    if sample_weight is not None:
        weight = _spread(sample_weight, shape, z.device).to(z.dtype)
        weight = weight.reshape(valid.shape)
        counts = valid & (weight > 0)
    all_count = False
    if on_cpu(z) and not torch.compiler.is_compiling():  # a GPU would wait, a graph break
        with suppress(RuntimeError):  # under torch.func.vmap a tensor has no single truth value
            top = n_classes - 1 if indices else 1
            _check_values(values, valid, weight, top, distributions, loss.ignore_index)
            all_count = bool(counts.all())
    if not all_count:
        # Positions that do not count get a legal target and logits without NaN or infinity.
        z, values = z.masked_fill(~counts, 0.0), values.masked_fill(~counts, 0)
        weight = counts.to(z.dtype) if weight is None else weight.masked_fill(~valid, 0.0)
    encoded, index = (None, values[:, 0]) if indices else (values.to(z.dtype), None)
    ranks = n_ranks(loss.all_ranks)
    return LossInputs(kind, z, encoded, index, weight, tuple(shape), loss.reduction, ranks)


def _problem(multilabel: bool, logits: Tensor, target: Tensor) -> tuple[str, int, torch.Size]:
    """The kind of problem that the shapes are of, its columns, and the shape of its elements."""
    for name, tensor in (("logits", logits), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: give a torch.Tensor")
    if not logits.is_floating_point():
        raise ValueError(f"logits have dtype {logits.dtype}: they must be floating point")
    n_classes, shape = logits.shape[-1] if logits.ndim > 1 else 1, target.shape
    if multilabel:
        kind, fits = "multilabel", logits.ndim > 1 and shape == logits.shape
    elif n_classes == 1:
        kind, fits = "binary", shape[:1] == logits.shape[:1] and shape.numel() == logits.numel()
    else:
        whole = target.is_floating_point()
        kind, fits = "multiclass", shape == (logits.shape if whole else logits.shape[:-1])
        shape = logits.shape[:-1]
    if not fits or logits.ndim == 0 or n_classes == 0 or target.is_complex():
        raise ValueError(
            f"logits of shape {tuple(logits.shape)} and target of shape {tuple(target.shape)} and "
            f"{target.dtype} do not fit: give (N,) and 0/1 (N,); (N, C) and integers "
            "(N,) or floats as distributions (N, C); (N, L, C) and integers (N, L); or with "
            "multilabel=True (N, C) and 0/1 (N, C)"
        )
    return kind, n_classes, shape


def _spread(values: Tensor, shape: torch.Size, device: torch.device) -> Tensor:
    """Weights in the shape of the target; one for each example holds for all of it."""
    try:
        values = torch.as_tensor(values, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"sample_weight={shown(values)} must be a tensor of numbers") from None
    # (N, 1) is taken as (N,); a transposed array is refused.
    if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
        return values.reshape(shape)
    if values.shape == shape[: values.ndim]:
        return values.reshape(*values.shape, *[1] * (len(shape) - values.ndim)).expand(shape)
    raise ValueError(
        f"sample_weight has shape {tuple(values.shape)}, but the target's is {tuple(shape)}: give "
        "one value for each element, or one for each example"
    )


def _check_values(
    values: Tensor,
    valid: Tensor,
    weight: Tensor | None,
    top: int,
    distributions: bool,
    ignore_index: int,
) -> None:
    """Refuse targets and weights that are out of range."""
    wrong = valid & ~((values >= 0) & (values <= top))
    if wrong.any():
        raise ValueError(
            f"target holds {values[wrong][0].item()!r}: it must be from 0 to {top}, or "
            f"ignore_index={ignore_index}"
        )
    if distributions:
        total = values.sum(-1, keepdim=True)
        wrong = valid & ((total - 1).abs() > 0.02)  # bfloat16 keeps two to three digits
        if wrong.any():
            raise ValueError(
                f"target has a row that sums to {total[wrong][0].item():.4g}: distributions over "
                "classes sum to 1; for 0/1 rows of independent labels give multilabel=True"
            )
    if weight is not None and (valid & ~((weight >= 0) & torch.isfinite(weight))).any():
        raise ValueError("sample_weight holds a negative, infinite or NaN value")


def on_cpu(values: Tensor) -> bool:
    """Return True on a CPU."""
    return values.device.type == "cpu"


# ---- numbers


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
    total: Tensor = _Sum.apply(values)
    return total


def n_ranks(all_ranks: bool) -> int:
    """Processes of torch.distributed that train together; 1 where nothing is trained."""
    if not (all_ranks and torch.is_grad_enabled() and torch.distributed.is_available()):
        return 1
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


# ---- parameters as tensors


def scalar(value: Number, like: Tensor) -> Tensor:
    """A number as a tensor of shape (), made on the device of `like` rather than copied to it."""
    if isinstance(value, Tensor):
        return value.to(like)
    return torch.full((), value, dtype=like.dtype, device=like.device)


def class_vector(name: str, value: PerClass, n_classes: int, like: Tensor) -> Tensor:
    """A factor for each class as a tensor of shape (n_classes,)."""
    if isinstance(value, (str, Mapping)):
        raise ValueError(
            f"{name}={shown(value)} needs to know the classes: call prepare(class_counts=...) "
            "first, or give one number for each class"
        )
    if isinstance(value, Tensor) and (value.is_quantized or (value.is_meta and not like.is_meta)):
        raise TypeError(f"{name} is a tensor without numbers to read: give plain ones")
    vector = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if n_classes == 1 and vector.shape == (2,):
        return vector[1:]  # one logit: factors of the negative and the positive class
    if vector.shape != (n_classes,):
        raise ValueError(f"{name} has {tuple(vector.shape)} values for {n_classes} classes")
    return vector


def class_sides(name: str, value: PerClass, inputs: LossInputs) -> tuple[Number, Number]:
    """Factors of the positive and, for one logit, of the negative side of each class."""
    if value is None:
        return 1.0, 1.0
    both = inputs.n_classes == 1 and np.shape(value) == (2,)  # the negatives' factor comes first
    if inputs.kind == "binary" or both:
        factors = class_vector(name, value, 2, inputs.logits)
        return factors[1], factors[0]
    return class_vector(name, value, inputs.n_classes, inputs.logits), 1.0


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
