"""`skdice imbalance`: negatives and positives of files, as in the paper's Table 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from skdice._tables import text_table
from skdice.cli import _options as options
from skdice.cli._common import OUT, finite


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
    from skdice.tasks.files import files_of

    task = TASKS[data.task]
    if not task.has_classes:
        return reading_imbalance(data.X, data.y)
    files = files_of(task)
    labels = files.counted(data.X, data.y)
    return imbalance(labels, multilabel=files.has_several_labels(data.y))


def _report(counts: dict[str, Any], *, as_json: bool) -> None:
    """Print the counts of each file, as a table or as JSON."""
    if as_json:
        rows = {
            name: {**value.to_dict(), "ratio": finite(value.ratio)}
            for name, value in counts.items()
        }
        typer.echo(json.dumps(rows, indent=2))
        return
    lines = []
    for name, value in counts.items():
        negatives = f"{value.n_negative:,}" if value.background is not None else "-"
        ratio = f"{value.ratio:.2f}" if value.background is not None else "-"
        cells = negatives, f"{value.n_positive:,}", ratio, str(len(value.counts))
        lines.append([Path(name).name, value.unit, *cells])
    names = ("file", "unit", "negatives", "positives", "ratio", "classes")
    OUT.print(text_table(names, lines), soft_wrap=True)
    for name, value in counts.items():
        OUT.print(f"\n{Path(name).name}, {value.unit} of each class", style="bold")
        for label, n in value.counts.items():
            mark = "  (negative)" if label == value.background else ""
            OUT.print(f"  {n:>9,}  {label}{mark}")
