"""Files that are written whole: who reads one finds all of the old or all of the new."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from filelock import lock_descriptor

from skdice.folders import beside


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none of it."""
    with replacing(path) as file:
        file.write(text)


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write, which takes its place when the block ends without an error.

    A device, a pipe or a handle of the process is written to as it is. A link is followed, and a
    file that was there keeps its mode and, where the system allows it, its owner.
    """
    encoding = None if "b" in mode else "utf-8"
    if not is_regular(path):
        with path.open(mode, encoding=encoding) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    before = target.stat() if target.exists() else None
    with temporary_for(target, mode, before) as file:
        yield file
        put_in_place(file, target)


def put_in_place(file: IO[Any], target: Path) -> None:
    """Give a complete file of `temporary_for` its name, before its lock is free."""
    file.flush()
    if os.name == "nt":  # which renames no file that is open
        file.close()
    os.replace(file.name, target)


def is_regular(path: Path) -> bool:
    """Return True if a path is that of a file, or of none yet; not of a device, pipe or handle."""
    if str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return False  # what stands behind a handle may be a file, but others write there too
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


@contextlib.contextmanager
def temporary_for(
    target: Path, mode: str, before: os.stat_result | None = None
) -> Iterator[IO[Any]]:
    """A new file of one writer beside `target`, removed at the end if it is still there.

    The writer holds a lock on it, which the system frees when a process dies: files that nobody
    holds are removed first.
    """
    start = f"{beside(target)}.writing-"
    for left in target.parent.glob(f"{glob.escape(start)}*"):
        with contextlib.suppress(OSError), left.open("rb") as other:
            if lock_descriptor(other.fileno(), blocking=False):
                left.unlink()
    encoding = None if "b" in mode else "utf-8"
    permissions = 0o666 if before is None else stat.S_IMODE(before.st_mode)
    held = False
    while not held:  # else another writer removes it, who came before it was locked
        temporary = target.with_name(f"{start}{secrets.token_hex(4)}")
        try:
            file = open(  # noqa: SIM115
                temporary,
                mode.replace("w", "x"),
                encoding=encoding,
                opener=lambda name, flags: os.open(name, flags, permissions),
            )
        except OSError as error:
            error.filename = str(target)  # the name that the user knows
            raise
        try:
            held = lock_descriptor(file.fileno(), blocking=False) and temporary.exists()
        except OSError:  # a disk without locks, where nobody removes anything
            held = True
        if not held:
            file.close()
            temporary.unlink(missing_ok=True)
    try:
        with file:
            if before is not None:
                with contextlib.suppress(OSError, AttributeError):  # not on Windows
                    os.chown(temporary, before.st_uid, before.st_gid)
                os.chmod(temporary, permissions)  # without the mask of new files
            yield file
    finally:
        temporary.unlink(missing_ok=True)
