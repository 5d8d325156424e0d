"""Tables that `skdice predict` writes: CSV and TSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table_text(records: Iterable[dict[str, Any]], columns: Sequence[str], separator: str) -> str:
    """The text of a table with a header.

    Lists and objects in cells are JSON, as `skdice.datasets.read_table` reads them. Between tabs
    nothing is quoted, as such tables are read.
    """
    rows = [list(columns), *([_cell(record.get(n)) for n in columns] for record in records)]
    if separator == "\t":
        lines = ("\t".join(re.sub(r"[\t\r\n]", " ", str(cell)) for cell in row) for row in rows)
        return "".join(f"{line}\n" for line in lines)
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
