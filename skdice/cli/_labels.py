"""`skdice suspects` and `skdice next`: tables of labels to mend, and of rows to label."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from skdice.cli import _common
from skdice.datasets.files import replacing, write_text

LABELLED = ("classification", "tagging", "entities")
# With these a spreadsheet begins a formula, which may run a program.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_table(path: Path, records: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    """Write CSV, or JSON lines where the name ends in .jsonl.

    In CSV a text that a spreadsheet would run as a formula begins with an apostrophe.
    """
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


def suspects(
    data: Any,
    params: dict[str, Any],
    features: bool,
    folds: int,
    checkpoint: Path | None,
    out: Path,
    page: Path | None,
) -> str:
    """Find suspects in a data set, and write them; returns what was written."""
    from skdice.inspection.suspects import find_suspects, suspects_page, with_texts

    if data.task not in LABELLED:
        raise typer.BadParameter(
            f"{data.path.name} holds {data.task}: suspects are labels of texts, tags or entities"
        )
    parts = {"train": data}
    estimator = (
        _common.on_features(parts, params) if features else _common.estimator_for(data, **params)
    )
    how = {"checkpoint_dir": checkpoint}
    found, columns = find_suspects(estimator, parts["train"].X, data.y, folds, **how)
    if features:  # where X holds vectors
        found, columns = with_texts(found, tuple(columns), data.X)
    write_table(out, found, columns)
    if page is not None:
        write_text(page, suspects_page(found, data.X, f"Suspect labels of {data.path.name}"))
    return f"wrote {len(found)} suspects among {len(data)} rows to {out}"


def next_rows(estimator: Any, file: Path, columns: Any, n: int, strategy: str, out: Path) -> str:
    """Write the rows of a file that are worth a label; returns what was written."""
    from skdice.cli import _entities, _predict
    from skdice.inspection.next_rows import find_next

    if estimator.task.name not in LABELLED:
        raise typer.BadParameter(
            f"a model for {estimator.task.name} gives no probabilities of labels"
        )
    rows: Any
    if estimator.task.name == "entities":
        rows = _entities.rows_of(file, columns)
    else:
        rows = _predict.rows_of(estimator, file, columns)
    pool = [row for row, _ in rows]
    found, names = find_next(estimator, pool, n, strategy)
    write_table(out, found, names)
    return f"wrote {len(found)} of {len(pool)} rows to {out}"
