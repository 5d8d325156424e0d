"""Tables that commands write: CSV, TSV, or JSON lines."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ADDED = ("predicted", "probability")  # columns of predictions
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_table(path: Path, records: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write CSV, or JSON lines where the name ends in .jsonl.

    In CSV a text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    from skdice.datasets.files import replacing

    with replacing(path) as file:
        if path.suffix.lower() in (".jsonl", ".json"):
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
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
    from skdice.datasets.files import replacing, suffix_of

    names = table.names or [str(i) for i in range(len(table.rows[0]))]
    for name in ADDED:
        if name in names:
            raise ValueError(
                f"{str(source)!r} has a column {name!r}, which its predictions would get: rename it"
            )
    suffix = "" if out is None else suffix_of(out)
    if suffix not in (".csv", ".tsv", ".jsonl"):
        suffix = {None: ".jsonl", "\t": ".tsv"}.get(table.separator, ".csv")
    predicted = estimator.iter_predict(iter(table.texts), "predict_proba")
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        separator = "," if table.separator in (None, "\t") else table.separator
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")

        def write(cells: Sequence[Any]) -> None:
            if suffix == ".csv":
                writer.writerow(map(_plain, cells))
            else:  # without quotes, as tables with tabs are read
                blanks = (re.sub(r"[\t\r\n]", " ", str(_plain(cell))) for cell in cells)
                file.write("\t".join(blanks) + "\n")

        if suffix != ".jsonl":
            write([*names, *ADDED])
        for cells, text, found in zip(table.rows, table.texts, predicted, strict=True):
            record = estimator.task.record(estimator, "jsonl", text, "", found)
            label, each = record["label"], record["probabilities"]
            several = isinstance(label, list)
            probability = [each[str(name)] for name in label] if several else each[str(label)]
            row = [*cells, label, probability]
            if suffix == ".jsonl":
                pairs = zip([*names, *ADDED], row, strict=True)
                known = {name: value for name, value in pairs if value is not None}
                file.write(json.dumps(known, ensure_ascii=False) + "\n")
            else:
                several_in_one = [
                    ",".join(map(str, part)) if several else part for part in row[-2:]
                ]
                write([*cells, *several_in_one])
            file.flush()


def _plain(value: Any) -> Any:
    """A value of JSON as a cell."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value
