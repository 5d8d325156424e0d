"""Logits, targets and weights of every shape, checked and brought into one form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from skdice._checks import shown
from skdice.losses._ranks import n_ranks
from skdice.losses.inputs import LossInputs, is_true


def read_inputs(
    loss: Any,
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    mask: Tensor | None = None,
) -> LossInputs:
    """Logits and target of any allowed shape in one form; `Loss` lists the shapes and errors."""
    for name, tensor in (("logits", logits), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}: give a torch.Tensor")
        _check_dense(name, tensor)
    if target.device != logits.device:
        problem = f"target is on {target.device} and logits are on {logits.device}"
        raise ValueError(f"{problem}: give target.to(logits.device)")
    wrong = ValueError(
        f"logits of shape {tuple(logits.shape)} and target of shape {tuple(target.shape)} and "
        f"{target.dtype} do not fit: give (N,) and 0/1 (N,); (N, C) and integers "
        "(N,) or floats as distributions (N, C); (N, L, C) and integers (N, L); or with "
        "multilabel=True (N, C) and 0/1 (N, C)"
    )
    if not logits.is_floating_point():
        raise ValueError(f"logits have dtype {logits.dtype}: they must be floating point")
    if logits.ndim == 0 or (logits.ndim > 1 and logits.shape[-1] == 0) or target.is_complex():
        raise wrong
    shape, n_classes, is_float = tuple(target.shape), logits.shape[-1], target.is_floating_point()
    indices = distributions = False
    if loss.is_multilabel:
        kind, fits = "multilabel", logits.shape == target.shape and logits.ndim > 1
    elif logits.ndim == 1 or n_classes == 1:
        kind, n_classes = "binary", 1
        fits = target.numel() == logits.numel() and target.shape[:1] == logits.shape[:1]
    else:
        kind, indices, distributions = "multiclass", not is_float, is_float
        fits = shape == (logits.shape if is_float else logits.shape[:-1])
        shape = tuple(logits.shape[:-1])
    if not fits:
        raise wrong
    z = logits.to(torch.promote_types(logits.dtype, torch.float32)).reshape(-1, n_classes)
    values = (target if is_float else target.long()).reshape(-1, 1 if indices else n_classes)
    valid = torch.ones_like(z[:, :1], dtype=torch.bool)
    if not distributions:
        valid = values != loss.ignore_index
    like = valid if kind == "multilabel" else valid[:, 0]
    if mask is not None:
        valid = valid & (_like(mask, "mask", like, shape) != 0).reshape(valid.shape)
    _check_target(values, valid, n_classes - 1 if indices else 1, distributions, loss.ignore_index)
    # Positions that do not count get some legal target; their weight is 0.
    values = torch.where(valid, values, torch.zeros_like(values))
    weight = valid.to(z.dtype)
    if sample_weight is not None:
        weights = _like(sample_weight, "sample_weight", like, shape).to(z.dtype)
        weights = weights.reshape(weight.shape)
        if is_true(torch.any, valid & ~((weights >= 0) & torch.isfinite(weights))):
            raise ValueError("sample_weight holds a negative, infinite or NaN value")
        weight = torch.where(valid, weights, torch.zeros_like(weights))
    # A weight of 0 must also stop NaN or infinite logits of padding.
    counts = weight > 0
    all_count = is_true(torch.all, counts)
    if not all_count:
        z = z.masked_fill(~counts, 0.0)
    given_weight = None if all_count and sample_weight is None and len(z) > 0 else weight
    encoded, index = (None, values[:, 0]) if indices else (values.to(z.dtype), None)
    ranks = n_ranks(loss.all_ranks)
    return LossInputs(kind, z, encoded, index, given_weight, shape, loss.reduction, ranks)


def _check_dense(name: str, tensor: Tensor) -> None:
    """Refuse tensors that are not plain numbers in one block of memory."""
    if tensor.is_nested:
        raise TypeError(f"{name} is a nested tensor: give a padded one, and a mask")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name} is a tensor of layout {tensor.layout}: give {name}.to_dense()")
    if tensor.is_quantized or (tensor.is_floating_point() and tensor.dtype.itemsize < 2):
        way_out = "dequantize()" if tensor.is_quantized else "float()"
        raise TypeError(f"{name} has dtype {tensor.dtype}: give {name}.{way_out}")


def _like(values: Tensor, name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A mask or weights in the shape of `like`; the target's own shape is `shape`."""
    try:
        values = torch.as_tensor(values, device=like.device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{name}={shown(values)} must be a tensor of numbers") from None
    _check_dense(name, values)
    if values.is_complex():
        raise TypeError(f"{name} holds complex numbers: give real ones")
    # (N, 1) is taken as (N,); a transposed array is refused.
    if [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
        return values.reshape(like.shape)
    if tuple(values.shape) == shape[: values.ndim]:
        spread = values.reshape(*values.shape, *[1] * (len(shape) - values.ndim)).expand(shape)
        return spread.reshape(like.shape)
    raise ValueError(
        f"{name} has shape {tuple(values.shape)}, but the target's is {shape}: give one value "
        "for each element, or one for each example"
    )


def _check_target(
    values: Tensor, valid: Tensor, top: int, distributions: bool, ignore_index: int
) -> None:
    wrong = valid & ~((values >= 0) & (values <= top))
    if is_true(torch.any, wrong):
        value = values[wrong][0].item()
        raise ValueError(
            f"target holds {value!r}: it must be from 0 to {top}, or ignore_index={ignore_index}"
        )
    if distributions:
        total = values.sum(-1, keepdim=True)
        wrong = valid & ((total - 1).abs() > 0.02)  # bfloat16 keeps two to three digits
        if is_true(torch.any, wrong):
            raise ValueError(
                f"target has a row that sums to {total[wrong][0].item():.4g}: distributions "
                "over classes sum to 1; for 0/1 rows of independent labels give "
                "multilabel=True"
            )
