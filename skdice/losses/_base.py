"""What every loss shares: parameters, inputs, probabilities and reduction."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "Loss",
    "Problem",
    "check_background",
    "check_number",
    "check_per_class",
    "class_vector",
]

REDUCTIONS = ("mean", "sum", "none")


def check_number(
    name: str, value: Any, low: float, high: float = float("inf"), *, open_low: bool = False
) -> None:
    """Refuse a plain number outside its range; tensors pass, so that many can run at once."""
    if isinstance(value, Tensor):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name}={value!r} must be a number, or a tensor of numbers")
    inside = low < value if open_low else low <= value
    if not (inside and value <= high and math.isfinite(value)):
        span = f"{'above' if open_low else 'at least'} {low}"
        span += "" if high == float("inf") else f" and at most {high}"
        span += ", and finite" if high == float("inf") else ""
        raise ValueError(f"{name}={value!r} must be {span}")


def check_background(value: Any) -> None:
    """Refuse what is neither "auto", None nor an index."""
    index = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (index or value is None or (isinstance(value, str) and value == "auto")):
        raise ValueError(f"background={value!r} must be 'auto', None or the index of a class")


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
    """

    kind: str
    logits: Tensor
    target: Tensor
    weight: Tensor
    shape: tuple[int, ...]
    _odds: Tensor | None = None

    @property
    def element_weight(self) -> Tensor:
        """Weights of shape (N, 1) or (N, C)."""
        return self.weight if self.weight.ndim == 2 else self.weight.unsqueeze(-1)

    def as_two_logits(self) -> Problem:
        """A binary problem as a softmax over its two classes."""
        z, y = self.logits, self.target
        logits, target = torch.cat([torch.zeros_like(z), z], -1), torch.cat([1 - y, y], -1)
        return Problem("multiclass", logits, target, self.weight, self.shape)

    def _log_odds(self) -> Tensor | None:
        """log(p / (1 - p)) of shape (N, C), where the logits say it without a softmax."""
        if self.kind != "multiclass":
            return self.logits
        if self.logits.shape[-1] != 2:
            return None
        if self._odds is None:
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
        odds = self._log_odds()
        if odds is None:
            return _finite(torch.log_softmax(self.logits, dim=-1))
        return _finite(nn.functional.logsigmoid(odds))

    def log_not_p(self) -> Tensor:
        """log(1 - p) of shape (N, C), finite and differentiable also where p rounds to 1."""
        odds = self._log_odds()
        if odds is not None:
            return _finite(nn.functional.logsigmoid(-odds))
        z = self.logits
        total = torch.logsumexp(z, dim=-1, keepdim=True)
        top = z.detach().argmax(dim=-1, keepdim=True)
        is_top = torch.arange(z.shape[-1], device=z.device) == top
        # Only the largest class can round to 1: its complement is taken from the other logits.
        others = torch.logsumexp(z.masked_fill(is_top, torch.finfo(z.dtype).min), -1, keepdim=True)
        p = torch.exp(z - total).masked_fill(is_top, 0.0)
        return torch.where(is_top, others - total, torch.log1p(-p))


def _finite(log_p: Tensor) -> Tensor:
    """The lowest number in place of -inf, whose product with a target of 0 is no number."""
    return log_p.clamp(min=torch.finfo(log_p.dtype).min)


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
        check_per_class("class_weight", getattr(self, "class_weight", None))

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

        Raises
        ------
        ValueError
            If a count is negative or no number, or `background` is no class.
        """
        counts = np.asarray(class_counts, dtype=np.float64)
        if counts.ndim != 1 or not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError(
                f"class_counts={class_counts!r} must hold one number of at least 0 for each class"
            )
        if background is not None and not 0 <= background < len(counts):
            raise ValueError(
                f"background={background!r} must be None or one of the {len(counts)} classes that "
                "class_counts has"
            )
        self.class_counts_ = counts
        self.background_ = background
        self.multilabel_ = multilabel
        self.n_samples_ = float(self.class_counts_.sum() if n_samples is None else n_samples)
        return self

    def take_memory(self, other: nn.Module) -> None:
        """Remember the batches that `other` remembers, if it is the same loss."""
        if repr(self) == repr(other):
            for new, old in zip(self.modules(), other.modules(), strict=True):
                if hasattr(old, "running_"):
                    new.running_ = old.running_

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
            Weight 2 is the example twice. A row's weight holds for all of its elements.
        mask : bool Tensor of shape (N,) or of the target's shape, default=None
            Positions that count; those whose target is `ignore_index` never do.

        Returns
        -------
        Tensor
            A scalar, or with ``reduction="none"`` one value for each element.

        Raises
        ------
        ValueError
            If shapes do not fit, or a target or weight on the CPU is out of range. On other
            devices values are not looked at, since that would hold up every step.
        """
        problem = self._problem(logits, target, sample_weight, mask)
        return self._loss(problem)

    def _loss(self, problem: Problem) -> Tensor:
        return self._reduce(self._elements(problem), problem)

    def _elements(self, problem: Problem) -> Tensor:
        """Losses of shape (N,), or (N, C) for a multi-label problem."""
        raise NotImplementedError

    def _with_background(self, problem: Problem) -> tuple[Problem, int | None]:
        """The problem, and the index of its background; None where no output stands for one."""
        background: Any = getattr(self, "background", None)
        if isinstance(background, str):
            background = getattr(self, "background_", None)
        if background is None or problem.kind == "multilabel":
            return problem, None
        binary = problem.kind == "binary"
        n_classes = 2 if binary else problem.logits.shape[-1]
        if not 0 <= background < n_classes:
            raise ValueError(
                f"background={background} is no class: these logits have classes 0 to "
                f"{n_classes - 1}"
            )
        if not binary:
            return problem, int(background)
        # One logit stands for class 1 against class 0, which is therefore its background.
        return (problem, None) if background == 0 else (problem.as_two_logits(), 1)

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
        n_classes, width = logits.shape[-1], 1  # width: values that a target has per element
        shape, indices = tuple(target.shape), False
        if self.multilabel or getattr(self, "multilabel_", False):
            if logits.shape != target.shape or logits.ndim < 2:
                raise wrong
            kind, width = "multilabel", n_classes
        elif logits.ndim == 1 or n_classes == 1:
            if target.numel() != logits.numel() or target.shape[:1] != logits.shape[:1]:
                raise wrong
            kind, n_classes = "binary", 1
        elif target.shape == logits.shape[:-1] and not target.is_floating_point():
            kind, indices = "multiclass", True
        elif target.shape == logits.shape and target.is_floating_point():
            kind, width, shape = "multiclass", n_classes, shape[:-1]
        else:
            raise wrong
        z = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n_classes)
        values = target if target.is_floating_point() else target.long()
        values = values.reshape(-1, width)
        distributions = kind == "multiclass" and not indices
        valid = torch.ones_like(z[:, :1], dtype=torch.bool)
        if not distributions:
            valid = values != self.ignore_index
        like = valid if kind == "multilabel" else valid[:, 0]
        if mask is not None:
            valid = valid & (self._like(mask, "mask", like, shape) != 0).reshape(valid.shape)
        top = n_classes - 1 if indices else 1
        self._check_target(values, valid, top, distributions)
        # Positions that do not count get some legal target; their weight is 0.
        values = torch.where(valid, values, torch.zeros_like(values))
        encoded = values == torch.arange(n_classes, device=z.device) if indices else values
        weight = valid.to(z.dtype)
        if sample_weight is not None:
            given = self._like(sample_weight, "sample_weight", like, shape).to(z.dtype)
            given = given.reshape(weight.shape)
            if _any(valid & ~((given >= 0) & torch.isfinite(given))):
                raise ValueError("sample_weight holds a negative, infinite or NaN value")
            weight = torch.where(valid, given, torch.zeros_like(given))
        # A weight of 0 must also stop NaN or infinite logits of padding.
        z = z.masked_fill(~(weight > 0), 0.0)
        if kind != "multilabel":
            weight = weight[:, 0]
        return Problem(kind, z, encoded.to(z.dtype), weight, shape)

    @staticmethod
    def _like(values: Tensor, name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        values = torch.as_tensor(values, device=like.device)
        # (N, 1) is as good as (N,); a transposed array is not.
        if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
            return values.reshape(like.shape)
        if tuple(values.shape) == shape[: values.ndim]:
            spread = values.reshape(*values.shape, *[1] * (len(shape) - values.ndim)).expand(shape)
            return spread.reshape(like.shape)
        raise ValueError(
            f"{name} has shape {tuple(values.shape)}, but the target's is {shape}: give one value "
            "for each element, or one for each example"
        )

    def _check_target(self, values: Tensor, valid: Tensor, top: int, distributions: bool) -> None:
        wrong = valid & ~((values >= 0) & (values <= top))
        if _any(wrong):
            value = values[wrong][0].item()
            raise ValueError(
                f"target holds {value!r}: it must be from 0 to {top}, or ignore_index="
                f"{self.ignore_index}"
            )
        if distributions:
            total = values.sum(-1, keepdim=True)
            wrong = valid & ((total - 1).abs() > 0.02)  # bfloat16 keeps two to three digits
            if _any(wrong):
                raise ValueError(
                    f"target has a row that sums to {total[wrong][0].item():.4g}: distributions "
                    "over classes sum to 1; for 0/1 rows of independent labels give "
                    "multilabel=True"
                )


def _any(wrong: Tensor) -> bool:
    """Whether a value is wrong, where looking is free."""
    # On a GPU this look would make every step wait for the device.
    if torch.compiler.is_compiling() or wrong.device.type != "cpu":
        return False
    try:
        return bool(wrong.any())
    except RuntimeError:  # under torch.func.vmap a tensor has no single truth value
        return False


def check_per_class(name: str, value: Any) -> None:
    """Refuse what is not one factor for each class; tensors pass."""
    if value is None or isinstance(value, Tensor):
        return
    if isinstance(value, str) or not isinstance(value, (np.ndarray, Sequence)):
        raise TypeError(f"{name}={value!r} must be None or hold one number for each class")
    numbers = np.asarray(value)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise TypeError(f"{name}={value!r} must be None or hold one number for each class")
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(f"{name}={value!r} must hold finite numbers of at least 0")


def class_vector(name: str, value: Any, n_classes: int, like: Tensor) -> Tensor | None:
    """`value` as a tensor of shape (n_classes,), or None."""
    if value is None:
        return None
    vector = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if n_classes == 1 and vector.shape[-1:] == (2,):
        return vector[..., 1:]  # one logit: of the negative and the positive class
    if vector.shape[-1:] != (n_classes,):
        raise ValueError(f"{name} has {tuple(vector.shape)} values for {n_classes} classes")
    return vector
