"""One model trained by several processes, which torchrun or ``accelerate launch`` started.

Each takes its part of the rows of an update. Their gradients are averaged before anything is done
with them, so that all processes make the same update.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, distributed, nn

from skdice._digest import digest

# The number of the process that the launcher's variables are for. Workers of joblib, Dask and
# multiprocessing inherit them with this one, and so know that they are others.
OWNER = "SKDICE_RANK_OWNER"


def n_processes() -> int:
    """Processes that a launcher started to train together; 1 where there was none."""
    own = str(os.getpid())
    if "RANK" not in os.environ or os.environ.setdefault(OWNER, own) != own:
        return 1
    return int(os.environ.get("WORLD_SIZE", 1))


n_processes()  # before this process starts workers


def rank() -> int:
    """The number of this process among them, from 0."""
    return int(os.environ["RANK"]) if n_processes() > 1 else 0


def join() -> int:
    """Wait for the other processes, if that has not been done; how many train together."""
    n = n_processes()
    if n > 1 and not distributed.is_initialized():
        if torch.cuda.is_available():  # "cuda" without a number is then this process's own
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        distributed.init_process_group()
        atexit.register(_leave)
    return n


def _leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()


def share(value: Any) -> Any:
    """The first process's value, in every process."""
    if join() == 1:
        return value
    held = [value]
    distributed.broadcast_object_list(held, src=0)
    return held[0]


def start(module: nn.Module, targets: object) -> None:
    """Let all processes begin with the first one's weights.

    Raises
    ------
    ValueError
        If they have different training data.
    """
    if (n := join()) == 1:
        return
    digests: list[Any] = [None] * n
    distributed.all_gather_object(digests, digest(targets))
    if len(set(digests)) > 1:
        raise ValueError(
            f"the {n} processes that train this model have different training data: give fit the "
            "same in each, as each trains on its part of every batch"
        )
    with torch.no_grad():
        for tensor in module.state_dict().values():
            held = tensor.contiguous()
            distributed.broadcast(held, src=0)
            tensor.copy_(held)


def rows_of_rank(rows: np.ndarray) -> tuple[np.ndarray, bool]:
    """The rows of an update that this process trains on, and whether they count.

    Where none is left for it, it gets one that does not: all take part in the losses' sums.
    """
    n = n_processes()
    part = rows if n == 1 else np.array_split(rows, n)[rank()]
    return (part, True) if len(part) else (rows[:1], False)


def weightless(update: Any) -> Any:
    """The same update with weights of 0."""
    return replace(update, weight=torch.zeros(len(update.target)))


def average(values: Sequence[Tensor]) -> None:
    """Put the mean over all processes in the place of each value."""
    flat = torch.cat([value.reshape(-1) for value in values])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    parts = flat.split([value.numel() for value in values])
    for value, part in zip(values, parts, strict=True):
        value.copy_(part.view_as(value))


def check_alone(what: str) -> None:
    """Refuse to train many models where many processes were started for one."""
    if (n := n_processes()) > 1:
        raise RuntimeError(
            f"{what} trains many models, and {n} processes were launched to train one together: "
            "start it without torchrun or accelerate, with n_jobs= or as several processes of one "
            "study (storage=)"
        )
