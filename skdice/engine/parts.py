"""Parts of an encoder that are not torch's or transformers' own: attention, a last layer.

Attention is for batches without padding, and for masks that a GPU does not wait for.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from skdice._compat import attention_of

UNPADDED = "skdice_sdpa"  # torch's attention, with or without `Groups`


class Float32Linear(nn.Linear):
    """A layer that computes in float32 also under autocast.

    Logits in 16 bits have many ties, which spoil thresholds and rankings.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """As in `torch.nn.Linear`."""
        if not torch.is_autocast_enabled(input.device.type):
            return super().forward(input)
        with torch.autocast(input.device.type, enabled=False):
            return super().forward(input.to(self.weight.dtype))


# ---- attention


def settle_attention(module: object, device: str, *, grouped: bool = False) -> None:
    """Choose the encoder's attention: `UNPADDED` for grouped batches and off the CPU, else torch's.

    Transformers leaves a mask out that hides nothing. To know, it looks at values on the device,
    and a GPU must finish all it was given before anybody can look. `UNPADDED` always masks. On a
    CPU looking costs nothing.

    Parameters
    ----------
    module : torch.nn.Module
        One without an ``encoder``, or whose encoder attends in another way, stays as it is.
    device : str
    grouped : bool, default=False
        Whether the next batch is `Grouped`.
    """
    encoder: Any = getattr(module, "encoder", None)
    implementation = attention_of(encoder)
    if implementation not in ("sdpa", UNPADDED):
        return
    wanted = UNPADDED if grouped or torch.device(device).type != "cpu" else "sdpa"
    if wanted == UNPADDED:
        from transformers import AttentionInterface, AttentionMaskInterface

        AttentionInterface.register(UNPADDED, _attention)
        AttentionMaskInterface.register(UNPADDED, _mask)
    if implementation != wanted:
        encoder.set_attn_implementation(wanted)


def _attention(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    groups: Any = None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Attention within each row; queries, keys and values are (1, heads, n_subwords, size)."""
    if groups is None:
        from transformers import AttentionInterface

        kwargs |= {"dropout": dropout, "scaling": scaling}
        attention: Any = AttentionInterface()["sdpa"]
        return attention(module, query, key, value, attention_mask, **kwargs)
    # One row of each head after the other, so that matrix products find their factors in one piece.
    heads = query.shape[1]
    parts = [groups.pad(part[0].transpose(0, 1)) for part in (query, key, value)]
    seen = []
    for q, k, v, mask in zip(*parts, groups.masks, strict=True):
        shown = None if mask is None else mask[:, None, None]
        seen.append(F.scaled_dot_product_attention(q, k, v, shown, dropout, scale=scaling))
    return groups.join(seen, heads)[None], None


def _mask(*args: Any, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> Any:
    from transformers import AttentionMaskInterface

    if attention_mask is not None:
        kwargs.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    return AttentionMaskInterface()["sdpa"](*args, attention_mask=attention_mask, **kwargs)
