"""Checkpoints, from which an interrupted fit goes on. A file is complete or does not exist."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from skdice._checks import checked
from skdice._warn import warn
from skdice.exceptions import CheckpointWarning
from skdice.folders import sync
from skdice.whole_files import put_in_place, temporary_for

KEPT = 2


def parse_interval(every: Any) -> tuple[int, float]:
    """Updates and seconds between checkpoints, from ``500`` or ``"90s"``; the other one is 0."""
    if isinstance(every, (int, np.integer)) and not isinstance(every, bool) and every > 0:
        return int(every), 0.0
    if isinstance(every, str) and every.endswith("s"):
        with contextlib.suppress(ValueError):
            seconds = float(every[:-1])
            if 0 <= seconds < float("inf"):
                return 0, seconds
    raise ValueError(
        f"checkpoint_every={every!r} must be a number of updates, such as 500, or seconds, such as "
        "'60s'"
    )


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


class Checkpoints:
    """The last two checkpoints of one fit, in a folder of its own.

    A file gets its name, which holds its checksum, when it is complete. So no file is half a
    checkpoint, and an altered one is found out.

    Parameters
    ----------
    folder : Path
        `checkpoint_dir`; several fits may share it.
    identity : str
        A digest of what distinguishes this fit from others: data, parameters, initial weights.
    every : int or str, default="60s"
        As in `parse_interval`.
    """

    def __init__(self, folder: str | Path, identity: str, every: int | str = "60s") -> None:
        self.updates, self.seconds = parse_interval(every)
        self.folder = Path(folder) / f"fit-{identity[:16]}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.last_time = time.monotonic()

    def due(self, n_updates: int) -> bool:
        """Return True if a checkpoint is due after so many updates."""
        if self.updates:
            return n_updates % self.updates == 0
        return time.monotonic() - self.last_time >= self.seconds

    def write(self, n_updates: int, state: dict[str, Any]) -> None:
        """Put a checkpoint on the disk; where that fails, warn, and keep the earlier ones.

        It is no error, as on a full disk: the fit is worth more than a checkpoint.
        """
        try:
            with temporary_for(self.folder / "update", "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
                name = f"update-{n_updates:09d}-{_checksum(Path(file.name))}.pt"
                put_in_place(file, self.folder / name)
            sync(self.folder)
        except (OSError, RuntimeError) as error:  # torch reports a full disk as RuntimeError
            warn(
                f"no checkpoint at update {n_updates}: {self.folder} cannot be written ({error}). "
                "Training goes on, with the earlier checkpoints kept",
                CheckpointWarning,
            )
        else:
            for old in self._files()[:-KEPT]:
                old.unlink(missing_ok=True)
        self.last_time = time.monotonic()

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
                CheckpointWarning,
            )
        if damaged:
            raise ValueError(
                f"checkpoint_dir: every checkpoint in {self.folder} is damaged. Delete that "
                "folder to begin anew, or give an estimator resume='never'"
            )
        return None

    def clear(self) -> None:
        """Delete the checkpoints, to begin anew."""
        for path in self._files():
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("update-*.pt"))


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def digest(*values: Any) -> str:
    """A checksum of data and settings that is the same in every process.

    The values are numbers, strings, arrays, tensors, modules, estimators, lists, mappings,
    dataclasses or plain objects.
    """
    checksum = hashlib.sha256()

    def add(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        if isinstance(value, np.ndarray) and value.dtype != object:
            checksum.update(f"{value.dtype}{value.shape}".encode())
            checksum.update(np.ascontiguousarray(value).tobytes())
        elif hasattr(value, "tocsr"):  # a sparse matrix
            add([value.shape, value.indptr, value.indices, value.data])
        elif isinstance(value, Mapping):
            add([[str(key), item] for key, item in value.items()])
        elif isinstance(value, (list, tuple, np.ndarray)):
            checksum.update(f"[{len(value)}".encode())
            if all(isinstance(item, int) for item in value):
                checksum.update(repr(value).encode())
            else:
                for item in value:
                    add(item)
        elif isinstance(value, torch.nn.Module):
            add([repr(value), value.state_dict()])
        elif hasattr(value, "get_params") and not isinstance(value, type):
            params = value.get_params(deep=False)  # what it has learnt, and callbacks, do not count
            add([type(value).__name__, {n: v for n, v in params.items() if n != "callbacks"}])
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            add([[f.name, getattr(value, f.name)] for f in dataclasses.fields(value)])
        elif isinstance(value, torch.utils.data.Dataset):
            add(vars(value))
        else:
            text = f"{type(value).__name__}:{value!r};"
            checksum.update(text.encode("utf-8", "backslashreplace"))

    for value in values:
        add(value)
    return checksum.hexdigest()
