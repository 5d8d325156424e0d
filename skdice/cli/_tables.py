"""Tables that commands write: CSV, TSV, or JSON lines."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sys
from collections.abc import Iterator, Sequence
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


def write_predicted(estimator: Any, source: Path, table: Any, out: Path | None) -> None:
    """Write or print a table as it came, each row as it is predicted, with two columns more.

    `table` is what a classifier's task reads to predict.
    """
    from skdice.datasets.files import json_pieces, replacing, suffix_of

    names = [*(table.names or map(str, range(len(table.rows[0]))))]
    for name in ADDED:
        if name in names:
            raise ValueError(
                f"{str(source)!r} has a column {name!r}, which its predictions would get: rename it"
            )
    suffix = "" if out is None else suffix_of(out)
    if suffix not in (".csv", ".tsv", ".jsonl", ".json"):
        suffix = {None: ".jsonl", "\t": ".tsv"}.get(table.separator, ".csv")
    names += ADDED
    rows = _predicted_rows(estimator, table)
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        if suffix in (".jsonl", ".json"):
            pairs = (zip(names, row, strict=True) for row in rows)
            records = ({n: value for n, value in of if value is not None} for of in pairs)
            lines = (json.dumps(record, ensure_ascii=False) for record in records)
            for piece in json_pieces(lines, out):
                file.write(piece)
                file.flush()
            return
        separator = "," if table.separator in (None, "\t") else table.separator
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        for row in chain([names], rows):
            cells = [_plain(value) for value in row[:-2]]
            cells += (_joined(value) for value in row[-2:])
            if suffix == ".csv":
                writer.writerow(cells)
            else:  # without quotes, as tables with tabs are read
                file.write("\t".join(re.sub(r"[\t\r\n]", " ", str(c)) for c in cells) + "\n")
            file.flush()


def _predicted_rows(estimator: Any, table: Any) -> Iterator[list[Any]]:
    """The cells of each row with its label, or labels, and their probabilities."""
    predicted = estimator.iter_predict(iter(table.texts), "predict_proba")
    for cells, text, found in zip(table.rows, table.texts, predicted, strict=True):
        record = estimator.task.record(estimator, "jsonl", text, "", found)
        label, each = record["label"], record["probabilities"]
        several = isinstance(label, list)
        probability = [each[str(name)] for name in label] if several else each[str(label)]
        yield [*cells, label, probability]


def _joined(value: Any) -> Any:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """A value of JSON as a cell."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
