"""Tables that `skdice predict` writes: CSV, TSV, or JSON lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def table_pieces(
    records: Iterable[dict[str, Any]],
    columns: Sequence[str],
    suffix: str,
    out: Path | None,
    separator: str = ",",
) -> Iterator[str]:
    """The text of a table, in pieces that each end with a row.

    Lists and objects in cells are JSON, as `skdice.datasets.read_table` reads them.
    """
    from skdice.datasets.annotations import as_json
    from skdice.datasets.reading import json_pieces

    if suffix in (".jsonl", ".json"):
        yield from json_pieces(map(as_json, records), out)
        return
    # `writerow` returns what `write` of its file does.
    writer = csv.writer(SimpleNamespace(write=str), delimiter=separator, lineterminator="\n")
    for row in chain([columns], ([record.get(name) for name in columns] for record in records)):
        cells = [_cell(value) for value in row]
        if suffix == ".csv":
            yield writer.writerow(cells)
        else:  # without quotes, as tables with tabs are read
            yield "\t".join(re.sub(r"[\t\r\n]", " ", str(cell)) for cell in cells) + "\n"


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
