"""`skdice train`: train a model and save it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import OUT

if TYPE_CHECKING:
    from skdice.inspection.class_balance import Imbalance


def train(
    ctx: typer.Context,
    file: Annotated[Path, Argument(help="Training file.")],
    out: Annotated[Path, Option(help="Folder for the model.")],
    loss: Annotated[
        str | None,
        Option(metavar="NAME", help="Name of the loss; default: ce_dice, dsc with mrc-ner and qa."),
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
    taken = (out / "skdice.json").exists() and not force
    _common.new_folder(out, holds_model=taken, whole=True)
    data = _files.read(file, task, ctx.params)
    OUT.print(_described(data), soft_wrap=True)
    table = None if data.table is None else data.table.given()
    held = None if dev is None else _files.read(dev, data.task, ctx.params, table)
    model = _common.estimator_of(
        data,
        **options.of_fit(ctx.params),
        loss=loss,
        early_stopping=held is not None,
        random_state=random_state,
        checkpoint_dir=checkpoint_dir,
        verbose=1,
    )
    try:
        model.fit(data.X, data.y, X_val=held.X if held else None, y_val=held.y if held else None)
    except KeyboardInterrupt as stop:
        remedy = "no model is written; with --checkpoint-dir FOLDER a stopped command can go on"
        if checkpoint_dir is not None:
            remedy = "run again to go on from the last checkpoint"
        stop.args = (remedy,)
        raise
    if table is not None:
        model.table_ = table
    model.save_pretrained(out)
    OUT.print(f"saved {type(model).__name__} to {out}")


def _described(data: Any) -> str:
    """One line on a data set: what its columns are taken for, and its imbalance."""
    from skdice.inspection import imbalance
    from skdice.tasks import TASKS
    from skdice.tasks.files import files_of

    task = TASKS[data.task]
    if task.has_classes:
        files = files_of(task)
        several = files.has_several_labels(data.y)
        balance = imbalance(files.counted(data.X, data.y), multilabel=several)
    else:
        balance = _of_ends(data.X, data.y)
    columns = [f"{what} in column {name!r}" for what, name in (data.columns or {}).items()]
    counts = [f"{label} {n:,}" for label, n in balance.counts.items()]
    if len(counts) > 10:
        counts[9:-1] = ["..."]
    parts = [data.task, *columns, counted(len(data), "row")]
    text = f"{data.path.name}: {', '.join(parts)}; {balance.unit}: {', '.join(counts)}"
    if balance.background is None or not balance.n_positive:
        return text
    return f"{text}; {balance.ratio:.1f} negatives for each positive"


def _of_ends(X: list[Any], y: list[Any]) -> Imbalance:
    """Words that start or end an answer or an entity, and all others, as in the paper's Table 1."""
    from skdice.inputs.sentences import as_entities
    from skdice.inspection.class_balance import Imbalance

    if isinstance(X[0], tuple):  # a question and its context
        total = sum(len(re.findall(r"\w+|[^\w\s]", context)) for _, context in X)
        positive = 2 * sum(map(bool, y))
    else:  # tokens, which are asked for each type
        spans, _ = as_entities(y, X)
        total = len({kind for row in spans for kind, _, _ in row}) * sum(map(len, X))
        starts = sum(len({(kind, start) for kind, start, _ in row}) for row in spans)
        positive = starts + sum(len({(kind, end) for kind, _, end in row}) for row in spans)
    negative = max(0, total - positive)
    counts = {"other": negative, "start or end": positive}
    return Imbalance("tokens", negative, positive, "other", counts)
