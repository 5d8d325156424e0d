"""What each architecture needs in order to be run without padding: one table by ``model_type``.

An architecture that is not here is padded, and always right. A line is added after the tests of
rows and groups, which know all that are here, have passed for it. Its heads for tags and answers
are layers that follow each other on every position, which a test knows, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from skdice._compat import attention_of
from skdice._types import Config, Encoder
from skdice.engine.parts import UNPADDED

# From what each subword sees, (n_rows, length, length), and the configuration, to the keywords in
# which an encoder takes that.
Mask = Callable[[torch.Tensor, Config], dict[str, Any]]


def of_heads(seen: torch.Tensor, config: Config) -> dict[str, Any]:
    """With a dimension for heads."""
    return {"attention_mask": seen[:, None]}


def of_the_past(seen: torch.Tensor, config: Config) -> dict[str, Any]:
    """The same in a decoder, where nothing is seen that comes later."""
    return of_heads(seen.tril(), config)


def as_numbers(seen: torch.Tensor, config: Config) -> dict[str, Any]:
    """As numbers to add to scores."""
    zeros = torch.zeros_like(seen, dtype=torch.float32)
    return of_heads(zeros.masked_fill(~seen, torch.finfo(torch.float32).min), config)


def of_layers(seen: torch.Tensor, config: Config) -> dict[str, Any]:
    """For layers that see everything, and for those that see a window only."""
    place = torch.arange(seen.shape[-1], device=seen.device)
    near = (place[:, None] - place).abs() <= config.sliding_window
    masks = {"full_attention": seen[:, None], "sliding_attention": (seen & near)[:, None]}
    return {"attention_mask": masks}


def of_xlnet(seen: torch.Tensor, config: Config) -> dict[str, Any]:
    """As XLNet, which is told what not to see."""
    return {"perm_mask": (~seen).float()}


@dataclass(frozen=True)
class Architecture:
    """What an encoder takes.

    Parameters
    ----------
    mask : callable or None, default=None
        The form of a mask in which each sentence of a row sees itself only; None where rows hold
        one sentence.
    first : int or None, default=0
        The position id of a sentence's first subword; None where the encoder takes no such ids.
    after_padding : bool, default=False
        Position ids are counted from the padding's id on: `first` is added to that.
    grouped : bool, default=False
        Whether its layers treat each subword alone, but for torch's attention.
    of_torch : bool, default=True
        Whether its mask is for torch's attention, and so for no other that a user may choose.
    summary_last : bool, default=False
        Whether the token that stands for a text is its last, and padding comes first.
    """

    mask: Mask | None = None
    first: int | None = 0
    after_padding: bool = False
    grouped: bool = False
    of_torch: bool = True
    summary_last: bool = False


_BERT = Architecture(of_heads, grouped=True)
_ROBERTA = replace(_BERT, first=1, after_padding=True)
_DEBERTA = Architecture(of_heads, of_torch=False)
ARCHITECTURES = {
    "albert": Architecture(of_heads),
    "bert": _BERT,
    "camembert": _ROBERTA,
    "deberta": _DEBERTA,
    "deberta-v2": _DEBERTA,
    "distilbert": _BERT,
    "electra": _BERT,
    "gpt2": Architecture(of_the_past),
    "modernbert": Architecture(of_layers),
    "mpnet": Architecture(as_numbers, first=1, after_padding=True, of_torch=False),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "xlnet": Architecture(of_xlnet, first=None, of_torch=False, summary_last=True),
}


def architecture_of(encoder: Encoder) -> Architecture:
    """The line of an encoder's table, with the position id of its first subword."""
    config = getattr(encoder, "config", None)
    found = ARCHITECTURES.get(getattr(config, "model_type", ""), Architecture())
    if found.after_padding and found.first is not None:
        return replace(found, first=found.first + config.pad_token_id, after_padding=False)  # type: ignore[union-attr]
    return found


def packable(module: Any) -> Architecture:
    """What a module's encoder takes, where its head, its attention and its settings allow it."""
    encoder = module.encoder
    found = architecture_of(encoder)
    of_another = found.of_torch and attention_of(encoder) not in ("sdpa", UNPADDED)
    whole = getattr(module, "steps", None) == () and not module.of_texts  # a head over all places
    if of_another or whole or getattr(encoder.config, "is_decoder", False):
        return replace(found, mask=None, grouped=False)
    return found


def mask_no_embeddings(encoder: Encoder) -> None:
    """Let DeBERTa's embeddings, which zero what is padded, do without a mask that is a table."""
    layer = getattr(encoder, "embeddings", None)
    if layer is not None and "mask" in inspect.signature(layer.forward).parameters:
        layer.register_forward_pre_hook(_without_table, with_kwargs=True)


def _without_table(layer: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    mask = kwargs.get("mask")
    return args, kwargs | {"mask": None} if mask is not None and mask.ndim > 2 else kwargs
