"""Devices: which one, in which precision, and their random generators."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import zlib
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import torch

__all__ = [
    "autocast",
    "autocast_dtype",
    "cpu_gains_by_bf16",
    "has_bf16",
    "random_state",
    "resolve_device",
    "seed_generators",
    "seeded",
    "set_random_state",
    "to_device",
]


def resolve_device(device: str) -> str:
    """``"auto"`` is CUDA, then Apple's MPS, then the CPU.

    Of several GPUs it is the one that a launcher gave this process, or else one that the fewest
    other processes of this user took.
    """
    if device != "auto":
        return device
    launched = os.environ.get("LOCAL_RANK")
    if not torch.cuda.is_available():
        # Processes that train one model together cannot add up on MPS.
        return "mps" if torch.backends.mps.is_available() and launched is None else "cpu"
    n = torch.cuda.device_count()
    if launched is not None:
        return f"cuda:{int(launched) % n}"
    return "cuda" if n == 1 else f"cuda:{_own_gpu(os.getpid(), n)}"


@cache
def _own_gpu(process: int, n_gpus: int) -> int:
    """Take a GPU until this process ends, by a lock on a file: one each, then a second on each."""
    with contextlib.suppress(ImportError):  # Windows has no fcntl
        import fcntl

        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").encode()
        name = f"skdice-{os.getuid()}-gpu-{zlib.crc32(visible):x}"
        for place in range(16 * n_gpus):
            path = os.path.join(tempfile.gettempdir(), f"{name}-{place}.lock")
            with contextlib.suppress(OSError):
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(handle)
                else:
                    return place % n_gpus
    return process % n_gpus


def has_bf16(device: str) -> bool:
    """Whether it is a GPU that computes in bfloat16, and not by way of float32."""
    return str(device).startswith("cuda") and torch.cuda.is_bf16_supported(
        including_emulation=False
    )


@cache
def cpu_gains_by_bf16() -> bool:
    """Whether the processor computes in bfloat16, and clearly faster than in float32.

    Looked up and tried once a process, on one matrix product (some ms).
    """
    look_up = getattr(torch.cpu, "get_capabilities", None)  # of torch 2.12
    found = look_up() if look_up is not None else {}
    if not (found.get("avx512_bf16") or found.get("amx_bf16") or found.get("bf16")):
        return False
    seconds = []
    threads = torch.get_num_threads()
    # On one thread: several wait for each other on a busy machine, and the same seed must give the
    # same weights there.
    torch.set_num_threads(1)
    try:
        for dtype in (torch.float32, torch.bfloat16):
            a, b = torch.ones(512, 384, dtype=dtype), torch.ones(384, 1536, dtype=dtype)
            times = []
            for _ in range(7):
                start = time.perf_counter()
                a @ b
                times.append(time.perf_counter() - start)
            seconds.append(min(times))
    finally:
        torch.set_num_threads(threads)
    return seconds[0] > 1.3 * seconds[1]


@contextlib.contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch inside the block and give the caller's generators back as they were."""
    states = {d: random_state(d) for d in {torch.device("cpu"), torch.device(device)}}
    try:
        seed_generators(seed, device)
        yield
    finally:
        for d, state in states.items():
            set_random_state(d, state)


def seed_generators(seed: int, device: str) -> None:
    """Seed those of the CPU and of the device; torch.manual_seed seeds all devices there are."""
    where = torch.device(device)
    torch.default_generator.manual_seed(seed)
    if where.type == "cuda":
        with torch.cuda.device(where):
            torch.cuda.manual_seed(seed)
    elif where.type == "mps":
        torch.mps.manual_seed(seed)


def autocast_dtype(precision: str, device: str) -> torch.dtype | None:
    """The type that matrix products run in; None is float32.

    Parameters
    ----------
    precision : {"auto", "fp32", "fp16", "bf16"}
        Auto is a 16-bit type on CUDA and float32 elsewhere; a net may know better.
    device : str
    """
    if precision == "bf16":
        return torch.bfloat16
    if precision == "fp16":
        return torch.float16
    if precision == "auto" and str(device).startswith("cuda"):
        return torch.bfloat16 if has_bf16(device) else torch.float16
    return None


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
    if str(device).startswith("cuda"):
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)


def random_state(device: torch.device) -> Any:
    """Where the device's random generator stands."""
    if device.type == "mps":
        return torch.mps.get_rng_state()
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_random_state(device: torch.device, state: Any) -> None:
    """Put it back there."""
    if device.type == "mps":
        torch.mps.set_rng_state(state)
    elif device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
