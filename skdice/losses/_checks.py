"""Checks of hyperparameters, and factors for each class as tensors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

# A hyperparameter may be a tensor, so that many values can run at once.
Number = float | Tensor
PerClass = Sequence[float] | np.ndarray | Tensor | None
INF, TINY = float("inf"), sys.float_info.min  # no number above 0 is below the latter


def check_number(name: str, value: Any, low: float, high: float = INF) -> None:
    """Refuse a plain number outside its range; tensors pass, so that many can run at once."""
    if isinstance(value, Tensor):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name}={value!r} must be a number, or a tensor of numbers")
    number: Any = value  # numpy's numbers compare as Python's do
    if not (low <= number <= high and abs(number) < INF):
        lowest = "above 0" if low == TINY else f"at least {low}"
        highest = ", and finite" if high == INF else f" and at most {high}"
        raise ValueError(f"{name}={value!r} must be {lowest}{highest}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {choices}")


def check_background(value: Any) -> None:
    """Refuse what is neither "auto", None nor an index."""
    index = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (index or value is None or (isinstance(value, str) and value == "auto")):
        raise ValueError(f"background={value!r} must be 'auto', None or the index of a class")


def check_per_class(name: str, value: Any) -> None:
    """Refuse what is not one factor for each class; tensors pass."""
    # Looking at the values of an array would break a compiled graph.
    if value is None or isinstance(value, Tensor) or torch.compiler.is_compiling():
        return
    numbers = np.asarray(value if isinstance(value, (np.ndarray, Sequence)) else None)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf":
        raise TypeError(f"{name}={value!r} must be None or hold one number for each class")
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise ValueError(f"{name}={value!r} must hold finite numbers of at least 0")


def class_vector(name: str, value: PerClass, n_classes: int, like: Tensor) -> Tensor | None:
    """`value` as a tensor of shape (n_classes,), or None."""
    check_per_class(name, value)
    if value is None:
        return None
    vector = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if n_classes == 1 and vector.shape[-1:] == (2,):
        return vector[..., 1:]  # one logit: factors of the negative and the positive class
    if vector.shape[-1:] != (n_classes,):
        raise ValueError(f"{name} has {tuple(vector.shape)} values for {n_classes} classes")
    return vector


def scalar(value: Number, like: Tensor) -> Tensor:
    """A number as a tensor of shape (), made on the device of `like` rather than copied to it."""
    if isinstance(value, Tensor):
        return value.to(like)
    return torch.full((), value, dtype=like.dtype, device=like.device)


def is_above_zero(value: Number) -> bool:
    """Whether a setting is on. A tensor counts as on, since no branch may look at its values."""
    return isinstance(value, Tensor) or value > 0
