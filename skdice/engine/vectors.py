"""Vectors of an encoder that is not trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from skdice._fitting import draft_of
from skdice._types import Model
from skdice.engine import devices
from skdice.engine.devices import autocast_dtype, resolve_device, to_device
from skdice.engine.encoded import EncodedDataset
from skdice.engine.graphs import Graphs
from skdice.engine.layouts import layout_to_predict
from skdice.engine.layouts.architectures import architecture_of
from skdice.engine.layouts.layout import Padding, nothing_further, pool
from skdice.engine.parts import settle_attention
from skdice.text.encoding import Window

BLOCK = 4096  # rows processed at a time
BLOCK_ON_GPU = 1024  # rows, of which the next are tokenised while it computes


@torch.no_grad()
def run_encoder(
    encoder: Any,
    padding: Padding,
    windows: Sequence[Window],
    *,
    pooling: str | None,
    batch_size: int = 64,
    device: str = "cpu",
    dtype: torch.dtype | None = None,
) -> list[np.ndarray]:
    """Run an encoder once over windows of text.

    Parameters
    ----------
    encoder : transformers.PreTrainedModel
        Moved to `device` and left in evaluation mode.
    padding : Padding
    windows : list of Window
    pooling : {"mean", "cls", "max"} or None
        How the hidden states of a window become one vector; None keeps one vector for each of its
        positions.
    batch_size : int, default=64
    device : str, default="cpu"
    dtype : torch.dtype or None, default=None
        The type of matrix products; None is float32.

    Returns
    -------
    list of ndarray
        For each window float32 of shape (hidden_size,), or (n_positions, hidden_size).
    """
    encoder = encoder.to(device).eval()
    summary_last = architecture_of(encoder).summary_last
    autocast = torch.autocast(torch.device(device).type, dtype=dtype, enabled=dtype is not None)

    def vectors(padded: dict[str, Any]) -> torch.Tensor:
        inputs = {name: to_device(v, device) for name, v in padded.items() if name != "layout"}
        positions = inputs.pop("positions", None)
        with autocast:
            hidden = encoder(**inputs).last_hidden_state.float()
        if pooling is not None:
            return pool(hidden, inputs["attention_mask"], pooling, summary_last)
        return hidden.flatten(0, 1).index_select(0, positions)

    windows = EncodedDataset(windows).windows
    module = SimpleNamespace(encoder=encoder, further_inputs=nothing_further)
    layout = layout_to_predict(module, padding, device=device, pack=False)
    if not devices.is_gpu(device):
        return layout.for_each(windows, batch_size, vectors)
    settle_attention(module, device)
    graphs = Graphs(lambda inputs: (vectors(inputs),), device)
    try:
        # Off the GPU at once, whose memory may not hold the vectors of all windows.
        return layout.for_each(windows, batch_size, lambda inputs: graphs(inputs)[0].cpu())
    finally:
        settle_attention(module, "cpu")
        graphs.close()


def vectors_of_rows(vectors: list[np.ndarray], rows: np.ndarray, pooling: str) -> np.ndarray:
    """A vector for each row from those of its windows: their maximum, if they are, or mean."""
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    if len(starts) == len(rows):
        return np.stack(vectors)
    join = np.maximum if pooling == "max" else np.add
    table: np.ndarray = join.reduceat(np.stack(vectors), starts)
    counts = np.diff(np.append(starts, len(rows))).astype(np.float32)
    return table if pooling == "max" else table / counts[:, None]


def unfitted_copy(model: Model) -> Any:
    """Return a copy with the backbone as it is before fine-tuning, to encode texts with."""
    blank = draft_of(model)
    vars(blank).pop("tokenizer_", None)  # it may be of another backbone
    blank.task.build(blank, seed=0, n_outputs=2)
    return blank


def frozen_vectors(
    model: Model, windows: Sequence[Window], pooling: str | None = None
) -> list[np.ndarray]:
    """Vectors of windows from the present encoder: pooled, or one for each position."""
    device = resolve_device(model.device)
    return run_encoder(
        model.module_.encoder,
        Padding.of(model.tokenizer_),
        windows,
        pooling=pooling,
        batch_size=max(model.batch_size, 64),
        device=device,
        dtype=autocast_dtype(model.precision, device),
    )


def blocks(n_rows: int) -> Iterator[slice]:
    """Slices that cover all rows, some thousand at a time."""
    for start in range(0, n_rows, BLOCK):
        yield slice(start, min(start + BLOCK, n_rows))
