"""An encoder with a linear head that predicts at chosen subwords or from a pooled vector."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from skdice.backbones import embedding_modules, encoder_layers

__all__ = ["EncoderWithHead", "freeze", "parameter_groups", "pool"]


def pool(hidden: torch.Tensor, mask: torch.Tensor, how: str, cls_last: bool) -> torch.Tensor:
    """Pool hidden states `(N, L, H)` under `mask` `(N, L)` to `(N, H)`: cls, mean or max."""
    if how == "cls":
        # XLNet pads on the left and puts <cls> last; the others put it first.
        return hidden[:, -1] if cls_last else hidden[:, 0]
    weights = mask.unsqueeze(-1)
    if how == "max":
        return hidden.masked_fill(weights == 0, torch.finfo(hidden.dtype).min).amax(dim=1)
    weights = weights.to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


class EncoderWithHead(nn.Module):
    """`encoder` -> dropout -> linear head.

    Parameters
    ----------
    encoder : transformers.PreTrainedModel
    n_outputs : int
        Logits for each prediction.
    dropout : float
        Dropout before the head.
    pooling : {"cls", "mean", "max"} or None
        How a text becomes one vector; None predicts at `positions` instead.
    cls_last : bool
        Whether the encoder's summary token is the last one.
    """

    def __init__(
        self,
        encoder: Any,
        n_outputs: int,
        dropout: float = 0.1,
        pooling: str | None = None,
        cls_last: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(encoder.config.hidden_size, n_outputs)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        self.pooling = pooling
        self.cls_last = cls_last
        self.frozen: list[str] = []

    def train(self, mode: bool = True) -> EncoderWithHead:
        """Frozen parts stay in evaluation mode: dropout there would only be noise."""
        super().train(mode)
        for name in self.frozen:
            self.get_submodule(name).eval()
        return self

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        positions: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits of shape (n_positions, n_outputs), or (n_texts, n_outputs) when pooling."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        hidden = self.encoder(**inputs).last_hidden_state
        if self.pooling is not None:
            vectors = pool(hidden, attention_mask, self.pooling, self.cls_last)
        else:
            assert positions is not None
            vectors = hidden.flatten(0, 1).index_select(0, positions)
        return self.head(self.dropout(vectors))


def freeze(module: EncoderWithHead, frozen: str | int) -> None:
    """Switch off gradients of the embeddings, of the lowest layers, or of the whole encoder.

    All others are switched on.

    Parameters
    ----------
    module : EncoderWithHead
    frozen : {"none", "embeddings", "encoder"} or int
        An int freezes the embeddings and that many of the lowest layers.

    Raises
    ------
    ValueError
        If the encoder has fewer layers than asked for, or none that can be told apart.
    """
    module.requires_grad_(True)
    module.frozen = []
    if frozen == "none":
        return
    parts: list[nn.Module]
    if frozen == "encoder":
        parts = [module.encoder]
    else:
        parts = embedding_modules(module.encoder)
        if count := 0 if frozen == "embeddings" else int(frozen):
            layers = encoder_layers(module.encoder)
            if count > len(layers):
                raise ValueError(
                    f"frozen={frozen} asks for more layers than the backbone's {len(layers)}: use "
                    "a smaller number, or frozen='encoder'"
                )
            parts += layers[:count]
    wanted = {id(part) for part in parts}
    module.frozen = [name for name, part in module.named_modules() if id(part) in wanted]
    for part in parts:
        part.requires_grad_(False)


def parameter_groups(
    module: nn.Module,
    weight_decay: float | None,
    patterns: Sequence[tuple[str, dict[str, Any]]] = (),
) -> list[dict[str, Any]]:
    """Trainable parameters in groups; biases and normalisation weights are not decayed.

    Parameters
    ----------
    module : torch.nn.Module
    weight_decay : float or None
        Of weight matrices; None leaves it to the optimiser, for all parameters.
    patterns : list of (str, dict), default=()
        Settings of the parameters whose names match, by the first pattern that does. With a
        ``weight_decay`` among them all of these are decayed.

    Returns
    -------
    list of dict
        What no pattern matches comes first.

    Raises
    ------
    ValueError
        If a pattern matches no parameter of `module`.
    """
    names = [name for name, _ in module.named_parameters()]
    left = {name: p for name, p in module.named_parameters() if p.requires_grad}
    for pattern, _ in patterns:
        if not fnmatch.filter(names, pattern):
            raise ValueError(
                f"net_params: optimizer__param_groups has {pattern!r}, which matches no parameter: "
                f"their names are such as {names[0]!r} and {names[-1]!r}"
            )
    groups: list[dict[str, Any]] = []
    for pattern, settings in [*patterns, ("*", {})]:
        chosen = [left.pop(name) for name in fnmatch.filter(left, pattern)]
        if weight_decay is None or "weight_decay" in settings:
            found = [{"params": chosen, **settings}]
        else:
            # Vectors are biases and normalisation weights, whatever an architecture calls them.
            decayed = [p for p in chosen if p.ndim >= 2]
            spared = [p for p in chosen if p.ndim < 2]
            found = [
                {"params": decayed, "weight_decay": weight_decay, **settings},
                {"params": spared, "weight_decay": 0.0, **settings},
            ]
        groups = found + groups
    return [group for group in groups if group["params"]]
