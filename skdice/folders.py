"""Folders that are replaced whole.

A new folder is written beside the old one `m`, as ``m.new-1f2e3d4c``. When it is complete, `m` is
renamed to ``m.old-1f2e3d4c``, the new one to `m`, and the old one is removed. A process that is
killed leaves the old or the new one whole as `m` or, between the two renames, both under these
names: `refuse_left` tells them.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NEW, _OLD = ".new-", ".old-"


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
def replaced(folder: str | Path, is_ours: Callable[[str], bool]) -> Iterator[Path]:
    """A new folder to write to, which takes the place of `folder` when the block ends.

    Entries of the old folder stay in the new one, unless the block wrote one of that name or
    `is_ours` of its name is true. If anything fails, the old folder stays as it was.
    """
    target, suffix = replaceable(folder), secrets.token_hex(4)
    new = target.with_name(f"{target.name}{_NEW}{suffix}")
    old = target.with_name(f"{target.name}{_OLD}{suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir()
        yield new
        if target.is_dir():
            _keep(target, new, is_ours)
            _swap(new, target, old)
        else:
            new.rename(target)
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
        shutil.rmtree(new, ignore_errors=True)
    for left in _beside(target, _OLD):  # of killed saves, too
        shutil.rmtree(left, ignore_errors=True)


def refuse_left(folder: Path) -> None:
    """Name the two folders that a save leaves if it is killed between its two renames."""
    if folder.exists():
        return
    for old in _beside(folder, _OLD):
        new = old.with_name(old.name.replace(_OLD, _NEW))
        raise ValueError(
            f"{str(folder)!r} is not there, as a save is going on or was killed. {str(old)!r} is "
            f"what it held before, {str(new)!r} what was saved: rename one of them to "
            f"{folder.name!r}"
        )


def _beside(folder: Path, kind: str) -> list[Path]:
    return sorted(folder.parent.glob(f"{glob.escape(folder.name)}{kind}{'[0-9a-f]' * 8}"))


def _keep(old: Path, new: Path, is_ours: Callable[[str], bool]) -> None:
    """Hold what others put into a folder in the new one too: by links, or else by copies."""

    def left_out(where: str, names: list[str]) -> set[str]:
        if Path(where) != old:
            return set()
        return {name for name in names if is_ours(name) or os.path.lexists(new / name)}

    shutil.copytree(
        old, new, symlinks=True, ignore=left_out, copy_function=_link, dirs_exist_ok=True
    )


def _link(source: Any, target: Any) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _swap(new: Path, target: Path, old: Path) -> None:
    try:
        target.rename(old)
        new.rename(target)
    finally:
        if old.exists() and not target.exists():
            old.rename(target)
