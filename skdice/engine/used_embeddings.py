"""Training without the rows of the word table that no text of the data uses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from skdice.text.encoding import Windows

# Smaller tables are not worth it.
LEAST = 1_000_000
# Architectures that use the ids of tokens for nothing but their vectors, and to know the padding.
KINDS = (
    *("albert", "bert", "camembert", "deberta-v2", "distilbert", "electra", "modernbert"),
    *("mpnet", "roberta", "xlm-roberta", "xlnet"),
)


def has_separable_embeddings(module: Any) -> bool:
    """Return True if the encoder's word table can be trained in part."""
    encoder = getattr(module, "encoder", None)
    if getattr(getattr(encoder, "config", None), "model_type", None) not in KINDS:
        return False
    layer = encoder.get_input_embeddings()  # type: ignore[union-attr]
    if type(layer) is not nn.Embedding or module.adapted or not layer.weight.requires_grad:
        return False
    owners = [part for part in module.modules() if layer.weight in set(part.parameters(False))]
    plain = layer.max_norm is None and not layer.sparse and not layer.scale_grad_by_freq
    return owners == [layer] and plain and layer.weight.numel() >= LEAST


def train_used_embeddings(net: Any, dataset: Any) -> UsedEmbeddings | None:
    """Let `net` train the rows that `dataset` uses only, where AdamW can leave out all others.

    Not on a GPU, which moves the whole table in no time, and not under callbacks, which may look
    at it.
    """
    plain = net.optimizer is torch.optim.AdamW and not net.get_params_for("optimizer")
    on_cpu = torch.device(net.device).type == "cpu"
    seen = net.callbacks or net.keep_optimizer  # which would see or keep what is no table
    if not on_cpu or not plain or seen or not has_separable_embeddings(net.module_):
        return None
    embeddings = UsedEmbeddings(net.module_, dataset.windows, net.padding.token)
    if not embeddings.pays:
        return None
    embeddings.take_place()
    net.initialize_optimizer()
    net.optimizer_.register_step_post_hook(embeddings.note_update)
    return embeddings


class UsedEmbeddings:
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
        self._bring_up_to_date(self.table)
        self.factor = 1.0
        self.layer.weight = self.table

    @torch.no_grad()
    def _bring_up_to_date(self, table: torch.Tensor) -> None:
        if self.factor != 1.0:
            table.mul_(self.factor)
        table.index_copy_(0, self.used, self.rows)

    def complete(self, module: Any) -> None:
        """Give a copy of the module the table of now, without a trace here, not even rounding."""
        layer = module.encoder.get_input_embeddings()
        if layer.weight is self.rows:
            layer.weight = nn.Parameter(self.table.detach().clone(), requires_grad=False)
            self._bring_up_to_date(layer.weight)

    def renumber(self, batches: Any) -> None:
        """Put the places of the rows where batches have the ids of words."""
        for inputs, _, _ in batches:
            for group in inputs:
                group["input_ids"] = self.places[group["input_ids"]]

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """The table, as long as nothing is trained."""
        self.step_aside()
        try:
            yield
        finally:
            self.take_place()

    def note_update(self, optimizer: torch.optim.Optimizer, *args: Any) -> None:
        """Count in what an update does to all other rows."""
        for group in optimizer.param_groups:
            if any(p is self.rows for p in group["params"]):
                self.factor *= 1 - float(group["lr"]) * group["weight_decay"]
