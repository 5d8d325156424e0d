"""What a parameter of a loss may be, in scikit-learn's constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skdice._checks import KINDS, Kind, as_numbers
from skdice._compat import Interval, StrOptions

# A hyperparameter may be a tensor, so that many values can run at once.
Number = float | Tensor
PerClass = Sequence[float] | np.ndarray | Tensor | None
ClassWeight = PerClass | str | Mapping[Any, float]  # also "balanced", or factors by label
MOST = 1e18  # of any number: 64 bits hold it, and float32 its square


def _is_plain(value: Any) -> bool:
    plain = isinstance(value, Tensor) and not isinstance(value, nn.Parameter)
    return plain and not value.is_nested


def _are_factors(value: Any) -> bool:
    if isinstance(value, Tensor):  # to look at its values would make a GPU wait
        return value.ndim == 1
    if not isinstance(value, (list, tuple)) and getattr(value, "ndim", 0) != 1:
        return False
    if torch.compiler.is_compiling():  # to look at the values of an array would break the graph
        return True
    try:
        return bool((as_numbers("values", value) >= 0).all())
    except (TypeError, ValueError):
        return False


TENSOR = Kind("a tensor of one number (of a parameter, its detach())", _is_plain)
EACH = "one finite number of at least 0 for each class"
PER_CLASS = [KINDS["None"], Kind(EACH, _are_factors)]
CLASS_WEIGHT = [
    KINDS["None"],
    Kind(
        f"'balanced', a dict of factors of at least 0 by label, or {EACH}",
        lambda value: (
            (isinstance(value, str) and value == "balanced")
            or _are_factors(list(value.values()) if isinstance(value, Mapping) else value)
        ),
    ),
]
BACKGROUND = [KINDS["None"], StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")]


def number(low: float, high: float = MOST, closed: str = "both") -> list[Any]:
    """A number of a range; tensors pass, so that many can run at once."""
    return [Interval(Real, low, high, closed=closed), TENSOR]


def check_single(name: str, value: Number) -> None:
    """Refuse a tensor of many numbers where it is used; inside `torch.func.vmap` it is one."""
    if isinstance(value, Tensor) and value.ndim:
        raise TypeError(f"{name} is a tensor of shape {tuple(value.shape)}: give one number")


def is_above_zero(value: Number) -> bool:
    """Return True if a setting is on, as a tensor is: no branch may look at its values."""
    return isinstance(value, Tensor) or value > 0
