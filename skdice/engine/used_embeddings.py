"""Training without the rows of the word table that no text of the data uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from torch import nn

# Smaller tables are not worth it.
LEAST = 1_000_000


class UsedEmbeddings(nn.Module):
    """A word table in a fit: `weight` holds the rows that are trained, and one more.

    Rows without a gradient have zero moments in AdamW, which therefore does nothing to them but
    decay. So one row of ones goes through all updates for them: its product with the first values
    of the others is what these would be now, to rounding, without moving the whole table in every
    step.

    Who copies it, pickles it or takes its ``state_dict`` finds the whole table of that moment.

    Parameters
    ----------
    layer : torch.nn.Embedding
        Whose place it takes.
    used : ndarray of int
        The ids of the rows to train.
    """

    def __init__(self, layer: nn.Embedding, used: np.ndarray) -> None:
        super().__init__()
        # In a tuple, so that torch does not register it as a part.
        self.replaced: tuple[nn.Embedding] = (layer,)
        self.table: torch.Tensor = layer.weight.detach()
        self.used: torch.Tensor = torch.from_numpy(used)
        # All others have the place of the row behind them.
        self.places: torch.Tensor = torch.full((len(self.table),), len(used))
        self.places[self.used] = torch.arange(len(used))
        self.weight: nn.Parameter = nn.Parameter(self._rows_of(self.table))
        place = len(used) if layer.padding_idx is None else int(self.places[layer.padding_idx])
        self.padding_place: int | None = None if place == len(used) else place
        self.register_state_dict_post_hook(_give_whole)
        self.register_load_state_dict_pre_hook(_take_whole)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of ids, also of those that are not trained."""
        places = self.places[ids]
        vectors = nn.functional.embedding(places, self.weight, self.padding_place)
        others = places == len(self.used)
        if others.any():
            vectors = torch.where(others[..., None], vectors * self.table[ids], vectors)
        return vectors

    @torch.no_grad()
    def whole(self) -> torch.Tensor:
        """The whole table as it is now."""
        return (self.table * self.weight[-1]).index_copy_(0, self.used, self.weight[:-1])

    def __reduce__(self) -> Any:
        (layer,) = self.replaced
        return _embedding, (self.whole(), layer.padding_idx)

    def _rows_of(self, table: torch.Tensor) -> torch.Tensor:
        return torch.cat([table[self.used], table.new_ones(1, table.shape[1])])


def _give_whole(layer: UsedEmbeddings, state: dict[str, Any], prefix: str, *args: object) -> None:
    state[f"{prefix}weight"] = layer.whole()


def _take_whole(layer: UsedEmbeddings, state: dict[str, Any], prefix: str, *args: object) -> None:
    if (table := state.get(f"{prefix}weight")) is not None:
        layer.table.copy_(table)
        state[f"{prefix}weight"] = layer._rows_of(table)


def _embedding(table: torch.Tensor, padding_idx: int | None) -> nn.Embedding:
    return nn.Embedding.from_pretrained(table, freeze=False, padding_idx=padding_idx)


@contextmanager
def training_used_embeddings(net: NeuralNet, dataset: Any) -> Iterator[None]:
    """Let `net` train the rows that `dataset` uses only, where AdamW can leave out all others.

    Not on a GPU, which moves the whole table in no time.
    """
    plain = net.optimizer is torch.optim.AdamW and not net.get_params_for("optimizer")
    on_cpu = torch.device(net.device).type == "cpu"
    layer = _separable_layer(net.module_)
    if layer is None or not on_cpu or not plain:
        yield
        return
    ids = np.unique(dataset.windows.columns["input_ids"].values)
    used = np.union1d(ids, [net.padding.token])
    if len(used) >= 0.75 * len(layer.weight):
        yield
        return
    embeddings = UsedEmbeddings(layer, used)
    _put_in(net, embeddings)
    try:
        yield
    finally:
        layer.weight = nn.Parameter(embeddings.whole())
        _put_in(net, layer)


def _put_in(net: NeuralNet, layer: nn.Module) -> None:
    net.module_.encoder.set_input_embeddings(layer)
    net.initialize_optimizer()


def _separable_layer(module: Any) -> nn.Embedding | None:
    """The encoder's word table, if it can be trained in part and is worth it."""
    encoder = getattr(module, "encoder", None)
    if encoder is None or module.adapted:
        return None
    try:
        layer = encoder.get_input_embeddings()
    except NotImplementedError:  # it has none that is a table
        return None
    if type(layer) is not nn.Embedding or not layer.weight.requires_grad:
        return None
    owners = [part for part in module.modules() if layer.weight in set(part.parameters(False))]
    plain = layer.max_norm is None and not layer.sparse and not layer.scale_grad_by_freq
    return layer if owners == [layer] and plain and layer.weight.numel() >= LEAST else None
