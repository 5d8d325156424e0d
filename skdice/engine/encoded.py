"""The data of a fit: encoded windows with targets and weights, and what each update trains on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from torch.utils.data import Dataset, Sampler

from skdice.engine import ranks
from skdice.engine.devices import to_device
from skdice.engine.layouts.layout import Layout, MicroBatch, grown
from skdice.text.encoding import Ragged, Window, Windows

UNKNOWN = -100  # the target of a token that was not annotated


@dataclass(frozen=True)
class Update:
    """The micro-batches of one update.

    skorch unpacks it into X, which is the update itself, and y, its targets.

    Parameters
    ----------
    parts : list of MicroBatch
    target : Tensor or None
        Of all outputs, or of texts where `windows` are given.
    weight : Tensor or None
        Of each target.
    rows : ndarray of int
        The sentences or texts, by number.
    windows : WindowsOfTexts or None, default=None
        The outputs that are windows of one text, where the loss sees texts.
    """

    parts: list[MicroBatch]
    target: torch.Tensor | None
    weight: torch.Tensor | None
    rows: np.ndarray
    windows: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self, self.target))

    def __len__(self) -> int:
        return len(self.rows)

    def of_texts(self, outputs: torch.Tensor, device: str) -> torch.Tensor:
        """Logits of texts from the outputs for all parts, where texts have windows."""
        found: torch.Tensor = (
            outputs if self.windows is None else to_device(self.windows, device)(outputs)
        )
        return found


class EncodedDataset(Dataset[Any]):
    """Encoded windows with their targets and weights.

    Parameters
    ----------
    windows : Windows, or list of Window
    targets : sequence of ndarray, or None
        For each window: class indices of its predictions, or a single class index, or a 0/1 row.
        A prediction whose index is `UNKNOWN` has the weight 0.
    weights : ndarray of shape (n_windows,) or None
        Sample weights.
    """

    pools_windows = False  # whether the loss sees texts, and the module their windows

    def __init__(
        self,
        windows: Sequence[Window],
        targets: Sequence[Any] | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        if not isinstance(windows, Windows):
            windows = Windows.of(windows)
        self.windows: Windows[Any] = windows
        self.targets = targets
        if weights is None and isinstance(targets, Ragged) and (targets.values == UNKNOWN).any():
            weights = np.ones(len(self))
        self.weights = weights

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def of_words(self) -> bool:
        """Whether the outputs of a window are those of its words, and not one for all."""
        positions = self.windows.columns.get("positions")
        return positions is not None and bool(positions.sizes.any())

    @property
    def shares(self) -> np.ndarray:
        """The weight of each window; 1 where there are no weights."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def lengths(self) -> np.ndarray:
        """Subwords of each window."""
        return self.windows.lengths

    def rows_of(self, chosen: np.ndarray) -> np.ndarray:
        """The sentences or texts of some windows."""
        return np.unique(self.windows.rows[chosen])

    def places_of(self, drawn: np.ndarray) -> np.ndarray:
        """The windows of sentences or texts that were drawn."""
        first, last = (
            np.searchsorted(self.windows.rows, drawn, side) for side in ("left", "right")
        )
        return np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])

    def flat_targets(self, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The targets of windows one after the other, and the weight of each.

        Weight 2 is the example twice; `rows` are the windows to take, and None is all.
        """
        assert self.targets is not None
        chosen = np.arange(len(self)) if rows is None else rows
        of_windows = [self.targets[i] for i in chosen.tolist()]
        sizes = [len(of_window) for of_window in of_windows]
        return np.concatenate(of_windows), np.repeat(self.shares[chosen], sizes)

    def update(self, layout: Layout, rows: np.ndarray, size: int) -> Update:
        """The micro-batches, of `size` windows each, of an update on some windows."""
        parts = [
            layout.micro_batch(self.windows, rows[start : start + size])
            for start in range(0, len(rows), size)
        ]
        targets, weights = zip(*map(self._targets_of, parts), strict=True)
        weight = None if weights[0] is None else torch.cat(weights)
        return Update(parts, torch.cat(targets), weight, self.rows_of(rows))

    def _targets_of(self, part: MicroBatch) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The target and the weight of each output of a micro-batch."""
        assert self.targets is not None
        of_windows = [np.asarray(self.targets[i]) for i in part.order]
        found = (np.concatenate if self.of_words else np.stack)(of_windows)
        whole = found.dtype.kind == "i"
        target = torch.from_numpy(found.astype(np.int64, copy=False) if whole else found)
        weight = None
        if self.weights is not None:
            sizes = [len(of_window) for of_window in of_windows] if self.of_words else 1
            weight = torch.from_numpy(np.repeat(self.weights[part.order], sizes).astype(np.float32))
            if target.shape == weight.shape:
                weight = weight.masked_fill(target == UNKNOWN, 0.0)
                target = target.clamp(min=0)
        if part.n_outputs is not None:
            weight = torch.ones(len(target)) if weight is None else weight
            weight = grown(weight, part.n_outputs)
            target = grown(target, part.n_outputs, part.padding_target)
        return target, weight


class Updates(Sampler):
    """The rows of each update of an epoch: a batch sampler of torch.

    The order follows the seed and the number of the epoch in the net's history, so that a repeated
    `partial_fit` draws anew, and a fit that goes on from a checkpoint draws the same.
    """

    def __init__(self, net: NeuralNet, n_rows: int) -> None:
        self.net, self.n_rows = net, n_rows

    def __iter__(self) -> Iterator[np.ndarray]:
        net, size = self.net, self.net.rows_of_update()
        chosen = self._of_epoch(len(net.history) - net.first_epoch_ - 1)
        generator = np.random.default_rng([net.shuffle_seed, len(net.history)])
        order = generator.permutation(chosen)
        # Those that a checkpoint holds are made.
        yield from np.split(order, np.arange(size, len(order), size))[len(net.losses_) :]

    def __len__(self) -> int:
        return -(-len(self._of_epoch(0)) // self.net.rows_of_update())

    def count(self, n_epochs: int) -> int:
        """Updates of so many epochs."""
        size = self.net.rows_of_update()
        return sum(-(-len(self._of_epoch(epoch)) // size) for epoch in range(n_epochs))

    def _of_epoch(self, epoch: int) -> np.ndarray:
        draws = self.net.draws_
        return np.arange(self.n_rows) if draws is None else draws[epoch]


@dataclass
class ByUpdate(Dataset):
    """A data set that is asked for the rows of an update, and not for one row.

    Parameters
    ----------
    dataset : EncodedDataset
    layout : Layout or None
    size : int
        Rows of a micro-batch.
    """

    dataset: Any
    layout: Any
    size: int

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, rows: np.ndarray) -> Update:
        own, counts = ranks.rows_of_rank(rows)
        update: Update = self.dataset.update(self.layout, own, self.size)
        return update if counts else ranks.weightless(update)
