"""skdice imbalance, train, predict, convert, evaluate, suspects, next, export, compare and
tune.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from skdice import __version__
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import ERR, OUT

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a function as the command of its name."""
    summary = (function.__doc__ or "").split("\n\n")[0]  # whole, in the list of commands
    make = app.command(cls=options.Command, short_help=summary)
    return make(options.grouped(function))


def _version(value: bool) -> None:
    if value:
        typer.echo(f"skdice {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, Option(help="Show tracebacks.")] = False,
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Transformers for text where the positive class is rare.

    For example:

    skdice compare

    skdice imbalance train.conll

    skdice train train.conll --loss dsc --out model
    """
    _common.DEBUG = debug


@command
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

    skdice imbalance reviews.csv --text-column text --label-column stars

    skdice imbalance squad.json

    skdice imbalance train.conll --task mrc-ner
    """
    from skdice.cli._imbalance import counts_of, report

    report({str(file): counts_of(source.read(file, task)) for file in files}, as_json=as_json)


@command
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
    _common.new_folder(out, "--out", holds_model=(out / "skdice.json").exists() and not force)
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


@command
def predict(
    model: options.Model,
    file: Annotated[Path, Argument(help="File to predict; - is standard input.")],
    out: Annotated[Path | None, Option(help="File to write; default: the screen.")] = None,
    form: Annotated[
        options.Format,
        Option(
            "--format",
            help="conll, jsonl or spans; for a recognizer jsonl, doccano, label-studio, prodigy, "
            "spacy or brat; auto is the format described above.",
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

    _common.new_file(out, "--out", force)
    estimator = _common.load(model, device)
    how = _predict.format_of(estimator, form)
    if str(file) == "-":
        n_rows = _predict.stream(estimator, how, out)
    elif estimator.task == "entities":
        from skdice.cli import _entities

        n_rows = _entities.write(estimator, how, _entities.rows_of(file, columns), out)
    else:
        n_rows = _predict.write(estimator, how, _predict.rows_of(estimator, file, columns), out)
    if out is not None:
        OUT.print(f"wrote {n_rows} predictions to {out}")


@command
def convert(
    file: Annotated[Path, Argument(help="File, or folder of brat, to read.")],
    out: Annotated[Path, Argument(help="File, or folder of brat, to write.")],
    read_as: Annotated[
        Literal["auto", options.Tool], Option("--from", help="Format to read; auto looks at it.")
    ] = "auto",
    write_as: Annotated[
        options.Tool | None, Option("--to", help="Format to write; default: by the name.")
    ] = None,
    force: options.ForceFile = False,
    *,
    source: options.Files,
) -> None:
    """Write texts with entities from one annotation tool as another reads them.

    Formats are doccano, label-studio, prodigy, spacy (JSON, or a .spacy file), brat, jsonl and
    conll. Ids and other fields go along.

    For example:

    skdice convert notes.jsonl tasks.json --to label-studio

    skdice convert brat-folder notes.jsonl --to prodigy

    skdice convert tasks.json train.spacy
    """
    from skdice.cli import _entities

    _common.new_file(out, "OUT", force)
    how = source.of_entities()
    OUT.print(_entities.convert(file, out, read_as, write_as, **how), soft_wrap=True)


@command
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
    if mode != "strict" and estimator.task not in ("tagging", "entities"):
        raise typer.BadParameter(
            f"--mode {mode} is for taggers and recognizers, not for {estimator.task}"
        )
    data = source.read(file, estimator.task)
    predicted = _evaluate.predictions(estimator, data)
    scores = _evaluate.report(estimator, data, predicted, mode=mode, as_json=as_json)
    if unseen := _evaluate.unseen_labels(estimator, data):
        ERR.print(f"note: labels that training did not have: {unseen}")
    typer.echo(json.dumps(scores, indent=2) if as_json else scores)
    if page is not None:
        _evaluate.write_page(estimator, data, predicted, page, f"{model.name} on {file.name}")
        ERR.print(f"wrote {page}")


@command
def suspects(
    file: Annotated[Path, Argument(help="Labelled file.")],
    out: Annotated[Path, Option(help="Table to write: .csv or .jsonl.")],
    page: Annotated[
        Path | None, Option("--report", help="HTML page to write, with the texts highlighted.")
    ] = None,
    features: options.Features = False,
    folds: Annotated[int, Option(min=2, help="Folds: each row is judged by the others.")] = 5,
    loss: Annotated[str | None, Option(help="Name of the loss; default: ce_dice.")] = None,
    task: options.TaskOption = "auto",
    seed: options.Seed = 0,
    checkpoint: Annotated[
        Path | None, Option(help="Folder for finished folds: a stopped command continues.")
    ] = None,
    force: options.ForceFile = False,
    *,
    source: options.Files,
    fit: options.Fit,
) -> None:
    """List the labels, tags or entities that are probably wrong, the most doubtful first.

    A model is fitted for each fold and judges the rows of the others. With --features that takes
    seconds for texts. Row 0 is the first example of the file. In a .csv file a text that a
    spreadsheet would take for a formula begins with an apostrophe.

    [bold]Examples[/bold]

    skdice suspects messages.csv --features --out suspects.csv

    skdice suspects train.conll --out suspects.csv --report suspects.html

    skdice suspects notes.jsonl --folds 3 --out suspects.jsonl
    """
    from skdice.cli import _labels

    _common.new_file(out, "--out", force)
    _common.new_file(page, "--report", force)
    data = source.read(file, task)
    OUT.print(_common.described(data), soft_wrap=True)
    params = {**fit.params(), "random_state": seed}
    if loss is not None:
        params["loss"] = loss
    how = features, folds, checkpoint, out, page
    OUT.print(_labels.suspects(data, params, *how), soft_wrap=True)


@command
def next(
    model: options.Model,
    pool: Annotated[Path, Argument(help="File of rows without labels, as for predict.")],
    out: Annotated[Path, Option(help="Table to write: .csv or .jsonl.")],
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

    [bold]Examples[/bold]

    skdice next classifier unlabelled.txt --n 50 --out next.csv

    skdice next tagger unlabelled.conll --strategy positives --out next.jsonl
    """
    from skdice.cli import _labels

    _common.new_file(out, "--out", force)
    estimator = _common.load(model, device)
    OUT.print(_labels.next_rows(estimator, pool, columns, n, strategy, out), soft_wrap=True)


@command
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

    _common.new_folder(out, "--out")
    estimator = _common.load(model, "cpu")
    data = None if file is None else source.read(file, estimator.task)
    for line in _export.run(estimator, out, int8, data):
        OUT.print(line, soft_wrap=True)


@command
def compare(
    train: Annotated[
        Path | None, Option(help="Training file; default: the bundled corpus.")
    ] = None,
    test: Annotated[Path | None, Option(help="Test file; default: a fifth of --train.")] = None,
    dev: options.Dev = None,
    rows: Annotated[
        str | None,
        Option(
            "--rows",
            "--losses",
            metavar="ROWS",
            help="What to compare, separated by commas: losses, also with a sampler or a tuned "
            "decision, as in 'ce + RandomOverSampler, ce + tuned, dsc', and baselines, tfidf for "
            "texts and crf for tags.",
        ),
    ] = None,
    features: options.Features = False,
    seeds: Annotated[int | None, Option(min=1, metavar="N", help="Runs of each row.")] = None,
    out: Annotated[Path, Option(help="Folder for the chart and the figures.")] = Path(
        "skdice-compare"
    ),
    task: options.TaskOption = "auto",
    limit: Annotated[
        int | None, Option(min=2, metavar="N", help="Use the first N training rows.")
    ] = None,
    *,
    source: options.Files,
    fit: options.Fit,
) -> None:
    """Train one model per row on the same data and seeds; print a table, write a chart.

    Each row is trained with the same settings, and the table shows how far its F1 is behind the
    best, with an interval.

    Without --train it runs on 100 sentences of the bundled corpus with 2 seeds, in a few minutes on
    a laptop. Stopped and called again, it makes only the missing runs.

    For example:

    skdice compare

    skdice compare --train wnut17train.conll --dev emerging.dev.conll --test emerging.test.annotated

    skdice compare --train sms.tsv --label-column 0 --losses ce,dsc --seeds 5

    skdice compare --train messages.csv --rows "tfidf, tfidf + tuned, ce, ce_dice + tuned"

    skdice compare --train messages.csv --rows "ce, ce + tuned, ce + SMOTE, dsc" --features

    skdice compare --train squad-train.json --test squad-dev.json --losses ce,focal,dice,dsc
    """
    from skdice.cli import _compare
    from skdice.losses import COMPARED

    params = fit.params()
    if train is not None:
        title, parts = train.name, _compare.read_parts(train, dev, test, source.read, task)
    elif test is None and dev is None:
        title, parts = "town notes", _compare.demo_parts()
        seeds = seeds or _compare.DEMO_SEEDS
    else:
        raise typer.BadParameter("--test and --dev need --train")
    if limit is not None:
        part = parts["train"]
        parts["train"] = replace(part, X=part.X[:limit], y=part.y[:limit])
    losses = COMPARED if rows is None else _common.split_commas(rows)
    _compare.run(title, parts, losses, seeds, params, features, out)


@command
def tune(
    train: Annotated[Path, Argument(help="File whose folds are trained and scored.")],
    losses: Annotated[
        str, Option(help="Losses whose own parameters are searched, separated by commas.")
    ] = "tversky",
    trials: Annotated[int, Option(min=1, metavar="N", help="Number of trials.")] = 32,
    folds: Annotated[int, Option(min=2, metavar="N", help="Folds of each trial.")] = 3,
    timeout: Annotated[
        float | None,
        Option(min=0, metavar="SECONDS", help="Seconds after which no new trial starts."),
    ] = None,
    storage: Annotated[
        str | None,
        Option(help="SQLite file or database URL: continue later, or in several processes."),
    ] = None,
    study_name: Annotated[str | None, Option(help="Name of the study there.")] = None,
    jobs: Annotated[
        int, Option(help="Number of trials at a time; above 1 none of them is pruned.")
    ] = 1,
    strategy: Annotated[
        options.Strategy,
        Option(
            help="full fits; or shared: heads on the frozen encoder, then full fits of the best. "
            "auto is shared if the two turn out to rank the losses alike."
        ),
    ] = "auto",
    features: options.Features = False,
    out: Annotated[
        Path, Option(help="Folder for the figures and, without --features, the model.")
    ] = Path("skdice-tune"),
    task: options.TaskOption = "auto",
    seed: options.Seed = 0,
    force: options.ForceModel = False,
    *,
    source: options.Files,
    fit: options.Fit,
) -> None:
    """Search the losses' own parameters by cross-validation, and fit the best.

    With --features heads are trained on the vectors of a frozen encoder, and no model is written.

    Several processes with the same --storage work on the same study; a stopped search is continued.

    For example:

    skdice tune messages.csv --losses tversky --features

    skdice tune train.conll --losses tversky,weighted_ce --trials 50 --storage study.db
    """
    from skdice.cli._tune import run

    # With a storage the same search is continued.
    writes_over = storage is None and not features and not force
    _common.new_folder(out, "--out", holds_model=(out / "model").exists() and writes_over)
    run(
        source.read(train, task),
        _common.split_commas(losses),
        out,
        fit.params(),
        features,
        n_trials=trials,
        cv=folds,
        timeout=timeout,
        storage=storage,
        study_name=study_name or ("skdice" if storage else None),
        n_jobs=jobs,
        strategy=strategy,
        random_state=seed,
    )
