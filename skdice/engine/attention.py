"""Attention masks that nobody waits for."""

from __future__ import annotations

from typing import Any

import torch

from skdice._compat import attention_of

__all__ = ["settle_attention"]

UNSEEN = "skdice_sdpa"  # torch's attention, masked whatever the mask holds


def settle_attention(module: Any, device: str) -> None:
    """Off the CPU, let the encoder mask padding without asking whether there is any.

    Transformers leaves a mask out that hides nothing. To know, it looks at values on the device,
    and a GPU must finish all it was given before anybody can look. On a CPU it costs nothing.

    Parameters
    ----------
    module : torch.nn.Module
        One without an ``encoder``, or whose encoder attends in another way, stays as it is.
    device : str
    """
    encoder: Any = dict(module.named_children()).get("encoder")
    if encoder is None:
        return
    found = attention_of(encoder)
    wanted = "sdpa" if torch.device(device).type == "cpu" else UNSEEN
    if found == wanted or found not in ("sdpa", UNSEEN):
        return
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(UNSEEN, AttentionInterface()["sdpa"])
    AttentionMaskInterface.register(UNSEEN, _mask)
    encoder.set_attn_implementation(wanted)


def _mask(*args: Any, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> Any:
    from transformers import AttentionMaskInterface

    if attention_mask is not None:
        kwargs.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    return AttentionMaskInterface()["sdpa"](*args, attention_mask=attention_mask, **kwargs)
