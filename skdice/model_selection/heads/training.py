"""Linear heads with different losses and settings, trained on the same rows at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor
from torch.func import vmap

from skdice._compat import expect_eager_steps
from skdice.engine import devices
from skdice.engine.devices import seeded, to_device
from skdice.engine.fit_plan import draw_seed
from skdice.engine.graphs import Graphs
from skdice.engine.recipe import schedule_factor
from skdice.estimators.classifier import DiceClassifier
from skdice.losses import Loss, resolve_loss

SENT = 256  # batches that are sent to a GPU at once


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
    batches = _batches(folds, models[0], seed)
    if devices.is_gpu(str(table.device)):
        _update_by_graph(heads, batches)
    else:
        for batch, factors in batches:
            heads.update(batch, factors)
    if heads.one_logit:
        return tuple(torch.cat([-p, p], dim=2) for p in (heads.weight, heads.bias))  # type: ignore[return-value]
    return heads.weight, heads.bias


def _update_by_graph(heads: _Heads, batches: Iterator[tuple[Tensor, Tensor]]) -> None:
    """Make the updates on a GPU, where they are one graph, whose batches are sent many at once."""

    def update(given: dict[str, Tensor]) -> tuple[Tensor, ...]:
        heads.update(given["batch"], given["factors"])
        return ()

    device = str(heads.table.device)
    updates = Graphs(update, device)
    while block := list(islice(batches, SENT)):
        sent = (to_device(torch.stack(parts), device) for parts in zip(*block, strict=True))
        for batch, factors in zip(*sent, strict=True):
            updates({"batch": batch, "factors": factors})


def _batches(
    folds: Sequence[Fold], model: DiceClassifier, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The batch of each update, as in `_epoch`, and factors of the learning rate.

    The batches have shape (3, n_folds, batch_size). A factor is one fold's; it is 0 once that fold
    has no batches left. Each fold has the batches that `model` draws with this seed.
    """
    size = model.batch_size
    lengths = [-(-len(fold.rows) // size) for fold in folds]
    totals = [n * model.max_epochs for n in lengths]
    rates = [schedule_factor(model.schedule, total, model.warmup) for total in totals]
    epochs: list[Any] = [None] * len(folds)
    for step in range(max(totals)):
        batch = np.zeros((3, len(folds), size), dtype=np.int64)
        factors = np.zeros(len(folds))
        for f, fold in enumerate(folds):
            if step >= totals[f]:
                continue
            epoch, i = divmod(step, lengths[f])
            if i == 0:
                epochs[f] = _epoch(fold, size, [seed, epoch + 1])
            batch[:, f] = epochs[f][:, i]
            factors[f] = rates[f](step)
        yield torch.from_numpy(batch), torch.from_numpy(factors)


def _epoch(fold: Fold, size: int, seed: list[int]) -> np.ndarray:
    """Rows, targets and 1, or 0 where nothing counts; of shape (3, n_batches, size)."""
    n = len(fold.rows)
    order = np.random.default_rng(seed).permutation(n)
    order = np.append(order, np.full(-n % size, n)).reshape(-1, size)
    order.sort(axis=1)
    table = np.stack([fold.rows, fold.target, np.ones(n, dtype=np.int64)])
    return np.pad(table, ((0, 0), (0, 1)))[:, order]


class _Heads:
    """Weights of shape (n_folds, n_heads, n_logits, n_features), and how they are updated.

    Two classes whose losses depend only on the difference of their logits are one logit here,
    which halves the work.
    """

    def __init__(
        self, table: Tensor, folds: Sequence[Fold], models: Sequence[DiceClassifier], seed: int
    ) -> None:
        self.table, device, n_classes = table, str(table.device), len(folds[0].counts)
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
        weights, on_gpu = [self.weight, self.bias], table.is_cuda
        self.adam = torch.optim.Adam(weights, lr=1.0, fused=True, capturable=on_gpu)
        expect_eager_steps(self.adam)
        # Apple's GPUs do not know float64.
        precision = torch.float32 if device.startswith("mps") else torch.float64
        like = table.new_empty(0, dtype=precision)
        self.lr = like.new_tensor([model.lr for model in models])
        self.decay = like.new_tensor([model.weight_decay for model in models]).unsqueeze(1)
        self.groups = [
            _GroupOfLosses(losses, heads, folds, self.weight.shape[2], like)
            for heads in groups_of_losses(losses)
        ]

    def update(self, batch: Tensor, factors: Tensor) -> None:
        """One update of every head, on a batch of each fold, which changes tensors in place."""
        rows, target, counted = batch
        x, counted = self.table[rows], counted.to(self.table)
        z = torch.einsum("fbh,fkch->fkbc", x, self.weight) + self.bias.unsqueeze(2)
        logits = (2 * z if self.one_logit else z).requires_grad_()
        totals = [group.total(logits, target, counted) for group in self.groups]
        (slope,) = torch.autograd.grad(torch.stack(totals).sum(), logits)
        for group in self.groups:
            group.remember()
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
        # A slice does not copy the logits of all heads.
        in_a_row = heads == list(range(heads[0], heads[-1] + 1))
        first_to_last = slice(heads[0], heads[-1] + 1)
        # On the device: a list would be sent there in each update.
        self.heads: Any = first_to_last if in_a_row else torch.tensor(heads, device=like.device)
        params = [losses[head].get_params(deep=True) for head in heads]
        values = {name: [p[name] for p in params] for name in params[0]}
        self.params = {
            name: like.new_tensor(numbers)
            for name, numbers in values.items()
            if is_number(numbers[0]) and len(set(numbers)) > 1
        }
        first = losses[heads[0]]
        prepared = [clone(first).prepare(f.counts, f.background, classes=f.labels) for f in folds]
        states = [dict(loss.named_buffers()) for loss in prepared]
        self.state = {}
        for name in states[0]:
            of_folds = torch.stack([state[name].to(like) for state in states])
            if name.endswith("running_"):  # these sums were of classes before they became one logit
                of_folds = like.new_zeros(len(folds), 3, n_logits)
            shape = len(folds), len(heads), *of_folds.shape[1:]
            self.state[name] = of_folds.unsqueeze(1).expand(shape).clone()
        self.is_stateful = first.is_stateful
        over_heads = vmap(as_function(prepared[0]), in_dims=(0, 0, 0, None, None))
        self.losses = vmap(over_heads, in_dims=(None, 0, 0, 0, 0))

    def total(self, logits: Tensor, target: Tensor, counted: Tensor) -> Tensor:
        """The sum of their losses; each depends on the logits of its own head only."""
        of_heads = logits[:, self.heads]
        losses, self.new_state = self.losses(self.params, self.state, of_heads, target, counted)
        return losses.sum()

    def remember(self) -> None:
        """Keep what the losses remember of the batch, where a graph finds it."""
        if self.is_stateful:
            for name, values in self.new_state.items():
                self.state[name].copy_(values.detach())


def is_number(value: Any) -> bool:
    """Return True if a setting is a number, and not True or False."""
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
