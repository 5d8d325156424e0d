"""`skdice evaluate`: scores of a saved model, for each class and on average."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import ERR


def evaluate(
    ctx: typer.Context,
    model: options.Model,
    file: Annotated[Path, Argument(help="Labelled file.")],
    device: options.Device = "auto",
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
    mode: Annotated[
        options.Mode, Option(help="Which spans of a tagger count as found, wholly or in part.")
    ] = "lenient",
    page: Annotated[
        Path | None,
        Option("--report", help="HTML page to write: intervals, pictures, hard examples."),
    ] = None,
    force: options.ForceFile = False,
    text_columns: options.TextColumns = None,
    label_column: options.LabelColumn = None,
    label_columns: options.LabelColumns = None,
    label_separator: options.LabelSeparator = None,
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    header: options.Header = None,
    encoding: options.Encoding = None,
    on_misaligned: options.OnMisaligned = "raise",
    offsets: options.Offsets = "auto",
    format: options.Format = "auto",
    layer: options.Layer = None,
    feature: options.Feature = None,
) -> None:
    """Precision, recall and F1 of a saved model, for each class and on average.

    A table is read as the one that the model learned from; an option says where it differs.

    For a reader of answers: exact match and F1 as in SQuAD's evaluation, over all questions and
    over those with and without an answer.

    For a tagger --mode gives credit to spans that are partly right: exact takes any type, type any
    overlap, and partial counts an overlap half.

    For example:

    skdice evaluate tagger test.conll

    skdice evaluate classifier test.tsv --json

    skdice evaluate reader squad-dev.json

    skdice evaluate tagger test.conll --mode partial

    skdice evaluate tagger test.conll --report report.html
    """
    from skdice.tasks.files import files_of

    _common.new_file(page, "--report", force)
    estimator = _common.load(model, device)
    task, files = estimator.task, files_of(estimator.task)
    if mode not in files.modes:
        raise typer.BadParameter(f"--mode {mode} is for taggers and recognizers, not for {task}")
    data = _files.read(file, task.name, ctx.params, getattr(estimator, "table_", None))
    predicted = files.reported(estimator, data.X)
    scores = files.report(estimator, data.X, data.y, predicted, mode=mode, as_json=as_json)
    if unseen := files.unseen_labels(estimator, data.y):
        ERR.print(f"note: labels that training did not have: {unseen}")
    cost = task.cost(estimator, data.X, data.y, predicted)
    typer.echo(json.dumps({**scores, **cost}, indent=2) if as_json else scores)
    if cost and not as_json:
        typer.echo(f"cost of a row: {cost['cost']:.4g}")
    if page is not None:
        from skdice.inspection import html_report
        from skdice.whole_files import write_text

        title = f"{model.name} on {file.name}"
        html = html_report(estimator, data.X, data.y, y_pred=predicted, title=title)
        write_text(page, html)
        ERR.print(f"wrote {page}", soft_wrap=True)
