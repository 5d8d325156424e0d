"""Temporary: the losses' functional form until the branch `losses` is merged."""

from typing import Any

import numpy as np
import torch

from skdice.losses import CompoundLoss, Loss
from skdice.losses._overlap import OverlapLoss


def _ours(loss):
    return type(loss).__module__.startswith("skdice.losses.")


def _one(loss: Any) -> bool:
    if isinstance(loss, CompoundLoss):
        return _one(loss.first) and _one(loss.second)
    return _ours(loss) and getattr(loss, "background", "auto") in ("auto", 0)


def _form(loss: Any) -> bool:
    if isinstance(loss, CompoundLoss):
        return _form(loss.first) and _form(loss.second)
    return _ours(loss)


def _state(self: Any) -> dict[str, Any]:
    counts = torch.as_tensor(np.asarray(self.class_counts_), dtype=torch.float64)
    found = {"class_counts_": counts}
    for name, module in self.named_modules():
        if isinstance(module, OverlapLoss) and module.ema_decay > 0:
            found[f"{name}.running_" if name else "running_"] = torch.zeros(3, len(counts))
    return found


def _loss(self: Any, params: Any, state: Any, logits: Any, target: Any, sample_weight: Any = None):
    for name, value in params.items():
        *path, last = name.split("__")
        owner = self
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, value)
    counts = state["class_counts_"]
    for module in self.modules():
        module.class_counts_, module.n_samples_ = counts, counts.sum()
    found = dict(self.named_modules())
    for name, value in state.items():
        if name.endswith("running_"):
            found[name.removesuffix("running_").removesuffix(".")].running_ = value
    loss = self(logits, target, sample_weight=sample_weight)
    new = {
        name: found[name.removesuffix("running_").removesuffix(".")].running_
        if name.endswith("running_")
        else value
        for name, value in state.items()
    }
    return loss, new


if not hasattr(Loss, "functional_loss"):
    Loss.functional_state, Loss.functional_loss = _state, _loss
    Loss.accepts_one_logit = property(_one)
    Loss.has_functional_form = property(_form)
    Loss.remembers = property(
        lambda self: any(isinstance(m, OverlapLoss) and m.ema_decay > 0 for m in self.modules())
    )


from dataclasses import dataclass  # noqa: E402

from skdice.losses import LOSSES as _L  # noqa: E402
from skdice.losses._registry import COMPOUNDS  # noqa: E402

if "ce_dice" not in _L:
    LOSSES = {**_L, **COMPOUNDS}

    @dataclass(frozen=True)
    class Range:
        low: float
        high: float
        log: bool = False

    @dataclass(frozen=True)
    class OneMinus:
        name: str

        def __call__(self, params):
            return 1.0 - params[self.name]

    _SPACES = {
        "ce": {"label_smoothing": Range(0.0, 0.2)},
        "weighted_ce": {"K": Range(1.0, 20.0, log=True)},
        "focal": {"gamma": Range(0.0, 5.0)},
        "dice": {"smooth": Range(0.01, 10.0, log=True)},
        "tversky": {"alpha": Range(0.1, 0.9), "beta": OneMinus("alpha")},
        "dsc": {"exponent": Range(0.0, 0.5), "smooth": Range(0.01, 10.0, log=True)},
        "ce_dice": {"weight": Range(0.0, 1.0)},
    }
    for _name, _cls in LOSSES.items():
        _cls.search_space = classmethod(lambda cls, n=_name: _SPACES[n])
    _HOW = {"pooled": "micro", "class": "macro", "example": "samples", "auto": "auto"}
    OverlapLoss.average = property(lambda self: _HOW[self.aggregation])

LOSS_NAMES = tuple(LOSSES)
