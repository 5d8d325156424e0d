"""The losses as functions: each builds its class and calls it.

>>> import torch
>>> from skdice.losses.functional import dice_loss, weighted_cross_entropy
>>> logits, target = torch.zeros(4, 3), torch.tensor([0, 0, 1, 2])
>>> dice_loss(logits, target, background=0, surrogate="none", smooth=0.0)
tensor(0.5385)
>>> weighted_cross_entropy(logits, target, class_counts=[80, 10, 10])
tensor(0.6025)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

from skdice.losses.base import LOSSES

__all__ = [
    "asymmetric_loss",
    "cross_entropy",
    "dice_loss",
    "dsc_loss",
    "focal_loss",
    "mom_loss",
    "sigmoid_f1_loss",
    "tversky_loss",
    "weighted_cross_entropy",
]


def _function_of(loss_name: str, name: str) -> Callable[..., Tensor]:
    cls = LOSSES[loss_name]

    def function(logits: Tensor, target: Tensor, **options: Any) -> Tensor:
        inputs = {key: options.pop(key, None) for key in ("sample_weight", "mask")}
        known = {key: options.pop(key, None) for key in cls.needed_buffers}
        loss = cls(**options)
        if known.get("class_counts") is not None:
            loss.prepare(**known)
        return loss(logits, target, **inputs)

    tensors = inspect.signature(function).parameters
    more = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None)
        for key in ("sample_weight", "mask", *cls.needed_buffers)
    ]
    parameters = [tensors["logits"], tensors["target"], *inspect.signature(cls).parameters.values()]
    function.__signature__ = inspect.Signature([*parameters, *more])  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`{cls.__name__}` as a function of logits and targets; see `{cls.__name__}`.\n\n"
        "`sample_weight` and `mask` are those of a call of the loss."
    )
    if cls.needed_buffers:
        function.__doc__ += " `class_counts` are those of `Loss.prepare`."
    counts = ", class_counts=[2, 1, 1]" if cls.needed_buffers else ""
    function.__doc__ += f"""

Examples
--------
>>> import torch
>>> from skdice.losses.functional import {name}
>>> logits, target = torch.zeros(4, 3, requires_grad=True), torch.tensor([0, 0, 1, 2])
>>> {name}(logits, target{counts}).backward()
"""
    return function


asymmetric_loss = _function_of("asymmetric", "asymmetric_loss")
cross_entropy = _function_of("ce", "cross_entropy")
dice_loss = _function_of("dice", "dice_loss")
dsc_loss = _function_of("dsc", "dsc_loss")
focal_loss = _function_of("focal", "focal_loss")
mom_loss = _function_of("mom", "mom_loss")
sigmoid_f1_loss = _function_of("sigmoid_f1", "sigmoid_f1_loss")
tversky_loss = _function_of("tversky", "tversky_loss")
weighted_cross_entropy = _function_of("weighted_ce", "weighted_cross_entropy")
