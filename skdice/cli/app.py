"""skdice imbalance, train, predict, evaluate, export, compare and tune."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from skdice import __version__
from skdice.cli import _common
from skdice.cli._common import OUT, readable_errors, usage
from skdice.cli._options import (
    Backbone,
    BatchSize,
    Device,
    Encoding,
    Epochs,
    Format,
    Frozen,
    Header,
    LabelColumn,
    Misaligned,
    MisalignedOption,
    Page,
    Precision,
    Rate,
    Rows,
    Strategy,
    Task,
    TaskOption,
    TextColumns,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"skdice {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option(help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Transformers for text where the positive class is rare.

    [bold]Examples[/bold]

    skdice compare

    skdice imbalance train.conll

    skdice train train.conll --loss dsc --out model
    """
    _common.set_debug(debug)


@app.command()
def imbalance(
    files: Annotated[
        list[Path], typer.Argument(help="Files of tagged tokens, labelled texts or questions.")
    ],
    task: TaskOption = Task.auto,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    on_misaligned: MisalignedOption = Misaligned.stop,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Negatives, positives and their ratio, as in the paper's Table 1.

    [bold]Examples[/bold]

    skdice imbalance train.conll dev.conll

    skdice imbalance reviews.csv --text-column text --label-column stars

    skdice imbalance squad.json

    skdice imbalance train.conll --task mrc-ner
    """
    from skdice.cli._imbalance import counts_of, report

    with readable_errors():
        found = {
            str(file): counts_of(
                _common.read(
                    file,
                    task.value,
                    text_column,
                    label_column,
                    header,
                    on_misaligned.value,
                    encoding,
                )
            )
            for file in files
        }
        report(found, as_json=as_json)


@app.command()
def train(
    file: Annotated[Path, typer.Argument(help="Training file.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    loss: Annotated[str | None, typer.Option(help="By name; default ce_dice, to read dsc.")] = None,
    dev: Annotated[Path | None, typer.Option(help="File whose F1 picks the best epoch.")] = None,
    task: TaskOption = Task.auto,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    backbone: Backbone = None,
    epochs: Epochs = None,
    lr: Rate = None,
    batch_size: BatchSize = None,
    frozen: Frozen = None,
    device: Device = "auto",
    precision: Precision = None,
    seed: Annotated[int, typer.Option(help="Random state.")] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints: a killed command goes on from the last."),
    ] = None,
    on_misaligned: MisalignedOption = Misaligned.stop,
    force: Annotated[bool, typer.Option("--force", help="Write over an earlier model.")] = False,
) -> None:
    """Train a tagger, a text classifier or a reader and save it.

    Tagged tokens are read from CoNLL columns or CoNLL-U; texts and pairs from TSV, CSV or JSON
    lines with a column for the label; questions, and entities by query, from the JSON of SQuAD and
    of BERT-MRC.

    [bold]Examples[/bold]

    skdice train train.conll --dev dev.conll --loss dsc --out tagger

    skdice train messages.tsv --loss focal --epochs 5 --out classifier

    skdice train messages.jsonl --text-column body --label-column folder --out classifier

    skdice train squad-train.json --dev squad-dev.json --out reader

    skdice train train.conll --task mrc-ner --out mrc-tagger
    """
    with readable_errors():
        _common.writable(out, folder=True)
        if (out / "skdice.json").exists() and not force:
            raise usage(f"{str(out)!r} holds a model: give another --out, or --force")
        read = partial(
            _common.read,
            text_columns=text_column,
            label_column=label_column,
            header=header,
            encoding=encoding,
            on_misaligned=on_misaligned.value,
        )
        data = read(file, task.value)
        held = read(dev, data.task) if dev is not None else None
        model = _common.estimator_for(
            data.task,
            loss=loss,
            queries=data.queries,
            backbone=backbone,
            max_epochs=epochs,
            lr=lr,
            batch_size=batch_size,
            frozen=_common.frozen(frozen),
            device=device,
            precision=precision,
            early_stopping=held is not None,
            random_state=seed,
            checkpoint_dir=checkpoint,
            verbose=1,
        )
        model.fit(data.X, data.y, X_val=held.X if held else None, y_val=held.y if held else None)
        model.save_pretrained(out)
        OUT.print(f"saved {type(model).__name__} to {out}", markup=False, highlight=False)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or its id on the hub.")],
    file: Annotated[Path, typer.Argument(help="File to predict; - is standard input.")],
    out: Annotated[Path | None, typer.Option(help="File to write; default is the screen.")] = None,
    form: Annotated[
        Format, typer.Option("--format", help="conll, jsonl or spans; auto is as said above.")
    ] = Format.auto,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
) -> None:
    """Predict a file: token TAB tag lines for a tagger, label TAB text lines for a classifier.

    The model is one that train wrote, or any fine-tuned model of transformers for the task. A file
    without labels has one token (or one text) a line. In .csv, .tsv and .jsonl files --text-column
    says where the texts are; without it they are all columns but labels and ids. A reader of
    answers takes SQuAD's JSON and writes the JSON that SQuAD's evaluation takes; entities that may
    be nested are written as JSON lines.

    From standard input rows are read and written 64 at a time: tokens with blank lines between
    sentences, a text a line, or JSON lines with "tokens", "text" (and "text_pair"), or "question"
    and "context".

    [bold]Examples[/bold]

    skdice predict tagger test.conll --out predicted.conll

    skdice predict classifier new.csv --text-column text

    skdice predict reader squad-dev.json --out predictions.json

    cat messages.txt | skdice predict classifier - --format jsonl

    skdice predict folder-of-transformers test.conll --format spans
    """
    from skdice.cli import _predict

    with readable_errors():
        _common.new_file(out, "--out", force)
        estimator = _common.load(model, device)
        how = _predict.format_of(estimator, form.value)
        if str(file) == "-":
            n_rows = _predict.stream(estimator, how, out)
        else:
            X, ids = _predict.inputs_of(
                estimator, file, text_column, label_column, header, encoding
            )
            n_rows = _predict.write(estimator, how, X, ids, out)
        if out is not None:
            OUT.print(f"wrote {n_rows} predictions to {out}", markup=False, highlight=False)


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or its id on the hub.")],
    file: Annotated[Path, typer.Argument(help="Labelled file.")],
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    device: Device = "auto",
    on_misaligned: MisalignedOption = Misaligned.stop,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    page: Page = None,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing page.")] = False,
) -> None:
    """Precision, recall and F1 of a saved model, for each class and on average.

    Of a reader of answers, exact match and F1 as in SQuAD's evaluation, also apart for questions
    with and without an answer.

    [bold]Examples[/bold]

    skdice evaluate tagger test.conll

    skdice evaluate classifier test.tsv --json

    skdice evaluate reader squad-dev.json

    skdice evaluate tagger test.conll --report report.html
    """
    from skdice.cli import _evaluate

    with readable_errors():
        _common.new_file(page, "--report", force)
        estimator = _common.load(model, device)
        data = _common.read(
            file, estimator.task, text_column, label_column, header, on_misaligned.value, encoding
        )
        predicted = _evaluate.predictions(estimator, data)
        found = _evaluate.report(estimator, data, predicted, as_json=as_json)
        if unseen := _evaluate.unseen_labels(estimator, data):
            _common.ERR.print(f"note: labels that training did not have: {unseen}")
        typer.echo(json.dumps(found, indent=2) if as_json else found)
        if page is not None:
            title = f"{model.name} on {file.name}"
            _evaluate.write_page(estimator, data, predicted, page, title)
            _common.ERR.print(f"wrote {page}", markup=False, highlight=False)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="Folder of a model, or its id on the hub.")],
    out: Annotated[Path, typer.Option(help="Folder for the graph.")],
    form: Annotated[str, typer.Option("--format", help="onnx.")] = "onnx",
    int8: Annotated[bool, typer.Option("--int8", help="Also a graph of 8-bit integers.")] = False,
    file: Annotated[
        Path | None, typer.Option(help="Labelled file to compare F1 on; default: none.")
    ] = None,
) -> None:
    """Write a model as ONNX and compare what it predicts with torch.

    A tagger of the types of the corpus within is compared on its test sentences.

    [bold]Examples[/bold]

    skdice export tagger --out tagger-onnx

    skdice export classifier --out classifier-onnx --int8 --file test.tsv
    """
    from skdice.cli import _export

    with readable_errors():
        if form != "onnx":
            raise usage(f"--format {form} is not known: onnx is the only one")
        _common.writable(out, folder=True)
        estimator = _common.load(model, "cpu")
        data = None if file is None else _common.read(file, estimator.task)
        for line in _export.run(estimator, out, int8, data):
            OUT.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def compare(
    train: Annotated[
        Path | None, typer.Option(help="Training file; default: the corpus within.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="Test file; default: a fifth of --train.")
    ] = None,
    dev: Annotated[Path | None, typer.Option(help="File whose F1 picks the best epoch.")] = None,
    rows: Rows = None,
    features: Annotated[
        bool,
        typer.Option("--features", help="Train heads on frozen features: seconds for a row."),
    ] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each loss.")] = None,
    output: Annotated[Path, typer.Option(help="Folder for the chart and the figures.")] = Path(
        "skdice-compare"
    ),
    task: TaskOption = Task.auto,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    limit: Annotated[int | None, typer.Option(min=2, help="Use the first N training rows.")] = None,
    backbone: Backbone = None,
    epochs: Epochs = None,
    lr: Rate = None,
    batch_size: BatchSize = None,
    frozen: Frozen = None,
    device: Device = "auto",
    precision: Precision = None,
    on_misaligned: MisalignedOption = Misaligned.stop,
) -> None:
    """Train one model per row on the same data and seeds; print a table, write a chart.

    Without --train it runs on the corpus that ships with skdice, in a few minutes on a laptop.
    Stopped and called again, it goes on with the runs that are missing.

    [bold]Examples[/bold]

    skdice compare

    skdice compare --train wnut17train.conll --dev emerging.dev.conll --test emerging.test.annotated

    skdice compare --train sms.tsv --label-column 0 --losses ce,dsc --seeds 5

    skdice compare --train messages.csv --rows "ce, ce + tuned, ce + SMOTE, dsc" --features

    skdice compare --train squad-train.json --test squad-dev.json --losses ce,focal,dice,dsc
    """
    from skdice.cli._compare import run
    from skdice.losses import COMPARED

    with readable_errors():
        run(
            train,
            test,
            dev,
            list(COMPARED) if rows is None else [r.strip() for r in rows.split(",") if r.strip()],
            seeds,
            output,
            limit,
            lambda path, kind: _common.read(
                path, kind, text_column, label_column, header, on_misaligned.value, encoding
            ),
            task.value,
            {
                "backbone": backbone,
                "max_epochs": epochs,
                "lr": lr,
                "batch_size": batch_size,
                "frozen": _common.frozen(frozen),
                "device": device,
                "precision": precision,
            },
            features,
        )


@app.command()
def tune(
    train: Annotated[Path, typer.Argument(help="File whose folds are trained and scored.")],
    losses: Annotated[
        str, typer.Option(help="Losses whose own parameters are searched, comma between.")
    ] = "tversky",
    trials: Annotated[int, typer.Option(min=1, help="Trials in all.")] = 32,
    folds: Annotated[int, typer.Option(min=2, help="Folds of each trial.")] = 3,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds after which no trial is begun.")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="SQLite file or database URL: continue later, or in several processes."),
    ] = None,
    study_name: Annotated[str | None, typer.Option(help="Name of the study there.")] = None,
    jobs: Annotated[int, typer.Option(help="Trials at a time; more than 1 prunes none.")] = 1,
    strategy: Annotated[
        Strategy,
        typer.Option(
            help="Full fits, or shared: heads on the frozen encoder, then the best in full. Auto "
            "is shared where heads turn out to rank the losses alike."
        ),
    ] = Strategy.auto,
    features: Annotated[
        bool, typer.Option("--features", help="Search with heads on frozen features.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder for the figures and the model.")] = Path(
        "skdice-tune"
    ),
    task: TaskOption = Task.auto,
    text_column: TextColumns = None,
    label_column: LabelColumn = None,
    header: Header = None,
    encoding: Encoding = "utf-8",
    backbone: Backbone = None,
    epochs: Epochs = None,
    lr: Rate = None,
    batch_size: BatchSize = None,
    frozen: Frozen = None,
    device: Device = "auto",
    precision: Precision = None,
    seed: Annotated[int, typer.Option(help="Random state.")] = 0,
    on_misaligned: MisalignedOption = Misaligned.stop,
    force: Annotated[bool, typer.Option("--force", help="Write over an earlier model.")] = False,
) -> None:
    """Search the losses' own parameters by cross-validation, and fit the best.

    Several processes with the same --storage work on the same study; a stopped search goes on.

    [bold]Examples[/bold]

    skdice tune messages.csv --losses tversky --features

    skdice tune train.conll --losses tversky,weighted_ce --trials 50 --storage study.db
    """
    from skdice.cli._tune import run

    with readable_errors():
        _common.writable(output, folder=True)
        # With a storage it is the same search that goes on.
        if (output / "model").exists() and storage is None and not force:
            raise usage(f"{str(output)!r} holds a model: give another --output, or --force")
        data = _common.read(
            train, task.value, text_column, label_column, header, on_misaligned.value, encoding
        )
        run(
            data,
            [name.strip() for name in losses.split(",") if name.strip()],
            trials,
            folds,
            timeout,
            storage,
            study_name,
            jobs,
            strategy.value,
            seed,
            output,
            features,
            {
                "backbone": backbone,
                "max_epochs": epochs,
                "lr": lr,
                "batch_size": batch_size,
                "frozen": _common.frozen(frozen),
                "device": device,
                "precision": precision,
            },
        )
