"""Stacked linear heads: many losses and settings trained on the same rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_X_y
from torch import Tensor
from torch.func import vmap

from skdice.engine.devices import resolve_device, seeded
from skdice.engine.schedules import schedule_factor
from skdice.estimators._checks import draw_seed
from skdice.losses import Loss, resolve_loss
from skdice.metrics import positive_class
from skdice.model_selection import _shim  # noqa: F401

__all__ = ["alike_losses", "is_number", "train_heads"]


@dataclass(frozen=True)
class FoldHeads:
    """The trained heads of one fold: weights of shape (n_heads, n_logits, n_features)."""

    classes: np.ndarray
    weight: Tensor
    bias: Tensor

    @torch.no_grad()
    def logits(self, X: np.ndarray) -> np.ndarray:
        """Each head's logits for some rows, of shape (n_heads, n_rows, n_classes)."""
        rows = X if X.dtype.kind == "f" else X.astype(np.float64)
        x = torch.from_numpy(np.ascontiguousarray(rows)).to(self.weight)
        z = torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)
        return (torch.cat([-z, z], dim=-1) if z.shape[-1] == 1 else z).cpu().numpy()


def train_heads(
    models: Sequence[Any],
    X: np.ndarray,
    y: Any,
    train_rows: Sequence[np.ndarray],
    *,
    background: Any = None,
) -> list[FoldHeads]:
    """Train `models`, `DiceClassifier`s without hidden layers, on every fold at once.

    Each head sees the batches that its model's own fit would see and starts from the same
    weights, so it ends where that fit would end, to rounding.

    Parameters
    ----------
    models : list of DiceClassifier
        They may differ in ``loss``, ``lr`` and ``weight_decay``.
    X : ndarray of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    train_rows : list of ndarray
        Indices of the training rows of each fold.
    background : label or None, default=None
        None is, of two classes, the one that is not positive.
    """
    for model in models:
        model._validate_params()  # as its own fit would
    first = models[0]
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32])
    device = resolve_device(first.device)
    if device.startswith("mps"):  # Apple's GPUs do not know float64
        X = X.astype(np.float32, copy=False)
    folds = [_fold(rows, y, first.pos_label, background) for rows in train_rows]
    if len({(len(fold.classes), fold.background) for fold in folds}) > 1:  # not to be stacked
        return [train_heads(models, X, y, [rows], background=background)[0] for rows in train_rows]
    seed, table = draw_seed(first.random_state), torch.from_numpy(X).to(device)
    heads = _StackedHeads(models, folds, table, seed)
    for rows, target, counted, factors in _batches(first, folds, seed):
        heads.update(table[rows.to(device)], target.to(device), counted.to(table), factors)
    return [FoldHeads(fold.classes, heads.weight[f], heads.bias[f]) for f, fold in enumerate(folds)]


@dataclass(frozen=True)
class _Fold:
    """Training rows of one fold, with the index of each row's class."""

    rows: np.ndarray
    target: np.ndarray
    classes: np.ndarray
    counts: np.ndarray
    background: int | None


def _fold(rows: Any, y: np.ndarray, pos_label: Any, background: Any) -> _Fold:
    classes, target = np.unique(y[rows], return_inverse=True)
    counts, index = np.bincount(target), None
    if background is not None:
        index = int(np.flatnonzero(classes == background)[0])
    elif len(classes) == 2:
        index = 1 - positive_class(classes, counts, pos_label)
    return _Fold(np.asarray(rows), target, classes, counts, index)


def _batches(model: Any, folds: Sequence[_Fold], seed: int) -> Iterator[list[Tensor]]:
    """For each update rows, targets and whether they count, of shape (n_folds, batch_size), and
    each fold's factor of the learning rate: 0 once a fold with fewer batches is through.
    """
    lengths = [-(-len(fold.rows) // model.batch_size) for fold in folds]
    totals = [n * model.max_epochs for n in lengths]
    rates = [schedule_factor(model.schedule, total, model.warmup) for total in totals]
    orders: list[Any] = [None] * len(folds)
    for step in range(max(totals)):
        rows, target, counted = np.zeros((3, len(folds), model.batch_size), dtype=np.int64)
        factors = np.zeros(len(folds))
        for f, fold in enumerate(folds):
            if step >= totals[f]:
                continue
            epoch, batch = divmod(step, lengths[f])
            if batch == 0:
                orders[f] = np.random.default_rng([seed, epoch + 1]).permutation(len(fold.rows))
            start = batch * model.batch_size
            chosen = np.sort(orders[f][start : start + model.batch_size])
            rows[f, : len(chosen)] = fold.rows[chosen]
            target[f, : len(chosen)] = fold.target[chosen]
            counted[f, : len(chosen)] = 1
            factors[f] = rates[f](step)
        yield [torch.from_numpy(part) for part in (rows, target, counted, factors)]


class _StackedHeads:
    """Weights of shape (n_folds, n_heads, n_logits, n_features), and how they are updated.

    Two classes whose losses look at the difference of their logits are one logit here, which
    halves the work.
    """

    def __init__(
        self, models: Sequence[Any], folds: Sequence[_Fold], table: Tensor, seed: int
    ) -> None:
        device, n_classes = str(table.device), len(folds[0].classes)
        losses = [resolve_loss(model.loss) for model in models]
        with seeded(seed, device):
            layer = torch.nn.Linear(table.shape[1], n_classes)  # as DiceClassifier makes its own
        starts = [p.detach().to(table) for p in (layer.weight, layer.bias)]
        binary = n_classes == 2 and folds[0].background == 0
        self.one_logit = binary and all(loss.accepts_one_logit for loss in losses)
        if self.one_logit:  # half the difference: one logit rises by as much as the other falls
            starts = [(p[1:] - p[:1]) / 2 for p in starts]
        stack = len(folds), len(models)
        self.weight, self.bias = (p.expand(*stack, *p.shape).clone() for p in starts)
        self.adam = torch.optim.Adam([self.weight, self.bias], lr=1.0)
        wide = torch.float32 if device.startswith("mps") else torch.float64
        settings = {"dtype": wide, "device": device}
        self.lr = torch.tensor([model.lr for model in models], **settings)
        self.decay = torch.tensor([[model.weight_decay] for model in models], **settings)
        self.groups = [
            _AlikeLosses(losses, heads, folds, self.weight.shape[2], settings)
            for heads in alike_losses(losses)
        ]

    def update(self, x: Tensor, target: Tensor, counted: Tensor, factors: Tensor) -> None:
        """One update of every head, on a batch of each fold."""
        z = torch.einsum("fbh,fkch->fkbc", x, self.weight) + self.bias.unsqueeze(2)
        logits = (2 * z if self.one_logit else z).requires_grad_()
        total = sum(group.total(logits, target, counted) for group in self.groups)
        (slope,) = torch.autograd.grad(total, logits)
        self.weight.grad = torch.einsum("fkbc,fbh->fkch", slope, x)
        self.bias.grad = slope.sum(2)
        # torch's AdamW has one rate and one decay for a tensor. So Adam moves zeros at rate 1,
        # and each head moves by its own rate times that.
        before = self.weight.clone(), self.bias.clone()
        self.weight.zero_(), self.bias.zero_()
        self.adam.step()
        rate = (factors.to(self.lr).unsqueeze(1) * self.lr).unsqueeze(2)
        kept = (1 - rate * self.decay).unsqueeze(3)
        self.weight.mul_(rate.unsqueeze(3)).add_(before[0] * kept)
        self.bias.mul_(rate).add_(before[1])


class _AlikeLosses:
    """Losses that differ in numbers only, which are tensors over their heads here."""

    def __init__(
        self,
        losses: Sequence[Loss],
        heads: list[int],
        folds: Sequence[_Fold],
        n_logits: int,
        settings: dict[str, Any],
    ) -> None:
        # A slice where it can be one: a list would copy the logits of all heads.
        in_a_row = heads == list(range(heads[0], heads[-1] + 1))
        self.heads: Any = slice(heads[0], heads[-1] + 1) if in_a_row else heads
        params = [losses[head].get_params(deep=True) for head in heads]
        values = {name: [p[name] for p in params] for name in params[0]}
        self.params = {
            name: torch.tensor(numbers, **settings)
            for name, numbers in values.items()
            if is_number(numbers[0]) and len(set(numbers)) > 1
        }
        states = []
        for fold in folds:
            loss = clone(losses[heads[0]]).prepare(fold.counts, background=fold.background)
            states.append(loss.functional_state())
        self.state = {}
        for name in states[0]:
            of_folds = torch.stack([state[name].to(**settings) for state in states])
            if name.endswith("running_"):  # of classes before they became one logit
                of_folds = of_folds.new_zeros(len(folds), 3, n_logits)
            shape = len(folds), len(heads), *of_folds.shape[1:]
            self.state[name] = of_folds.unsqueeze(1).expand(shape)
        over_heads = vmap(loss.functional_loss, in_dims=(0, 0, 0, None, None))
        self.losses = vmap(over_heads, in_dims=(None, 0, 0, 0, 0))

    def total(self, logits: Tensor, target: Tensor, counted: Tensor) -> Tensor:
        """The sum of their losses; each depends on the logits of its own head only."""
        of_heads = logits[:, self.heads]
        losses, self.state = self.losses(self.params, self.state, of_heads, target, counted)
        return losses.sum()


def is_number(value: Any) -> bool:
    """Whether a setting is a number, and not True or False."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def alike_losses(losses: Sequence[Loss]) -> list[list[int]]:
    """Losses of one class with equal settings other than numbers, by index."""
    groups: dict[Any, list[int]] = {}
    for i, loss in enumerate(losses):
        params = sorted(loss.get_params(deep=True).items())
        parts = tuple(type(value) for _, value in params if isinstance(value, Loss))
        others = [p for p in params if not is_number(p[1]) and not isinstance(p[1], Loss)]
        groups.setdefault((type(loss), parts, loss.remembers, repr(others)), []).append(i)
    return list(groups.values())
