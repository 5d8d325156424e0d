"""Files that are written whole: who reads one finds all of the old or all of the new."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none of it."""
    with replacing(path) as file:
        file.write(text)


@contextlib.contextmanager
def replacing(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write, which takes its place when the block ends without an error.

    A device, a pipe or a handle of the process is written to as it is. A link is followed, and a
    file that was there keeps its mode. A process that is killed leaves a hidden file beside it,
    whose name holds ``.writing-``.
    """
    encoding = None if "b" in mode else "utf-8"
    if not is_regular(path):
        with path.open(mode, encoding=encoding) as file:
            yield file
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder is not there", str(target))
    temporary = target.with_name(f".{target.name[:50]}.writing-{secrets.token_hex(4)}")
    try:
        with temporary.open(mode.replace("w", "x"), encoding=encoding) as file:
            if target.exists():
                shutil.copymode(target, temporary)
            yield file
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def is_regular(path: Path) -> bool:
    """Return True if a path is that of a file, or of none yet; not of a device, pipe or handle."""
    if str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return False  # what stands behind a handle may be a file, but others write there too
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True
