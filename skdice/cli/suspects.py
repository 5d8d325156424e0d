"""`skdice suspects`: a table of labels that are probably wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._tables import write_table


def suspects(
    file: Annotated[Path, Argument(help="Labelled file.")],
    out: Annotated[Path, Option(help="Table to write: .csv, .jsonl or .json.")],
    features: options.Features = False,
    cv: Annotated[int, Option(min=2, help="Folds: each row is judged by the others.")] = 5,
    loss: Annotated[str | None, Option(help="Name of the loss; default: ce_dice.")] = None,
    task: options.TaskOption = "auto",
    random_state: options.RandomState = 0,
    force: options.ForceFile = False,
    *,
    source: options.Files,
    fit: options.Fit,
) -> None:
    """List the labels, tags or entities that are probably wrong, the most doubtful first.

    A model is fitted for each fold and judges the rows of the others. With --features that takes
    seconds for texts. Row 0 is the first example of the file. In a .csv file a text that a
    spreadsheet would take for a formula begins with an apostrophe.

    For example:

    skdice suspects messages.csv --features --out suspects.csv

    skdice suspects notes.jsonl --cv 3 --out suspects.jsonl
    """
    from skdice.inspection.suspects import find_suspects, with_texts
    from skdice.tasks import TASKS

    _common.new_file(out, "--out", force)
    data = source.read(file, task)
    OUT.print(_common.described(data), soft_wrap=True)
    if not TASKS[data.task].has_classes:
        raise typer.BadParameter(
            f"{file.name} holds {data.task}: suspects are labels of texts, tags or entities"
        )
    parts, params = {"train": data}, {**fit.params(), "loss": loss, "random_state": random_state}
    estimator = _common.estimator_of(parts, features, **params)
    found, columns = find_suspects(estimator, parts["train"].X, data.y, cv)
    if features:
        found, columns = with_texts(found, tuple(columns), data.X)
    write_table(out, found, columns)
    OUT.print(f"wrote {len(found)} suspects among {len(data)} rows to {out}", soft_wrap=True)
