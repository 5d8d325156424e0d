"""Encoded windows with their targets and weights: the data of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from skdice.text.encoding import Ragged, Window, Windows

UNKNOWN = -100  # the target of a token that was not annotated


class EncodedDataset(Dataset):
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

    def __getitem__(self, i: int) -> tuple[Window, Any, Any]:
        target = None if self.targets is None else self.targets[i]
        return self.windows[i], target, None if self.weights is None else self.weights[i]

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

    def batches(self, layout: Any, rows: np.ndarray, size: int) -> list[Any]:
        """Micro-batches of `size` of an update on some windows, in a `Layout`."""
        parts = (rows[start : start + size] for start in range(0, len(rows), size))
        return [layout.micro_batch(self, part) for part in parts]
