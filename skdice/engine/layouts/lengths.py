"""Windows of similar length, together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch


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
    >>> from skdice.engine.layouts.lengths import length_chunks
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
