"""Parts of an encoder that are not torch's or transformers' own: attention, dropout, a last layer.

Attention is for batches without padding, and for masks that a GPU does not wait for. Dropout is
drawn faster on a CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from skdice._compat import attention_of
from skdice.engine.devices import generator_of_fit

UNPADDED = "skdice_sdpa"  # torch's attention, with or without `Groups`
STEPS = 2**16  # of a probability of dropout


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


# ---- dropout


class FastDropout(nn.Dropout):
    """As `torch.nn.Dropout`, with 16 random bits for each value on a CPU.

    torch draws at least 64 bits a value there, on one thread: a tenth of a training step of a small
    encoder. The probability is a multiple of 1/65,536, and the scale is exact for it.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """As in `torch.nn.Dropout`."""
        if not self.training or self.inplace or input.device.type != "cpu":
            return super().forward(input)
        return drop(input, self.p)


def drop(values: torch.Tensor, p: float) -> torch.Tensor:
    """Values of the CPU with a share of `p` set to 0, and the others scaled up."""
    dropped = round(p * STEPS)
    if dropped == 0:
        return values
    if dropped == STEPS:
        return values * 0.0
    count = values.numel()
    bits = torch.empty((count + 3) // 4, dtype=torch.int64)
    bits.random_(-(2**63), None, generator=generator_of_fit())
    kept = torch.empty_like(values, memory_format=torch.contiguous_format, requires_grad=False)
    torch.ge(bits.view(torch.int16)[:count], dropped - STEPS // 2, out=kept.view(-1))
    return values * kept.mul_(STEPS / (STEPS - dropped))


def use_fast_dropout(module: nn.Module) -> None:
    """Let every dropout layer of torch's in `module` draw as `FastDropout` does."""
    for part in module.modules():
        if type(part) is nn.Dropout:
            part.__class__ = FastDropout


# ---- attention


def settle_attention(module: Any, device: str, *, grouped: bool = False) -> None:
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
        if dropout and query.device.type == "cpu":
            mixed = _drawn_attention(q, k, v, shown, dropout, scaling)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, shown, dropout, scale=scaling)
        seen.append(mixed)
    return groups.join(seen, heads)[None], None


def _drawn_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    scaling: float | None,
) -> torch.Tensor:
    """Attention as torch computes it on a CPU where there is dropout, with `drop`."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query * scale) @ key.transpose(-1, -2)
    if mask is not None:
        scores += torch.zeros(mask.shape).masked_fill_(~mask, -torch.inf)
    # torch's softmax of 16-bit numbers takes twice the time.
    shares = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    return drop(shares.to(scores.dtype), dropout) @ value


def _mask(*args: Any, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> Any:
    from transformers import AttentionMaskInterface

    if attention_mask is not None:
        kwargs.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
    return AttentionMaskInterface()["sdpa"](*args, attention_mask=attention_mask, **kwargs)
