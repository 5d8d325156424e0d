"""Many settings of a loss at once: linear heads on the same rows, trained side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import joblib
import numpy as np
import torch
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_X_y
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from skdice.engine.devices import resolve_device, seeded
from skdice.engine.schedules import schedule_factor
from skdice.estimators._checks import draw_seed
from skdice.losses import CompoundLoss, Loss, resolve_loss
from skdice.metrics import positive_class

__all__ = [
    "Fold",
    "HeadLanes",
    "LaneModel",
    "OtherRows",
    "StoredModel",
    "fit_lanes",
    "is_number",
    "not_ours",
    "why_not",
]


@dataclass(frozen=True)
class Fold:
    """Training rows of one fold.

    Attributes
    ----------
    rows : ndarray of int, shape (n_rows,)
    target : ndarray of int, shape (n_rows,)
    counts : ndarray of shape (n_classes,)
    """

    rows: np.ndarray
    target: np.ndarray
    counts: np.ndarray


class HeadLanes:
    """Linear classifiers that differ in their loss, learning rate and fold only.

    Each lane sees the batches of its fold in the order in which `DiceClassifier` with the same
    settings and seed does, and starts from the same weights, so that it ends where that ends; what
    the lanes share is done once. Two classes whose losses look at the difference of the logits only
    are one logit here, which is half the work.

    Parameters
    ----------
    losses : list of Loss
        One for each of the settings.
    lr, weight_decay : array of shape (n_settings,)
    max_epochs, batch_size : int
    schedule : str
    warmup : float
    seed : int
    device : str

    Attributes
    ----------
    weight : Tensor of shape (n_folds, n_settings, n_logits, n_features)
        `n_logits` is the number of classes, or 1: half the difference of two.
    bias : Tensor of shape (n_folds, n_settings, n_logits)
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

    def fit(self, X: np.ndarray, folds: Sequence[Fold], background: int | None) -> HeadLanes:
        """Train every setting on every fold.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            The rows of all folds.
        folds : list of Fold
        background : int or None
        """
        if self.device.startswith("mps"):
            X = X.astype(np.float32, copy=False)
        shape = len(folds), len(self.losses)
        n_classes = len(folds[0].counts)
        with seeded(self.seed, self.device):
            # As DiceClassifier makes its layer, so that both start alike.
            layer = torch.nn.Linear(X.shape[1], n_classes)
        one = n_classes == 2 and background == 0 and all(map(_takes_one_logit, self.losses))
        dtype = torch.from_numpy(X[:1]).dtype
        starts = [p.detach().to(self.device, dtype) for p in (layer.weight, layer.bias)]
        if one:  # half the difference: one logit rises by as much as the other falls
            starts = [(p[1:] - p[:1]) / 2 for p in starts]
        self.weight, self.bias = (p.expand(*shape, *p.shape).clone() for p in starts)
        table = np.stack([f.counts for f in folds])
        counts = torch.tensor(table, dtype=_wide(self.device), device=self.device)
        groups = [_Group(self.losses, lanes, self.device) for lanes in _alike(self.losses)]
        for group in groups:
            group.prepare(folds[0].counts, background)
        lr, decay = (
            torch.as_tensor(v.copy(), dtype=dtype, device=self.device)
            for v in (self.lr, self.weight_decay)
        )
        optimizers = [_AdamW(self.weight, decay), _AdamW(self.bias, torch.zeros_like(decay))]
        everything = torch.from_numpy(X).to(self.device)
        for rows, target, valid, factors in self._batches(folds):
            x, y = everything[rows.to(self.device)], target.to(self.device)
            weight = valid.to(self.device, dtype)
            z = torch.einsum("fbh,fkch->fkbc", x, self.weight).add_(self.bias.unsqueeze(2))
            if one:
                z.mul_(2)
            slope = torch.empty_like(z)
            for group in groups:
                slope[:, group.lanes] = group.slope(z[:, group.lanes], y, weight, counts)
            gradients = torch.einsum("fkbc,fbh->fkch", slope, x), slope.sum(2)
            rate = factors.to(self.device, dtype).unsqueeze(1) * lr
            for optimizer, gradient in zip(optimizers, gradients, strict=True):
                optimizer.step(gradient, rate)
        return self

    def _batches(self, folds: Sequence[Fold]) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Rows, targets and what counts, of shape (n_folds, batch_size), and the rate's factors.

        Folds of other sizes have other numbers of batches: one that is through rests at rate 0.
        """
        lengths = [-(-len(fold.rows) // self.batch_size) for fold in folds]
        totals = [n * self.max_epochs for n in lengths]
        rates = [schedule_factor(self.schedule, total, self.warmup) for total in totals]
        orders: list[np.ndarray] = [np.zeros(0, dtype=int)] * len(folds)
        for step in range(max(totals)):
            size = len(folds), self.batch_size
            rows, target = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
            valid, factors = np.zeros(size, dtype=bool), np.zeros(len(folds))
            for f, fold in enumerate(folds):
                if step >= totals[f]:
                    continue
                epoch, batch = divmod(step, lengths[f])
                if batch == 0:
                    generator = np.random.default_rng([self.seed, epoch + 1])
                    orders[f] = generator.permutation(len(fold.rows))
                first = batch * self.batch_size
                chosen = np.sort(orders[f][first : first + self.batch_size])
                rows[f, : len(chosen)] = fold.rows[chosen]
                target[f, : len(chosen)] = fold.target[chosen]
                valid[f, : len(chosen)] = True
                factors[f] = rates[f](step)
            yield tuple(torch.from_numpy(a) for a in (rows, target, valid, factors))  # type: ignore[misc]

    @torch.no_grad()
    def logits(self, X: np.ndarray, fold: int) -> np.ndarray:
        """Logits of shape (n_settings, n_rows, n_classes), up to a number for each row."""
        x = torch.from_numpy(np.ascontiguousarray(X)).to(self.weight)
        z = torch.einsum("bh,kch->kbc", x, self.weight[fold]) + self.bias[fold].unsqueeze(1)
        return (torch.cat([-z, z], dim=-1) if z.shape[-1] == 1 else z).cpu().numpy()


def why_not(
    estimator: Any,
    names: Sequence[str],
    fit_params: Any,
    X: Any,
    losses: Sequence[Loss] = (),
) -> str | None:
    """Why trials of `estimator` cannot be lanes, or with `losses` should not; None if they can."""
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
    return not_ours(losses)


def not_ours(losses: Sequence[Loss]) -> str | None:
    """Why lanes may end elsewhere than fits with these losses; None where all are skdice's.

    One operation is recorded for all batches, and rows that fill a batch up have weight 0: a loss
    that counts its calls, or heeds no weights, learns otherwise, and says nothing.
    """
    for loss in losses:
        if not _is_ours(loss):
            return f"{type(loss).__name__} is no loss of skdice, and may act otherwise in lanes"
    return None


def _is_ours(loss: Loss) -> bool:
    return type(loss).__module__.startswith("skdice.losses.")


def fit_lanes(
    models: Sequence[Any],
    X: np.ndarray,
    y: Any,
    folds: Sequence[tuple[Any, Any]],
    *,
    background: Any = None,
) -> list[list[LaneModel]]:
    """Train `models`, unfitted `DiceClassifier`s, on every fold at once.

    Parameters
    ----------
    models : list of DiceClassifier
    X : ndarray of shape (n, n_features)
    y : array of shape (n,)
    folds : list of (train, asked)
        Indices of rows to train on, and of rows to say something of.
    background : label or None, default=None
        None is, of two classes, the one that is not positive.

    Returns
    -------
    list of list of LaneModel
        One list for each fold, with what each model says of the rows asked for.
    """
    first = models[0]
    for model in models:
        model._validate_params()  # as its own fit would
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32])
    parts: list[Fold] = []
    labels: list[np.ndarray] = []
    backgrounds: list[int | None] = []
    for train, _ in folds:
        classes, target = np.unique(y[train], return_inverse=True)
        counts = np.bincount(target)
        parts.append(Fold(np.asarray(train), target, counts))
        labels.append(classes)
        if background is not None:
            backgrounds.append(int(np.flatnonzero(classes == background)[0]))
        elif len(classes) == 2:
            backgrounds.append(1 - positive_class(classes, counts, first.pos_label))
        else:
            backgrounds.append(None)
    if len(set(backgrounds)) > 1 or len({len(part.counts) for part in parts}) > 1:
        return [fit_lanes(models, X, y, [fold], background=background)[0] for fold in folds]
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
    ).fit(X, parts, backgrounds[0])
    return [
        [LaneModel(labels[f], logits) for logits in lanes.logits(X[asked], f)]
        for f, (_, asked) in enumerate(folds)
    ]


class OtherRows(Exception):
    """A scorer asked a `StoredModel` for rows that it was not made for."""


class StoredModel(BaseEstimator):
    """What a head said of some rows; of others it can say nothing."""

    only_predicted = True  # since it was last set
    rows: Any = None  # that it was asked about, where that is to be checked

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _check_rows(self, X: Any) -> None:
        if self.rows is None or X is self.rows:
            return
        if type(X) is not type(self.rows) or joblib.hash(X) != joblib.hash(self.rows):
            raise OtherRows("the scorer asks for predictions of other rows than it was given")


class LaneModel(ClassifierMixin, StoredModel):
    """What one lane says of the rows that it was asked about, for scikit-learn's scorers.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    logits : ndarray of shape (n_rows, n_classes)
    """

    def __init__(self, classes: np.ndarray, logits: np.ndarray) -> None:
        self.classes = classes
        self.logits = logits

    @property
    def classes_(self) -> np.ndarray:
        """Labels."""
        return self.classes

    def part(self, rows: slice) -> LaneModel:
        """What it says of some of the rows."""
        return LaneModel(self.classes, self.logits[rows])

    def said(self) -> bytes:
        """The same for models that predict the same."""
        return self.logits.argmax(axis=1).tobytes()

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n_rows,)."""
        self._check_rows(X)
        return self.classes[self.logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n_rows, n_classes)."""
        self._check_rows(X)
        self.only_predicted = False
        return softmax(self.logits, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, or logits for more classes."""
        self._check_rows(X)
        self.only_predicted = False
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
        """One step; `lr` has shape (n_folds, n_settings)."""
        self.t += 1
        shape = (*lr.shape, *[1] * (gradient.ndim - 2))
        self.parameter.mul_(1 - (lr * self.decay).reshape(shape))
        self.mean.lerp_(gradient, 0.1)
        self.square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (lr / (1 - 0.9**self.t)).reshape(shape)
        below = (self.square.sqrt() / (1 - 0.999**self.t) ** 0.5).add_(1e-8)
        self.parameter.sub_(size * self.mean / below)


class _Group:
    """Lanes whose losses differ in numbers only; the numbers are tensors over the lanes."""

    def __init__(self, losses: Sequence[Loss], lanes: list[int], device: str) -> None:
        # A slice where it can be one: a list would copy the logits of all lanes.
        in_a_row = lanes == list(range(lanes[0], lanes[-1] + 1))
        self.lanes: Any = slice(lanes[0], lanes[-1] + 1) if in_a_row else lanes
        self.base = clone(losses[lanes[0]])
        table = [losses[lane].get_params(deep=True) for lane in lanes]
        self.values = {
            name: torch.tensor([row[name] for row in table], dtype=_wide(device), device=device)
            for name in table[0]
            if is_number(table[0][name]) and any(row[name] != table[0][name] for row in table)
        }
        # Their counts may be averages over batches; a compound loss holds them inside.
        self.overlaps = [m for m in self.base.modules() if hasattr(m, "running_")]
        self.running: list[Tensor] = []
        slope = torch.func.grad(self._loss, argnums=2, has_aux=True)
        over_lanes = (0 if self.values else None, 0, 0, None, None, None)
        over_folds = (None, 0, 0, 0, 0, 0)
        self.slopes = torch.func.vmap(
            torch.func.vmap(slope, in_dims=over_lanes), in_dims=over_folds
        )
        self.replayed: Any = None  # the slopes as recorded with the first batch

    def prepare(self, counts: np.ndarray, background: int | None) -> None:
        self.base.prepare(counts, background=background)

    def slope(self, z: Tensor, y: Tensor, weight: Tensor, counts: Tensor) -> Tensor:
        """Each lane's gradient of its loss in its logits, of shape (f, k, b, c)."""
        if self.replayed is None:
            n_folds, n_lanes, _, n_classes = z.shape
            self.running = [z.new_zeros(n_folds, n_lanes, 3, n_classes) for _ in self.overlaps]
            # Batches have one shape, so the operations are recorded once and replayed: on a CPU the
            # transforms take longer than what they compute.
            record = make_fx(lambda v, r, z, y, w, n: self.slopes(v, r, z, y, w, n))
            self.replayed = record(self.values, self.running, z, y, weight, counts)
            for module in self.overlaps:
                module.running_ = None  # what stands there means nothing outside of the lanes
        slope, self.running = self.replayed(self.values, self.running, z, y, weight, counts)
        return slope

    def _loss(
        self,
        values: dict[str, Tensor],
        running: list[Tensor],
        logits: Tensor,
        y: Tensor,
        weight: Tensor,
        counts: Tensor,
    ) -> tuple[Tensor, list[Tensor]]:
        for name, value in values.items():
            *path, last = name.split("__")
            owner: Any = self.base
            for part in path:
                owner = getattr(owner, part)
            setattr(owner, last, value)
        for module in self.base.modules():  # a compound loss has two more
            module.class_counts_, module.n_samples_ = counts, counts.sum()
        for module, before in zip(self.overlaps, running, strict=True):
            module.running_ = before
        loss = self.base(logits, y, sample_weight=weight)
        return loss, [cast(Tensor, module.running_) for module in self.overlaps]


def _wide(device: str) -> torch.dtype:
    """float64, which Apple's GPUs do not know."""
    return torch.float32 if device.startswith("mps") else torch.float64


def _takes_one_logit(loss: Loss) -> bool:
    """Whether two logits, the first of the background, are to it as their difference alone."""
    if isinstance(loss, CompoundLoss):
        return _takes_one_logit(loss.first) and _takes_one_logit(loss.second)
    # Who knows what others look at?
    return _is_ours(loss) and getattr(loss, "background", "auto") in ("auto", 0)


def is_number(value: Any) -> bool:
    """Whether a setting is a number, and not True or False."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _alike(losses: Sequence[Loss]) -> list[list[int]]:
    """Lanes in groups of one class of loss, with equal settings other than numbers."""
    groups: dict[Any, list[int]] = {}
    for lane, loss in enumerate(losses):
        settings = {
            name: value
            for name, value in loss.get_params(deep=True).items()
            if not is_number(value) and not isinstance(value, Loss)
        }
        parts = [type(v) for v in loss.get_params(deep=True).values() if isinstance(v, Loss)]
        key = type(loss), repr(sorted(settings.items(), key=str)), tuple(parts)
        groups.setdefault(key, []).append(lane)
    return list(groups.values())
