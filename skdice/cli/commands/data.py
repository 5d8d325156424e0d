"""Commands that look at data: imbalance, convert, suspects, next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT


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


def convert(
    file: Annotated[Path, Argument(help="File, or folder of brat, to read.")],
    out: Annotated[Path, Argument(help="File, or folder of brat, to write.")],
    read_as: Annotated[
        options.SourceTool, Option("--from", help="Format to read; auto looks at it.")
    ] = "auto",
    write_as: Annotated[
        options.Tool | None, Option("--to", help="Format to write; default: by the name.")
    ] = None,
    force: options.ForceFile = False,
    *,
    source: options.Files,
) -> None:
    """Write texts with entities from one annotation tool as another reads them.

    Formats are those of --to; spacy is JSON, or a .spacy file. Ids and other fields go along.

    For example:

    skdice convert notes.jsonl tasks.json --to label-studio

    skdice convert brat-folder notes.jsonl --to prodigy

    skdice convert tasks.json train.spacy
    """
    from skdice.cli import _entities

    _common.new_file(out, "OUT", force, folder=out.is_dir())
    how = source.of_entities()
    OUT.print(_entities.convert(file, out, read_as, write_as, **how), soft_wrap=True)


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

    For example:

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

    For example:

    skdice next classifier unlabelled.txt --n 50 --out next.csv

    skdice next tagger unlabelled.conll --strategy positives --out next.jsonl
    """
    from skdice.cli import _labels

    _common.new_file(out, "--out", force)
    estimator = _common.load(model, device)
    OUT.print(_labels.next_rows(estimator, pool, columns, n, strategy, out), soft_wrap=True)
