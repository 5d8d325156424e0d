"""`skdice next`: a table of the rows that are most worth a label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._tables import write_table


def next(
    model: options.Model,
    pool: Annotated[Path, Argument(help="File of rows without labels, as for predict.")],
    out: Annotated[Path, Option(help="Table to write: .csv, .jsonl or .json.")],
    n: Annotated[int, Option("--n", min=1, help="How many rows to give.")] = 50,
    strategy: Annotated[options.Choice, Option(help="What makes a row worth a label.")] = "mixed",
    device: options.Device = "auto",
    force: options.ForceFile = False,
    *,
    columns: options.Columns,
) -> None:
    """List the rows of a pool that are most worth a label, the best first.

    Row 0 is the first example of the file. In a .csv file a text that a spreadsheet would take for
    a formula begins with an apostrophe.

    For example:

    skdice next classifier unlabelled.txt --n 50 --out next.csv

    skdice next tagger unlabelled.conll --strategy positives --out next.jsonl
    """
    from skdice.inspection.next_rows import find_next

    _common.new_file(out, "--out", force)
    estimator = _common.load(model, device)
    if not estimator.task.has_classes:
        raise typer.BadParameter(f"a model for {estimator.task} gives no probabilities of labels")
    ((_, found_rows),) = columns.inputs(pool, estimator)
    rows = [row.x for row in found_rows]
    found, names = find_next(estimator, rows, n, strategy)
    write_table(out, found, names)
    OUT.print(f"wrote {len(found)} of {len(rows)} rows to {out}", soft_wrap=True)
