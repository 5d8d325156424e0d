"""What each update of an epoch trains on: its rows, and their batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from torch.utils.data import Dataset, Sampler

from skdice.engine import ranks
from skdice.engine.devices import to_device
from skdice.engine.layouts.layout import MicroBatch


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
