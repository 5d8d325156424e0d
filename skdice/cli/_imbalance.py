"""`skdice imbalance`: negatives and positives of files, as in the paper's Table 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from skdice.cli._common import OUT, has_several_labels
from skdice.datasets.annotations import tagged_words
from skdice.tasks import TASKS


def counts_of(data: Any) -> Any:
    """Counts of a data set, by its task."""
    from skdice.inspection import imbalance, reading_imbalance

    if data.task == "entities":
        return imbalance([tags for _, tags in tagged_words(data.X, data.y)])
    if TASKS[data.task].has_classes:
        return imbalance(data.y, multilabel=has_several_labels(data))
    return reading_imbalance(data.X, data.y)


def report(counts: dict[str, Any], *, as_json: bool) -> None:
    """Print the counts of each file, as a table or as JSON."""
    if as_json:
        rows = {name: _finite(value.to_dict()) for name, value in counts.items()}
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table("file", "unit", box=None, header_style="bold")
    for name in ("negatives", "positives", "ratio", "classes"):
        table.add_column(name, justify="right")
    for name, value in counts.items():
        negatives = f"{value.n_negative:,}" if value.background is not None else "-"
        ratio = f"{value.ratio:.2f}" if value.background is not None else "-"
        cells = negatives, f"{value.n_positive:,}", ratio, str(len(value.counts))
        table.add_row(Path(name).name, value.unit, *cells)
    OUT.print(table)
    for name, value in counts.items():
        OUT.print(f"\n{Path(name).name}, {value.unit} of each class", style="bold")
        for label, n in value.counts.items():
            mark = "  (negative)" if label == value.background else ""
            OUT.print(f"  {n:>9,}  {label}{mark}")


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """Without infinity, which JSON lacks: the ratio where there are no positives."""
    return {name: None if value == float("inf") else value for name, value in values.items()}
