"""`skdice train`: train a model and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT


def train(
    file: Annotated[Path, Argument(help="Training file.")],
    out: Annotated[Path, Option(help="Folder for the model.")],
    loss: Annotated[str | None, Option(metavar="NAME", help="Name of the loss.")] = None,
    dev: options.Dev = None,
    task: options.TaskOption = "auto",
    random_state: options.RandomState = 0,
    checkpoint_dir: Annotated[
        Path | None,
        Option(help="Folder for checkpoints: a stopped command continues from the last."),
    ] = None,
    force: options.ForceModel = False,
    *,
    source: options.Files,
    fit: options.Fit,
) -> None:
    """Train a tagger, a recognizer, a text classifier or a reader and save it.

    Tagged tokens are read from CoNLL columns or CoNLL-U; texts with entities from the files of
    Doccano, Label Studio, Prodigy, spaCy and brat; texts and pairs from TSV, CSV or JSON lines with
    a column for the label; questions, and entities by query, from the JSON of SQuAD and of
    BERT-MRC.

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
    data = source.read(file, task)
    OUT.print(_common.described(data), soft_wrap=True)
    held = source.read(dev, data.task) if dev is not None else None
    model = _common.estimator_of(
        {"train": data},
        **fit.params(),
        loss=loss,
        early_stopping=held is not None,
        random_state=random_state,
        checkpoint_dir=checkpoint_dir,
        verbose=1,
    )
    try:
        model.fit(data.X, data.y, X_val=held.X if held else None, y_val=held.y if held else None)
    except KeyboardInterrupt as stop:
        stop.args = (
            "no model is written; with --checkpoint-dir FOLDER a stopped command can go on",
        )
        if checkpoint_dir is not None:
            stop.args = ("run again to go on from the last checkpoint",)
        raise
    model.save_pretrained(out)
    OUT.print(f"saved {type(model).__name__} to {out}")
