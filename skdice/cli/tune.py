"""`skdice tune`: search the losses' own parameters, with a live table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from rich.live import Live
from rich.table import Table
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import ERR, OUT


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
    # With a storage the same search is continued.
    writes_over = storage is None and not features and not force
    _common.new_folder(out, "--out", holds_model=(out / "model").exists() and writes_over)
    _run(
        source.read(train, task),
        _common.split_commas(losses),
        out,
        fit.params(),
        features,
        n_trials=n_trials,
        cv=cv,
        timeout=timeout,
        storage=storage,
        study_name=study_name or ("skdice" if storage else None),
        n_jobs=n_jobs,
        strategy=strategy,
        random_state=random_state,
    )


def _run(
    data: Any,
    losses: list[str],
    output: Path,
    params: dict[str, Any],
    features: bool,
    **options: Any,
) -> None:
    """Search, show the best trials as they come, and write all of them.

    `params` are the estimator's, and `options` those of `LossSearchCV`.
    """
    from skdice._progress import Progress
    from skdice.model_selection import LossSearchCV, loss_space
    from skdice.model_selection.records import cv_results
    from skdice.tasks import TASKS

    if features:
        parts = {"train": data}
        estimator = _common.on_features(parts, params)
        data = parts["train"]
    else:
        estimator = _common.estimator_for(data, **params)
    estimator.set_params(random_state=options["random_state"])
    spaces = [loss_space(loss) for loss in losses]
    n_trials, folds = options["n_trials"], options["cv"]
    output.mkdir(parents=True, exist_ok=True)
    OUT.print(
        f"{data.path.name if data.path else 'data'}: {counted(len(data), 'example')}, "
        f"{counted(n_trials, 'trial')}, {folds} folds, losses {', '.join(losses)}"
    )
    progress = Progress(0, "trial")
    with Live(console=ERR, refresh_per_second=4, transient=True) as live:

        def show(study: Any, trial: Any) -> None:
            results = cv_results(study, ["score"], folds)
            done = len(results["trial"])
            if progress.total is None:
                progress.begin(done, n_trials)
            progress.advance(done)
            live.update(trials_table(results, n_trials, progress.left()))

        search = LossSearchCV(
            estimator,
            spaces,
            scoring=TASKS[data.task].scorer(data.y),
            refit=not features,
            callbacks=[show] if ERR.is_terminal else None,
            verbose=0 if ERR.is_terminal else 1,
            **options,
        )
        try:
            search.fit(data.X, data.y)
        finally:
            if hasattr(search, "cv_results_"):
                report(search, n_trials, output)
    if hasattr(search, "best_estimator_"):
        search.best_estimator_.save_pretrained(output / "model")
        OUT.print(f"model:   {output / 'model'}")
    elif features:
        OUT.print("model:   none with --features: fit an estimator with these parameters")


def trials_table(results: dict[str, Any], total: int, left: str = "", n: int = 8) -> Table:
    """The best trials of `cv_results_`, those that were fitted in full before the others.

    Its title has the number that are done of a `total`, and the time left.
    """
    columns = {"F1, %": results["mean_test_score"]}
    if "mean_shared_score" in results:
        columns["shared, %"] = results["mean_shared_score"]
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
    columns = {"f1": "mean_test_score", "shared_f1": "mean_shared_score"}
    trials = []
    for i, params in enumerate(results["params"]):
        trial = {"trial": int(results["trial"][i]), "state": results["state"][i], "params": params}
        for name, key in columns.items():
            if key in results:
                trial[name] = float(results[key][i]) if np.isfinite(results[key][i]) else None
        trials.append(trial)
    best = {"params": getattr(search, "best_params_", None)}
    if hasattr(search, "best_score_"):
        shared = results["state"][search.best_index_] == "SHARED"
        best["shared_f1" if shared else "f1"] = search.best_score_
        of = " (of heads: no full fit ended)" if shared else ""
        OUT.print(f"best{of}: {search.best_params_}")
    report: dict[str, Any] = {"best": best, "strategy": search.strategy_, "trials": trials}
    if hasattr(search, "agreement_"):
        report["agreement"] = search.agreement_
        OUT.print(f"heads and full fits agree by {search.agreement_:.2f} (Spearman)")
    write_text(output / "trials.json", json.dumps(report, indent=2) + "\n")
    OUT.print(f"trials:  {output / 'trials.json'}")
