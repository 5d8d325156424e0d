"""Heads that score starts, ends and whole spans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from skdice._types import Encoder
from skdice.engine.layouts.layout import PADDED, Layout
from skdice.engine.module import EncoderWithHead, Float32Linear


class EncoderWithSpanHeads(EncoderWithHead):
    """`encoder` -> dropout -> start, end, answerable for each position, match for each span.

    A span's match is u(first) . v(last) / sqrt(size) plus a term of each border: it needs a
    vector of `size` for each word, not one of twice the hidden size for each pair of words.
    """

    def __init__(self, encoder: Encoder, dropout: float = 0.1, size: int = 64) -> None:
        super().__init__(encoder, 3, dropout)
        hidden = encoder.config.hidden_size
        self.size = size
        self.first: Float32Linear = Float32Linear(hidden, size + 1)
        self.last: Float32Linear = Float32Linear(hidden, size + 1)

    @staticmethod
    def further_inputs(windows: Sequence[Any], n_places: int) -> dict[str, torch.Tensor]:
        """The positions of each candidate span, and the order of the outputs by window.

        The module gives all starts, then all ends, answerables and matches.
        """
        sizes = np.array([len(window.positions) for window in windows])
        counts = np.array([len(window.pairs) for window in windows])
        first_position, first_pair = np.cumsum(sizes) - sizes, np.cumsum(counts) - counts
        order: list[Any] = []
        for window, p, m in zip(windows, first_position, first_pair, strict=True):
            words = np.arange(p + 1, p + len(window.positions))
            matches = 3 * n_places + np.arange(m, m + len(window.pairs))
            order += [words, n_places + words, [2 * n_places + p], matches]
        pairs = [w.pairs + p for w, p in zip(windows, first_position, strict=True)]
        return {
            "pairs": torch.from_numpy(np.concatenate(pairs)),
            "order": torch.from_numpy(np.concatenate(order).astype(np.int64)),
        }

    def forward(  # type: ignore[override]
        self,
        positions: torch.Tensor,
        pairs: torch.Tensor,
        order: torch.Tensor,
        layout: Layout = PADDED,
        **inputs: Any,
    ) -> torch.Tensor:
        """Logits of shape (n_predictions of all windows,)."""
        vectors = self.dropout(layout.states_at(self.encoder, positions, inputs))
        borders = self.head(vectors)
        u = rows_at(self.first(vectors), pairs[:, 0])
        v = rows_at(self.last(vectors), pairs[:, 1])
        match = (u[:, :-1] * v[:, :-1]).sum(-1) / self.size**0.5 + u[:, -1] + v[:, -1]
        return torch.cat([borders.T.flatten(), match]).index_select(0, order)


def rows_at(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Rows of a table, of which many are taken more than once."""
    if table.device.type == "cpu":
        return table.index_select(0, places)
    # Its gradients are added up in one order; a GPU adds those of `index_select` in a changing one.
    return nn.functional.embedding(places, table)
