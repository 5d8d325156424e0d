"""Windows of similar length, padded to the longest: right for every architecture.

Other layouts must give the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from skdice._types import Encoder
from skdice.engine.layouts.architectures import architecture_of
from skdice.engine.layouts.layout import Layout, MicroBatch, Padding, pool
from skdice.text.encoding import Window, Windows


def run_cost(device: str) -> int:
    """Subwords, padding included, that cost as much as one more run of the encoder."""
    return 128 if torch.device(device).type == "cpu" else 8192


def length_batches(lengths: np.ndarray, batch_size: int, unit: int) -> Iterator[np.ndarray]:
    """Batches from the shortest row to the longest, for prediction.

    Parameters
    ----------
    lengths : ndarray of shape (n_rows,)
    batch_size : int
        Rows of a batch at most; one is cut further where that saves padding.
    unit : int
        As in `length_chunks`.
    """
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        yield from (rows[chunk] for chunk in length_chunks(lengths[rows], unit))


def length_chunks(lengths: np.ndarray, unit: int) -> list[np.ndarray]:
    """The rows of a training batch in groups of similar length, at the least cost.

    Batches have to be drawn at random: if all texts of a batch were of one length, a token of a
    short text would weigh more in the batch's mean than one of a long text. So it is inside the
    batch that padding is saved, by running the encoder on each group.

    Parameters
    ----------
    lengths : ndarray of shape (n_rows,)
    unit : int
        Subwords, padding included, that cost as much as one more run of the encoder.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.engine.layouts.padded import length_chunks
    >>> [rows.tolist() for rows in length_chunks(np.array([9, 2, 8, 3]), unit=10)]
    [[1, 3], [2, 0]]
    """
    order = np.argsort(lengths, kind="stable")
    sizes = np.asarray(lengths)[order].astype(np.int64)
    n = len(sizes)
    # least[i]: cost of the i shortest rows; a group that ends there costs its longest row each.
    least, first = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):
        costs = least[:end] + (end - np.arange(end)) * sizes[end - 1]
        first[end] = costs.argmin()
        least[end] = costs[first[end]] + unit
    cuts: list[int] = []
    end = n
    while first[end] > 0:
        end = int(first[end])
        cuts.append(end)
    return np.split(order, cuts[::-1])


@dataclass(frozen=True, kw_only=True)
class Padded(Layout):
    """A row for each window, in groups of similar length; see `Layout`.

    Parameters
    ----------
    unit : int
        Subwords, padding included, that cost as much as one more group.
    """

    unit: int = run_cost("cpu")

    def place(
        self, windows: Sequence[Window], shape: tuple[int, int] | None = None
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of shape (n_windows, longest), and where each window starts when they are flat.

        In a larger `shape` there are rows of padding, which see themselves.
        """
        shape = shape or (len(windows), max(len(window) for window in windows))
        longest = shape[1]
        ids = np.full(shape, self.padding.token, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        mask[len(windows) :] = 1
        with_segments = windows[0].token_type_ids is not None
        segments = np.full(shape, self.padding.segment, dtype=np.int64) if with_segments else None
        starts = np.arange(len(windows)) * longest
        for i, window in enumerate(windows):
            offset = longest - len(window) if self.padding.left else 0
            starts[i] += offset
            inside = slice(offset, offset + len(window))
            ids[i, inside] = window.input_ids
            mask[i, inside] = 1
            if segments is not None:
                segments[i, inside] = np.asarray(window.token_type_ids)
        inputs = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
        if segments is not None:
            inputs["token_type_ids"] = torch.from_numpy(segments)
        return inputs, starts

    def micro_batch(self, windows: Windows[Any], rows: np.ndarray) -> MicroBatch:
        """Windows in groups of similar length."""
        chunks = [rows[chunk] for chunk in length_chunks(windows.lengths[rows], self.unit)]
        groups = [self.lay([windows[i] for i in chunk]) for chunk in chunks]
        return MicroBatch(groups, np.concatenate(chunks))

    def to_predict(
        self, windows: Windows[Any], batch_size: int
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Batches from the shortest window to the longest."""
        for batch in length_batches(windows.lengths, batch_size, self.unit):
            yield batch, self.lay([windows[i] for i in batch])

    def texts(self, encoder: Encoder, pooling: str, inputs: dict[str, Any]) -> torch.Tensor:
        """A vector of each text: of its summary, or of all that the mask shows."""
        hidden = encoder(**inputs).last_hidden_state
        last = architecture_of(encoder).summary_last
        return pool(hidden, inputs["attention_mask"], pooling, last)


# Of inputs that somebody else has padded.
PADDED = Padded(padding=Padding(0))
