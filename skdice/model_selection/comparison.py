"""Train several models on the same data and seeds, and compare."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from skdice import __version__
from skdice._checks import check_has, checked, shown
from skdice._tables import frame_of, html_table, text_table
from skdice._types import Data
from skdice.datasets.reading import parse_json
from skdice.engine.checkpoints import digest
from skdice.engine.fit_plan import check_validation, length_of_fit
from skdice.engine.recipe import given, rows_of_update
from skdice.estimators.before_folds import check_estimator, check_factors, with_pos_label
from skdice.estimators.tuned.decision import check_folds
from skdice.losses import COMPARED
from skdice.metrics.classification import OF_LABEL
from skdice.model_selection.candidates import Candidate, model_of_label, parse_model
from skdice.model_selection.intervals import F1_WITHOUT, difference, scores_and_parts
from skdice.model_selection.progress import ComparisonProgress, OfUpdates
from skdice.resampling.drawing import check_sampler, draw_rows
from skdice.whole_files import write_text

MOST_SEEDS = 100_000


@checked
@dataclass(repr=False)
class Comparison:
    """The result of `compare_losses`, which prints as its `table`.

    Attributes
    ----------
    title : str
    measure : str
        What the scores measure, such as "class spam".
    rows : list of Candidate
        Each with ``label``, ``runs`` (a dict of scores for each seed), ``mean(name)`` and
        ``sd(name)``.
    settings, environment : dict
        Parameters of the estimator; versions of the packages.
    measures : tuple of str
        Names of the scores, in a multi-label problem with ``f1 of <label>`` for each label.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import compare_losses
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> options = {"losses": ["ce", "dsc"], "seeds": 1, "X_test": X, "y_test": y}
    >>> result = compare_losses(DiceClassifier(max_epochs=1), X, y, **options)
    >>> print(result)
    in % (class 1)
    row  precision  recall  accuracy    F1     to the best
    ce ...
    dsc ...
    """

    title: str
    measure: str
    rows: list[Candidate]
    settings: dict[str, Any]
    environment: dict[str, str]
    measures: tuple[str, ...] = ("precision", "recall", "f1")

    @property
    def best(self) -> Candidate:
        """The row of the highest mean F1, among those with runs."""
        return max((model for model in self.rows if model.runs), key=lambda row: row.mean("f1"))

    def behind(self, model: Candidate) -> tuple[float, float, float]:
        """Return how far the F1 of a row is below that of the `best`, with a 95 % interval.

        The interval holds the chance of the test rows, which are the same for both, and of the
        seeds; of the seeds nothing is known if there is one. If it holds 0, the two rows cannot be
        told apart.

        Parameters
        ----------
        model : Candidate
            One of `rows`.

        Returns
        -------
        difference, low, high : float
            At most 0 for the difference; (0, 0, 0) for the best. The ends are NaN with one test
            row, and for runs that an earlier version wrote.

        Raises
        ------
        TypeError
            If `model` is no row.
        """
        if not isinstance(model, Candidate):
            raise TypeError(f"model is {shown(model)}: give one of rows")
        return difference(model, self.best, self.rows)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns and the cells of each row with runs, in percent.

        A single row is compared with none.
        """
        several = [len(model.runs) > 1 and model.depends_on_seed for model in self.rows]
        averages = [name for name in self.averages if name != "f1"]
        names = [*(name.replace("_", " ").replace("f1", "F1") for name in averages), "F1"]
        lines = []
        for model, has_spread in zip(self.rows, several, strict=True):
            if not model.runs:
                continue
            spread = f" ± {100 * model.sd('f1'):.1f}" if has_spread else ""
            apart, *ends = (100 * value for value in self.behind(model))
            interval = f" ({ends[0]:+.1f} to {ends[1]:+.1f})" if np.isfinite(ends).all() else ""
            lines.append(
                [
                    model.label,
                    *(f"{100 * model.mean(name):.1f}" for name in averages),
                    f"{100 * model.mean('f1'):.1f}{spread}",
                    "best" if model is self.best else f"{apart:+.1f}{interval}",
                ]
            )
        names = ["row", *names[:-1], "F1 ± sd" if any(several) else "F1", "to the best"]
        return (names, lines) if len(lines) > 1 else (names[:-1], [line[:-1] for line in lines])

    def __repr__(self) -> str:
        """The table, in plain text."""
        names, lines = self.table()
        return text_table(names, lines, self._caption())

    def _repr_html_(self) -> str:
        """The table, in a notebook."""
        names, lines = self.table()
        return html_table(names, lines, self._caption())

    def _caption(self) -> str:
        about = f"{self.title}: " if self.title else ""
        return f"{about}in % ({self.measure})"

    def to_frame(self) -> Any:
        """All means as numbers between 0 and 1, for sorting, filtering and writing.

        Returns
        -------
        pandas.DataFrame or list of dict
            A row for each of `rows` with runs: ``row``, its label; the `measures`; ``f1_sd`` over
            ``n_runs``; and what `behind` gives, as ``to_best``, ``low`` and ``high``. A list where
            pandas is not installed.
        """
        records = []
        for model in self.rows:
            if model.runs:
                scores = {name: model.mean(name) for name in self.measures}
                apart = dict(zip(("to_best", "low", "high"), self.behind(model), strict=True))
                spread = {"f1_sd": model.sd("f1"), "n_runs": len(model.runs)}
                records.append({"row": model.label, **scores, **spread, **apart})
        return frame_of(records)

    @property
    def averages(self) -> tuple[str, ...]:
        """The `measures` without those of single labels."""
        return tuple(name for name in self.measures if not name.startswith(OF_LABEL))

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain values."""
        rows = []
        for model in self.rows:
            figures: dict[str, Any] = {"label": model.label, "n_runs": len(model.runs)}
            for name in (*self.measures, "seconds"):
                of_runs = {"mean": model.mean(name), "sd": model.sd(name)}
                figures[name] = {k: x if np.isfinite(x) else None for k, x in of_runs.items()}
            rows.append({**figures, "runs": model.runs})
        kept = ("title", "measure", "settings", "environment")
        return {**{name: getattr(self, name) for name in kept}, "rows": rows}

    @checked
    def to_json(self, path: str | Path) -> Path:
        """Write all figures; the file takes its place when it is complete."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n")
        return Path(path)

    @checked
    def take_runs(self, path: str | Path) -> None:
        """Take the runs from a file of the same comparison; its other rows come last."""
        try:
            earlier = parse_json(Path(path).read_text(encoding="utf-8"), str(path))
            if earlier["settings"]["identity"] != self.settings["identity"]:
                return
            runs = {str(model["label"]): list(model["runs"]) for model in earlier["rows"]}
            self.measure = earlier["measure"]
        except (OSError, ValueError, LookupError, TypeError):  # another version wrote it
            return
        asked = [model.label for model in self.rows]
        others = [label for label in runs if label not in asked]
        self.rows = [*self.rows, *map(model_of_label, others)]
        for model in self.rows:
            model.runs = runs.get(model.label, [])
            for run in model.runs:
                beside = ("seed", "seconds", F1_WITHOUT)
                self.measures = tuple(name for name in run if name not in beside)
                scores = [run[name] for name in self.measures]
                if not all(isinstance(score, Real) and 0 <= float(score) <= 1 for score in scores):
                    raise ValueError(
                        f"resume_from={str(path)!r}: the run {run} of {model.label!r} has a score "
                        "not between 0 and 1: delete the file, or that run"
                    )


@checked
def compare_losses(
    estimator: Any,
    X: Data,
    y: Data,
    *,
    X_test: Data,
    y_test: Data,
    X_val: Data | None = None,
    y_val: Data | None = None,
    losses: Sequence[Any] = COMPARED,
    seeds: int | Sequence[int] = 3,
    title: str = "",
    on_run: Callable[[Comparison, Candidate], None] | None = None,
    resume_from: str | Path | None = None,
    verbose: int = 0,
) -> Comparison:
    """Fit `estimator` for each of `losses` and each seed, and score it on the test data.

    With ``max_epochs="auto"`` all rows make the same number of updates, to rounding, also those
    whose sampler draws more or fewer rows.

    Parameters
    ----------
    estimator : any estimator of skdice that has a loss
        Cloned for every run, with ``loss`` and ``random_state`` set.
    X, y, X_test, y_test : training and test data
    X_val, y_val : validation data, default=None
        Passed to every ``fit`` that takes them. They choose the epoch with
        ``early_stopping=True``, and the biases of tuned decisions.
    losses : list of str or Loss, default=`skdice.losses.COMPARED`
        Losses by name or as objects; a string may add a sampler and a tuned decision, as in
        ``"ce + RandomOverSampler"`` and ``"ce + tuned"`` (see
        `skdice.model_selection.candidates.parse_model`). Baselines are fitted first: ``"tfidf"``
        for texts and pairs with one label each (`TfidfClassifier`), ``"crf"`` for tags
        (`CRFTagger`).
    seeds : int or list of int, default=3
        Seeds of the runs. An int is that many seeds, from 0. A baseline without a sampler and a
        tuned decision runs once, with the first.
    title : str, default=""
    on_run : callable, default=None
        Called with the comparison and the `Candidate` after each finished run.
    resume_from : str, Path or None, default=None
        A file that `Comparison.to_json` wrote. If it is of the same data, estimator and versions,
        all its runs are kept, also those of other rows and seeds than these, and only the missing
        ones are made. Otherwise it is ignored. A run whose scores do not lie between 0 and 1 is
        refused.
    verbose : int, default=0
        Above 0 it tells the row, epoch and update that run and the time left: by a bar in a
        terminal or notebook, elsewhere by a line for each run.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If `losses` or `seeds` is empty, one of `losses` is unknown or not possible with this
        estimator, or `y_test` holds labels that `y` does not; before anything is trained.
    """
    check_has("estimator", estimator, "fit", "get_params", "task", "loss")
    numbers: Any = range(min(int(seeds), MOST_SEEDS + 1)) if isinstance(seeds, Integral) else seeds
    whole = all(isinstance(seed, Integral) and 0 <= int(seed) < 2**32 for seed in numbers)
    if not whole or not 1 <= len(numbers) <= MOST_SEEDS:
        raise ValueError(
            f"seeds={shown(seeds)} must be a number from 1 to {MOST_SEEDS:,}, or a list of as many "
            "seeds from 0 to 2**32 - 1"
        )
    chosen = [int(seed) for seed in numbers]
    if verbose < 0:
        raise ValueError(f"verbose={verbose!r} must be 0 for silence, or more")
    if not len(losses):
        raise ValueError(f"losses={losses!r} must name at least one")
    for name, value in (("X", X), ("y", y), ("X_test", X_test), ("y_test", y_test)):
        if value is None:
            raise ValueError(f"{name}=None: give training and test data")
    estimator.task.check_test(y, y_test)
    check_validation(X_val, y_val)
    for rows, truth in ((X, y), (X_test, y_test), (X_val, y_val)):
        check_consistent_length(rows, truth)
    targets, drawn = estimator.task.drawn_by(X, y)
    models = [parse_model(loss) for loss in losses]
    estimator = clone(with_pos_label(estimator, y))
    has_sampler = "sampler" in estimator.get_params(deep=False)
    n_fits = {}
    for model in models:
        built = model.build(estimator, chosen[0])
        n_fits[model.label] = _n_fits(model, built, y_val is not None)
        try:
            if model.loss == "tfidf" and np.ndim(targets) == 2:
                raise ValueError("y has several labels a row, and a TfidfClassifier gives one")
            if model.decision is not None and y_val is None:
                check_folds(built, X, targets)
            if model.sampler is not None and has_sampler:
                check_sampler(model.sampler)
                draw_rows(model.sampler, drawn, chosen[0])
            elif model.sampler is not None:
                clone(model.sampler).fit_resample(X, y)
        except (ValueError, TypeError) as error:
            raise ValueError(f"the row {model.label!r} is not possible: {error}") from error
    for model in models:
        if not model.is_baseline:
            plain_model = replace(model, sampler=None, decision=None)
            check_estimator(plain_model.build(estimator, chosen[0]))
    check_factors(estimator, [model.loss for model in models if not model.is_baseline], X, y)
    varied, plain = ("loss", "random_state", "callbacks"), (str, int, float, type(None))
    params = {name: v for name, v in estimator.get_params().items() if name not in varied}
    settings: dict[str, Any] = {
        name: v for name, v in params.items() if isinstance(v, plain) and "__" not in name
    }
    n_val = 0 if y_val is None else len(y_val)
    settings |= {"seeds": chosen, "n_train": len(y), "n_val": n_val, "n_test": len(y_test)}
    packages = environment()
    versions = {name: value for name, value in packages.items() if name != "date"}
    settings["identity"] = digest(X, y, X_test, y_test, X_val, y_val, params, versions)
    drawing = [model for model in models if model.sampler is not None and not model.is_baseline]
    if drawing and has_sampler and given(estimator, "max_epochs") == "auto":
        data = (X, y, X_val, y_val)
        settings["max_epochs"] = _equal_updates(estimator, drawing, chosen[0], data)
    comparison = Comparison(title, "", models, settings, packages)
    if resume_from is not None:
        comparison.take_runs(resume_from)
    # The order is seed by seed, so that an interrupted comparison has runs of all models.
    runs = [
        (seed, model)
        for seed in chosen
        for model in sorted(models, key=lambda model: not model.is_baseline)
        if not any(run["seed"] == seed for run in model.runs)
        and (model.depends_on_seed or (seed == chosen[0] and not model.runs))
    ]
    fits_left = sum(n_fits[model.label] for _, model in runs)
    with ComparisonProgress(verbose) as progress:
        if verbose and estimator.checkpoint_dir is None:  # which goes with no callbacks
            callbacks = [*(estimator.callbacks or []), OfUpdates(progress)]
            estimator.set_params(callbacks=callbacks)
        for seed, model in runs:
            progress.begin_run(model.label, seed, fits_left)
            fitted = model.build(estimator, seed)
            held = {"X_val": X_val, "y_val": y_val} if has_fit_parameter(fitted, "X_val") else {}
            started = time.perf_counter()
            fitted.fit(X, y, **held)
            seconds = time.perf_counter() - started
            if isinstance(fitted, Pipeline):
                fitted = fitted[-1]  # the model comes after its sampler
            figures, without = scores_and_parts(fitted, X_test, y_test)
            comparison.measure, comparison.measures = fitted.measure_, tuple(figures)
            model.runs.append({"seed": seed, **figures, "seconds": seconds, F1_WITHOUT: without})
            fits_left -= n_fits[model.label]
            progress.end_run(figures["f1"], fits_left)
            if on_run is not None:
                on_run(comparison, model)
    return comparison


def _n_fits(model: Candidate, built: Any, validated: bool) -> int:
    """The fits of nets in one run; a tuned decision without validation rows has more."""
    if model.is_baseline:
        return 0
    return 1 if model.decision is None or validated else 1 + max(int(built.cv), 1)


def _equal_updates(estimator: Any, models: list[Candidate], seed: int, data: Any) -> int:
    """Give rows with a sampler as many updates as a fit without makes, whose epochs are returned.

    What a fit trains on is counted in windows, without rows held out.
    """
    size = rows_of_update(estimator)
    n_rows, epochs = length_of_fit(estimator, *data)
    for model in models:
        drawn, _ = length_of_fit(replace(model, decision=None).build(estimator, seed), *data)
        model.max_epochs = max(round(epochs * -(-n_rows // size) / -(-drawn // size)), 1)
    return epochs


def environment() -> dict[str, str]:
    """Versions of the packages, the machine and the date."""
    packages = ("torch", "transformers", "scikit-learn", "skorch")
    return {
        "skdice": __version__,
        **{name: version(name) for name in packages},
        "python": platform.python_version(),
        "machine": platform.machine(),
        "date": time.strftime("%Y-%m-%d"),
    }
