"""Dice and Tversky losses of other packages as skdice losses: same loop, same data, same seeds.

    pip install --no-deps monai segmentation-models-pytorch simpletransformers

Only their losses are imported, so their other dependencies are not needed.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import torch
from experiments import LOSSES_OF_PACKAGES
from torch import Tensor

from skdice.losses import DSCLoss, Loss

__all__ = ["RivalLoss", "check_packages", "rival_loss"]


def check_packages(losses: Iterable[str]) -> None:
    """Say which packages of `LOSSES_OF_PACKAGES` these losses lack, and how to get them."""
    needed = {LOSSES_OF_PACKAGES[name][0] for name in losses if name in LOSSES_OF_PACKAGES}
    lacking = [p for p in sorted(needed - set(sys.modules)) if importlib.util.find_spec(p) is None]
    if lacking:
        names = " ".join(lacking)
        raise SystemExit(
            f"{names} not installed: pip install --no-deps {names.replace('_', '-')}, or leave out "
            "their losses"
        )


def _losses_of(package: str) -> ModuleType:
    """The package's `losses`, without running what the package itself imports."""
    if package not in sys.modules:
        spec = importlib.util.find_spec(package)
        bare = ModuleType(package)
        bare.__path__ = list(spec.submodule_search_locations)
        sys.modules[package] = bare
    return importlib.import_module(f"{package}.losses")


def _monai(name: str, **options: Any) -> Any:
    # One image of one channel a class: the whole batch is one set, its tokens are the pixels.
    made = getattr(importlib.import_module("monai.losses"), name)(softmax=True, **options)
    return lambda z, y: made(z.T[None], torch.nn.functional.one_hot(y, z.shape[1]).T[None])


def _smp(name: str, **options: Any) -> Any:
    made = getattr(_losses_of("segmentation_models_pytorch"), name)("multiclass", **options)
    return lambda z, y: made(z.T[None, :, :, None], y[None, :, None])


def _simpletransformers(name: str, **options: Any) -> Any:
    return getattr(_losses_of("simpletransformers"), name)(**options)


MAKERS: dict[str, Callable[..., Any]] = {
    "monai": _monai,
    "segmentation_models_pytorch": _smp,
    "simpletransformers": _simpletransformers,
}


class RivalLoss(Loss):
    """A loss of another package over the elements of a batch that count.

    Parameters
    ----------
    name : one of `LOSSES_OF_PACKAGES`
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        package, kind, options = LOSSES_OF_PACKAGES[name]
        check_packages([name])
        self._made = MAKERS[package](kind, **options)

    is_set_level = True
    has_functional_form = False  # who knows what other packages do?

    def kernel(self, problem: Any, **values: Any) -> Tensor:
        """The loss of one batch."""
        counted = problem.weight > 0
        return self._made(problem.logits[counted], problem.target[counted].argmax(-1))


def rival_loss(name: str) -> Loss:
    """One of `LOSSES_OF_PACKAGES`, or the formula of the paper's own repository.

    The latter squares the denominator and takes exponent 0.01 and smooth 1e-4 over each class of a
    batch, the background included.
    """
    if name == "paper's repository":
        return DSCLoss(
            exponent=0.01, smooth=1e-4, average="macro", background=None, surrogate="none"
        )
    return RivalLoss(name)
