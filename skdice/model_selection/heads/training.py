"""Linear heads with different losses and settings, trained on the same rows as one net."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_X_y
from torch import Tensor, nn
from torch.func import vmap

from skdice._checks import is_number
from skdice.engine.devices import resolve_device, seeded
from skdice.engine.fit_plan import draw_seed
from skdice.engine.layouts.layout import Padding
from skdice.estimators.before_folds import check_estimator
from skdice.estimators.classifier import DiceClassifier, NumericNet
from skdice.losses import Loss, resolve_loss
from skdice.metrics import positive_class
from skdice.tasks.numbers import Head, NumericDataset

OF_NET = ("schedule", "warmup", "batch_size", "max_epochs", "device")
WEIGHTS = ("weight", "bias")


@dataclass(frozen=True)
class FoldHeads:
    """The heads of one fold: weights of shape (n_heads, n_classes, n_features)."""

    classes: np.ndarray
    weight: Tensor
    bias: Tensor
    positive: int | None  # index of the positive class of two

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Each head's logits for some rows, of shape (n_heads, n_rows, n_classes)."""
        x = torch.from_numpy(np.array(X)).to(self.weight)
        return (torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)).numpy()


def fit_heads(
    models: Sequence[DiceClassifier],
    X: np.ndarray,
    y: Any,
    train_rows: Sequence[np.ndarray],
    background: Any = None,
) -> list[FoldHeads]:
    """The same heads, to rounding, as the models' own fits on the training rows of each fold.

    The models have no hidden layers, and differ only in ``loss``, ``lr`` and ``weight_decay``.
    Where `background` is None it is, of two classes, the one that is not positive.
    """
    for model in models:
        check_estimator(model)
    on_cpu = resolve_device(models[0].device) == "cpu"
    X, _ = check_X_y(X, y, dtype=[np.float64, np.float32] if on_cpu else np.float32)
    return [_fit_fold(models, X, y, rows, background) for rows in train_rows]


def _fit_fold(
    models: Sequence[DiceClassifier], X: np.ndarray, y: Any, rows: np.ndarray, background: Any
) -> FoldHeads:
    labels, counts = np.unique(y[rows], return_counts=True)
    positive = None
    if background is not None:
        index = int(np.flatnonzero(labels == background)[0])
        positive = 1 - index if len(labels) == 2 else None
    elif len(labels) == 2:
        positive = positive_class(labels, counts, models[0].pos_label)
        index = 1 - positive
    else:
        index = None
    # Neighbours of one rate and decay are one layer.
    order = sorted(range(len(models)), key=lambda i: (models[i].lr, models[i].weight_decay))
    chosen = [models[i] for i in order]
    criterion = SumOfLosses([model.loss for model in chosen], counts, index, labels)
    target = np.minimum(np.searchsorted(labels, y), len(labels) - 1)  # of no use in other rows
    layers = _train(chosen, NumericDataset(X, target), rows, len(labels), criterion)
    weight, bias = (
        torch.cat([getattr(layer, name).detach().cpu() for layer in layers]).unflatten(
            0, (len(models), -1)
        )[np.argsort(order)]
        for name in WEIGHTS
    )
    return FoldHeads(labels, weight, bias, positive)


def _train(
    models: Sequence[DiceClassifier],
    dataset: NumericDataset,
    rows: np.ndarray,
    n_classes: int,
    criterion: nn.Module,
) -> list[Any]:
    """Linear layers, one for all neighbours of one rate and decay, trained on some rows."""
    first, seed = models[0], draw_seed(models[0].random_state)
    with seeded(seed, resolve_device(first.device)):
        start = nn.Linear(dataset.X.shape[1], n_classes)  # as DiceClassifier makes it
    start.to(torch.float32 if dataset.X.dtype == np.float32 else torch.float64)
    sizes = Counter((model.lr, model.weight_decay) for model in models)
    groups = []
    for i, (lr, decay) in enumerate(sizes):
        groups.append((f"body.layers.{i}.weight", {"lr": lr, "weight_decay": decay}))
        groups.append((f"body.layers.{i}.bias", {"lr": lr, "weight_decay": 0.0}))
    body = _Layers(start, list(sizes.values()))
    how = {name: getattr(first, name) for name in OF_NET}
    net = NumericNet(
        Head(body, of_user=False), criterion=criterion, padding=Padding(0), precision="fp32",
        max_grad_norm=None, optimizer__param_groups=groups, shuffle_seed=seed, train_split=None,
        verbose=0, **how,
    )  # fmt: skip
    if net.device.startswith("mps"):
        criterion.float()  # Apple's GPUs have no float64
    net.initialize().partial_fit(dataset, rows=[rows] * first.max_epochs)
    return list(body.layers)


class _Layers(nn.Module):
    """Layers of several heads each, all of which begin as one head does."""

    def __init__(self, start: nn.Linear, sizes: Sequence[int]) -> None:
        super().__init__()
        self.n_classes = start.out_features
        self.layers = nn.ModuleList(copy.deepcopy(start) for _ in sizes)
        for size, layer in zip(sizes, self.layers, strict=True):
            for parameter in layer.parameters():
                parameter.data = torch.cat([parameter.data] * size)

    def forward(self, X: Tensor) -> Tensor:
        """Logits of shape (n_rows, n_heads, n_classes)."""
        z = torch.cat([layer(X) for layer in self.layers], dim=1)
        return z.unflatten(1, (-1, self.n_classes))


class SumOfLosses(nn.Module):
    """The sum of the losses of several heads, each of its own head's logits."""

    def __init__(
        self, losses: Sequence[Any], counts: np.ndarray, background: int | None, labels: Any
    ) -> None:
        super().__init__()
        losses = list(map(resolve_loss, losses))
        self.groups = nn.ModuleList()
        for heads in groups_of_losses(losses):
            prepared = clone(losses[heads[0]]).prepare(counts, background, classes=labels)
            params = [losses[head].get_params() for head in heads]
            self.groups.append(_AlikeLosses(prepared, params, heads))
        self.is_stateful = any(group.is_stateful for group in self.groups)

    def forward(self, logits: Tensor, target: Tensor, sample_weight: None = None) -> Tensor:
        """The sum, for logits of shape (n_rows, n_heads, n_classes)."""
        return torch.stack([group(logits, target) for group in self.groups]).sum()


class _AlikeLosses(nn.Module):
    """Losses that differ in numbers only, which are tensors over their heads here."""

    def __init__(self, loss: Loss, params: Sequence[Mapping[str, Any]], heads: list[int]) -> None:
        super().__init__()
        self.is_stateful = loss.is_stateful
        self.register_buffer("heads", torch.tensor(heads))
        values = {name: [of_head[name] for of_head in params] for name in params[0]}
        varied = {n: v for n, v in values.items() if is_number(v[0]) and len(set(v)) > 1}
        self.numbers, self.memory = list(varied), [name for name, _ in loss.named_buffers()]
        for name, numbers in varied.items():
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float64))
        for name, buffer in loss.named_buffers():
            stacked = buffer.double().expand(len(heads), *buffer.shape).clone()
            self.register_buffer(name.replace(".", "__"), stacked)
        self.of_heads = vmap(as_function(loss), in_dims=(0, 0, 1, None))

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The sum; what the losses remember of this batch is kept."""
        numbers = {name: self.get_buffer(name) for name in self.numbers}
        memory = {name: self.get_buffer(name.replace(".", "__")) for name in self.memory}
        of_heads = logits.index_select(1, self.get_buffer("heads"))
        losses, changed = self.of_heads(numbers, memory, of_heads, target)
        for name in self.memory if self.is_stateful else ():
            setattr(self, name.replace(".", "__"), changed[name].detach())
        return losses.sum()


def as_function(loss: Loss) -> Callable[..., tuple[Tensor, dict[str, Tensor]]]:
    """A loss as a function of its numbers, its buffers and a batch: the value, and new buffers.

    `torch.func.vmap` runs it for many numbers at once. They are named as in `get_params`, and the
    buffers as in `named_buffers`.
    """
    loss = copy.deepcopy(loss)

    def call(
        numbers: Mapping[str, Tensor], buffers: Mapping[str, Tensor], *batch: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        for name, value in {**numbers, **buffers}.items():
            part, _, own = name.replace("__", ".").rpartition(".")
            setattr(loss.get_submodule(part), own, value)
        value = loss(*batch)
        return value, {name: loss.get_buffer(name) for name in buffers}

    return call


def groups_of_losses(losses: Sequence[Loss]) -> list[list[int]]:
    """Losses of one class with equal settings other than numbers, by index."""
    groups: dict[Any, list[int]] = {}
    for i, loss in enumerate(losses):
        params = sorted(loss.get_params(deep=True).items())
        parts = tuple(type(value) for _, value in params if isinstance(value, Loss))
        others = [p for p in params if not is_number(p[1]) and not isinstance(p[1], Loss)]
        groups.setdefault((type(loss), parts, loss.is_stateful, repr(others)), []).append(i)
    return list(groups.values())
