"""Many settings of a loss at once: linear heads on the same rows, trained side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_X_y
from torch import Tensor

from skdice.engine.net import resolve_device, seeded
from skdice.engine.schedules import schedule_factor
from skdice.estimators._base import draw_seed
from skdice.losses import Loss, resolve_loss
from skdice.metrics import positive_class

__all__ = ["HeadLanes", "LaneModel", "fit_lanes", "why_not"]


class HeadLanes:
    """Linear classifiers that differ in their loss and learning rate only.

    Each lane sees the same batches in the same order and starts from the same weights, so that it
    ends where `DiceClassifier` with the same settings and seed ends; what they share is done once.

    Parameters
    ----------
    losses : list of Loss
        One for each lane.
    lr, weight_decay : array of shape (n_lanes,)
    max_epochs, batch_size : int
    schedule : str
    warmup : float
    seed : int
    device : str

    Attributes
    ----------
    weight : Tensor of shape (n_lanes, n_classes, n_features)
    bias : Tensor of shape (n_lanes, n_classes)
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        *,
        lr: Any,
        weight_decay: Any,
        max_epochs: int,
        batch_size: int,
        schedule: str,
        warmup: float,
        seed: int,
        device: str,
    ) -> None:
        self.losses = list(losses)
        self.lr = np.broadcast_to(np.asarray(lr, dtype=np.float64), len(self.losses))
        self.weight_decay = np.broadcast_to(
            np.asarray(weight_decay, dtype=np.float64), len(self.losses)
        )
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.schedule = schedule
        self.warmup = warmup
        self.seed = seed
        self.device = device

    def fit(
        self, X: np.ndarray, target: np.ndarray, counts: np.ndarray, background: int | None
    ) -> HeadLanes:
        """Train all lanes.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        target : ndarray of int, shape (n_rows,)
        counts : ndarray of shape (n_classes,)
        background : int or None
        """
        n_lanes, (n_rows, n_features), n_classes = len(self.losses), X.shape, len(counts)
        with seeded(self.seed, self.device):
            # As DiceClassifier makes its layer, so that both start alike.
            layer = torch.nn.Linear(n_features, n_classes)
        dtype = torch.from_numpy(X[:1]).dtype
        weight, bias = (
            p.detach().to(self.device, dtype).expand(n_lanes, *p.shape).clone()
            for p in (layer.weight, layer.bias)
        )
        groups = [_Group(self.losses, lanes, self.device) for lanes in _alike(self.losses)]
        for group in groups:
            group.prepare(counts, background)
        lr = torch.as_tensor(self.lr.copy(), dtype=dtype, device=self.device)
        decay = torch.as_tensor(self.weight_decay.copy(), dtype=dtype, device=self.device)
        steps = [_AdamW(weight, decay), _AdamW(bias, torch.zeros_like(decay))]
        rows, answers = (torch.from_numpy(a).to(self.device) for a in (X, target))
        n_batches = -(-n_rows // self.batch_size)
        factor = schedule_factor(self.schedule, n_batches * self.max_epochs, self.warmup)
        step = 0
        for epoch in range(1, self.max_epochs + 1):
            order = np.random.default_rng([self.seed, epoch]).permutation(n_rows)
            for start in range(0, n_rows, self.batch_size):
                chosen = torch.from_numpy(np.sort(order[start : start + self.batch_size]))
                chosen = chosen.to(self.device)
                x, y = rows[chosen], answers[chosen]
                z = torch.einsum("bh,kch->kbc", x, weight) + bias.unsqueeze(1)
                slope = torch.empty_like(z)
                for group in groups:
                    slope[group.lanes] = group.slope(z[group.lanes], y).to(dtype)
                gradients = torch.einsum("kbc,bh->kch", slope, x), slope.sum(1)
                rate = lr * factor(step)
                for optimizer, gradient in zip(steps, gradients, strict=True):
                    optimizer.step(gradient, rate)
                step += 1
        self.weight, self.bias = weight, bias
        return self

    @torch.no_grad()
    def logits(self, X: np.ndarray) -> np.ndarray:
        """Logits of shape (n_lanes, n_rows, n_classes)."""
        x = torch.from_numpy(np.ascontiguousarray(X)).to(self.device)
        z = torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)
        return z.cpu().numpy()


def why_not(estimator: Any, names: Sequence[str], fit_params: Any, X: Any) -> str | None:
    """Why trials of `estimator` cannot be lanes; None if they can."""
    from skdice.estimators import DiceClassifier

    if type(estimator) is not DiceClassifier:
        return f"{type(estimator).__name__} is not DiceClassifier"
    if estimator.module is not None or len(estimator.hidden_layer_sizes):
        return "its head is not linear"
    for name in ("early_stopping", "callbacks", "net_params"):
        if getattr(estimator, name):
            return f"it has {name}={getattr(estimator, name)!r}"
    other = [n for n in names if n not in ("loss", "lr", "weight_decay") and n[:6] != "loss__"]
    if other:
        return f"{other[0]!r} is searched, which lanes share"
    if fit_params:
        return f"fit got {sorted(fit_params)}"
    if not isinstance(X, np.ndarray):
        return f"X is a {type(X).__name__} and not an array"
    return None


def fit_lanes(models: Sequence[Any], X: np.ndarray, y: Any, X_test: np.ndarray) -> list[LaneModel]:
    """Train `models`, unfitted `DiceClassifier`s, as lanes; what each says of `X_test`."""
    first = models[0]
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32])
    classes, target = np.unique(y, return_inverse=True)
    counts = np.bincount(target)
    background = None
    if len(classes) == 2:
        background = 1 - positive_class(classes, counts, first.pos_label)
    lanes = HeadLanes(
        [resolve_loss(model.loss) for model in models],
        lr=[model.lr for model in models],
        weight_decay=[model.weight_decay for model in models],
        max_epochs=first.max_epochs,
        batch_size=first.batch_size,
        schedule=first.schedule,
        warmup=first.warmup,
        seed=draw_seed(first.random_state),
        device=resolve_device(first.device),
    ).fit(X, target, counts, background)
    return [LaneModel(classes, logits) for logits in lanes.logits(X_test.astype(X.dtype))]


class LaneModel(ClassifierMixin, BaseEstimator):
    """What one lane says of the rows that it was asked about, for scikit-learn's scorers.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    logits : ndarray of shape (n_rows, n_classes)
    """

    def __init__(self, classes: np.ndarray, logits: np.ndarray) -> None:
        self.classes = classes
        self.logits = logits

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> np.ndarray:
        """Labels."""
        return self.classes

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n_rows,)."""
        return self.classes[self.logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n_rows, n_classes)."""
        return softmax(self.logits, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, or logits for more classes."""
        z = self.logits
        return z[:, 1] - z[:, 0] if len(self.classes) == 2 else z


class _AdamW:
    """torch's AdamW on stacked parameters, with a rate and a decay for each lane."""

    def __init__(self, parameter: Tensor, decay: Tensor) -> None:
        self.parameter = parameter
        self.decay = decay
        self.mean = torch.zeros_like(parameter)
        self.square = torch.zeros_like(parameter)
        self.t = 0

    def step(self, gradient: Tensor, lr: Tensor) -> None:
        self.t += 1
        shape = (-1, *[1] * (gradient.ndim - 1))
        self.parameter.mul_(1 - (lr * self.decay).reshape(shape))
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (lr / (1 - 0.9**self.t)).reshape(shape)
        below = (self.square.sqrt() / (1 - 0.999**self.t) ** 0.5).add_(1e-8)
        self.parameter.sub_(size * self.mean / below)


class _Group:
    """Lanes whose losses differ in numbers only; the numbers are tensors over the lanes."""

    def __init__(self, losses: Sequence[Loss], lanes: list[int], device: str) -> None:
        self.lanes = lanes
        self.base = clone(losses[lanes[0]])
        table = [losses[lane].get_params(deep=True) for lane in lanes]
        self.values = {
            name: torch.tensor([row[name] for row in table], dtype=torch.float64, device=device)
            for name in table[0]
            if _is_number(table[0][name]) and any(row[name] != table[0][name] for row in table)
        }
        shared = self.values or None
        self.slopes = torch.func.vmap(
            torch.func.grad(self._loss, argnums=1), in_dims=(0 if shared else None, 0, None)
        )

    def prepare(self, counts: np.ndarray, background: int | None) -> None:
        self.base.prepare(counts, background=background)

    def slope(self, z: Tensor, y: Tensor) -> Tensor:
        """Each lane's gradient of its loss in its logits, of shape (k, b, c)."""
        return self.slopes(self.values, z, y)

    def _loss(self, values: dict[str, Tensor], logits: Tensor, y: Tensor) -> Tensor:
        for name, value in values.items():
            *path, last = name.split("__")
            owner: Any = self.base
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, value)
        return self.base(logits, y)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _alike(losses: Sequence[Loss]) -> list[list[int]]:
    """Lanes in groups of one class of loss, with equal settings other than numbers."""
    groups: dict[Any, list[int]] = {}
    for lane, loss in enumerate(losses):
        settings = {
            name: value
            for name, value in loss.get_params(deep=True).items()
            if not _is_number(value) and not isinstance(value, Loss)
        }
        parts = [
            type(v).__name__ for v in loss.get_params(deep=True).values() if isinstance(v, Loss)
        ]
        key = type(loss).__name__, repr(sorted(settings.items(), key=str)), tuple(parts)
        groups.setdefault(key, []).append(lane)
    return list(groups.values())
