"""Windows without padding: the subwords of all of them one after the other, for a CPU.

Linear layers run on all subwords at once, and attention on groups of windows of similar length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from skdice._types import Encoder
from skdice.engine.layouts.layout import MicroBatch, Padded, length_chunks, pool
from skdice.text.encoding import Window, Windows


def recurring_size(n: int) -> int:
    """`n` rounded up by at most a sixteenth, or to a multiple of 16.

    Kernels are compiled for a number of rows, in up to 100 ms for all layers, and kept: rows of any
    number would be slow, and memory would grow with each batch.

    Examples
    --------
    >>> from skdice.engine.layouts.grouped import recurring_size
    >>> [recurring_size(n) for n in (1, 16, 250, 300, 1000)]
    [16, 16, 256, 304, 1024]
    """
    step = max(16, 1 << n.bit_length() >> 5)
    return -(-n // step) * step


@dataclass(frozen=True)
class Groups:
    """The places of a batch's rows among its subwords, a row for each window.

    Attention looks at one row at a time, so rows of similar length are padded to groups there, and
    only there.

    Parameters
    ----------
    shapes : list of (int, int)
        Rows of each group, and the longest one's subwords. Rows of padding end the last group.
    taken : Tensor of shape (n_places,)
        The subword at each place of the groups, one group after the other; where a row is padded,
        its first.
    places : Tensor of shape (n_subwords,)
        The place of each subword.
    masks : list of Tensor of shape (n_rows, longest) or None
        Where a group holds subwords; None if its rows are equally long.
    starts : Tensor of shape (n_rows,)
        The first subword of each row that is no padding.
    of_heads : dict
        `taken` and `places` by the number of heads, once they were asked for.
    """

    shapes: list[tuple[int, int]]
    taken: torch.Tensor
    places: torch.Tensor
    masks: list[torch.Tensor | None]
    starts: torch.Tensor
    of_heads: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def to(self, move: Callable[[torch.Tensor], torch.Tensor]) -> Groups:
        """The same on another device."""
        masks = [None if mask is None else move(mask) for mask in self.masks]
        taken, places, starts = move(self.taken), move(self.places), move(self.starts)
        return Groups(self.shapes, taken, places, masks, starts)

    def pad(self, values: torch.Tensor) -> list[torch.Tensor]:
        """Values (n_subwords, n_heads, size) as padded groups (n_rows, n_heads, longest, size)."""
        heads, size = values.shape[1:]
        padded = _Pad.apply(values.reshape(-1, size), *self._by_head(heads))
        parts = padded.split([heads * rows * longest for rows, longest in self.shapes])
        shapes = [(rows, heads, longest, size) for rows, longest in self.shapes]
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]

    def join(self, groups: Sequence[torch.Tensor], heads: int) -> torch.Tensor:
        """The way back from `pad`."""
        padded = torch.cat([group.flatten(0, 2) for group in groups])
        return _Unpad.apply(padded, *self._by_head(heads)).unflatten(0, (-1, heads))

    def _by_head(self, heads: int) -> tuple[torch.Tensor, torch.Tensor]:
        """`taken` and `places` where each head of a row is a row of its own."""
        if heads not in self.of_heads:
            head, taken, places, start = torch.arange(heads, device=self.taken.device), [], [], 0
            parts = self.taken.split([rows * longest for rows, longest in self.shapes])
            for part, (rows, longest) in zip(parts, self.shapes, strict=True):
                subword = part.view(rows, 1, longest) * heads + head[:, None]
                place = start + torch.arange(subword.numel(), device=head.device)
                taken.append(subword.flatten())
                places.append(place.view(rows, heads, longest).transpose(1, 2).reshape(-1, heads))
                start += subword.numel()
            self.of_heads[heads] = torch.cat(taken), torch.cat(places)[self.places].flatten()
        return self.of_heads[heads]

    def pool(self, values: torch.Tensor, of_group: Callable[..., torch.Tensor]) -> torch.Tensor:
        """One result a row: `of_group` gets padded groups and masks (n_rows, longest)."""
        results = []
        groups = (group[:, 0] for group in self.pad(values[:, None]))
        for group, mask in zip(groups, self.masks, strict=True):
            whole = torch.ones(group.shape[:2], dtype=torch.bool, device=group.device)
            results.append(of_group(group, whole if mask is None else mask))
        return torch.cat(results)[: len(self.starts)]


class _Pad(torch.autograd.Function):
    """Rows of a tensor at the places of padded groups; no gradient comes from the padding.

    `index_select` would add up gradients row by row, also those of the padding.
    """

    @staticmethod
    def forward(ctx: Any, values: Any, taken: Any, places: Any) -> Any:
        ctx.save_for_backward(places)
        return values.index_select(0, taken)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (places,) = ctx.saved_tensors
        return gradient.index_select(0, places), None, None


class _Unpad(torch.autograd.Function):
    """The way back from `_Pad`."""

    @staticmethod
    def forward(ctx: Any, values: Any, taken: Any, places: Any) -> Any:
        ctx.save_for_backward(places)
        ctx.n_places = len(taken)
        return values.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (places,) = ctx.saved_tensors
        padded = gradient.new_zeros(ctx.n_places, *gradient.shape[1:])
        return padded.index_copy_(0, places, gradient), None, None


@dataclass(frozen=True, kw_only=True)
class Grouped(Padded):
    """All windows of a micro-batch in one row of inputs; predictions are `Padded`.

    Parameters
    ----------
    first : int
        The position id of a window's first subword.
    """

    own_attention = True

    first: int

    def micro_batch(self, windows: Windows[Any], rows: np.ndarray) -> MicroBatch:
        """Windows group by group."""
        chunks = length_chunks(windows.lengths[rows], self.unit)
        order = rows[np.concatenate(chunks)]
        inputs = self.lay([windows[i] for i in order], [len(chunk) for chunk in chunks])
        return MicroBatch([inputs], order)

    def place(
        self, windows: Sequence[Window], sizes: Sequence[int] | None = None
    ) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of shape (1, n_subwords), and where each window starts.

        Rows of padding bring the number of subwords to a `recurring_size`. Nothing reads them, so
        they change neither predictions nor gradients.

        Parameters
        ----------
        windows : list of Window
        sizes : list of int or None, default=None
            The number of windows in each group, in their order; None is one group.
        """
        sizes = [len(windows)] if sizes is None else sizes
        n_windows, lengths = len(windows), np.array([len(window) for window in windows])
        longest, total = lengths.max(), lengths.sum()
        n_padding = recurring_size(int(total)) - total
        padding = np.diff(np.append(np.arange(0, n_padding, longest), n_padding))
        lengths = np.concatenate([lengths, padding])
        starts = np.cumsum(lengths) - lengths
        inside = np.arange(lengths.sum()) - np.repeat(starts, lengths)
        shapes, masks, taken, row_places, n_places = [], [], [], [], 0
        for some in np.split(np.arange(len(lengths)), np.cumsum(sizes)[:-1]):
            rows, longest = len(some), -(-int(lengths[some].max()) // 8) * 8  # few sizes, as above
            mask = np.arange(longest) < lengths[some, None]
            shapes.append((rows, longest))
            masks.append(None if mask.all() else torch.from_numpy(mask))
            taken.append((starts[some, None] + np.where(mask, np.arange(longest), 0)).ravel())
            row_places.append(n_places + np.arange(rows) * longest)
            n_places += rows * longest
        groups = Groups(
            shapes,
            torch.from_numpy(np.concatenate(taken)),
            torch.from_numpy(np.repeat(np.concatenate(row_places), lengths) + inside),
            masks,
            torch.from_numpy(starts[:n_windows]),
        )
        ids = np.concatenate(
            [*(w.input_ids for w in windows), np.full(n_padding, self.padding.token)]
        )
        inputs: dict[str, Any] = {
            "input_ids": torch.from_numpy(ids.astype(np.int64))[None],
            "position_ids": torch.from_numpy(inside + self.first)[None],
            "groups": groups,
        }
        if windows[0].token_type_ids is not None:
            segments = [*(np.asarray(w.token_type_ids) for w in windows), np.zeros(n_padding)]
            inputs["token_type_ids"] = torch.from_numpy(np.concatenate(segments).astype(np.int64))[
                None
            ]
        return inputs, starts[:n_windows]

    def texts(self, encoder: Encoder, pooling: str, inputs: dict[str, Any]) -> torch.Tensor:
        """A vector of each text."""
        groups = inputs["groups"]
        if pooling == "cls":
            return self.states_at(encoder, groups.starts, inputs)
        hidden = encoder(**inputs).last_hidden_state[0]
        return groups.pool(hidden, lambda group, mask: pool(group, mask, pooling, False))

    def summaries(self, hidden: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        """The states of the first subwords."""
        return hidden[0].index_select(0, inputs["groups"].starts)[:, None]
