"""Linear heads with different losses and settings, trained on the same rows as one net."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
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
from skdice.losses import Loss
from skdice.losses.base import resolve_loss
from skdice.metrics.decisions.positive import positive_class
from skdice.tasks.numbers import Head, NumericDataset, rows_of_batch, share_of_rarest

OF_NET = ("lr", "weight_decay", "schedule", "warmup", "max_epochs", "device")
WEIGHTS = ("weight", "bias")


@dataclass(frozen=True)
class FoldHeads:
    """The heads of one fold: weights of shape (n_heads, n_classes, n_features)."""

    classes: np.ndarray
    weight: Tensor
    bias: Tensor
    positive: int | None  # index of the positive class of two that are no tags

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Each head's logits for some rows, of shape (n_heads, n_rows, n_classes)."""
        x = torch.from_numpy(np.array(X, dtype=np.float64)).to(self.weight)
        return (torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)).numpy()


def fit_heads(
    models: Sequence[DiceClassifier],
    X: np.ndarray,
    y: Any,
    train_rows: Sequence[np.ndarray],
    background: Any = None,
) -> list[FoldHeads]:
    """The same heads, to rounding, as the models' own fits on the training rows of each fold.

    The models have no hidden layers, and differ only in ``loss``.
    Where `background` is None it is, of two classes, the one that is not positive.
    """
    for model in models:
        check_estimator(model)
    on_cpu = resolve_device(models[0].device) == "cpu"
    X, _ = check_X_y(X, y, dtype=[np.float64, np.float32] if on_cpu else np.float32)
    return [_fit_fold(models, X, y, rows, background) for rows in train_rows]


def _fit_fold(
    models: Sequence[DiceClassifier],
    X: np.ndarray,
    y: Any,
    rows: np.ndarray,
    background: Any,
) -> FoldHeads:
    labels, counts = np.unique(y[rows], return_counts=True)
    positive = index = None
    if background is not None:
        index = labels.tolist().index(background)
    elif len(labels) == 2:
        positive = positive_class(labels, counts, models[0].pos_label)
        index = 1 - positive
    of_data = {"background": index, "classes": labels}
    criterion = SumOfLosses([model.loss for model in models], counts, of_data)
    target = np.minimum(np.searchsorted(labels, y), len(labels) - 1)  # of no use in other rows
    share = share_of_rarest(counts / len(rows), index)
    size = rows_of_batch(models[0].batch_size, len(rows), share)
    linear = _train(models, NumericDataset(X, target), rows, len(labels), criterion, size)
    weight, bias = (
        getattr(linear, name).detach().cpu().unflatten(0, (len(models), -1)) for name in WEIGHTS
    )
    return FoldHeads(labels, weight, bias, positive)


def _train(
    models: Sequence[DiceClassifier],
    dataset: NumericDataset,
    rows: np.ndarray,
    n_classes: int,
    criterion: SumOfLosses,
    batch_size: int,
) -> nn.Linear:
    """A linear layer with the outputs of all heads, one head after the other."""
    first, seed = models[0], draw_seed(models[0].random_state)
    with seeded(seed, resolve_device(first.device)):
        linear = nn.Linear(dataset.X.shape[1], n_classes)  # as DiceClassifier makes it
    linear.to(torch.float32 if dataset.X.dtype == np.float32 else torch.float64)
    starts = [Head(nn.Sequential(copy.deepcopy(linear))) for _ in models]
    for head, bias in zip(starts, criterion.start_biases, strict=True):
        head.start_from(bias)
    for name in WEIGHTS:
        of_heads = [head.get_parameter(f"body.0.{name}").data for head in starts]
        getattr(linear, name).data = torch.cat(of_heads)
    body = nn.Sequential(linear, nn.Unflatten(1, (len(models), n_classes)))
    how = {name: getattr(first, name) for name in OF_NET}
    net = NumericNet(
        Head(body), criterion=criterion, padding=Padding(0), precision="fp32",
        max_grad_norm=None, batch_size=batch_size, shuffle_seed=seed, train_split=None, verbose=0,
        **how,
    )  # fmt: skip
    if net.device.startswith("mps"):
        criterion.float()  # Apple's GPUs have no float64
    net.initialize().partial_fit(dataset, draws=[rows] * first.max_epochs)
    if len(models) > 1 and any(net.history[:, "skipped_updates"]):
        # One head skipped an update for all. Alone, it skips its own.
        raise FloatingPointError("the loss of one of several heads was NaN or infinite")
    return linear


class SumOfLosses(nn.Module):
    """The sum of the losses of several heads, each of its own head's logits."""

    def __init__(
        self, losses: Sequence[Any], counts: np.ndarray, of_data: Mapping[str, Any]
    ) -> None:
        super().__init__()
        losses = list(map(resolve_loss, losses))
        prepared = [clone(loss).prepare(counts, **of_data) for loss in losses]
        self.start_biases = [loss.start_bias() for loss in prepared]
        self.groups = nn.ModuleList()
        for heads in groups_of_losses(losses):
            params = [losses[head].get_params() for head in heads]
            self.groups.append(_AlikeLosses(prepared[heads[0]], params, heads))

    def forward(self, logits: Tensor, target: Tensor, sample_weight: None = None) -> Tensor:
        """The sum, for logits of shape (n_rows, n_heads, n_classes)."""
        return torch.stack([group(logits, target) for group in self.groups]).sum()


class _AlikeLosses(nn.Module):
    """Losses that differ in numbers only, which are tensors over their heads here."""

    def __init__(self, loss: Loss, params: Sequence[Mapping[str, Any]], heads: list[int]) -> None:
        super().__init__()
        self.loss = loss
        self.register_buffer("heads", torch.tensor(heads))
        # Where the loss looks for each number.
        self.places: list[tuple[nn.Module, str]] = []
        for name, first in params[0].items():
            of_heads = [of_head[name] for of_head in params]
            if is_number(first) and len(set(of_heads)) > 1:
                path, _, attribute = name.replace("__", ".").rpartition(".")
                values = torch.tensor(of_heads, dtype=torch.float64)
                self.register_buffer(f"number_{len(self.places)}", values)
                self.places.append((loss.get_submodule(path), attribute))

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The sum."""
        z = logits.index_select(1, self.get_buffer("heads"))
        given = [self.get_buffer(f"number_{i}") for i in range(len(self.places))]
        losses: Tensor = vmap(self._of_head, (1, None, *[0] * len(given)))(z, target, *given)
        return losses.sum()

    def _of_head(self, logits: Tensor, target: Tensor, *given: Tensor) -> Tensor:
        """The loss of one head."""
        for (part, name), value in zip(self.places, given, strict=True):
            setattr(part, name, value)
        loss: Tensor = self.loss(logits, target)
        return loss


def groups_of_losses(losses: Sequence[Loss]) -> list[list[int]]:
    """Losses of one class with equal settings other than numbers, by index."""
    groups: dict[Any, list[int]] = {}
    for i, loss in enumerate(losses):
        params = sorted(loss.get_params(deep=True).items())
        parts = tuple(type(value) for _, value in params if isinstance(value, Loss))
        others = [p for p in params if not is_number(p[1]) and not isinstance(p[1], Loss)]
        groups.setdefault((type(loss), parts, repr(others)), []).append(i)
    return list(groups.values())
