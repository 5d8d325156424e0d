"""Train one model per row on the same data and seeds, and compare."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from skdice import __version__
from skdice.datasets.conll import write_text
from skdice.engine.checkpoints import digest
from skdice.estimators.checks import with_pos_label
from skdice.losses import COMPARED
from skdice.model_selection.rows import parse_row
from skdice.resampling.batches import check_sampler, draw_rows

__all__ = ["Comparison", "Row", "compare_losses"]


@dataclass
class Row:
    """The runs of one row, one for each seed that is finished."""

    label: str
    runs: list[dict[str, float]] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        """One of the comparison's `measures`, or ``seconds``, of every run."""
        return [run[name] for run in self.runs]

    def mean(self, name: str) -> float:
        """Mean over the runs; NaN without any."""
        return float(np.mean(self.values(name))) if self.runs else float("nan")

    def sd(self, name: str) -> float:
        """Standard deviation over the runs (n - 1); NaN below two."""
        return float(np.std(self.values(name), ddof=1)) if len(self.runs) > 1 else float("nan")


@dataclass
class Comparison:
    """What `compare_losses` found.

    Attributes
    ----------
    title : str
    measure : str
        What the scores measure, such as "class spam".
    rows : list of Row
        With ``label``, ``runs`` (a dict of scores for each seed), ``mean(name)`` and ``sd(name)``.
    settings, environment : dict
        Parameters of the estimator; versions of the packages.
    measures : tuple of str
        Names of the scores.
    """

    title: str
    measure: str
    rows: list[Row]
    settings: dict[str, Any]
    environment: dict[str, str]
    measures: tuple[str, ...] = ("precision", "recall", "f1")

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        rows = []
        for row in self.rows:
            figures: dict[str, Any] = {"label": row.label, "n_runs": len(row.runs)}
            for name in (*self.measures, "seconds"):
                of_runs = {"mean": row.mean(name), "sd": row.sd(name)}
                figures[name] = {k: x if np.isfinite(x) else None for k, x in of_runs.items()}
            rows.append({**figures, "runs": row.runs})
        kept = ("title", "measure", "settings", "environment")
        return {**{name: getattr(self, name) for name in kept}, "rows": rows}

    def to_json(self, path: str | Path) -> Path:
        """Write all figures; the file takes its place when it is complete."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")
        return Path(path)

    def take_runs(self, path: str | Path, seeds: Sequence[int]) -> None:
        """Take the runs of these seeds from a file, if it is of the same comparison."""
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            if found["settings"]["identity"] != self.settings["identity"]:
                return
            runs = {row["label"]: row["runs"] for row in found["rows"]}
        except (OSError, ValueError, LookupError, TypeError):  # not written by this version
            return
        self.measure = found["measure"]
        for row in self.rows:
            row.runs = [run for run in runs.get(row.label, []) if run["seed"] in seeds]
            for run in row.runs:
                self.measures = tuple(name for name in run if name not in ("seed", "seconds"))


def compare_losses(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any,
    y_test: Any,
    X_val: Any = None,
    y_val: Any = None,
    losses: Sequence[Any] = COMPARED,
    seeds: int | Sequence[int] = 3,
    title: str = "",
    on_run: Callable[[Comparison, Row], None] | None = None,
    resume_from: str | Path | None = None,
) -> Comparison:
    """Fit `estimator` once for each row and seed, and score it on the test data.

    Parameters
    ----------
    estimator : any estimator of skdice that has a loss
        Cloned for every run, with ``loss`` and ``random_state`` set.
    X, y, X_test, y_test : training and test data
    X_val, y_val : validation data, default=None
        Passed to every ``fit`` that takes them. They choose the epoch with
        ``early_stopping=True``, and the biases of tuned rows.
    losses : list of str or Loss, default=`skdice.losses.COMPARED`
        The rows: a loss by name or as an object; a string may add a sampler and a tuned decision,
        as in ``"ce + RandomOverSampler"`` and ``"ce + tuned"`` (see
        `skdice.model_selection.rows.parse_row`).
    seeds : int or list of int, default=3
        Seeds of the runs. An int is that many seeds, from 0.
    title : str, default=""
    on_run : callable, default=None
        Called with the comparison and the row after each finished run.
    resume_from : str, Path or None, default=None
        A file that `Comparison.to_json` wrote. If it is of the same data, estimator and versions,
        its runs are kept and only the missing ones are made. Otherwise it is ignored.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If `losses` or `seeds` is empty, or a row cannot be read or is not possible with this
        estimator; before anything is trained.
    """
    chosen = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not chosen or not losses:
        raise ValueError(f"losses={losses!r} and seeds={seeds!r} must each name at least one")
    specs = [parse_row(loss) for loss in losses]
    estimator = with_pos_label(estimator, y)
    for spec in specs:
        spec.build(estimator, chosen[0])
        if spec.sampler is None:
            continue
        try:
            if "sampler" in estimator.get_params(deep=False):
                check_sampler(spec.sampler)
                draw_rows(spec.sampler, y, chosen[0])
            else:
                clone(spec.sampler).fit_resample(X, y)
        except (ValueError, TypeError) as error:
            raise ValueError(f"the row {spec.label!r} cannot be drawn: {error}") from error
    params = estimator.get_params()
    for name in ("loss", "random_state", "callbacks"):
        params.pop(name, None)
    settings: dict[str, Any] = {
        name: value
        for name, value in params.items()
        if isinstance(value, (str, int, float, type(None))) and "__" not in name
    }
    n_val = 0 if y_val is None else len(y_val)
    settings |= {"seeds": chosen, "n_train": len(y), "n_val": n_val, "n_test": len(y_test)}
    environment = _environment()
    versions = {name: value for name, value in environment.items() if name != "date"}
    settings["identity"] = digest(X, y, X_test, y_test, X_val, y_val, params, versions)
    rows = [Row(spec.label) for spec in specs]
    comparison = Comparison(title, "", rows, settings, environment)
    if resume_from is not None:
        comparison.take_runs(resume_from, chosen)
    # Seed by seed, so that an interrupted comparison has runs of all rows.
    for seed in chosen:
        for spec, row in zip(specs, rows, strict=True):
            if any(run["seed"] == seed for run in row.runs):
                continue
            model = spec.build(estimator, seed)
            held = {"X_val": X_val, "y_val": y_val} if has_fit_parameter(model, "X_val") else {}
            started = time.perf_counter()
            model.fit(X, y, **held)
            seconds = time.perf_counter() - started
            fitted = model[-1] if isinstance(model, Pipeline) else model  # after its sampler
            figures, comparison.measure = fitted.evaluate(X_test, y_test), fitted.measure_
            comparison.measures = tuple(figures)
            row.runs.append({"seed": seed, **figures, "seconds": seconds})
            if on_run is not None:
                on_run(comparison, row)
    return comparison


def _environment() -> dict[str, str]:
    packages = ("torch", "transformers", "scikit-learn", "skorch")
    return {
        "skdice": __version__,
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "date": time.strftime("%Y-%m-%d"),
    }
