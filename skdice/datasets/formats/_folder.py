"""Folders with a file for each text, and their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from skdice.datasets.row import Row
from skdice.folders import replaced

_PART = re.compile(r"[\w+,=@ -][\w.+,=@ -]*")


WEBANNO = "#FORMAT=WebAnno TSV 3"  # begins a file of that format


def is_webanno(path: Path) -> bool:
    """Return True if a file begins as those of WebAnno do, which may stand beside brat's."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(WEBANNO.encode())


def names_of(rows: list[Row]) -> list[str]:
    """A file name for each text: its id, where that is one and no other text has it."""
    names: list[str] = []
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # the next to try behind a name, so that none is tried twice
    for i, row in enumerate(rows):
        name = str(row.meta.get("id", ""))
        if not all(map(_PART.fullmatch, name.split("/"))) or len(name.encode()) > 200:
            name = f"text-{i:0{len(str(len(rows)))}}"
        stem, n = name, max(i, numbers.get(name.casefold(), 0))
        while name.casefold() in taken:
            name, n = f"{stem}-{n}", n + 1
        numbers[stem.casefold()] = n
        taken.add(name.casefold())
        names.append(name)
    return names


def write_folder(
    path: Path, rows: list[Row], files_of: Callable[[Row, str], dict[str, str]]
) -> None:
    """Write a folder with the files of each text, which come by their suffixes."""
    files: dict[str, str] = {}  # before the folder is made, so that a bad text leaves none
    for row, name in zip(rows, names_of(rows), strict=True):
        files |= {f"{name}{suffix}": text for suffix, text in files_of(row, name).items()}
    with replaced(path, lambda name: False) as folder:
        for name, text in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
