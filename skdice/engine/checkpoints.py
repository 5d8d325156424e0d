"""Checkpoints, from which an interrupted fit goes on. A file is complete or does not exist."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from skorch.callbacks import Callback
from skorch.history import History

from skdice._checks import checked
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.devices import random_states, set_random_states
from skdice.engine.module import put_back, trained_state
from skdice.exceptions import ServingWarning

# Of what a checkpoint holds. A fit begins anew where there are checkpoints of another format only.
FORMAT = 3
KEPT = 2
# What EarlyStopping remembers.
STOP = ("misses_", "dynamic_threshold_", "best_epoch_", "best_model_weights_")


@checked
def check_folder(checkpoint_dir: str | Path) -> None:
    """Refuse a folder that cannot be made or written."""
    try:
        Path(checkpoint_dir).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=checkpoint_dir):
            pass
    except OSError as error:
        raise ValueError(
            f"checkpoint_dir={str(checkpoint_dir)!r} cannot be written ({error.strerror}): give a "
            "folder that can, or None"
        ) from error


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

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Go on from the last checkpoint, if there is one."""
        self.files_ = Files(Path(self.folder) / f"fit-{self.identity[:16]}")
        self.time_ = time.monotonic()
        state = ranks.share(self.files_.last() if ranks.rank() == 0 else None)
        self.finished_ = state is not None and state["finished"]
        if state is not None:
            _restore(net, state)
        if net.verbose:
            done = f"going on after update {net.done_:,}" if state else self.files_.none()
            print("this fit was finished before" if self.finished_ else done, flush=True)

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Write a checkpoint, if it is time."""
        if time.monotonic() - self.time_ >= self.seconds:
            self._write(net)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Write a checkpoint."""
        self._write(net)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Write the result, unless the fit was interrupted."""
        if net.has_ended and not self.finished_:
            self._write(net, finished=True)

    def _write(self, net: Any, *, finished: bool = False) -> None:
        if ranks.rank() == 0:
            self.files_.write(net.done_ + finished, _state(net, finished=finished))
        self.time_ = time.monotonic()


def _state(net: Any, *, finished: bool) -> dict[str, Any]:
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


def _restore(net: Any, state: dict[str, Any]) -> None:
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


class Files:
    """The last two checkpoints of one fit, in a folder of its own.

    A file gets its name, which holds its checksum, when it is complete. So no file is half a
    checkpoint, and an altered one is found out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, n_updates: int, state: dict[str, Any]) -> None:
        """Put a checkpoint on the disk; where that fails, warn, and keep the earlier ones.

        It is no error, as on a full disk: the fit is worth more than a checkpoint.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                try:
                    torch.save(state, file)
                    file.flush()
                    os.fsync(file.fileno())
                    name = f"update-{n_updates:09d}-{_checksum(Path(file.name))}.pt"
                    os.replace(file.name, self.folder / name)
                except BaseException:
                    Path(file.name).unlink(missing_ok=True)
                    raise
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            warn(
                f"no checkpoint at update {n_updates}: {self.folder} cannot be written ({error}). "
                "Training goes on, with the earlier checkpoints kept",
                ServingWarning,
            )
        else:
            for old in self._files()[:-KEPT]:
                old.unlink(missing_ok=True)

    def last(self) -> dict[str, Any] | None:
        """The last checkpoint that is intact; None where there is none yet.

        It warns of each damaged file that it passes over, and raises if all are damaged.
        """
        damaged = False
        for path in reversed(self._files()):
            try:
                if path.stem.endswith(_checksum(path)):
                    return torch.load(path, map_location="cpu", weights_only=True)
            except FileNotFoundError:  # another process has written newer ones
                return self.last()
            damaged = True
            warn(
                f"{path} is damaged: its checksum is another than its name says. Going on from "
                "the checkpoint before it",
                ServingWarning,
            )
        if damaged:
            raise ValueError(
                f"checkpoint_dir: every checkpoint in {self.folder} is damaged. Delete that "
                "folder to begin anew"
            )
        return None

    def none(self) -> str:
        """What to say where there is none."""
        others = len([path for path in self.folder.parent.glob("fit-*") if path != self.folder])
        text = "no checkpoint of this fit yet: it begins anew"
        if others:
            text += f" ({others} in checkpoint_dir are of other data, parameters or versions)"
        return text

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("update-*.pt"))


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
