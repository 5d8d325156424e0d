"""`skdice train`: train a model and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.folders import replaceable


def train(
    ctx: typer.Context,
    file: Annotated[Path, Argument(help="Training file.")],
    out: Annotated[Path, Option(file_okay=False, help="Folder for the model.")],
    loss: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Name of the loss; default: ce of tags and entities, dsc of mrc-ner and qa, and "
            "ce_dice.",
        ),
    ] = None,
    dev: options.Dev = None,
    task: options.Task = "auto",
    random_state: options.RandomState = 0,
    checkpoint_dir: Annotated[
        Path | None,
        Option(help="Folder for checkpoints: a stopped command continues from the last."),
    ] = None,
    force: Annotated[bool, Option("--force", help="Write over an earlier model.")] = False,
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
    backbone: options.Backbone = None,
    max_epochs: options.MaxEpochs = None,
    lr: options.Rate = None,
    batch_size: options.BatchSize = None,
    max_length: options.MaxLength = None,
    pooling: options.Pooling = None,
    glued: options.Glued = None,
    frozen: options.Frozen = None,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
) -> None:
    """Train a tagger, a recognizer, a text classifier or a reader and save it.

    Tagged tokens are read from CoNLL columns or CoNLL-U; texts with entities from the files of
    Doccano, Label Studio, Prodigy, spaCy and brat; texts and pairs from TSV, CSV or JSON lines with
    a column for the label; questions, and entities by query, from the JSON of SQuAD and of
    BERT-MRC.

    It prints what the file holds and how rare the positives are. The model keeps the columns of a
    table, for predict and evaluate.

    For example:

    skdice train train.conll --dev dev.conll --loss dsc --out tagger

    skdice train messages.tsv --loss focal --max-epochs 5 --out classifier

    skdice train messages.jsonl --text-columns body --label-column folder --out classifier

    skdice train squad-train.json --dev squad-dev.json --out reader

    skdice train train.conll --task mrc-ner --out mrc-tagger

    skdice train notes.jsonl --out recognizer
    """
    if (out / "skdice.json").exists() and not force:
        raise typer.BadParameter(f"{str(out)!r} holds a model: give another --out, or --force")
    _common.check_writable(replaceable(out).parent)  # it is written beside its place
    data = _files.read(file, task, ctx.params)
    OUT.print(_described(data), soft_wrap=True)
    held = None if dev is None else _files.read(dev, data.task, ctx.params, data.table)
    model = _common.estimator_of(
        data,
        **options.of_fit(ctx.params),
        loss=loss,
        early_stopping=held is not None,
        random_state=random_state,
        checkpoint_dir=checkpoint_dir,
        verbose=1,
    )
    model.fit(data.X, data.y, X_val=held.X if held else None, y_val=held.y if held else None)
    if data.table is not None:
        model.table_ = data.table
    model.save_pretrained(out)
    OUT.print(f"saved {type(model).__name__} to {out}")


def _described(data: Any) -> str:
    """One line on a data set: what its columns are taken for, and its imbalance."""
    from skdice.inspection import imbalance
    from skdice.tasks import TASKS
    from skdice.tasks.files import files_of

    columns = [f"{what} in column {name!r}" for what, name in (data.columns or {}).items()]
    text = f"{data.path.name}: {', '.join([data.task, *columns, counted(len(data), 'row')])}"
    task = TASKS[data.task]
    if not task.has_classes:
        return text
    files = files_of(task)
    several = files.has_several_labels(data.y)
    balance = imbalance(files.counted(data.X, data.y), multilabel=several)
    counts = [f"{label} {n:,}" for label, n in balance.counts.items()]
    if len(counts) > 10:
        counts[9:-1] = ["..."]
    text += f"; {balance.unit}: {', '.join(counts)}"
    if balance.background is None or not balance.n_positive:
        return text
    return f"{text}; {balance.ratio:.1f} negatives for each positive"
