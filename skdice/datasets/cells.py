"""The cells of separated values."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from skdice.datasets.files import fault, first_line, suffix_of


def separator_of(path: Path, lines: list[str]) -> str:
    """The separator that the first line has."""
    first = first_line(lines)
    if "\t" in first:
        return "\t"
    # Spreadsheets write it where the comma is the decimal point.
    return ";" if suffix_of(path) == ".csv" and ";" in first and "," not in first else ","


def rows_of(
    path: Path, lines: list[str], separator: str, quoting: bool | None
) -> list[tuple[str, list[str]]]:
    """The place and cells of every line that is not blank, all of one width."""
    if len(separator) != 1:
        raise ValueError(f"separator={separator!r} must be one character")
    if separator != "\t" if quoting is None else quoting:
        reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, strict=True)
        rows = []
        start = 1
        try:
            for cells in reader:
                # An empty line has no cell; a quoted empty text is one.
                if any(cell.strip() for cell in cells) or cells == [""]:
                    rows.append((f"line {start}", cells))
                start = reader.line_num + 1
        except csv.Error as error:
            problem = f"{error}: mend the quotes, or read the file with quoting=False"
            raise fault(path, start, problem) from error
    else:
        filled = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        rows = [(f"line {number}", line.split(separator)) for number, line in filled]
    if not rows:
        raise ValueError(f"{str(path)!r} has empty cells only: give a file with examples")
    width = len(rows[0][1])
    for place, cells in rows:
        if len(cells) != width:
            problem = f"{len(cells)} column(s), but {width} in the first line: mend it, or check "
            raise fault(path, place, problem + "the parameters separator and quoting")
    return rows
