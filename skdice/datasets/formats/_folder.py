"""Folders with a file for each text: names of the files, and what else is known of the texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from skdice._checks import shown
from skdice.datasets.formats._base import as_json
from skdice.datasets.reading import fault, parse_json, read_text
from skdice.datasets.row import Row

METADATA = "metadata.jsonl"  # beside the documents, of all that their format has no place for
_PART = re.compile(r"[\w+,=@ -][\w.+,=@ -]*")


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


def write_metadata(folder: Path, names: list[str], rows: list[Row]) -> None:
    """Write the metadata and the order of texts, where the names of their files do not tell."""
    if names == sorted(names) and all(
        row.meta in ({}, {"id": name}) for row, name in zip(rows, names, strict=True)
    ):
        return
    values = ({"file": n, "metadata": r.meta} for n, r in zip(names, rows, strict=True))
    (folder / METADATA).write_bytes("".join(as_json(value) + "\n" for value in values).encode())


def read_metadata(folder: Path) -> dict[str, dict[str, Any]]:
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


def in_order(names: list[str], metadata: dict[str, Any]) -> list[str]:
    """Names in the order of the metadata; the others behind, by the alphabet."""
    order = {name: i for i, name in enumerate(metadata)}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))
