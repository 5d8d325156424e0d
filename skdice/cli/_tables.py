"""Tables that commands write: CSV, or JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
