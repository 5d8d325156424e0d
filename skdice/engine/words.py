"""Training without the rows of the word table that no text of the data uses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from skdice.text.encoding import Windows

__all__ = ["CompactWords", "can_be_compact", "compact_words"]

# Smaller tables are not worth it.
LEAST = 1_000_000
# Architectures that use the ids of tokens for nothing but their vectors, and to know the padding.
KINDS = (
    *("albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert"),
    *("mpnet", "roberta", "xlm-roberta", "xlnet"),
)


def can_be_compact(module: Any) -> bool:
    """Whether the encoder's word table can be trained in part."""
    encoder = getattr(module, "encoder", None)
    if getattr(getattr(encoder, "config", None), "model_type", None) not in KINDS:
        return False
    layer = encoder.get_input_embeddings()  # type: ignore[union-attr]
    if type(layer) is not nn.Embedding or module.adapted or not layer.weight.requires_grad:
        return False
    owners = [part for part in module.modules() if layer.weight in set(part.parameters(False))]
    plain = layer.max_norm is None and not layer.sparse and not layer.scale_grad_by_freq
    return owners == [layer] and plain and layer.weight.numel() >= LEAST


def compact_words(net: Any, dataset: Any) -> CompactWords | None:
    """The rows that `dataset` uses, in the table's place, where AdamW can leave out all others.

    Not on a GPU, which moves the whole table in no time, and not under callbacks, which may look
    at it.
    """
    plain = net.optimizer is torch.optim.AdamW and not net.get_params_for("optimizer")
    on_cpu = torch.device(net.device).type == "cpu"
    kept = net.callbacks or net.keep_optimizer  # which would see or keep what is no table
    if not on_cpu or not plain or kept or not can_be_compact(net.module_):
        return None
    words = CompactWords(net.module_, dataset.windows, net.padder.pad_id)
    if not words.pays:
        return None
    words.take_place()
    return words


class CompactWords:
    """The rows of a word table that some texts use, in place of the table while they train.

    Rows without a gradient have zero moments in AdamW, which therefore does nothing to them but
    decay. That is done once at the end, with the product of all factors: the weights end where
    they would, to rounding, without moving the whole table in every step.

    Parameters
    ----------
    module : EncoderModule
    windows : Windows
        Of the training data.
    pad_id : int
        Keeps its place, as architectures compare ids with it.
    """

    def __init__(self, module: Any, windows: Windows[Any], pad_id: int) -> None:
        self.layer: Any = module.encoder.get_input_embeddings()
        self.table = self.layer.weight
        used = np.union1d(np.unique(windows.columns["input_ids"].values), [pad_id])
        # The padding's row goes to the padding's id.
        place = int(np.flatnonzero(used == pad_id)[0])
        self.pays = pad_id < len(used) < 0.75 * len(self.table)
        if not self.pays:
            return
        used[place], used[pad_id] = used[pad_id], used[place]
        self.used = torch.from_numpy(used)
        self.places = torch.zeros(len(self.table), dtype=torch.long)
        self.places[self.used] = torch.arange(len(used))
        self.rows = nn.Parameter(self.table.detach()[self.used].clone())
        self.factor = 1.0

    def take_place(self) -> None:
        """Let the module see the rows only."""
        self.layer.weight = self.rows

    def step_aside(self) -> None:
        """Write the rows back, and let the module see the table again."""
        with torch.no_grad():
            if self.factor != 1.0:
                self.table.mul_(self.factor)
            self.table.index_copy_(0, self.used, self.rows)
        self.factor = 1.0
        self.layer.weight = self.table

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """The table, for texts with other words."""
        self.step_aside()
        try:
            yield
        finally:
            self.take_place()

    def note_update(self, optimizer: torch.optim.Optimizer) -> None:
        """What the update just made would have done to all other rows."""
        for group in optimizer.param_groups:
            if any(p is self.rows for p in group["params"]):
                self.factor *= 1 - float(group["lr"]) * group["weight_decay"]
