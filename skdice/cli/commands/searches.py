"""Commands that train many models: compare, tune."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from skdice.cli import _common
from skdice.cli import _options as options


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

    Without --train it runs on 100 sentences of the bundled corpus, in a few minutes on
    a laptop. Stopped and called again, it makes only the missing runs, and keeps all that were made
    on the same data and settings, also of rows that are no longer named.

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

    _common.new_folder(out, "--out")
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
