"""`skdice imbalance`: negatives and positives of files, as in the paper's Table 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from typer import Argument

from skdice.cli import _options as options
from skdice.cli._common import OUT


def imbalance(
    files: Annotated[
        list[Path], Argument(help="Files of tagged tokens, labelled texts or questions.")
    ],
    task: options.TaskOption = "auto",
    as_json: options.AsJson = False,
    *,
    source: options.Files,
) -> None:
    """Negatives, positives and their ratio, as in the paper's Table 1.

    For example:

    skdice imbalance train.conll dev.conll

    skdice imbalance reviews.csv --text-columns text --label-column stars

    skdice imbalance squad.json

    skdice imbalance train.conll --task mrc-ner
    """
    _report({str(file): _counts_of(source.read(file, task)) for file in files}, as_json=as_json)


def _counts_of(data: Any) -> Any:
    """Counts of a data set, by its task."""
    from skdice.inspection import imbalance, reading_imbalance
    from skdice.tasks import TASKS

    task = TASKS[data.task]
    if not task.has_classes:
        return reading_imbalance(data.X, data.y)
    labels = task.counted(data.X, data.y)
    return imbalance(labels, multilabel=task.has_several_labels(data.y))


def _report(counts: dict[str, Any], *, as_json: bool) -> None:
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
