"""Batches of similar length, padded to their own longest member."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from skdice.text.encoding import Window

__all__ = ["EncodedDataset", "LengthBatches", "Padder"]


class EncodedDataset(Dataset):
    """Encoded windows with their targets and weights.

    Parameters
    ----------
    windows : list of Window
    targets : list of ndarray or None
        For each window: class indices of its predictions, or a single class index, or a 0/1 row.
    weights : ndarray of shape (n_windows,) or None
        Sample weights.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        targets: Sequence[Any] | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        self.windows = windows
        self.targets = targets
        self.weights = weights

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, i: int) -> tuple[Window, Any, Any]:
        target = None if self.targets is None else self.targets[i]
        return self.windows[i], target, None if self.weights is None else self.weights[i]

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(window) for window in self.windows], dtype=np.int64)


class LengthBatches:
    """Batch indices such that the members of a batch have similar lengths.

    Shuffled, the rows are cut into pools of some batches, sorted by length inside each pool, and
    the batches drawn in random order: padding falls away while batches stay random enough.

    Parameters
    ----------
    lengths : ndarray of shape (n_rows,)
    batch_size : int
    generator : numpy.random.Generator or None
        None gives batches from the shortest row to the longest.
    pool : int, default=50
        Batches in one pool.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        batch_size: int,
        generator: np.random.Generator | None = None,
        pool: int = 50,
    ) -> None:
        self.lengths = lengths
        self.batch_size = batch_size
        self.generator = generator
        self.pool = pool

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[np.ndarray]:
        size = self.batch_size
        if self.generator is None:
            order = np.argsort(self.lengths, kind="stable")
            yield from (order[i : i + size] for i in range(0, len(order), size))
            return
        order = self.generator.permutation(len(self.lengths))
        step = size * self.pool
        batches: list[np.ndarray] = []
        for start in range(0, len(order), step):
            pool = order[start : start + step]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        for i in self.generator.permutation(len(batches)):
            yield batches[i]


class Padder:
    """Turn rows of an `EncodedDataset` into tensors: (inputs, target or None, weight or None).

    Parameters
    ----------
    pad_id : int
        The tokenizer's padding id.
    left : bool
        Pad on the left (XLNet).
    pad_segment : int
        Segment id of the padding.
    """

    def __init__(self, pad_id: int, left: bool = False, pad_segment: int = 0) -> None:
        self.pad_id = pad_id
        self.left = left
        self.pad_segment = pad_segment

    @classmethod
    def of(cls, tokenizer: Any) -> Padder:
        pad = tokenizer.pad_token_id
        return cls(
            0 if pad is None else pad,
            tokenizer.padding_side == "left",
            getattr(tokenizer, "pad_token_type_id", 0) or 0,
        )

    def __call__(
        self, rows: Sequence[tuple[Window, Any, Any]]
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor | None, torch.Tensor | None]:
        windows = [row[0] for row in rows]
        longest = max(len(window) for window in windows)
        shape = (len(windows), longest)
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        with_segments = windows[0].token_type_ids is not None
        segments = np.full(shape, self.pad_segment, dtype=np.int64) if with_segments else None
        positions = []
        for i, window in enumerate(windows):
            offset = longest - len(window) if self.left else 0
            inside = slice(offset, offset + len(window))
            ids[i, inside] = window.input_ids
            mask[i, inside] = 1
            if segments is not None:
                segments[i, inside] = np.asarray(window.token_type_ids)
            positions.append(window.positions + (i * longest + offset))
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if segments is not None:
            inputs["token_type_ids"] = torch.from_numpy(segments)
        where = np.concatenate(positions)
        per_word = len(where) > 0
        if per_word:
            inputs["positions"] = torch.from_numpy(where)
        target = weight = None
        if rows[0][1] is not None:
            stack = np.concatenate if per_word else np.stack
            target = torch.from_numpy(stack([np.asarray(row[1]) for row in rows]))
        if rows[0][2] is not None:
            counts = [len(window.positions) if per_word else 1 for window in windows]
            weight = torch.from_numpy(
                np.repeat(np.array([row[2] for row in rows], dtype=np.float32), counts)
            )
        return inputs, target, weight
