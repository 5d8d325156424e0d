"""`skdice tune`: search the losses' own parameters, with a live table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.table import Table
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT


def tune(
    train: Annotated[Path, Argument(help="File whose folds are trained and scored.")],
    losses: Annotated[
        str, Option(help="Losses whose own parameters are searched, separated by commas.")
    ] = "tversky",
    n_trials: Annotated[int, Option(min=1, metavar="N", help="Number of trials.")] = 32,
    cv: Annotated[int, Option(min=2, metavar="N", help="Folds of each trial.")] = 3,
    timeout: Annotated[
        float | None,
        Option(min=0, metavar="SECONDS", help="Seconds after which no new trial starts."),
    ] = None,
    storage: Annotated[
        str | None,
        Option(help="SQLite file or database URL: continue later, or in several processes."),
    ] = None,
    study_name: Annotated[str | None, Option(help="Name of the study there.")] = None,
    n_jobs: Annotated[
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
    random_state: options.RandomState = 0,
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

    skdice tune train.conll --losses tversky,weighted_ce --n-trials 50 --storage study.db
    """
    from skdice.model_selection import LossSearchCV, loss_space

    # With a storage the same search is continued.
    writes_over = storage is None and not features and not force
    _common.new_folder(out, holds_model=(out / "model").exists() and writes_over)
    data, names = source.read(train, task), _common.split_commas(losses)
    spaces, parts = [loss_space(name) for name in names], {"train": data}
    params = {**fit.params(), "random_state": random_state}
    estimator = _common.estimator_of(parts, features, **params)
    OUT.print(
        f"{data.path.name}: {counted(len(data), 'example')}, {counted(n_trials, 'trial')}, "
        f"{cv} folds, losses {', '.join(names)}"
    )
    search = LossSearchCV(
        estimator,
        spaces,
        n_trials=n_trials,
        cv=cv,
        refit=not features,
        timeout=timeout,
        storage=storage,
        study_name=study_name or ("skdice" if storage else None),
        n_jobs=n_jobs,
        strategy=strategy,
        random_state=random_state,
        verbose=1,
    )
    out.mkdir(parents=True, exist_ok=True)
    try:
        search.fit(parts["train"].X, data.y)
    finally:
        if hasattr(search, "cv_results_"):
            report(search, n_trials, out)
    if features:
        OUT.print("model:   none with --features: fit an estimator with these parameters")
    else:
        search.best_estimator_.save_pretrained(out / "model")
        OUT.print(f"model:   {out / 'model'}")


def trials_table(results: dict[str, Any], total: int, left: str = "", n: int = 8) -> Table:
    """The best trials of `cv_results_`, those that were fitted in full before the others.

    Its title has the number that are done of a `total`, and the time left.
    """
    columns = {"F1, %": results["mean_test_score"]}
    counts = Counter(state.lower() for state in results["state"])
    done = f"{sum(counts.values())} of {counted(total, 'trial')}: "
    told = [*(f"{count} {name}" for name, count in counts.items()), *filter(None, [left])]
    table = Table(title=done + ", ".join(told))
    for heading in ("trial", *columns):
        table.add_column(heading, justify="right")
    table.add_column("parameters")
    scores = [np.nan_to_num(values, nan=-1.0) for values in columns.values()]
    for i in np.lexsort([-values for values in reversed(scores)])[:n]:
        row = [values[i] for values in columns.values()]
        cells = [f"{100 * value:.2f}" if np.isfinite(value) else "" for value in row]
        params = ", ".join(
            f"{name.removeprefix('loss__')}={value:.4g}" if isinstance(value, float) else str(value)
            for name, value in results["params"][i].items()
        )
        table.add_row(str(results["trial"][i]), *cells, params)
    return table


def report(search: Any, n_trials: int, output: Path) -> None:
    """Print the best trials and write all of them."""
    from skdice.whole_files import write_text

    results = search.cv_results_
    OUT.print(trials_table(results, n_trials))
    columns = {"f1": "mean_test_score"}
    rows = {"trial": results["trial"].tolist(), "state": results["state"]}
    rows["params"] = results["params"]
    for name, key in columns.items():
        if key in results:
            rows[name] = map(_common.finite, results[key].tolist())
    trials = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    best = {"params": getattr(search, "best_params_", None)}
    if hasattr(search, "best_score_"):
        best["f1"] = search.best_score_
        OUT.print(f"best: {search.best_params_}")
    report: dict[str, Any] = {"best": best, "strategy": search.strategy_, "trials": trials}
    write_text(output / "trials.json", json.dumps(report, indent=2) + "\n")
    OUT.print(f"trials:  {output / 'trials.json'}")
