"""Devices: which one, in which precision, and their random generators."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import torch


def resolve_device(device: str) -> str:
    """``"auto"`` is CUDA, then Apple's MPS, then the CPU.

    Of several GPUs it is the one that a launcher gave this process, or else torch's own choice: the
    first of those that ``CUDA_VISIBLE_DEVICES`` shows.
    """
    if device != "auto":
        return device
    launched = os.environ.get("LOCAL_RANK")
    if not torch.cuda.is_available():
        # Processes that train one model together cannot add up on MPS.
        return "mps" if torch.backends.mps.is_available() and launched is None else "cpu"
    return "cuda" if launched is None else f"cuda:{int(launched) % torch.cuda.device_count()}"


def check_device(device: str) -> str:
    """The kind of `device`, as ``"cuda"``; refuses what is no device, and a GPU without CUDA."""
    try:
        kind = torch.device(resolve_device(device)).type
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a torch device: {error}") from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} asks for CUDA, and there is none: use 'auto'")
    return kind


def is_gpu(device: str) -> bool:
    """Return True if it is a card, which should be told ahead what to do, in shapes that recur."""
    return str(device).startswith("cuda")


def has_bf16(device: str) -> bool:
    """Return True if it is a GPU that computes in bfloat16, and not by way of float32."""
    on_cuda = str(device).startswith("cuda")
    return on_cuda and torch.cuda.is_bf16_supported(including_emulation=False)


@cache
def bf16_gain() -> float:
    """How many times as fast as in float32 this CPU multiplies matrices in bfloat16.

    It is measured, once in a process, in about 10 ms: a processor may have instructions for
    bfloat16 and still be slower by them. The types run in turns, and the best of several times
    counts. They are times of this thread on a processor: other work on the machine takes the
    processor away for longer than a product lasts. 1 where that clock is too coarse (Windows).
    """
    best = dict.fromkeys((torch.float32, torch.bfloat16), float("inf"))
    # Random numbers would move the user's generator; any numbers take the same time.
    pairs = {t: (torch.ones(128, 384, dtype=t), torch.ones(384, 1536, dtype=t)) for t in best}
    with torch.no_grad():
        began = time.thread_time()
        for turn in range(12):
            for kind, (a, b) in pairs.items():
                started = time.thread_time()
                a @ b
                ended = time.thread_time()
                if turn:  # the first also sets kernels up
                    best[kind] = min(best[kind], ended - started)
            if turn > 2 and ended - began > 0.012:
                break
    fp32, bf16 = best.values()
    return fp32 / bf16 if bf16 > 0 else 1.0


def random_states(device: str) -> list[torch.Tensor]:
    """The states of torch's generators for the CPU and for a device."""
    where = torch.device(device)
    found = [torch.get_rng_state()]
    if where.type == "cuda":
        found.append(torch.cuda.get_rng_state(where))
    elif where.type == "mps":
        found.append(torch.mps.get_rng_state())
    return found


def set_random_states(states: Sequence[torch.Tensor], device: str) -> None:
    """Go on from there."""
    where = torch.device(device)
    torch.set_rng_state(states[0])
    if where.type == "cuda":
        torch.cuda.set_rng_state(states[1], where)
    elif where.type == "mps":
        torch.mps.set_rng_state(states[1])


def seed_generators(seed: int, device: str) -> None:
    """Begin anew with the generators of the CPU and of one device."""
    where = torch.device(device)
    kinds = [torch.device("cpu"), *([where] if where.type in ("cuda", "mps") else [])]
    set_random_states([torch.Generator(d).manual_seed(seed).get_state() for d in kinds], device)


@contextlib.contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch inside the block and give the caller's generators back as they were.

    They are those of the process: blocks in two threads at once draw from each other's numbers.
    """
    before = random_states(device)
    seed_generators(seed, device)
    try:
        yield
    finally:
        set_random_states(before, device)


def autocast_dtype(precision: str, device: str) -> torch.dtype | None:
    """The type that matrix products run in; None is float32.

    Parameters
    ----------
    precision : {"auto", "fp32", "fp16", "bf16"}
        Auto is a 16-bit type on CUDA and float32 elsewhere; a net may know better.
    device : str
    """
    if precision == "auto" and str(device).startswith("cuda"):
        return torch.bfloat16 if has_bf16(device) else torch.float16
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


def autocast(precision: str, device: str) -> Any:
    """torch's autocast for `precision` on `device`, or nothing."""
    dtype = autocast_dtype(precision, device)
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=dtype)


def to_device(values: Any, device: str) -> Any:
    """Copy a tensor of the CPU, or what holds some, without holding up the steps that follow."""
    if values is None:
        return None
    if not isinstance(values, torch.Tensor):
        return values.to(partial(to_device, device=device))
    if str(device).startswith("cuda") and values.device.type == "cpu":
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)
