"""`skdice compare`: several models on the same data and seeds, a table and a chart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from skdice._checks import counted
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import ERR, OUT

if TYPE_CHECKING:
    from skdice.model_selection.comparison import Comparison

# Chosen so that seven losses take less than four minutes on two cores.
DEMO_ROWS, DEMO_SEEDS = 100, 1
SEEDS = 3  # as in Python


def compare(
    ctx: typer.Context,
    train: Annotated[
        Path | None, Option(help="Training file; default: the bundled corpus.")
    ] = None,
    test: Annotated[Path | None, Option(help="Test file; default: a fifth of --train.")] = None,
    dev: options.Dev = None,
    losses: Annotated[
        str | None,
        Option(
            metavar="ROWS",
            help="What to compare, separated by commas: losses, also with a sampler or a tuned "
            "decision, as in 'ce + RandomOverSampler, ce + tuned, dsc', and baselines, tfidf for "
            "texts and crf for tags; default: ce, weighted_ce, focal, dice, tversky, dsc, ce_dice.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, Option(min=1, metavar="N", help="Runs of each row; default: 3.")
    ] = None,
    out: Annotated[
        Path, Option(file_okay=False, help="Folder for the chart and the figures.")
    ] = Path("skdice-compare"),
    task: options.Task = "auto",
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

    skdice compare --train messages.csv --losses "tfidf, tfidf + tuned, ce, ce_dice + tuned"

    skdice compare --train squad-train.json --test squad-dev.json --losses ce,focal,dice,dsc
    """
    from skdice.datasets import Dataset, load_town_notes
    from skdice.engine.recipe import MOST_EPOCHS
    from skdice.losses import LOSS_NAMES
    from skdice.model_selection.comparison import compare_losses

    _common.check_writable(out)
    if train is not None:
        data = _files.read(train, task, ctx.params)
        title, parts = train.name, {"train": data}
        for name, path in (("val", dev), ("test", test)):
            if path is not None:
                parts[name] = _files.read(path, data.task, ctx.params, data.table)
    elif test is None and dev is None:
        title, parts = "town notes", {}
        for name, n_rows in (("train", DEMO_ROWS), ("test", None)):
            X, y = load_town_notes(subset=name)
            parts[name] = Dataset(X[:n_rows], y[:n_rows], "tagging")
        seeds = seeds or DEMO_SEEDS
    else:
        raise typer.BadParameter("--test and --dev need --train")
    rows, n_seeds = LOSS_NAMES if losses is None else options.split_commas(losses), seeds or SEEDS
    params = options.of_fit(ctx.params)
    # With a dev set every epoch is run and the best one kept: all losses cost the same.
    params["n_iter_no_change"] = params.get("max_epochs") or MOST_EPOCHS
    params["early_stopping"] = dev is not None
    data, figures = parts.pop("train"), out / "comparison.json"
    estimator = _common.estimator_of(data, **params)
    train_rows = f"{len(data)} train" if "test" in parts else f"{len(data)} rows, a fifth to test"
    sizes = ", ".join([train_rows, *(f"{len(part)} {name}" for name, part in parts.items())])
    OUT.print(f"{title}: {sizes}; {counted(len(rows), 'row')}, {counted(n_seeds, 'seed')}")
    out.mkdir(parents=True, exist_ok=True)
    if figures.exists():
        OUT.print(f"going on from {figures}: delete it to train anew", soft_wrap=True)
    how: dict[str, Any] = {"losses": rows, "seeds": n_seeds, "verbose": 1}
    how["resume_from"] = figures
    for name, part in parts.items():
        how |= {f"X_{name}": part.X, f"y_{name}": part.y}
    _report(compare_losses(estimator, data.X, data.y, **how), out, data.task)


def _report(comparison: Comparison, output: Path, task: str) -> None:
    """Print the table and what it says, draw the chart, and print where they are."""
    from skdice.cli._verdict import meanings, verdict

    OUT.print("\n".join([str(comparison), *meanings(comparison.rows), ""]), soft_wrap=True)
    for sentence in verdict(comparison, task):
        OUT.print(sentence)
    OUT.print(f"figures: {output / 'comparison.json'}", soft_wrap=True)
    _draw(comparison, output / "comparison.png")


def _draw(comparison: Comparison, path: Path) -> None:
    """Write the chart, if matplotlib is there."""
    from skdice.whole_files import replacing

    try:
        import matplotlib

        matplotlib.use("Agg")
        from skdice.inspection import ComparisonDisplay

        figure = ComparisonDisplay.from_comparison(comparison).figure_
    except ImportError as error:
        ERR.print(f"no chart: {error}")
        return
    with replacing(path, "wb") as file:
        figure.savefig(file, dpi=150, format="png")
    OUT.print(f"chart:   {path}", soft_wrap=True)
