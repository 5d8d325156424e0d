"""Linear heads with different losses and settings, trained on the same rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor
from torch.func import vmap

from skdice.engine.devices import seeded
from skdice.engine.schedules import schedule_factor
from skdice.estimators.checks import draw_seed
from skdice.estimators.classifier import DiceClassifier
from skdice.losses import Loss, resolve_loss


@dataclass(frozen=True)
class Fold:
    """The training rows of a fold."""

    rows: np.ndarray
    target: np.ndarray  # the index of each row's class
    counts: np.ndarray  # rows of each class
    background: int | None
    labels: np.ndarray  # of the classes


def train_heads(
    table: Tensor, folds: Sequence[Fold], models: Sequence[DiceClassifier]
) -> tuple[Tensor, Tensor]:
    """Train a head for each model on every fold.

    Parameters
    ----------
    table : Tensor of shape (n_rows, n_features)
        The rows of all folds, on the device to train on.
    folds : list of Fold
        All with the same number of classes and the same background.
    models : list of DiceClassifier
        They differ only in ``loss``, ``lr`` and ``weight_decay``.

    Returns
    -------
    weight : Tensor of shape (n_folds, n_heads, n_classes, n_features)
    bias : Tensor of shape (n_folds, n_heads, n_classes)
    """
    seed = draw_seed(models[0].random_state)
    heads = _Heads(table, folds, models, seed)
    for rows, target, counted, factors in _batches(folds, models[0], seed):
        x, y = table[rows.to(table.device)], target.to(table.device)
        heads.update(x, y, counted.to(table), factors)
    if heads.one_logit:
        return tuple(torch.cat([-p, p], dim=2) for p in (heads.weight, heads.bias))  # type: ignore[return-value]
    return heads.weight, heads.bias


def _batches(folds: Sequence[Fold], model: DiceClassifier, seed: int) -> Iterator[list[Tensor]]:
    """The rows and targets of each update, whether they count, and factors of the learning rate.

    The first three have shape (n_folds, batch_size). A factor is one fold's; it is 0 once that fold
    has no batches left. Each fold has the batches that `model` draws with this seed.
    """
    size = model.batch_size
    lengths = [-(-len(fold.rows) // size) for fold in folds]
    totals = [n * model.max_epochs for n in lengths]
    rates = [schedule_factor(model.schedule, total, model.warmup) for total in totals]
    orders: list[Any] = [None] * len(folds)
    for step in range(max(totals)):
        rows, target, counted = np.zeros((3, len(folds), size), dtype=np.int64)
        factors = np.zeros(len(folds))
        for f, fold in enumerate(folds):
            if step >= totals[f]:
                continue
            epoch, batch = divmod(step, lengths[f])
            if batch == 0:
                generator = np.random.default_rng([seed, epoch + 1])
                orders[f] = generator.permutation(len(fold.rows))
            chosen = np.sort(orders[f][batch * size : (batch + 1) * size])
            rows[f, : len(chosen)] = fold.rows[chosen]
            target[f, : len(chosen)] = fold.target[chosen]
            counted[f, : len(chosen)] = 1
            factors[f] = rates[f](step)
        yield [torch.from_numpy(part) for part in (rows, target, counted, factors)]


class _Heads:
    """Weights of shape (n_folds, n_heads, n_logits, n_features), and how they are updated.

    Two classes whose losses depend only on the difference of their logits are one logit here,
    which halves the work.
    """

    def __init__(
        self, table: Tensor, folds: Sequence[Fold], models: Sequence[DiceClassifier], seed: int
    ) -> None:
        device, n_classes = str(table.device), len(folds[0].counts)
        losses = [resolve_loss(model.loss) for model in models]
        with seeded(seed, device):
            layer = torch.nn.Linear(table.shape[1], n_classes)  # as DiceClassifier makes it
        starts = [p.detach().to(table) for p in (layer.weight, layer.bias)]
        binary = n_classes == 2 and folds[0].background == 0
        self.one_logit = binary and all(loss.accepts_one_logit for loss in losses)
        if self.one_logit:  # half the difference: one logit rises by as much as the other falls
            starts = [(p[1:] - p[:1]) / 2 for p in starts]
        stack = len(folds), len(losses)
        self.weight, self.bias = (p.expand(*stack, *p.shape).clone() for p in starts)
        self.adam = torch.optim.Adam([self.weight, self.bias], lr=1.0)
        # Apple's GPUs do not know float64.
        precision = torch.float32 if device.startswith("mps") else torch.float64
        like = table.new_empty(0, dtype=precision)
        self.lr = like.new_tensor([model.lr for model in models])
        self.decay = like.new_tensor([model.weight_decay for model in models]).unsqueeze(1)
        self.groups = [
            _GroupOfLosses(losses, heads, folds, self.weight.shape[2], like)
            for heads in groups_of_losses(losses)
        ]

    def update(self, x: Tensor, target: Tensor, counted: Tensor, factors: Tensor) -> None:
        """One update of every head, on a batch of each fold."""
        z = torch.einsum("fbh,fkch->fkbc", x, self.weight) + self.bias.unsqueeze(2)
        logits = (2 * z if self.one_logit else z).requires_grad_()
        totals = [group.total(logits, target, counted) for group in self.groups]
        (slope,) = torch.autograd.grad(torch.stack(totals).sum(), logits)
        self.weight.grad = torch.einsum("fkbc,fbh->fkch", slope, x)
        self.bias.grad = slope.sum(2)
        # torch's AdamW has one rate and one decay for a tensor. So Adam takes a step of rate 1
        # from zero, and each head moves by that step times its own rate.
        before = self.weight.clone(), self.bias.clone()
        self.weight.zero_(), self.bias.zero_()
        self.adam.step()
        rate = (factors.to(self.lr).unsqueeze(1) * self.lr).unsqueeze(2)
        kept = (1 - rate * self.decay).unsqueeze(3)
        self.weight.mul_(rate.unsqueeze(3)).add_(before[0] * kept)
        self.bias.mul_(rate).add_(before[1])


class _GroupOfLosses:
    """Losses that differ in numbers only, which are tensors over their heads here."""

    def __init__(
        self,
        losses: Sequence[Loss],
        heads: list[int],
        folds: Sequence[Fold],
        n_logits: int,
        like: Tensor,
    ) -> None:
        # A slice does not copy the logits of all heads, as a list would.
        in_a_row = heads == list(range(heads[0], heads[-1] + 1))
        self.heads: Any = slice(heads[0], heads[-1] + 1) if in_a_row else heads
        params = [losses[head].get_params(deep=True) for head in heads]
        values = {name: [p[name] for p in params] for name in params[0]}
        self.params = {
            name: like.new_tensor(numbers)
            for name, numbers in values.items()
            if is_number(numbers[0]) and len(set(numbers)) > 1
        }
        first = losses[heads[0]]
        prepared = [clone(first).prepare(f.counts, f.background, classes=f.labels) for f in folds]
        states = [loss.functional_state() for loss in prepared]
        self.state = {}
        for name in states[0]:
            of_folds = torch.stack([state[name].to(like) for state in states])
            if name.endswith("running_"):  # these sums were of classes before they became one logit
                of_folds = like.new_zeros(len(folds), 3, n_logits)
            shape = len(folds), len(heads), *of_folds.shape[1:]
            self.state[name] = of_folds.unsqueeze(1).expand(shape)
        over_heads = vmap(prepared[0].functional_loss, in_dims=(0, 0, 0, None, None))
        self.losses = vmap(over_heads, in_dims=(None, 0, 0, 0, 0))

    def total(self, logits: Tensor, target: Tensor, counted: Tensor) -> Tensor:
        """The sum of their losses; each depends on the logits of its own head only."""
        of_heads = logits[:, self.heads]
        losses, self.state = self.losses(self.params, self.state, of_heads, target, counted)
        return losses.sum()


def is_number(value: Any) -> bool:
    """Whether a setting is a number, and not True or False."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def groups_of_losses(losses: Sequence[Loss]) -> list[list[int]]:
    """Losses of one class with equal settings other than numbers, by index."""
    groups: dict[Any, list[int]] = {}
    for i, loss in enumerate(losses):
        params = sorted(loss.get_params(deep=True).items())
        parts = tuple(type(value) for _, value in params if isinstance(value, Loss))
        others = [p for p in params if not is_number(p[1]) and not isinstance(p[1], Loss)]
        groups.setdefault((type(loss), parts, loss.is_stateful, repr(others)), []).append(i)
    return list(groups.values())
