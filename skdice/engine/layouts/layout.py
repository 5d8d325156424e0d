"""How the windows of a batch lie in the inputs of an encoder: the interface of all layouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch

from skdice._types import Encoder, Tokenizer
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
