"""Folders with a file for each text: names of the files, and what else is known of the texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from skdice._checks import shown
from skdice.datasets.formats._base import as_json
from skdice.datasets.reading import fault, parse_json, read_text
from skdice.datasets.row import Row
from skdice.folders import replaced

METADATA = "metadata.jsonl"  # beside the documents, of all that their format has no place for
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
    """Write a folder with the files of each text, which come by their suffixes.

    The metadata and the order of texts stand beside them, where the names of the files do not tell.
    """
    names = names_of(rows)
    with replaced(path, lambda name: False) as folder:
        for row, name in zip(rows, names, strict=True):
            for suffix, content in files_of(row, name).items():
                file = folder / f"{name}{suffix}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode())
        known = [{"file": n, "metadata": r.meta} for n, r in zip(names, rows, strict=True)]
        told = all(each["metadata"] in ({}, {"id": each["file"]}) for each in known)
        if names != sorted(names) or not told:
            text = "".join(as_json(each) + "\n" for each in known)
            (folder / METADATA).write_bytes(text.encode())


def documents_of(
    folder: Path, paths: dict[str, Path]
) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """The name, the path and the metadata of each document of a folder.

    Those that the metadata know come in its order; the others behind, by the alphabet.
    """
    metadata = _read_metadata(folder)
    order = {name: i for i, name in enumerate(metadata)}
    for name in sorted(paths, key=lambda name: (order.get(name, len(order)), name)):
        yield name, paths[name], metadata.get(name, {"id": name})


def _read_metadata(folder: Path) -> dict[str, dict[str, Any]]:
    """The metadata by the names of files, in the order of the texts."""
    path = folder / METADATA
    found: dict[str, dict[str, Any]] = {}
    lines = read_text(path).split("\n") if path.is_file() else []
    for number, line in enumerate(lines, 1):
        value = parse_json(line, path, number) if line.strip() else None
        if value is None:
            continue
        known = value if isinstance(value, dict) else {}
        if not isinstance(known.get("file"), str) or not isinstance(known.get("metadata"), dict):
            problem = f"{shown(value)} is no object with a 'file' and its 'metadata'"
            raise fault(path, number, problem)
        found[known["file"]] = known["metadata"]
    return found
