"""The main job: `skdice compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from skorch.callbacks import Callback

from skdice.cli import _common
from skdice.cli._common import ERR, OUT
from skdice.datasets.auto import Dataset
from skdice.model_selection.comparison import Comparison, Row, compare_losses
from skdice.model_selection.rows import parse_row

# Chosen so that seven losses with two seeds take less than three minutes on two cores.
DEMO: dict[str, Any] = {"max_epochs": 7, "lr": 5e-4, "batch_size": 16, "frozen": 4}
DEMO_SEEDS = 2


class EpochProgress(Callback):
    """Move a progress bar on after each epoch."""

    def __init__(self, advance: Callable[[], None]) -> None:
        self.advance = advance

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        self.advance()


def run(
    train: Path | None,
    test: Path | None,
    dev: Path | None,
    losses: list[str],
    seeds: int | None,
    output: Path,
    limit: int | None,
    read: Callable[[Path, str], Dataset],
    task: str,
    params: dict[str, Any],
    features: bool = False,
) -> None:
    """Read the data, compare the rows, and write what was found."""
    demo = train is None
    if demo and (test is not None or dev is not None):
        raise _common.usage("--test and --dev need --train")
    title, parts = _demo_data() if train is None else _file_data(train, test, dev, read, task)
    if demo:
        given = {name: value for name, value in params.items() if value is not None}
        params = {**DEMO, **given}
    if limit is not None:
        part = parts["train"]
        parts["train"] = replace(part, X=part.X[:limit], y=part.y[:limit])
    n_seeds = seeds or (DEMO_SEEDS if demo else 3)
    output.mkdir(parents=True, exist_ok=True)
    specs = [parse_row(loss) for loss in losses]
    if features:
        estimator = on_features(parts, params)
    else:
        estimator = _common.estimator_for(
            parts["train"].task,
            early_stopping="dev" in parts,
            queries=parts["train"].queries,
            **params,
        )
        # With a dev set every epoch is run and the best one kept: all losses cost the same.
        estimator.set_params(n_iter_no_change=estimator.max_epochs)
    held = parts.get("dev")
    # A tuned row without a dev set is fitted on a part, or on folds, and then on everything.
    again = 0 if held is not None else 5 if features else 1
    fits = sum(1 + (again if spec.decision else 0) for spec in specs)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("epochs"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    found: list[Comparison] = []
    made: list[str] = []
    sizes = ", ".join(f"{len(part)} {name}" for name, part in parts.items())
    OUT.print(f"{title}: {sizes}; {len(losses)} rows x {n_seeds} seeds", highlight=False)
    with Progress(*columns, console=ERR, disable=not _common.is_terminal()) as progress:
        bar = progress.add_task("training", total=fits * n_seeds * estimator.max_epochs)
        figures = output / "comparison.json"

        def advance() -> None:
            progress.advance(bar)

        def on_run(comparison: Comparison, row: Row) -> None:
            found[:] = [comparison]
            made.append(row.label)
            comparison.to_json(figures)
            last = row.runs[-1]
            progress.update(bar, description=f"{row.label} F1 {100 * last['f1']:.1f}")
            if not _common.is_terminal():
                ERR.print(
                    f"  {row.label}, seed {last['seed']}: F1 {100 * last['f1']:.1f} in "
                    f"{last['seconds']:.0f} s",
                    markup=False,
                    highlight=False,
                )

        estimator.set_params(callbacks=[EpochProgress(advance)])
        try:
            whole = compare_losses(
                estimator,
                parts["train"].X,
                parts["train"].y,
                X_test=parts["test"].X,
                y_test=parts["test"].y,
                X_val=held.X if held else None,
                y_val=held.y if held else None,
                losses=specs,
                seeds=n_seeds,
                title=title,
                on_run=on_run,
                resume_from=figures,
            )
            kept = sum(len(row.runs) for row in whole.rows) - len(made)
            if kept:
                OUT.print(
                    f"{kept} finished runs were taken from {figures}: delete it to make them again",
                    markup=False,
                    highlight=False,
                )
            found[:] = [whole]
        finally:
            progress.stop()
            if found:
                report(found[0], output)


def on_features(parts: dict[str, Dataset], params: dict[str, Any]) -> Any:
    """Put vectors of the frozen backbone in place of the texts, and give a head to train."""
    from skdice import DiceClassifier, TransformerFeatures

    if parts["train"].task != "classification":
        raise _common.usage("--features is for texts; for tags use --frozen encoder")
    known = {"max_epochs", "lr", "batch_size"}
    unused = sorted(k for k, v in params.items() if k in ("frozen", "precision") and v is not None)
    if unused:
        raise _common.usage(f"--{unused[0]} has no meaning with --features")
    encoder = TransformerFeatures(
        device=params["device"],
        **({"backbone": params["backbone"]} if params["backbone"] else {}),
    ).fit(parts["train"].X)
    with ERR.status("encoding the texts, once"):
        for name, part in parts.items():
            vectors = encoder.transform(part.X)
            parts[name] = replace(part, X=vectors)  # type: ignore[arg-type]
    chosen = {k: v for k, v in params.items() if k in known and v is not None}
    return DiceClassifier(**chosen)


def report(comparison: Comparison, output: Path) -> None:
    """Print the table, draw the chart, and say where things are."""
    table = Table(title=f"F1 and its parts, in % ({comparison.measure})", header_style="bold")
    table.add_column("row")
    for name in (*comparison.measures, "seconds"):
        table.add_column("F1" if name == "f1" else name.replace("_", " "), justify="right")
    rows = [row for row in comparison.rows if row.runs]
    best = max(rows, key=lambda row: row.mean("f1"))
    for row in rows:
        cells = []
        for name in comparison.measures:
            spread = f" ± {100 * row.sd(name):4.1f}" if len(row.runs) > 1 else ""
            cells.append(f"{100 * row.mean(name):.1f}{spread}")
        style = "bold" if row is best else None
        table.add_row(row.label, *cells, f"{row.mean('seconds'):.1f}", style=style)
    OUT.print(table)
    runs = max(len(row.runs) for row in rows)
    OUT.print(f"mean ± standard deviation over {runs} seed(s)", highlight=False)
    OUT.print(f"figures: {output / 'comparison.json'}", markup=False, highlight=False)
    try:
        import matplotlib

        matplotlib.use("Agg")
        from skdice.inspection import ComparisonDisplay

        comparison.rows = rows
        figure = ComparisonDisplay.from_comparison(comparison).figure_
    except ImportError as error:
        ERR.print(f"no chart: {error}", markup=False)
        return
    partial = output / ".comparison.writing.png"
    figure.savefig(partial, dpi=150)
    partial.replace(output / "comparison.png")
    OUT.print(f"chart:   {output / 'comparison.png'}", markup=False, highlight=False)


def _demo_data() -> tuple[str, dict[str, Dataset]]:
    from skdice.datasets import load_town_notes

    names = ("train", "dev", "test")
    parts = {name: Dataset(*load_town_notes(subset=name), "tagging") for name in names}
    return "town notes", parts


def _file_data(
    train: Path,
    test: Path | None,
    dev: Path | None,
    read: Callable[[Path, str], Dataset],
    task: str,
) -> tuple[str, dict[str, Dataset]]:
    from sklearn.model_selection import GroupShuffleSplit, train_test_split

    data = read(train, task)
    parts = {"train": data}
    if dev is not None:
        parts["dev"] = read(dev, data.task)
    if test is not None:
        parts["test"] = read(test, data.task)
    else:
        rows = range(len(data))
        if data.task == "qa":
            # Questions about one context stay together, or the test would be half known.
            groups = [context for _, context in data.X]
            splitter = GroupShuffleSplit(1, test_size=0.2, random_state=0)
            kept, held = next(splitter.split(rows, groups=groups))
        else:
            strata = data.y if data.task == "classification" else None
            kept, held = train_test_split(rows, test_size=0.2, random_state=0, stratify=strata)
        parts["train"], parts["test"] = (
            replace(data, X=[data.X[i] for i in part], y=[data.y[i] for i in part], ids=None)
            for part in (kept, held)
        )
    return train.name, parts
