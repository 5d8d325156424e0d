"""Checkpoints, from which an interrupted fit goes on. Each fit has one file, always a whole one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.history import History

from skdice._checks import checked
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.devices import random_states, set_random_states
from skdice.engine.module import put_back, trained_state
from skdice.exceptions import ServingWarning
from skdice.whole_files import replacing

# Of what a checkpoint holds. A fit begins anew where there are checkpoints of another format only.
FORMAT = 4
# What EarlyStopping remembers.
STOP = ("misses_", "dynamic_threshold_", "best_epoch_", "best_model_weights_")


@checked
def make_folder(checkpoint_dir: str | Path) -> None:
    """Make a folder, unless it is there."""
    Path(checkpoint_dir).mkdir(parents=True, exist_ok=True)


class Checkpoints(Callback):
    """Write a fit after each epoch and every so many seconds, and go on from the last checkpoint.

    Where several processes train together, the first of them reads and writes.

    Parameters
    ----------
    folder : Path
        `checkpoint_dir`; several fits may share it.
    identity : str
        A digest of what distinguishes this fit from others: data, parameters, initial weights.
    seconds : float, default=60.0
        Between two checkpoints; 0 writes one after each update.
    """

    def __init__(self, folder: str | Path, identity: str, seconds: float = 60.0) -> None:
        self.folder, self.identity, self.seconds = folder, identity, seconds

    # ---- hooks of skorch; it is the last callback, behind the one that ends a fit early

    def on_train_begin(self, net: NeuralNet, **kwargs: object) -> None:
        """Go on from the last checkpoint, if there is one."""
        self.path_ = Path(self.folder) / f"fit-{self.identity[:16]}.pt"
        self.time_ = time.monotonic()
        state = ranks.share(read(self.path_) if ranks.rank() == 0 else None)
        self.finished_ = state is not None and state["finished"]
        if state is not None:
            _restore(net, state)
        if net.verbose:
            none = "no checkpoint of these data and parameters yet: the fit begins anew"
            done = f"going on after update {net.done_:,}" if state else none
            print("this fit was finished before" if self.finished_ else done, flush=True)

    def on_batch_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Write a checkpoint, if it is time."""
        if time.monotonic() - self.time_ >= self.seconds:
            self._write(net)

    def on_epoch_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Write a checkpoint."""
        self._write(net)

    def on_train_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Write the result, unless the fit was interrupted."""
        if net.has_ended and not self.finished_:
            self._write(net, finished=True)

    def _write(self, net: NeuralNet, *, finished: bool = False) -> None:
        if ranks.rank() == 0:
            write(self.path_, _state(net, finished=finished))
        self.time_ = time.monotonic()


def _state(net: NeuralNet, *, finished: bool) -> dict[str, Any]:
    """All that a fit needs to go on; of a finished fit, its results."""
    state = {
        "finished": finished,
        "module": trained_state(net.module_),
        "history": net.epochs(),
        "done": net.done_,
    }
    if finished:
        return state
    schedule = net.schedule_.state_dict()
    return state | {
        "optimizer": net.optimizer_.state_dict(),
        "schedule": {k: v for k, v in schedule.items() if k != "lr_lambdas"},
        "scaler": net.scaler_.state_dict(),
        "random": random_states(net.device),
        "losses": net.losses_,
        "lr": net.lr_of_epoch_,
        "bf16": net.bf16_,
        "stops": [{k: v for k, v in vars(c).items() if k in STOP} for c in net.stops],
    }


def _restore(net: NeuralNet, state: dict[str, Any]) -> None:
    """Go back, or on, to the point at which a state was taken."""
    put_back(net.module_, state["module"])
    net.history = History({"batches": [], **epoch} for epoch in state["history"])
    net.done_ = state["done"]
    if state["finished"]:
        net.stopped_ = True
        return
    net.optimizer_.load_state_dict(state["optimizer"])
    lambdas = {"lr_lambdas": [None] * len(net.optimizer_.param_groups)}
    net.schedule_.load_state_dict(state["schedule"] | lambdas)
    net.scaler_.load_state_dict(state["scaler"])
    set_random_states(state["random"], net.device)
    net.losses_ = [loss.to(net.device) for loss in state["losses"]]
    net.lr_of_epoch_, net.bf16_ = state["lr"], state["bf16"]
    for callback, values in zip(net.stops, state["stops"], strict=True):
        vars(callback).update(values)


def write(path: Path, state: dict[str, Any]) -> None:
    """Put a checkpoint in the place of the one before; where that fails, warn, and keep that one.

    It is no error, as on a full disk: the fit is worth more than a checkpoint.
    """
    try:
        with replacing(path, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
        warn(
            f"no checkpoint after update {state['done']}: {path} cannot be written ({error}). "
            "Training goes on, with the earlier checkpoint kept",
            ServingWarning,
        )


def read(path: Path) -> dict[str, Any] | None:
    """The checkpoint of a fit; None where there is none yet."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except Exception as error:  # torch has no type of error for a damaged file
        raise ValueError(
            f"checkpoint_dir: {path} is damaged ({error}). Delete it to begin anew"
        ) from error
