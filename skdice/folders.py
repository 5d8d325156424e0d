"""Folders that are replaced whole: who reads one finds all of the old or all of the new.

A new folder is written beside the old one and swapped in. Linux and macOS exchange two folders in
one step. Where the system or the disk cannot (Windows, NFS), the old folder is renamed away and the
new one in; a process that is killed between the two leaves no folder, and `settled` puts the old
one back, at the next read by skdice or the next save.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from filelock import lock_descriptor

# Siblings of a folder `m`: `.m.new-1f2e3d4c` is being written, `.m.old-1f2e3d4c` was moved away.
_NEW, _OLD = ".new-", ".old-"
T = TypeVar("T")


def replaceable(folder: str | Path) -> Path:
    """The absolute path of a folder that can be replaced, without links."""
    target = Path(os.path.realpath(Path(folder).expanduser()))
    if target.exists() and not target.is_dir():
        raise ValueError(f"folder={str(folder)!r} is a file: give the path of a folder")
    for kept, what in ((Path.cwd(), "working directory"), (Path.home(), "home directory")):
        if kept.resolve().is_relative_to(target):
            raise ValueError(
                f"folder={str(folder)!r} is the {what}, or holds it, and a folder is replaced as a "
                "whole: give a folder of its own, such as 'model'"
            )
    if os.path.ismount(target):
        raise ValueError(
            f"folder={str(folder)!r} is a mount point, which cannot be replaced: give a folder in "
            f"it, such as {str(target / 'model')!r}"
        )
    return target


@contextlib.contextmanager
def replaced(
    folder: str | Path, is_ours: Callable[[str], bool], *, each_file: bool = True
) -> Iterator[Path]:
    """A new folder to write to, which takes the place of `folder` when the block ends.

    Entries of the old folder stay in the new one, unless the block wrote one of that name or
    `is_ours` of its name is true. If anything fails, the old folder stays as it was. Where there
    are thousands of files, ``each_file=False`` puts all on the disk at once.
    """
    target = replaceable(folder)
    new = target.with_name(f"{beside(target)}{_NEW}{secrets.token_hex(4)}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            _recover(target)
            for left in _siblings(target, _NEW):
                shutil.rmtree(left, ignore_errors=True)
            new.mkdir()
            yield new
            if each_file or not hasattr(os, "sync"):
                for path in new.rglob("*"):
                    sync(path)
            else:
                os.sync()
            if target.is_dir():
                shutil.copymode(target, new)
                _keep(target, new, is_ours)
            sync(new)
            _swap(new, target)
            sync(target.parent)
    except Exception as error:
        # The libraries in Rust tell a full disk in words only.
        told = re.search(r"\(os error (\d+)\)", str(error))
        code = int(told[1]) if told else getattr(error, "errno", None)
        if code is None:
            raise
        raise OSError(
            code,
            f"folder={str(folder)!r} cannot be written, and is as it was ({os.strerror(code)})",
        ) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)  # by now the old one


def settled(folder: Path) -> Path:
    """The same folder, put back if a process was killed that had moved it away to replace it."""
    if not folder.exists() and _siblings(folder, _OLD):
        with _locked(folder.parent):
            _recover(folder)
    return folder


def unchanged(folder: Path, read: Callable[[], T]) -> T:
    """Return `read()` of one and the same folder: it reads again if that was replaced."""
    while True:
        with _opened(folder) as before:
            try:
                value = read()
            except Exception:
                if _identity(folder) == before:
                    raise
            else:
                if _identity(folder) == before:
                    return value


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    """The identity of a folder, which no other takes on meanwhile, as a number is given again."""
    handle = None
    with contextlib.suppress(OSError):  # there is none, or it is on Windows
        handle = os.open(settled(folder), os.O_RDONLY)
    try:
        yield _identity(folder) if handle is None else os.fstat(handle).st_ino
    finally:
        if handle is not None:
            os.close(handle)


def sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk; Windows cannot open a folder."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _identity(folder: Path) -> Any:
    with contextlib.suppress(FileNotFoundError):
        return settled(folder).stat().st_ino


def beside(path: Path) -> str:
    """The start of the hidden names that stand beside a path while it is replaced.

    It holds the path's name; one so long that nothing can be added stands for itself by a checksum.
    """
    name = os.fsencode(path.name)
    return f".{path.name if len(name) <= 220 else hashlib.sha256(name).hexdigest()}"


def _siblings(folder: Path, kind: str) -> list[Path]:
    return list(folder.parent.glob(f"{glob.escape(beside(folder))}{kind}*"))


def _recover(folder: Path) -> None:
    """Undo or finish the swap of a process that was killed."""
    for old in _siblings(folder, _OLD):
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder)


def _keep(old: Path, new: Path, is_ours: Callable[[str], bool]) -> None:
    """Hold what others put into a folder in the new one too: by links, or else by copies."""
    for path in old.iterdir():
        if is_ours(path.name) or os.path.lexists(new / path.name):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.copytree(path, new / path.name, symlinks=True, copy_function=_link)
        else:
            _link(path, new / path.name)


def _link(source: Any, target: Any) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _swap(new: Path, target: Path) -> None:
    if not target.exists():
        new.rename(target)
    elif not _exchange(new, target):
        target.rename(target.with_name(f"{beside(target)}{_OLD}{new.name[-8:]}"))
        try:
            new.rename(target)
        finally:
            _recover(target)


def _exchange(a: Path, b: Path) -> bool:
    """Give two folders each other's name in one step, where the system can."""
    if os.name == "nt":
        return False
    system, here, swap = ctypes.CDLL(None), -100, 2  # AT_FDCWD; RENAME_EXCHANGE and RENAME_SWAP
    if hasattr(system, "renameat2"):
        return system.renameat2(here, os.fsencode(a), here, os.fsencode(b), swap) == 0
    if hasattr(system, "renamex_np"):
        return system.renamex_np(os.fsencode(a), os.fsencode(b), swap) == 0
    return False


@contextlib.contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Wait for other processes that replace a folder in `parent`; the system frees the lock."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # on Windows, and on some network disks
            handle = os.open(parent, os.O_RDONLY)
            stack.callback(os.close, handle)
            lock_descriptor(handle)
        yield
