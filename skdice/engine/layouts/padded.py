"""Windows padded to the longest: right for every architecture, and the measure of other layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from skdice.engine.layouts.architectures import architecture_of
from skdice.engine.layouts.layout import Batch, Layout, Padding, pool, targets_of
from skdice.engine.layouts.lengths import length_batches, length_chunks, run_cost
from skdice.text.encoding import Window, Windows


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

    def micro_batch(self, dataset: Any, rows: np.ndarray) -> Batch:
        """Windows in groups of similar length, and targets in the order of the groups."""
        chunks = length_chunks(dataset.lengths[rows], self.unit)
        groups = [self.lay([dataset[int(i)] for i in rows[chunk]]) for chunk in chunks]
        return [group[0] for group in groups], *targets_of(groups)

    def to_predict(
        self, windows: Windows[Any], batch_size: int
    ) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Batches from the shortest window to the longest."""
        for batch in length_batches(windows.lengths, batch_size, self.unit):
            yield batch, self.lay([(windows[i], None, None) for i in batch])[0]

    def texts(self, encoder: Any, pooling: str, inputs: dict[str, Any]) -> torch.Tensor:
        """A vector of each text: of its summary, or of all that the mask shows."""
        hidden = encoder(**inputs).last_hidden_state
        last = architecture_of(encoder).summary_last
        return pool(hidden, inputs["attention_mask"], pooling, last)


# Of inputs that somebody else has padded.
PADDED = Padded(padding=Padding(0))
