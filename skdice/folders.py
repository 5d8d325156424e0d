"""Folders of a model that are replaced as a whole."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def replaceable(folder: str | Path) -> Path:
    """The path of a folder without links; refuses one whose files nobody means to replace."""
    target = Path(folder).expanduser().resolve()
    if target.exists() and not target.is_dir():
        raise ValueError(f"folder={str(folder)!r} is a file: give the path of a folder")
    if target in (Path.cwd(), Path.home().resolve()):
        raise ValueError(
            f"folder={str(folder)!r} is the working or home directory, in which files of these "
            "names would be replaced: give a folder of its own, such as 'model'"
        )
    return target


@contextlib.contextmanager
def replaced(folder: str | Path, is_ours: Callable[[str], bool]) -> Iterator[Path]:
    """A new folder to write to, whose entries go to `folder` when the block ends.

    It is a hidden one in `folder`, so an error or a full disk changes nothing there. At the end
    those entries of `folder` go whose names are ours or come anew, before any new one takes its
    place: no reader finds files of both. All others stay.
    """
    target = replaceable(folder)
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=target) as temporary:
        new = Path(temporary)
        yield new
        names = {path.name for path in new.iterdir()}
        for path in list(target.iterdir()):
            if path.name in names or is_ours(path.name):
                _remove(path)
        for name in names:
            (new / name).rename(target / name)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
