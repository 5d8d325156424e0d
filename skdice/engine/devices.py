"""Devices: which one, in which precision, and their random generators."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import torch

from skdice._lock import PROCESS

# Casts cost some of what faster products save.
BF16_FROM = 1.2
_told_of_load: list[bool] = []  # once in a process


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


def tell_of_load(device: str) -> None:
    """Print, once in a process, what to set where a CPU has more to do than it has cores.

    Threads that wait for each other then keep the cores from those that work. It is a line and no
    warning, as it tells of other processes, which must not fail a test suite.
    """
    waits = torch.get_num_threads() > 1 and os.environ.get("OMP_WAIT_POLICY", "") != "passive"
    if _told_of_load or not waits or torch.device(device).type != "cpu":
        return
    if not hasattr(os, "getloadavg"):  # on Windows
        return
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores:
        _told_of_load.append(True)
        print(
            f"this machine's load is {load:.1f} on {cores} cores, where threads that wait slow a "
            "fit down many times: set OMP_WAIT_POLICY=passive, or OMP_NUM_THREADS=1, before Python "
            "starts",
            flush=True,
        )


def check_device(device: str) -> str:
    """The kind of `device` (``"cpu"``, ``"cuda"``, ``"mps"``); refuses what is not there."""
    try:
        parsed = torch.device(resolve_device(device))
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a torch device: use 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'"
        ) from error
    if parsed.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} asks for CUDA, and there is none: use 'auto'")
    if parsed.type == "cuda" and (parsed.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={device!r} asks for GPU {parsed.index}, and they are numbered from 0 to "
            f"{torch.cuda.device_count() - 1}: use one of these, or 'auto'"
        )
    return parsed.type


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


def is_gpu(device: str) -> bool:
    """Return True if it is a card, which should be told ahead what to do, in shapes that recur."""
    return str(device).startswith("cuda")


def has_bf16(device: str) -> bool:
    """Return True if it is a GPU that computes in bfloat16, and not by way of float32."""
    return str(device).startswith("cuda") and torch.cuda.is_bf16_supported(
        including_emulation=False
    )


@cache
def bf16_gain() -> float:
    """How many times faster this CPU multiplies matrices in bfloat16 than in float32.

    Flags do not tell: AVX512-BF16 without AMX is slower than float32 on some processors. One
    product of an encoder's size runs in both types, in turns; each counts with its best time.
    Measured once a process, in some 10 ms.
    """
    best = {torch.float32: math.inf, torch.bfloat16: math.inf}
    with torch.inference_mode():
        # Random numbers would move the generator of the user; any number takes the same time.
        pairs = {t: (torch.ones(128, 384, dtype=t), torch.ones(384, 1536, dtype=t)) for t in best}
        started = time.perf_counter()
        for turn in range(8):
            for kind, (a, b) in pairs.items():
                begin = time.perf_counter()
                a @ b
                end = time.perf_counter()
                if turn:  # the first one also sets kernels up
                    best[kind] = min(best[kind], end - begin)
            if turn and end - started > 0.008:
                break
    return best[torch.float32] / best[torch.bfloat16]


def gains_by_bf16() -> bool:
    """Return True if training on this CPU should multiply in bfloat16."""
    return bf16_gain() >= BF16_FROM


def tell_of_precision(bf16: bool, *, measured: bool) -> None:
    """Print what training on a CPU multiplies in, and why."""
    why = "a small model does not gain by bfloat16"
    if measured:
        why = f"this processor multiplies bfloat16 at {bf16_gain():.2f} times the speed of float32"
        if bf16 != gains_by_bf16():
            why += ", and the checkpoint was trained so"
    print(f"precision='auto' trains in {'bf16' if bf16 else 'fp32'}: {why}", flush=True)


class FitRandomState:
    """The random numbers of one fit, apart from those of the process.

    Dropout of skdice's own takes a generator, so such fits run in any number of threads at once.
    Other code draws from the generators of torch, of which a process has one for each device. They
    are lent to one thread at a time, and the caller finds them as they were.

    Parameters
    ----------
    seed : int
    device : str
    """

    def __init__(self, seed: int, device: str) -> None:
        where = torch.device(device)
        self.others = [where] if where.type in ("cuda", "mps") else []  # beside the CPU
        self.of_fit = [torch.Generator(d) for d in (torch.device("cpu"), *self.others)]
        self.live: Sequence[Any] = self.of_fit
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begin anew."""
        for generator in self.of_fit:
            generator.manual_seed(seed)

    def states(self) -> list[torch.Tensor]:
        """Return the states of the random generators, on the CPU and on the device."""
        return [generator.get_state() for generator in self.live]

    def set_states(self, states: Sequence[torch.Tensor]) -> None:
        """Go on from there."""
        for generator, state in zip(self.live, states, strict=True):
            generator.set_state(state)

    @contextlib.contextmanager
    def used(self, *, torch_draws: bool) -> Iterator[None]:
        """Draw from here in this thread; with `torch_draws` also where torch takes no generator.

        That is so in every step on a device other than the CPU.
        """
        torch_draws = torch_draws or bool(self.others)
        before = generator_of_fit()
        _thread.generator = None if torch_draws else self.of_fit[0]
        try:
            with self._lent_to_torch() if torch_draws else contextlib.nullcontext():
                yield
        finally:
            _thread.generator = before

    @contextlib.contextmanager
    def _lent_to_torch(self) -> Iterator[None]:
        kind = self.others[0].type if self.others else "cuda"
        with PROCESS, torch.random.fork_rng(self.others, device_type=kind):
            states = self.states()
            self.live = [torch.default_generator, *map(_OfTorch, self.others)]
            try:
                self.set_states(states)
                yield
            finally:
                states, self.live = self.states(), self.of_fit
                self.set_states(states)


class _OfTorch:
    """The generator that torch has for a device other than the CPU."""

    def __init__(self, device: torch.device) -> None:
        functions = torch.get_device_module(device)
        self.get_state = partial(functions.get_rng_state, device)
        self.set_state = partial(functions.set_rng_state, device=device)


_thread = threading.local()


def generator_of_fit() -> torch.Generator | None:
    """Return the generator of dropout on a CPU in this thread; None is torch's global one."""
    return getattr(_thread, "generator", None)


def seeded(seed: int, device: str) -> contextlib.AbstractContextManager[None]:
    """Seed torch inside the block and give the caller's generators back as they were.

    Other threads of skdice wait meanwhile if they need torch's generators, so blocks are short.
    """
    return FitRandomState(seed, device).used(torch_draws=True)


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
    if str(device).startswith("cuda") and values.device.type == "cpu":
        return values.pin_memory().to(device, non_blocking=True)
    return values.to(device)
