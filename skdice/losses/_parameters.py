"""Checks of hyperparameters, and factors for each class as tensors."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skdice._checks import KINDS, Kind, Kinds, as_numbers, shown

# A hyperparameter may be a tensor, so that many values can run at once.
Number = float | Tensor
PerClass = Sequence[float] | np.ndarray | Tensor | None
ClassWeight = PerClass | str | Mapping[Any, float]  # also "balanced", or factors by label
INF, TINY = float("inf"), sys.float_info.min  # no number above 0 is below the latter
MOST = 1e18  # of any number: 64 bits hold it, and float32 its square
# What the annotations of a loss's parameters promise.
LOSS_KINDS: Kinds = {
    **KINDS,
    "Number": Kind(
        "a number, or a tensor of one (of a parameter, its detach())",
        lambda v: (
            (isinstance(v, Tensor) and not v.is_nested and not isinstance(v, nn.Parameter))
            or KINDS["float"][1](v)
        ),
    ),
    "PerClass": Kind(
        "None or hold one number for each class",
        lambda v: v is None or getattr(v, "ndim", 0) == 1 or isinstance(v, (list, tuple)),
    ),
    "ClassWeight": Kind(
        "None, 'balanced', a dict of factors by label, or hold one number for each class",
        lambda v: (
            v is None
            or getattr(v, "ndim", 0) == 1
            or isinstance(v, (list, tuple, Mapping))
            or (isinstance(v, str) and v == "balanced")
        ),
    ),
}


def check_number(name: str, value: Any, low: float, high: float = INF) -> None:
    """Refuse a number outside its range; tensors pass, so that many can run at once."""
    if isinstance(value, Tensor):
        return
    if not (max(low, -MOST) <= value <= (high := min(high, MOST))):
        lowest = "above 0" if low == TINY else f"at least {low}"
        raise ValueError(f"{name}={shown(value)} must be {lowest} and at most {high:g}")


def check_single(name: str, value: Number) -> None:
    """Refuse a tensor of many numbers where it is used; inside `torch.func.vmap` it is one."""
    if isinstance(value, Tensor) and value.ndim:
        raise TypeError(f"{name} is a tensor of shape {tuple(value.shape)}: give one number")


def check_background(value: Any) -> None:
    """Refuse what is neither "auto", None nor an index."""
    index = KINDS["int"][1](value) and value >= 0
    if not (index or value is None or (isinstance(value, str) and value == "auto")):
        raise ValueError(f"background={shown(value)} must be 'auto', None or the index of a class")


def check_per_class(name: str, value: Any) -> None:
    """Refuse what is not one factor for each class; tensors pass."""
    # Looking at the values of an array would break a compiled graph.
    if value is None or isinstance(value, (str, Tensor)) or torch.compiler.is_compiling():
        return
    if isinstance(value, Mapping):
        value = list(value.values())
    if (as_numbers(name, value) < 0).any():
        raise ValueError(f"{name}={shown(value)} must hold finite numbers of at least 0")


def class_vector(name: str, value: PerClass, n_classes: int, like: Tensor) -> Tensor | None:
    """`value` as a tensor of shape (n_classes,), or None."""
    if isinstance(value, (str, Mapping)):
        raise ValueError(
            f"{name}={shown(value)} needs to know the classes: call prepare(class_counts=...) "
            "first, or give one number for each class"
        )
    check_per_class(name, value)
    if value is None:
        return None
    if isinstance(value, Tensor) and (value.is_quantized or (value.is_meta and not like.is_meta)):
        raise TypeError(f"{name} is a tensor without numbers to read: give plain ones")
    vector = torch.as_tensor(value, dtype=like.dtype, device=like.device)
    if n_classes == 1 and vector.shape == (2,):
        return vector[1:]  # one logit: factors of the negative and the positive class
    if vector.shape != (n_classes,):
        raise ValueError(f"{name} has {tuple(vector.shape)} values for {n_classes} classes")
    return vector


def weights_of_classes(
    value: str | Mapping[Any, float], counts: np.ndarray, n: float, multilabel: bool, classes: Any
) -> np.ndarray:
    """A factor for each class from "balanced", or from factors by label; other labels have 1.

    Balanced factors are those of scikit-learn, n / (n_classes n_t): they make the classes weigh
    the same. Of several labels a row the factors are those of the positives, (n - n_t) / n_t.
    """
    if isinstance(value, Mapping):
        labels = np.asarray(range(len(counts)) if classes is None else classes).tolist()
        if unknown := [label for label in value if label not in labels]:
            raise ValueError(
                f"class_weight names {shown(unknown)}, and the labels of the training data are "
                f"{shown(labels)}: name those, or leave a label out for a factor of 1"
            )
        return np.array([value.get(label, 1.0) for label in labels])
    seen = np.where(counts > 0, counts, np.inf)
    times = np.minimum(seen, max(min(1.0, seen.min()), TINY))
    times = np.where(counts > 0, counts, times.min())  # or a factor would be infinite
    return (n - counts) / times if multilabel else n / ((counts > 0).sum() * times)


def scalar(value: Number, like: Tensor) -> Tensor:
    """A number as a tensor of shape (), made on the device of `like` rather than copied to it."""
    if isinstance(value, Tensor):
        return value.to(like)
    return torch.full((), value, dtype=like.dtype, device=like.device)


def is_above_zero(value: Number) -> bool:
    """Return True if a setting is on, as a tensor is: no branch may look at its values."""
    return isinstance(value, Tensor) or value > 0
