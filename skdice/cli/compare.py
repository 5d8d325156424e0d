"""`skdice compare`: several models on the same data and seeds, a table and a chart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from skdice._checks import counted
from skdice._tables import text_table
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import ERR, OUT

if TYPE_CHECKING:
    from skdice.model_selection.candidates import Candidate
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
    out: Annotated[Path, Option(help="Folder for the chart and the figures.")] = Path(
        "skdice-compare"
    ),
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
    from skdice.losses import COMPARED

    _common.new_folder(out)
    if train is not None:
        read = partial(_files.read, params=ctx.params)
        title, parts = train.name, _read_parts(train, dev, test, read, task)
    elif test is None and dev is None:
        sets = {name: load_town_notes(subset=name) for name in ("train", "test")}
        title, parts = "town notes", {name: Dataset(*xy, "tagging") for name, xy in sets.items()}
        few = parts["train"]
        parts["train"] = replace(few, X=few.X[:DEMO_ROWS], y=few.y[:DEMO_ROWS])
        seeds = seeds or DEMO_SEEDS
    else:
        raise typer.BadParameter("--test and --dev need --train")
    rows = COMPARED if losses is None else options.split_commas(losses)
    _run(title, parts, rows, seeds or SEEDS, options.of_fit(ctx.params), out)


def _read_parts(
    train: Path, dev: Path | None, test: Path | None, read: Callable[..., Any], task: str
) -> dict[str, Any]:
    """The data sets of the user's files, all with the columns of the first."""
    data = read(train, task)
    table = None if data.table is None else data.table.given()
    others = {"dev": dev, "test": test}.items()
    return {"train": data} | {
        name: read(path, data.task, known=table) for name, path in others if path is not None
    }


class _Runs:
    """The comparison as its runs are made, and the file that keeps them."""

    def __init__(self, figures: Path) -> None:
        self.figures, self.n_made = figures, 0
        self.comparison: Comparison | None = None

    def add(self, comparison: Comparison, model: Candidate) -> None:
        """Write the figures after a run."""
        if sum(len(row.runs) for row in comparison.rows) == 1:  # none was in the file
            _keep_another(self.figures)
        self.comparison, self.n_made = comparison, self.n_made + 1
        comparison.to_json(self.figures)

    def kept(self, n_seeds: int) -> str:
        """Tell how many runs an interrupt leaves."""
        if self.comparison is None:
            return ""
        asked = [row for row in self.comparison.rows if row.model is not None]
        n = sum(len(row.runs) for row in asked)
        runs = counted(sum(n_seeds if row.depends_on_seed else 1 for row in asked), "run")
        return f"{n} of {runs} are kept, run again to go on"


def _run(
    title: str,
    parts: dict[str, Any],
    losses: Sequence[str],
    n_seeds: int,
    params: dict[str, Any],
    output: Path,
) -> None:
    """Compare the models, and write the figures."""
    from skdice.engine.recipe import MOST_EPOCHS
    from skdice.model_selection.comparison import compare_losses

    output.mkdir(parents=True, exist_ok=True)
    # With a dev set every epoch is run and the best one kept: all losses cost the same.
    params["n_iter_no_change"] = params.get("max_epochs") or MOST_EPOCHS
    params["early_stopping"] = "dev" in parts
    train, runs = parts["train"], _Runs(output / "comparison.json")
    estimator = _common.estimator_of(train, **params)
    sizes = ", ".join(f"{len(part)} {name}" for name, part in parts.items())
    OUT.print(f"{title}: {sizes}; {counted(len(losses), 'row')}, {counted(n_seeds, 'seed')}")
    how: dict[str, Any] = {}
    for name, key in (("test", "test"), ("dev", "val")):
        if name in parts:
            how |= {f"X_{key}": parts[name].X, f"y_{key}": parts[name].y}
    how |= {"losses": losses, "seeds": n_seeds, "title": title, "resume_from": runs.figures}
    try:
        runs.comparison = compare_losses(
            estimator, train.X, train.y, on_run=runs.add, verbose=1, **how
        )
        if n_kept := sum(len(row.runs) for row in runs.comparison.rows) - runs.n_made:
            kept = counted(n_kept, "finished run")
            OUT.print(f"{kept} from {runs.figures}: delete it to train anew")
    except KeyboardInterrupt as stop:
        stop.args = (runs.kept(n_seeds),)
        raise
    finally:
        if runs.comparison is not None:
            _report(runs.comparison, output, train.task)


def _keep_another(figures: Path) -> None:
    """Rename the files of another comparison, which would be replaced."""
    if not figures.exists():
        return
    number = next(n for n in count(1) if not _numbered(figures, n).exists())
    for path in filter(Path.exists, (figures, figures.with_suffix(".png"))):
        path.rename(_numbered(path, number))
    kept = _numbered(figures, number)
    ERR.print(f"{figures} holds no run of this comparison: kept as {kept}", soft_wrap=True)


def _numbered(path: Path, number: int) -> Path:
    return path.with_stem(f"{path.stem}-{number}")


def _report(comparison: Comparison, output: Path, task: str) -> None:
    """Print the table and what it says, draw the chart, and print where they are."""
    from skdice.cli import _verdict

    models = [model for model in comparison.rows if model.runs]
    OUT.print(str(comparison), soft_wrap=True)
    if of_labels := comparison.measures[len(comparison.averages) :]:
        OUT.print(_of_labels(models, of_labels), soft_wrap=True)
    meanings = dict(_verdict.meanings(models))
    for part, meaning in meanings.items():
        OUT.print(f"{part:{max(map(len, meanings))}}  {meaning}", soft_wrap=True)
    OUT.print()
    for sentence in _verdict.verdict(comparison, task):
        OUT.print(sentence)
    OUT.print(f"figures: {output / 'comparison.json'}", soft_wrap=True)
    comparison.rows = models
    _draw(comparison, output / "comparison.png")


def _of_labels(models: list[Candidate], measures: Sequence[str]) -> str:
    """A table of the F1 of each label."""
    from skdice.metrics.classification import OF_LABEL

    lines = [
        [name.removeprefix(OF_LABEL), *(f"{100 * model.mean(name):.1f}" for model in models)]
        for name in measures
    ]
    return text_table(["F1 of each label, in %", *(model.label for model in models)], lines)


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
