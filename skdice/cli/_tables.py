"""Tables that commands write: CSV, TSV, or JSON lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

ADDED = ("predicted", "probability")  # columns of predictions
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_table(path: Path, records: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write CSV, or JSON where the name ends in .jsonl (lines) or .json (an array).

    In CSV a text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    from skdice.datasets.files import json_pieces, replacing

    with replacing(path) as file:
        if path.suffix.lower() in (".jsonl", ".json"):
            lines = (json.dumps(record, ensure_ascii=False) for record in records)
            file.writelines(json_pieces(lines, path))
            return
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for record in records:
            writer.writerow([_cell(record[name]) for name in columns])


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def table_pieces(
    estimator: Any, source: Path, table: Any, rows: Iterator[Any], out: Path | None
) -> Iterator[str]:
    """The text of a table as it came with two columns more, in pieces that each end with a row.

    `table` is what a classifier's task reads to predict, and `rows` are predicted.
    """
    from skdice.datasets.files import json_pieces, suffix_of

    for name in ADDED:
        if name in table.names:
            raise ValueError(
                f"{str(source)!r} has a column {name!r}, which its predictions would get: rename it"
            )
    suffix = "" if out is None else suffix_of(out)
    if suffix not in (".csv", ".tsv", ".jsonl", ".json"):
        suffix = {None: ".jsonl", "\t": ".tsv"}.get(table.separator, ".csv")
    names = [*table.names, *ADDED]
    every = (_with_label(estimator, *row) for row in rows)
    if suffix in (".jsonl", ".json"):
        pairs = (zip(names, row, strict=True) for row in every)
        records = ({n: value for n, value in of if value is not None} for of in pairs)
        yield from json_pieces((json.dumps(each, ensure_ascii=False) for each in records), out)
        return
    separator = "," if table.separator in (None, "\t") else table.separator
    for row in chain([names], every):
        cells = [*map(_plain, row[:-2]), *map(_joined, row[-2:])]
        if suffix == ".csv":
            line = StringIO()
            csv.writer(line, delimiter=separator, lineterminator="\n").writerow(cells)
            yield line.getvalue()
        else:  # without quotes, as tables with tabs are read
            yield "\t".join(re.sub(r"[\t\r\n]", " ", str(cell)) for cell in cells) + "\n"


def _with_label(estimator: Any, text: Any, cells: list[Any], found: Any) -> list[Any]:
    """The cells of a row with its label, or labels, and their probabilities."""
    record = estimator.task.record(estimator, "jsonl", text, cells, found)
    label, each = record["label"], record["probabilities"]
    several = isinstance(label, list)
    probability = [each[str(name)] for name in label] if several else each[str(label)]
    return [*cells, label, probability]


def _joined(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value of JSON as a cell."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
