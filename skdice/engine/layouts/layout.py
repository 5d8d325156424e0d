"""How the windows of a batch lie in the inputs of an encoder: the interface of all layouts.

`Padded` is right for every architecture, and other layouts must give the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch

from skdice._types import Encoder, Tokenizer
from skdice.engine.layouts.architectures import architecture_of
from skdice.text.encoding import Window, Windows

Inputs = dict[str, Any]  # keywords of a module, with the layout that made them


@dataclass(frozen=True)
class MicroBatch:
    """Windows that are computed at once.

    Parameters
    ----------
    groups : list of dict
        Inputs of the module, which is run once for each.
    order : ndarray of int
        The windows by number, in the order of the outputs.
    n_outputs : int or None, default=None
        Rows of outputs with those of padding behind them; None where there is no padding.
    padding_target : int or tuple of int, default=0
        The target of these.
    """

    groups: list[Inputs]
    order: np.ndarray
    n_outputs: int | None = None
    padding_target: Any = 0


@dataclass(frozen=True)
class Padding:
    """What a tokenizer pads with.

    Parameters
    ----------
    token : int
        The padding's id.
    left : bool, default=False
        Whether it comes before a sentence (XLNet).
    segment : int, default=0
        The segment id of the padding.
    """

    token: int
    left: bool = False
    segment: int = 0

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Padding:
        """Pad as a tokenizer does."""
        token = tokenizer.pad_token_id
        return cls(
            0 if token is None else token,
            tokenizer.padding_side == "left",
            getattr(tokenizer, "pad_token_type_id", 0) or 0,
        )


def nothing_further(windows: Sequence[Window], n_places: int) -> dict[str, torch.Tensor]:
    """Return no inputs beside those of the layout."""
    return {}


@dataclass(frozen=True, kw_only=True)
class Layout(ABC):
    """The layout of batches.

    `micro_batch` and `to_predict` lay windows out on the CPU. A dict of inputs that they give has
    the layout itself under ``"layout"``; where words are predicted, ``"positions"`` has their
    places among all subwords. A module passes the other inputs back to `states_at`, `texts` or
    `for_encoder`, which run its encoder. So only a layout knows what it made.

    Parameters
    ----------
    padding : Padding
    further : callable
        Gives what the module's head reads beside, from windows and the number of ``"positions"``:
        `EncoderModule.further_inputs`.
    """

    # Whether attention and its dropout are those of `skdice.engine.parts`.
    own_attention: ClassVar[bool] = False
    recurs: ClassVar[bool] = False  # whether batches have few shapes, with rows of weight 0

    padding: Padding
    further: Callable[[Sequence[Any], int], dict[str, torch.Tensor]] = nothing_further

    def to(self, move: Callable[[torch.Tensor], torch.Tensor]) -> Self:
        """The same for another device, as for other inputs."""
        return self

    # ---- inputs

    @abstractmethod
    def place(self, windows: Sequence[Window], *how: Any) -> tuple[dict[str, Any], np.ndarray]:
        """Inputs of the encoder, and where each window starts among all subwords."""

    @abstractmethod
    def micro_batch(self, windows: Windows[Any], rows: np.ndarray) -> MicroBatch:
        """Some windows, by number."""

    @abstractmethod
    def to_predict(
        self, windows: Windows[Any], batch_size: int
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """All windows, by number, in inputs of windows of similar length."""

    def lay(self, windows: Sequence[Window], *how: Any) -> Inputs:
        """Inputs of the module."""
        inputs, starts = self.place(windows, *how)
        placed = zip(windows, starts, strict=True)
        where = np.concatenate([window.positions + start for window, start in placed])
        if len(where):
            inputs["positions"] = self.places(torch.from_numpy(where.astype(np.int64)), inputs)
            inputs |= self.sized(self.further(windows, len(inputs["positions"])))
        return inputs | {"layout": self}

    def places(self, where: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor:
        """The places of words, as a module gets them."""
        return where

    def sized(self, beside: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What the head reads beside, as a module gets it."""
        return beside

    def for_each(
        self,
        windows: Windows[Any],
        batch_size: int,
        compute: Callable[[dict[str, Any]], torch.Tensor],
    ) -> list[np.ndarray]:
        """Return what `compute` gives for each window.

        It gives a row for each window, or for each prediction of the windows where they have some;
        rows of padding may follow.
        """
        counts = np.array([window.n_predictions for window in windows], dtype=np.int64)
        of_words = counts.any()
        if not of_words:
            counts[:] = 1
        order, outputs = [np.empty(0, np.int64)], []
        for part, inputs in self.to_predict(windows, batch_size):
            outputs.append(compute(inputs)[: counts[part].sum()])
            order.append(part)
        if not outputs:
            return []
        numbers = np.concatenate(order)
        pieces = np.split(torch.cat(outputs).cpu().numpy(), np.cumsum(counts[numbers])[:-1])
        results: list[Any] = [None] * len(windows)
        for i, piece in zip(numbers, pieces, strict=True):
            results[i] = piece if of_words else piece[0]
        return results

    # ---- on the device

    def for_encoder(self, encoder: Encoder, inputs: dict[str, Any]) -> dict[str, Any]:
        """The keywords of the encoder."""
        return inputs

    def states_at(
        self, encoder: Encoder, places: torch.Tensor, inputs: dict[str, Any]
    ) -> torch.Tensor:
        """Last hidden states (n_places, size) at places that are counted over all subwords."""
        hidden = encoder(**self.for_encoder(encoder, inputs)).last_hidden_state
        return hidden.flatten(0, 1).index_select(0, places)

    @abstractmethod
    def texts(self, encoder: Encoder, pooling: str, inputs: dict[str, Any]) -> torch.Tensor:
        """A vector of each text, (n_texts, size)."""

    def summaries(self, hidden: torch.Tensor, inputs: dict[str, Any]) -> torch.Tensor | None:
        """States (n_texts, 1, size) that stand for texts; None where a row is a text."""
        return None


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
    >>> from skdice.engine.layouts.layout import length_chunks
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


def pool(hidden: torch.Tensor, mask: torch.Tensor, how: str, last: bool) -> torch.Tensor:
    """Pool hidden states `(N, L, H)` under `mask` `(N, L)` to `(N, H)`: cls, mean or max."""
    if how == "cls":
        # XLNet pads on the left and puts <cls> last; the others put it first.
        return hidden[:, -1] if last else hidden[:, 0]
    weights = mask.unsqueeze(-1)
    if how == "max":
        return hidden.masked_fill(weights == 0, torch.finfo(hidden.dtype).min).amax(dim=1)
    weights = weights.to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def grown(values: torch.Tensor, size: int, padding: Any = 0) -> torch.Tensor:
    """Values with rows of padding behind them."""
    new = values.new_empty(size, *values.shape[1:])
    new[: len(values)] = values
    new[len(values) :] = torch.as_tensor(padding, dtype=values.dtype)
    return new
