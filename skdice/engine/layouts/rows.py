"""Windows in rows of one length, for a GPU: few shapes, which recur.

A GPU computes a batch faster than it is told what to compute. Where the shapes of batches recur it
is told once, see `graphs`; and its attention need not plan anew. So sentences are packed into rows
of few lengths, in few numbers of rows, and a block mask lets each see only itself. What is padded
has a weight of 0 in the loss.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch

from skdice._types import Encoder
from skdice.engine.ahead import ahead
from skdice.engine.layouts.architectures import Mask
from skdice.engine.layouts.layout import Layout, MicroBatch, Padded, grown, pool
from skdice.text.encoding import Window, Windows

LENGTHS = (64, 128, 256, 512)  # of rows; longer ones are multiples of the last
TOKENS = 8192  # of a batch in prediction


def few(n: int) -> int:
    """`n` rounded up by at most a quarter, to one of few numbers.

    Examples
    --------
    >>> from skdice.engine.layouts.rows import few
    >>> [few(n) for n in (1, 5, 9, 17, 33, 100)]
    [1, 5, 10, 20, 40, 112]
    """
    step = max(1, 1 << n.bit_length() >> 3)
    return -(-n // step) * step


def pack(lengths: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of each sentence, and its place there; the longest first, where they fit best.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.engine.layouts.rows import pack
    >>> [part.tolist() for part in pack(np.array([3, 6, 2, 7]), size=10)]
    [[0, 1, 1, 0], [7, 0, 6, 0]]
    """
    rows, starts = np.zeros((2, len(lengths)), dtype=np.int64)
    free: list[tuple[int, int]] = []  # what is left of each row
    for i in np.argsort(-lengths, kind="stable").tolist():
        place = bisect_left(free, (int(lengths[i]), -1))
        left, row = free.pop(place) if place < len(free) else (size, len(free))
        rows[i], starts[i] = row, size - left
        insort(free, (left - int(lengths[i]), row))
    return rows, starts


@dataclass(frozen=True, kw_only=True)
class Recurring(Layout):
    """Batches in few shapes; see `Layout`.

    Parameters
    ----------
    most : int
        The subwords that a row may have at most; 0 where there is no such number.
    length : int, default=0
        Subwords of a row, as `of_length` sets them.
    padding_target : int or tuple of int, default=0
        The target of what is padded.
    least : dict, default={}
        What a batch has at least of ``"rows"``, ``"windows"`` and other inputs, so that the last
        one of an epoch has the shape of the others; see `of_batches`.
    """

    recurs = True

    most: int
    length: int = 0
    padding_target: Any = 0
    least: Mapping[str, int] = field(default_factory=dict)

    def of_length(self, longest: int) -> Self:
        """The same, in rows for windows of up to `longest` subwords."""
        last = LENGTHS[-1]
        length = next((n for n in LENGTHS if n >= longest), -(-longest // last) * last)
        return replace(self, length=max(longest, min(length, self.most or length)))

    def of_batches(self, windows: Windows[Any], batch_size: int) -> Self:
        """The layout in which nearly all batches of these windows have one shape."""
        layout = self.of_length(int(windows.lengths.max(initial=1)))
        n_windows = min(batch_size, len(windows))
        if not n_windows:
            return layout
        some = [windows[int(i)] for i in np.linspace(0, len(windows) - 1, 256).astype(int)]
        means = {"rows": windows.lengths.mean() / layout.length}
        means |= {name: len(made) / len(some) for name, made in self.further(some, 1).items()}
        least = {name: math.ceil(1.05 * n_windows * mean) for name, mean in means.items()}
        return replace(layout, least={**least, "windows": n_windows})

    def at_least(self, name: str, n: int) -> int:
        """One of few numbers that is no smaller than `n`."""
        return few(max(n, self.least.get(name, 0)))

    def micro_batch(self, windows: Windows[Any], rows: np.ndarray) -> MicroBatch:
        """Windows as they come, padded to shapes that recur; padding has the weight 0."""
        inputs = self.lay([windows[i] for i in rows])
        names = ("order", "positions", "texts", "input_ids")
        size = next(len(inputs[name]) for name in names if name in inputs)
        return MicroBatch([inputs], rows, size, self.padding_target)

    def places(self, where: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        """The places of words, and as many more as there are subwords."""
        return grown(where, inputs["input_ids"].numel())

    def sized(self, beside: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the head reads beside, in numbers that recur."""
        sizes = {name: self.at_least(name, len(values)) for name, values in beside.items()}
        return {name: grown(beside[name], size) for name, size in sizes.items()}

    def to_predict(
        self, windows: Windows[Any], batch_size: int
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Batches of about `TOKENS` subwords, each made while the GPU computes the one before."""
        return ahead(self._to_predict(windows))

    def _to_predict(self, windows: Windows[Any]) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        lengths = windows.lengths
        borders = np.searchsorted(LENGTHS, lengths)
        for border in np.unique(borders):
            chosen = np.flatnonzero(borders == border)
            layout = self.of_length(int(lengths[chosen].max()))
            run = layout.rows_of(lengths[chosen]) // max(1, TOKENS // layout.length)
            for i in range(int(run.max(initial=-1)) + 1):
                part = chosen[run == i]
                yield part, layout.lay([windows[i] for i in part])

    def rows_of(self, lengths: np.ndarray) -> np.ndarray:
        """The row of each window."""
        return np.arange(len(lengths))


@dataclass(frozen=True, kw_only=True)
class RowsOfOne(Recurring, Padded):
    """Each window in a row of its own, with the usual mask: right for every architecture."""

    def place(  # type: ignore[override]
        self, windows: Sequence[Window]
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of shape (n_rows, length), and where each window starts when they are flat."""
        return Padded.place(self, windows, (self.at_least("rows", len(windows)), self.length))

    def of_batches(self, windows: Windows[Any], batch_size: int) -> Self:
        """As many rows as windows."""
        layout = super().of_batches(windows, batch_size)
        return replace(layout, least={**layout.least, "rows": min(batch_size, len(windows))})


@dataclass(frozen=True, kw_only=True)
class Rows(Recurring):
    """Several windows in a row, under a block mask.

    Parameters
    ----------
    mask : callable
        The form of the mask, of `Architecture`.
    first : int or None
        The position id of a sentence's first subword; None where the encoder is given none.
    pooling : str or None, default=None
        As in `EncoderWithHead`.
    last : bool, default=False
        Whether a text's summary token is its last.
    """

    mask: Mask
    first: int | None
    pooling: str | None = None
    last: bool = False

    def rows_of(self, lengths: np.ndarray) -> np.ndarray:
        """The row of each window, as `pack` chooses it."""
        return pack(lengths, self.length)[0]

    def place(self, windows: Sequence[Window]) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of shape (n_rows, length), and where each window starts when they are flat."""
        lengths = np.array([len(window) for window in windows])
        rows, places = pack(lengths, self.length)
        n_rows = self.at_least("rows", int(rows.max()) + 1)
        starts = rows * self.length + places
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        where = np.repeat(starts, lengths) + inside

        def table(values: np.ndarray, padding: int) -> torch.Tensor:
            flat = np.full(n_rows * self.length, padding, dtype=np.int64)
            flat[where] = values
            return torch.from_numpy(flat).view(n_rows, self.length)

        inputs = {
            "input_ids": table(np.concatenate([w.input_ids for w in windows]), self.padding.token),
            "sentences": table(np.repeat(np.arange(len(windows)) + 1, lengths), 0),
        }
        if self.first is not None:
            inputs["position_ids"] = table(inside + self.first, self.first)
        if windows[0].token_type_ids is not None:
            segments = np.concatenate([np.asarray(w.token_type_ids) for w in windows])
            inputs["token_type_ids"] = table(segments, self.padding.segment)
        if not any(len(window.positions) for window in windows):
            inputs |= self._texts(starts, lengths)
        return inputs, starts

    def _texts(self, starts: np.ndarray, lengths: np.ndarray) -> dict[str, torch.Tensor]:
        """The subwords that stand for each text: one, or all of them with a mask."""
        size = self.at_least("windows", len(starts))
        if self.pooling not in ("mean", "max"):
            return {"texts": grown(torch.from_numpy(starts + (lengths - 1) * self.last), size)}
        inside = np.arange(self.length) < np.pad(lengths, (0, size - len(lengths)))[:, None]
        places = np.where(inside[: len(starts)], starts[:, None] + np.arange(self.length), 0)
        inside[len(starts) :, 0] = True  # for the mean of nothing is no number
        return {"texts": grown(torch.from_numpy(places), size), "inside": torch.from_numpy(inside)}

    def for_encoder(self, encoder: Encoder, inputs: dict[str, Any]) -> dict[str, Any]:
        """The keywords of the encoder, with a mask in place of the sentences' numbers."""
        own = ("sentences", "texts", "inside")
        given = {name: values for name, values in inputs.items() if name not in own}
        sentences = inputs["sentences"]
        seen = sentences[:, :, None] == sentences[:, None, :]
        return given | self.mask(seen, encoder.config)

    def texts(self, encoder: Encoder, pooling: str, inputs: dict[str, Any]) -> torch.Tensor:
        """A vector of each text."""
        places = inputs["texts"]
        vectors = self.states_at(encoder, places.flatten(), inputs)
        if "inside" not in inputs:
            return vectors
        return pool(vectors.unflatten(0, places.shape), inputs["inside"], pooling, False)

    def summaries(self, hidden: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        """The states of the subwords that stand for texts."""
        return hidden.flatten(0, 1).index_select(0, inputs["texts"])[:, None]
