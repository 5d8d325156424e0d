"""The cells of separated values."""

from __future__ import annotations

import contextlib
import csv
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from skdice.datasets.reading import fault, first_line, suffix_of

_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_LOCK = threading.Lock()  # csv's longest field is one setting for all threads
_readers, _limit = 0, 0


def separator_of(path: Path, lines: list[str]) -> str:
    """The separator that the first line has outside quotes."""
    first = first_line(lines)
    if named := separator_line(first):
        return named
    first = _QUOTED.sub("", first)
    if "\t" in first:
        return "\t"
    if suffix_of(path) != ".csv" or ";" not in first:
        return ","
    # Spreadsheets write it where the comma is the decimal point.
    if "," in first:
        problem = "the first line has ',' and ';': give separator=',' or separator=';'"
        raise fault(path, 1, problem)
    return ";"


def separator_line(line: str) -> str | None:
    """The separator that a spreadsheet names in a first line such as ``sep=;``."""
    found = re.fullmatch(r'"?sep=(.)"?', line.strip("\n\r"))
    return found[1] if found else None


def cells_of(
    path: Path, lines: Iterator[str], separator: str, quoting: bool | None
) -> Iterator[tuple[int, list[str]]]:
    """The number and the cells of every line that is not blank."""
    if len(separator) != 1:
        raise ValueError(f"separator={separator!r} must be one character")
    if not (separator != "\t" if quoting is None else quoting):
        for number, line in enumerate(lines, 1):
            if line and not line.isspace() and not (number == 1 and separator_line(line)):
                yield number, line.split(separator)
        return
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    start = 1
    try:
        for cells in reader:
            # An empty line has no cell; a quoted empty text is one.
            is_filled = any(map(str.strip, cells)) or cells == [""]
            if is_filled and (start > 1 or not separator_line(separator.join(cells))):
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        problem = f"{error}, where {separator!r} separates cells: give another separator, mend "
        problem += "the quotes, or give quoting=False if they are part of the texts"
        raise fault(path, start, problem) from error


@contextlib.contextmanager
def long_cells() -> Iterator[None]:
    """Let csv read cells of any length, and leave its limit as it was."""
    global _readers, _limit
    with _LOCK:
        if _readers == 0:
            _limit = csv.field_size_limit(sys.maxsize)
        _readers += 1
    try:
        yield
    finally:
        with _LOCK:
            _readers -= 1
            if _readers == 0:
                csv.field_size_limit(_limit)


def rows_of(
    path: Path, lines: Iterator[str], separator: str, quoting: bool | None
) -> list[tuple[int, list[str]]]:
    """The number and cells of every line that is not blank, all of one width."""
    with long_cells():
        rows = list(cells_of(path, lines, separator, quoting))
    if not rows:
        raise ValueError(f"{str(path)!r} has empty cells only: give a file with examples")
    width = len(rows[0][1])
    for place, cells in rows:
        if len(cells) != width:
            problem = f"{len(cells)} column(s), but {width} in the first line: mend it, or check "
            raise fault(path, place, problem + "the parameters separator and quoting")
    return rows
