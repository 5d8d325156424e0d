"""What every loss shares: parameters, inputs, probabilities and reduction."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["Loss", "Problem", "check_number"]

REDUCTIONS = ("mean", "sum", "none")


def check_number(
    name: str, value: Any, low: float, high: float = float("inf"), *, open_low: bool = False
) -> None:
    """Refuse a plain number outside its range; tensors pass, so that many can run at once."""
    if isinstance(value, Tensor):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name}={value!r} must be a number, or a tensor of numbers")
    if not (low < value if open_low else low <= value) or not value <= high:
        span = f"{'above' if open_low else 'at least'} {low}"
        span += "" if high == float("inf") else f" and at most {high}"
        raise ValueError(f"{name}={value!r} must be {span}")


@dataclass(slots=True)
class Problem:
    """Inputs brought to one form.

    Attributes
    ----------
    kind : {"binary", "multiclass", "multilabel"}
    logits : Tensor of shape (N, C)
        In float32 or more; C is 1 for a binary problem.
    target : Tensor of shape (N, C)
        Class distribution, or 0/1 for each label.
    weight : Tensor of shape (N,) or (N, C)
        0 where a position is ignored or masked; (N, C) for a multi-label problem only.
    shape : tuple of int
        Of what ``reduction="none"`` returns.
    hard : Tensor of shape (N,) or None
        Class indices, where the target held such.
    """

    kind: str
    logits: Tensor
    target: Tensor
    weight: Tensor
    shape: tuple[int, ...]
    hard: Tensor | None = None

    @property
    def element_weight(self) -> Tensor:
        """Weights of shape (N, 1) or (N, C)."""
        return self.weight if self.weight.ndim == 2 else self.weight.unsqueeze(-1)

    def log_p(self) -> Tensor:
        """Log-probabilities of shape (N, C)."""
        if self.kind == "multiclass":
            return torch.log_softmax(self.logits, dim=-1)
        return nn.functional.logsigmoid(self.logits)

    def log_not_p(self) -> Tensor:
        """log(1 - p) of shape (N, C), finite and differentiable also where p rounds to 1."""
        if self.kind != "multiclass":
            return nn.functional.logsigmoid(-self.logits)
        z = self.logits
        total = torch.logsumexp(z, dim=-1, keepdim=True)
        top = z.detach().argmax(dim=-1, keepdim=True)
        is_top = torch.arange(z.shape[-1], device=z.device) == top
        # Only the largest class can round to 1: its complement is taken from the other logits.
        others = torch.logsumexp(z.masked_fill(is_top, torch.finfo(z.dtype).min), -1, keepdim=True)
        p = torch.exp(z - total).masked_fill(is_top, 0.0)
        return torch.where(is_top, others - total, torch.log1p(-p))


class Loss(nn.Module):
    """Base of skdice's losses: a `torch.nn` loss with scikit-learn's parameters.

    A loss takes logits and targets of these shapes:

    ============== ===================== ==========================================
    problem        logits                target
    ============== ===================== ==========================================
    binary         (N,) or (N, 1)        0/1 of shape (N,) or (N, 1)
    multi-class    (N, C)                class indices (N,), or distributions (N, C)
    tagging        (N, L, C)             class indices (N, L)
    multi-label    (N, C)                0/1 of shape (N, C), with ``multilabel=True``
    ============== ===================== ==========================================
    """

    # Parameters that every loss has; set by each constructor.
    ignore_index: int
    multilabel: bool
    reduction: str

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        signature = inspect.signature(cls.__init__)
        cls._names = tuple(name for name in signature.parameters if name != "self")

    def _check(self) -> None:
        if self.reduction not in REDUCTIONS:
            raise ValueError(f"reduction={self.reduction!r} must be one of {REDUCTIONS}")

    # ---- scikit-learn's parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name."""
        return {name: getattr(self, name) for name in self._names}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; refused values leave the loss as it was."""
        unknown = sorted(set(params) - set(self._names))
        if unknown:
            raise ValueError(
                f"Invalid parameter {unknown[0]!r} for {type(self).__name__}: it has "
                f"{sorted(self._names)}"
            )
        type(self)(**{**self.get_params(deep=False), **params})
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = []
        for name, value in self.get_params(deep=False).items():
            default = defaults[name].default
            if isinstance(value, (Tensor, np.ndarray)) or (
                value is not default and value != default
            ):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))

    # ---- what the training data say

    def prepare(
        self,
        class_counts: Any,
        background: int | None = None,
        multilabel: bool = False,
        n_samples: float | None = None,
    ) -> Self:
        """Tell the loss about the training data, once, before training.

        Parameters
        ----------
        class_counts : array of shape (n_classes,)
            Training examples (tokens, for a tagger) of each class; (2,) for one logit.
        background : int or None, default=None
            Index of the background class, if there is one.
        multilabel : bool, default=False
            Whether the targets are 0/1 rows.
        n_samples : float or None, default=None
            Training examples in all; None is the sum of `class_counts`.

        Returns
        -------
        self
        """
        self.class_counts_ = np.asarray(class_counts, dtype=np.float64)
        self.background_ = background
        self.multilabel_ = multilabel
        self.n_samples_ = float(self.class_counts_.sum() if n_samples is None else n_samples)
        return self

    # ---- the loss

    def forward(
        self,
        logits: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """The loss.

        Parameters
        ----------
        logits, target : Tensor
            Of the shapes that the class lists.
        sample_weight : Tensor of shape (N,) or of the target's shape, default=None
        mask : bool Tensor of the target's shape, default=None
            Positions that count; those whose target is `ignore_index` never do.

        Returns
        -------
        Tensor
            A scalar, or with ``reduction="none"`` one value for each element.

        Raises
        ------
        ValueError
            If shapes do not fit, or a target on the CPU is out of range.
        """
        problem = self._problem(logits, target, sample_weight, mask)
        return self._loss(problem)

    def _loss(self, problem: Problem) -> Tensor:
        return self._reduce(self._elements(problem), problem)

    def _elements(self, problem: Problem) -> Tensor:
        """Losses of shape (N,), or (N, C) for a multi-label problem."""
        raise NotImplementedError

    def _reduce(self, elements: Tensor, problem: Problem) -> Tensor:
        weight = problem.weight
        if elements.ndim == 2 and weight.ndim == 1:
            weight = weight.unsqueeze(-1).expand_as(elements)
        weighted = elements * weight
        if self.reduction == "none":
            return weighted.reshape(problem.shape)
        if self.reduction == "sum":
            return weighted.sum()
        return weighted.sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)

    def _problem(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None, mask: Tensor | None
    ) -> Problem:
        multilabel = self.multilabel or getattr(self, "multilabel_", False)
        if not logits.is_floating_point():
            raise ValueError(f"logits have dtype {logits.dtype}: they must be floating point")
        z = logits.to(torch.promote_types(logits.dtype, torch.float32))
        hard = None
        wrong = ValueError(
            f"logits of shape {tuple(logits.shape)} and target of shape {tuple(target.shape)} do "
            "not fit: give (N,) and (N,), (N, C) and (N,) or (N, C), or (N, L, C) and (N, L)"
        )
        if multilabel:
            if logits.shape != target.shape or logits.ndim < 2:
                raise wrong
            kind, n_classes = "multilabel", logits.shape[-1]
            z, values = z.reshape(-1, n_classes), target.reshape(-1, n_classes)
            valid = values != self.ignore_index
            self._check_values(values, valid, 0, 1)
            encoded = torch.where(valid, values, torch.zeros_like(values)).to(z.dtype)
            shape = tuple(target.shape)
        elif logits.ndim == 1 or logits.shape[-1] == 1:
            if target.numel() != logits.numel() or target.shape[0] != logits.shape[0]:
                raise wrong
            kind = "binary"
            z, values = z.reshape(-1, 1), target.reshape(-1, 1)
            valid = (values != self.ignore_index)[:, 0]
            self._check_values(values[:, 0], valid, 0, 1)
            zero = torch.zeros_like(values)
            encoded = torch.where(valid.unsqueeze(-1), values, zero).to(z.dtype)
            shape = tuple(target.shape)
        elif target.shape == logits.shape[:-1] and not target.is_floating_point():
            kind, n_classes = "multiclass", logits.shape[-1]
            z, values = z.reshape(-1, n_classes), target.reshape(-1).long()
            valid = values != self.ignore_index
            self._check_values(values, valid, 0, n_classes - 1)
            # Ignored positions get a class only to be one-hot; their weight is 0.
            hard = torch.where(valid, values, torch.zeros_like(values))
            encoded = (hard.unsqueeze(-1) == torch.arange(n_classes, device=z.device)).to(z.dtype)
            shape = tuple(target.shape)
        elif target.shape == logits.shape and target.is_floating_point():
            kind, n_classes = "multiclass", logits.shape[-1]
            z, encoded = z.reshape(-1, n_classes), target.reshape(-1, n_classes).to(z.dtype)
            valid = torch.ones(len(z), dtype=torch.bool, device=z.device)
            shape = tuple(target.shape[:-1])
        else:
            raise wrong
        weight = valid.to(z.dtype)
        if mask is not None:
            weight = weight * self._like(mask, "mask", weight, shape).to(z.dtype)
        if sample_weight is not None:
            weight = weight * self._like(sample_weight, "sample_weight", weight, shape).to(z.dtype)
        # A weight of 0 must also stop NaN or infinite logits of padding.
        alive = weight if weight.ndim == 2 else weight.unsqueeze(-1)
        z = torch.where(alive > 0, z, torch.zeros_like(z))
        return Problem(kind, z, encoded, weight, shape, hard)

    @staticmethod
    def _like(values: Tensor, name: str, weight: Tensor, shape: tuple[int, ...]) -> Tensor:
        values = torch.as_tensor(values, device=weight.device)
        if tuple(values.shape) == shape or values.numel() == weight.numel():
            return values.reshape(weight.shape)
        if values.ndim == 1 and len(shape) > 1 and len(values) == shape[0]:
            spread = values.reshape(-1, *[1] * (len(shape) - 1)).expand(shape)
            return spread.reshape(weight.shape)
        raise ValueError(
            f"{name} has shape {tuple(values.shape)}, but the target's is {shape}: give one value "
            "for each element, or one for each example"
        )

    def _check_values(self, values: Tensor, valid: Tensor, low: int, high: int) -> None:
        # On a GPU this look would make every step wait for the device.
        if values.device.type != "cpu" or torch.compiler.is_compiling() or _transformed(values):
            return
        wrong = valid & ~((values >= low) & (values <= high))
        if wrong.any():
            value = values[wrong][0].item()
            raise ValueError(
                f"target holds {value!r}: it must be from {low} to {high}, or ignore_index="
                f"{self.ignore_index}"
            )


def _transformed(values: Tensor) -> bool:
    return torch._C._functorch.is_functorch_wrapped_tensor(values)


def class_vector(name: str, value: Any, n_classes: int, like: Tensor) -> Tensor | None:
    """`value` as a tensor of shape (n_classes,), or None."""
    if value is None:
        return None
    if not isinstance(value, (Tensor, np.ndarray, Sequence)):
        raise TypeError(f"{name}={value!r} must hold one number for each class")
    vector = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if vector.shape[-1:] != (n_classes,):
        raise ValueError(f"{name} has {tuple(vector.shape)} values for {n_classes} classes")
    return vector
