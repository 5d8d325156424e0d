"""Commands that make or use one model: train, predict, evaluate, export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import ERR, OUT


def train(
    file: Annotated[Path, Argument(help="Training file.")],
    out: Annotated[Path, Option(help="Folder for the model.")],
    loss: Annotated[str | None, Option(metavar="NAME", help="Name of the loss.")] = None,
    dev: options.Dev = None,
    task: options.TaskOption = "auto",
    seed: options.Seed = 0,
    checkpoint: Annotated[
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

    skdice train messages.tsv --loss focal --epochs 5 --out classifier

    skdice train messages.jsonl --text-column body --label-column folder --out classifier

    skdice train squad-train.json --dev squad-dev.json --out reader

    skdice train train.conll --task mrc-ner --out mrc-tagger

    skdice train notes.jsonl --out recognizer
    """
    taken = (out / "skdice.json").exists() and not force
    _common.new_folder(out, "--out", holds_model=taken, whole=True)
    data = source.read(file, task)
    OUT.print(_common.described(data), soft_wrap=True)
    held = source.read(dev, data.task) if dev is not None else None
    model = _common.estimator_for(
        data,
        **fit.params(),
        loss=loss,
        early_stopping=held is not None,
        random_state=seed,
        checkpoint_dir=checkpoint,
        verbose=1,
    )
    model.fit(data.X, data.y, X_val=held.X if held else None, y_val=held.y if held else None)
    model.save_pretrained(out)
    OUT.print(f"saved {type(model).__name__} to {out}")


def predict(
    model: options.Model,
    file: Annotated[Path, Argument(help="File to predict; - is standard input.")],
    out: Annotated[Path | None, Option(help="File to write; default: the screen.")] = None,
    form: Annotated[
        options.Format,
        Option(
            "--format",
            help="conll, jsonl or spans; for a recognizer that of an annotation tool; auto is the "
            "format described above.",
        ),
    ] = "auto",
    device: options.Device = "auto",
    force: options.ForceFile = False,
    *,
    columns: options.Columns,
) -> None:
    """Predict a file: token TAB tag lines for a tagger, label TAB text lines for a classifier.

    A recognizer reads texts, one on each line or from the file of an annotation tool, and writes
    their entities as JSON lines, or as a tool imports them, with scores.

    The model is one that train wrote, or any fine-tuned model of transformers for the task. A file
    without labels has one token (or one text) on each line. In .csv, .tsv and .jsonl files
    --text-column names the texts; the default is all columns but labels and ids. A reader of
    answers takes SQuAD's JSON and writes the JSON that SQuAD's evaluation takes; entities that may
    be nested are written as JSON lines.

    From standard input rows are read and written 64 at a time: tokens with blank lines between
    sentences, one text on each line, or JSON lines with "tokens", "text" (and "text_pair"), or
    "question" and "context".

    For example:

    skdice predict tagger test.conll --out predicted.conll

    skdice predict classifier new.csv --text-column text

    skdice predict reader squad-dev.json --out predictions.json

    cat messages.txt | skdice predict classifier - --format jsonl

    skdice predict folder-of-transformers test.conll --format spans

    skdice predict recognizer new.txt --format label-studio --out tasks.json
    """
    from skdice.cli import _predict

    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    how = _predict.format_of(estimator, form)
    if str(file) == "-":
        n_rows = _predict.stream(estimator, how, out)
    elif estimator.task.name == "entities":
        from skdice.cli import _entities

        n_rows = _entities.write(estimator, how, _entities.rows_of(file, columns), out)
    else:
        n_rows = _predict.write(estimator, how, _predict.rows_of(estimator, file, columns), out)
    if out is not None:
        OUT.print(f"wrote {counted(n_rows, 'prediction')} to {out}", soft_wrap=True)


def evaluate(
    model: options.Model,
    file: Annotated[Path, Argument(help="Labelled file.")],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
    mode: Annotated[
        options.Mode, Option(help="Which spans of a tagger count as found, wholly or in part.")
    ] = "strict",
    page: Annotated[
        Path | None,
        Option("--report", help="HTML page to write: intervals, pictures, hard examples."),
    ] = None,
    force: options.ForceFile = False,
    *,
    source: options.Files,
) -> None:
    """Precision, recall and F1 of a saved model, for each class and on average.

    For a reader of answers: exact match and F1 as in SQuAD's evaluation, over all questions and
    over those with and without an answer.

    For a tagger --mode gives credit to spans that are partly right: exact takes any type, type any
    overlap, partial counts an overlap half, and fair counts a wrong type or border as one error.

    For example:

    skdice evaluate tagger test.conll

    skdice evaluate classifier test.tsv --json

    skdice evaluate reader squad-dev.json

    skdice evaluate tagger test.conll --mode partial

    skdice evaluate tagger test.conll --report report.html
    """
    from skdice.cli import _evaluate

    _common.new_file(page, "--report", force)
    estimator = _common.load(model, device)
    if mode != "strict" and estimator.task.name not in ("tagging", "entities"):
        raise typer.BadParameter(
            f"--mode {mode} is for taggers and recognizers, not for {estimator.task.name}"
        )
    data = source.read(file, estimator.task.name)
    predicted = _evaluate.predictions(estimator, data)
    scores = _evaluate.report(estimator, data, predicted, mode=mode, as_json=as_json)
    if unseen := _evaluate.unseen_labels(estimator, data):
        ERR.print(f"note: labels that training did not have: {unseen}")
    typer.echo(json.dumps(scores, indent=2) if as_json else scores)
    if page is not None:
        _evaluate.write_page(estimator, data, predicted, page, f"{model.name} on {file.name}")
        ERR.print(f"wrote {page}", soft_wrap=True)


def export(
    model: options.Model,
    out: Annotated[Path, Option(help="Folder for the graph.")],
    form: Annotated[Literal["onnx"], Option("--format", help="onnx.")] = "onnx",
    int8: Annotated[bool, Option("--int8", help="Also write a graph of 8-bit integers.")] = False,
    file: Annotated[Path | None, Option(help="Labelled file to compare F1 on.")] = None,
    *,
    source: options.Files,
) -> None:
    """Write a model as ONNX and compare its predictions with torch's.

    A tagger with the entity types of the bundled corpus is compared on its test sentences.

    For example:

    skdice export tagger --out tagger-onnx

    skdice export classifier --out classifier-onnx --int8 --file test.tsv
    """
    from skdice.cli import _export

    _common.new_folder(out, "--out", whole=True)
    estimator = _common.load(model, "cpu")
    data = None if file is None else source.read(file, estimator.task.name)
    for line in _export.run(estimator, out, int8, data):
        OUT.print(line, soft_wrap=True)
