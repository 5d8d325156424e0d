"""Batches of similar length, padded to their own longest member."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import Dataset

from skdice.engine.packing import packed_inputs
from skdice.text.encoding import Ragged, Window, Windows

Inputs = list[dict[str, Any]]
Batch = tuple[Inputs, torch.Tensor | None, torch.Tensor | None]  # inputs, targets, weights
Layout = Callable[[Sequence[Window], Any], tuple[dict[str, Any], np.ndarray]]
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
        if rows is None and isinstance(self.targets, Ragged):
            return self.targets.values, np.repeat(self.shares, self.targets.sizes)
        chosen = np.arange(len(self)) if rows is None else rows
        of_windows = [self.targets[i] for i in chosen.tolist()]
        sizes = [len(of_window) for of_window in of_windows]
        return np.concatenate(of_windows), np.repeat(self.shares[chosen], sizes)


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


def for_each_window(
    windows: Windows[Any],
    padder: Padder,
    batch_size: int,
    device: str,
    compute: Callable[[dict[str, Any]], torch.Tensor],
) -> list[np.ndarray]:
    """Return what `compute` gives for each window, from padded inputs of similar length.

    It gives a row for each window, or for each position of the windows where they have some.
    """
    batches, pieces = [], []
    for batch in length_batches(windows.lengths, batch_size, run_cost(device)):
        batches.append(batch)
        inputs, _, _ = padder([(windows[i], None, None) for i in batch])
        pieces.append(compute(inputs).cpu().numpy())
    return by_window(windows, batches, pieces)


def by_window(
    windows: Windows[Any], batches: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Order what a module gave for batches of windows by number of window."""
    results: list[Any] = [None] * len(windows)
    for batch, pieces in zip(batches, outputs, strict=True):
        if any(len(windows[i].positions) for i in batch):
            ends = np.cumsum([windows[i].n_predictions for i in batch])
            pieces = np.split(pieces, ends[:-1])  # type: ignore[assignment]
        for i, piece in zip(batch, pieces, strict=True):
            results[i] = piece
    return results


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
    >>> from skdice.engine.batching import length_chunks
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
        """Pad as a tokenizer does."""
        pad = tokenizer.pad_token_id
        return cls(
            0 if pad is None else pad,
            tokenizer.padding_side == "left",
            getattr(tokenizer, "pad_token_type_id", 0) or 0,
        )

    def __call__(
        self,
        rows: Sequence[tuple[Window, Any, Any]],
        layout: Layout | None = None,
    ) -> tuple[dict[str, Any], torch.Tensor | None, torch.Tensor | None]:
        """Inputs of the encoder, targets and weights of some rows.

        Parameters
        ----------
        rows : list of (Window, target, weight)
        layout : callable or None, default=None
            Called with windows and this padder, it gives the inputs, and where each window starts
            among all subwords. None pads to the longest.
        """
        windows = [row[0] for row in rows]
        inputs, starts = self.padded(windows) if layout is None else layout(windows, self)
        positions = [
            window.positions + start for window, start in zip(windows, starts, strict=True)
        ]
        where = np.concatenate(positions).astype(np.int64, copy=False)
        per_word = len(where) > 0
        if per_word:
            places = inputs.setdefault("positions", torch.from_numpy(where))
            places[: len(where)] = torch.from_numpy(where)
        return inputs, *self._targets(rows, per_word)

    def batch(
        self,
        dataset: Any,
        rows: np.ndarray,
        lengths: np.ndarray,
        unit: int,
        first: int | None = None,
    ) -> Batch:
        """Rows of a data set in groups of similar length, all targets in their order.

        Parameters
        ----------
        dataset : EncodedDataset or other windows with targets
        rows : ndarray of shape (n_rows,)
        lengths : ndarray of shape (n_rows,)
        unit : int
            As in `length_chunks`.
        first : int or None, default=None
            Pack all groups into one, with this position id for the first subword of each row.
        """
        chunks = length_chunks(lengths, unit)
        parts = [[dataset[int(i)] for i in rows[chunk]] for chunk in chunks]
        if first is None:
            groups = [self(part) for part in parts]
        else:
            sizes = [len(part) for part in parts]
            groups = [self(list(chain(*parts)), partial(packed_inputs, groups=sizes, first=first))]
        return [group[0] for group in groups], *targets_of(groups)

    def padded(
        self, windows: Sequence[Window], shape: tuple[int, int] | None = None
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of shape (n_windows, longest), and where each window starts when they are flat.

        In a larger `shape` there are rows of padding, which see themselves.
        """
        shape = shape or (len(windows), max(len(window) for window in windows))
        longest = shape[1]
        ids = np.full(shape, self.pad_id, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        mask[len(windows) :] = 1
        with_segments = windows[0].token_type_ids is not None
        segments = np.full(shape, self.pad_segment, dtype=np.int64) if with_segments else None
        starts = np.arange(len(windows)) * longest
        for i, window in enumerate(windows):
            offset = longest - len(window) if self.left else 0
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

    def _targets(
        self, rows: Sequence[tuple[Window, Any, Any]], per_word: bool
    ) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        target = weight = None
        if rows[0][1] is not None:
            stack = np.concatenate if per_word else np.stack
            targets = stack([np.asarray(row[1]) for row in rows])
            whole = targets.dtype.kind == "i"
            target = torch.from_numpy(targets.astype(np.int64, copy=False) if whole else targets)
        if rows[0][2] is not None:
            counts = [row[0].n_predictions if per_word else 1 for row in rows]
            weight = torch.from_numpy(
                np.repeat(np.array([row[2] for row in rows], dtype=np.float32), counts)
            )
            if target is not None and target.shape == weight.shape:
                weight = weight.masked_fill(target == UNKNOWN, 0.0)
                target = target.clamp(min=0)
        return target, weight


T = TypeVar("T")


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before it is used."""
    source, nothing = iter(items), object()
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(next, source, nothing)
        while (item := coming.result()) is not nothing:
            coming = worker.submit(next, source, nothing)
            yield item  # type: ignore[misc]


def targets_of(parts: Sequence[tuple[Any, Any, Any]]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Targets and weights of all parts of a batch, one after the other."""
    _, targets, weights = zip(*parts, strict=True)
    return torch.cat(targets), None if weights[0] is None else torch.cat(weights)


def weightless(parts: Sequence[tuple[Any, Any, Any]]) -> list[Batch]:
    """The same parts of a batch with weights of 0."""
    return [(inputs, target, torch.zeros(len(target))) for inputs, target, _ in parts]
