"""Factors for each class as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from sys import float_info
from typing import Any

import numpy as np
import torch
from torch import Tensor

from skdice._checks import shown
from skdice.losses._constraints import Number, PerClass


def class_vector(name: str, value: PerClass, n_classes: int, like: Tensor) -> Tensor | None:
    """`value` as a tensor of shape (n_classes,), or None."""
    if isinstance(value, (str, Mapping)):
        raise ValueError(
            f"{name}={shown(value)} needs to know the classes: call prepare(class_counts=...) "
            "first, or give one number for each class"
        )
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
    times = np.minimum(seen, max(min(1.0, seen.min()), float_info.min))
    times = np.where(counts > 0, counts, times.min())  # or a factor would be infinite
    return (n - counts) / times if multilabel else n / ((counts > 0).sum() * times)


def scalar(value: Number, like: Tensor) -> Tensor:
    """A number as a tensor of shape (), made on the device of `like` rather than copied to it."""
    if isinstance(value, Tensor):
        return value.to(like)
    return torch.full((), value, dtype=like.dtype, device=like.device)
