"""Train several models on the same data and seeds, and compare."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from skdice._checks import check_has, checked, shown
from skdice._digest import digest
from skdice._tables import frame_of, text_table
from skdice._types import Data
from skdice._version import __version__
from skdice.datasets.source import parse_json
from skdice.engine.fit_plan import check_validation, length_of_fit
from skdice.engine.recipe import given, rows_of_update
from skdice.estimators.before_folds import check_factors, with_pos_label
from skdice.estimators.tuned.decision import check_folds
from skdice.inputs.rows import take
from skdice.losses import LOSS_NAMES
from skdice.metrics.classification import OF_LABEL
from skdice.model_selection.candidates import (
    Candidate,
    Judged,
    candidates_of,
    row_of_file,
    seeded,
)
from skdice.model_selection.held_out import rows_to_test
from skdice.model_selection.intervals import (
    F1_WITHOUT,
    FOUND_NOTHING,
    differences,
    scores_and_parts,
)
from skdice.model_selection.studies import neutral
from skdice.resampling.drawing import check_sampler, draw_rows
from skdice.whole_files import write_text

MOST_SEEDS = 100_000
BESIDE_SCORES = ("seed", "seconds", F1_WITHOUT, FOUND_NOTHING)  # in the record of a run


@checked
@dataclass(repr=False)
class Comparison:
    """The result of `compare_losses`, which prints as a table.

    Attributes
    ----------
    measure : str
        What the scores measure, such as "class spam".
    rows : list of Candidate
        Each with ``label``, ``runs`` (a dict of scores for each seed), ``mean(name)`` and
        ``sd(name)``.
    settings, environment : dict
        Parameters of the estimator; versions of the packages.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import compare_losses
    >>> X, y = make_classification(200, weights=[0.9], random_state=0)
    >>> options = {"losses": ["ce", "dsc"], "seeds": 1, "X_test": X, "y_test": y}
    >>> result = compare_losses(DiceClassifier(max_epochs=20), X, y, **options)
    >>> print(result)
    in % (class 1; 200 training and 200 test rows)
    row  precision  recall  accuracy    F1    to the highest
    ce ...
    dsc ...
    In brackets: ...
    """

    measure: str
    rows: list[Candidate]
    settings: dict[str, Any]
    environment: dict[str, str]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the scores, in a multi-label problem with ``f1 of <label>`` for each label."""
        return tuple(name for name in self.rows[0].runs[0] if name not in BESIDE_SCORES)

    @property
    def judged(self) -> list[Candidate]:
        """The rows without those of which a fit found nothing; all, if each has such a fit."""
        return [model for model in self.rows if not model.n_empty] or self.rows

    @property
    def best(self) -> Candidate:
        """The row of the highest mean F1, among those that are `judged`."""
        return max(self.judged, key=lambda row: row.mean("f1"))

    def behind(self, model: Candidate) -> tuple[float, float, float]:
        """Return how far the F1 of a row is below that of the `best`, with a 95 % interval.

        The interval is of the difference between this F1 and the highest, on new test rows and with
        new seeds. All intervals of a comparison hold at once, in 95 of 100 comparisons. With one
        seed they are of new test rows alone. If an interval holds 0, the two rows cannot be told
        apart.

        Parameters
        ----------
        model : Candidate
            One of `rows`.

        Returns
        -------
        difference, low, high : float
            At most 0 for the difference of a row that is `judged`; (0, 0, 0) for the best. The ends
            are NaN for rows that are not judged, and with one test row.

        Raises
        ------
        TypeError
            If `model` is no row.
        """
        if not isinstance(model, Candidate):
            raise TypeError(f"model is {shown(model)}: give one of rows")
        return self._differences()[id(model)]

    def _differences(self) -> dict[int, tuple[float, float, float]]:
        """What `behind` gives of each row."""
        judged, best = self.judged, self.best
        known = {id(m): (m.mean("f1") - best.mean("f1"), np.nan, np.nan) for m in self.rows}
        of_judged = differences(judged, judged.index(best))
        return known | dict(zip(map(id, judged), of_judged, strict=True))

    def __repr__(self) -> str:
        """The table in percent.

        The last column has the difference to the row with the highest F1, and its interval as
        `behind` gives it. A single row is compared with none.
        """
        models, known, of = self.rows, self._differences(), self.settings
        averages = [name for name in self.averages if name != "f1"]
        spread = "F1 ± sd" if any(len(model.runs) > 1 for model in models) else "F1"
        names = ["row", *(name.replace("_", " ").replace("f1", "F1") for name in averages), spread]
        lines = []
        for model in models:
            means = (f"{100 * model.mean(name):.1f}" for name in (*averages, "f1"))
            lines.append([model.label, *means])
            if len(model.runs) > 1:
                lines[-1][-1] += f" ± {100 * model.sd('f1'):.1f}"
            apart = model.empty_note or self._apart(model, *known[id(model)])
            lines[-1] += [apart] * (len(models) > 1)
        names += ["to the highest"] * (len(models) > 1)
        sizes = f"{of['n_train']} training and {of['n_test']} test rows"
        table = text_table(names, lines, f"in % ({self.measure}; {sizes})")
        return "\n".join(filter(None, [table, self.interval_note]))

    def _apart(self, model: Candidate, apart: float, low: float, high: float) -> str:
        """The cell of a difference."""
        if model is self.best:
            return "highest"
        interval = f" ({100 * low:+.1f} to {100 * high:+.1f})" if np.isfinite(low) else ""
        return f"{100 * apart:+.1f}{interval}"

    @property
    def interval_note(self) -> str:
        """A sentence on what the intervals of the table are of; empty without any."""
        if not any(low < high for _, low, high in self._differences().values()):
            return ""
        of_seeds = max(len(model.runs) for model in self.rows) > 1
        chance = "new test rows and new seeds" if of_seeds else "new test rows alone (one seed)"
        return (
            "In brackets: the interval of the difference to the highest F1, on "
            f"{chance}; 95 of 100 comparisons have no interval that is wrong."
        )

    def to_frame(self) -> Any:
        """All means as numbers between 0 and 1, for sorting, filtering and writing.

        Returns
        -------
        pandas.DataFrame or list of dict
            A row for each of `rows`: ``row``, its label; the `measures`; ``f1_sd`` over
            ``n_runs``; and what `behind` gives, as ``to_best``, ``low`` and ``high``. A list where
            pandas is not installed.
        """
        records = []
        known = self._differences()
        for model in self.rows:
            scores = {name: model.mean(name) for name in self.measures}
            apart = dict(zip(("to_best", "low", "high"), known[id(model)], strict=True))
            spread = {"f1_sd": model.sd("f1"), "n_runs": len(model.runs)}
            records.append({"row": model.label, **scores, **spread, **apart})
        return frame_of(records)

    @property
    def averages(self) -> tuple[str, ...]:
        """The `measures` without those of single labels."""
        return tuple(name for name in self.measures if not name.startswith(OF_LABEL))

    @checked
    def to_json(self, path: str | Path) -> Path:
        """Write all figures; the file takes its place when it is complete."""
        names = "label", "digest", "runs"
        rows = [{name: getattr(model, name) for name in names} for model in self.rows]
        of = {"measure": self.measure, "settings": self.settings, "environment": self.environment}
        write_text(Path(path), json.dumps(of | {"rows": rows}, indent=2, ensure_ascii=False) + "\n")
        return Path(path)

    def take_runs(self, path: Path) -> None:
        """Take the runs from a file of the same comparison; its other rows come last."""
        try:
            earlier = parse_json(path.read_text(encoding="utf-8"), str(path))
            same = earlier["settings"]["identity"] == self.settings["identity"]
            rows = {
                str(row["label"]): (str(row["digest"]), list(row["runs"]))
                for row in earlier["rows"] if row["runs"]
            }  # fmt: skip
            self.measure = str(earlier["measure"])
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"resume_from={str(path)!r} holds no comparison: {error}") from error
        if not same:
            raise ValueError(
                f"resume_from={str(path)!r} holds a comparison of other data, settings or "
                "versions: give another file, or delete this one"
            )
        for model in self.rows:
            of_file, model.runs = rows.pop(model.label, (model.digest, []))
            if of_file != model.digest:
                raise ValueError(
                    f"resume_from={str(path)!r} holds a row {model.label!r} of another loss or "
                    "estimator: give the row a new name"
                )
        self.rows = [*self.rows, *(row_of_file(label, *row) for label, row in rows.items())]


@checked
def compare_losses(
    estimator: Any,
    X: Data,
    y: Data,
    *,
    X_test: Data | None = None,
    y_test: Data | None = None,
    X_val: Data | None = None,
    y_val: Data | None = None,
    losses: Sequence[Any] | Mapping[str, Any] = LOSS_NAMES,
    seeds: int | Sequence[int] = 3,
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
    X, y : training data
    X_test, y_test : test data, default=None
        Without them every model is tested on the same fifth of the rows, which is held out:
        stratified by label, questions on one context together, drawn by ``random_state`` of the
        estimator (0 if it is no int).
    X_val, y_val : validation data, default=None
        Passed to every ``fit`` that takes them. They choose the epoch with
        ``early_stopping=True``, and the biases of tuned decisions.
    losses : list of str or Loss, or dict, default=`skdice.losses.LOSS_NAMES`
        Losses by name or as objects; a string may add a sampler and a tuned decision, as in
        ``"ce + RandomOverSampler"`` and ``"ce + tuned"`` (see
        `skdice.model_selection.candidates.parse_model`). Baselines are fitted first: ``"tfidf"``
        for texts and pairs with one label each (`TfidfClassifier`), ``"crf"`` for tags
        (`CRFTagger`). A dict maps names of rows to any of these, or to estimators of your own, such
        as ``{"ce": "ce", "trees": RandomForestClassifier()}``: for one label a row any classifier
        with ``fit`` and ``predict``. Of them every parameter ``random_state`` is set.
    seeds : int or list of int, default=3
        Seeds of the runs. An int is that many seeds, from 0. A baseline without a sampler and a
        tuned decision runs once, with the first.
    resume_from : str, Path or None, default=None
        A file that is written after each run, as by `Comparison.to_json`. Its runs are kept, also
        those of other rows and seeds than these, and only the missing ones are made.
    verbose : int, default=0
        Above 0 it prints a line for each finished run.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If `losses` or `seeds` is empty, one of `losses` is unknown or not possible with this
        estimator, `y_test` holds labels that `y` does not, or `resume_from` is of other data, of
        another estimator or of other versions, or has another loss in a row of the same name;
        before anything is trained.
    """
    check_has("estimator", estimator, "fit", "get_params", "task", "loss")
    chosen = _seeds(seeds)
    data = _checked_data(estimator, _Data(X, y, X_test, y_test, X_val, y_val))
    estimator = clone(with_pos_label(estimator, data.y))
    models = candidates_of(losses, estimator)
    for model in models:
        _check_row(model, estimator, data, chosen[0])
        model.digest = digest(neutral(seeded(model.model, 0)))
    of_losses = [model for model in models if model.loss is not None and not model.is_baseline]
    check_factors(estimator, [model.loss for model in of_losses], data.X, data.y)
    packages = environment()
    settings = _settings(estimator, data, chosen, packages)
    drawing = [model for model in of_losses if model.sampler is not None]
    if drawing and hasattr(estimator, "sampler") and given(estimator, "max_epochs") == "auto":
        settings["max_epochs"] = _equal_updates(estimator, drawing, chosen[0], data)
    comparison = Comparison("", models, settings, packages)
    if resume_from is not None and Path(resume_from).exists():
        comparison.take_runs(Path(resume_from))
    elif resume_from is not None:
        comparison.to_json(resume_from)  # refuses a bad path before anything is trained
    for seed, model in _missing_runs(models, chosen):
        _run(comparison, model, estimator, seed, data)
        if verbose:
            print(f"{model.label}, seed {seed}: F1 {100 * model.runs[-1]['f1']:.1f}", flush=True)
        if resume_from is not None:
            comparison.to_json(resume_from)
    return comparison


def _missing_runs(models: list[Candidate], seeds: list[int]) -> list[tuple[int, Candidate]]:
    """The runs to make, seed by seed, so that an interrupted comparison has some of all models."""
    return [
        (seed, model)
        for seed in seeds
        for model in sorted(models, key=lambda model: not model.is_baseline)
        if not any(run["seed"] == seed for run in model.runs)
        and (model.depends_on_seed or (seed == seeds[0] and not model.runs))
    ]


class _Data(NamedTuple):
    """The rows of a comparison."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    X_val: Any
    y_val: Any


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    """The seeds of the runs; refuses none, too many and bad ones."""
    numbers: Any = range(min(int(seeds), MOST_SEEDS + 1)) if isinstance(seeds, Integral) else seeds
    whole = all(isinstance(seed, Integral) and 0 <= int(seed) < 2**32 for seed in numbers)
    if not whole or not 1 <= len(numbers) <= MOST_SEEDS:
        raise ValueError(
            f"seeds={shown(seeds)} must be a number from 1 to {MOST_SEEDS:,}, or a list of as many "
            "seeds from 0 to 2**32 - 1"
        )
    return [int(seed) for seed in numbers]


def _checked_data(estimator: Any, data: _Data) -> _Data:
    """The rows; without test rows a fifth is held out. Refuses what cannot be scored."""
    X, y, X_test, y_test, X_val, y_val = data
    for name, value in (("X", X), ("y", y)):
        if value is None:
            raise ValueError(f"{name}=None: give training data")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test and y_test belong together: give both, or none of them")
    check_consistent_length(X, y)
    if y_test is None:
        seed = estimator.random_state
        seed = int(seed) if isinstance(seed, Integral) else 0
        train, test = rows_to_test(estimator.task, X, y, seed)
        (X, X_test), (y, y_test) = ((take(v, train), take(v, test)) for v in (X, y))
    estimator.task.check_test(y, y_test)
    check_validation(X_val, y_val)
    for rows, truth in ((X_test, y_test), (X_val, y_val)):
        check_consistent_length(rows, truth)
    return _Data(X, y, X_test, y_test, X_val, y_val)


def _check_row(model: Candidate, estimator: Any, data: _Data, seed: int) -> None:
    """Refuse a row that cannot be fitted to the data."""
    if model.loss is None:
        return
    targets, drawn = estimator.task.drawn_by(data.X, data.y)
    try:
        if model.loss == "tfidf" and np.ndim(targets) == 2:
            raise ValueError("y has several labels a row, and a TfidfClassifier gives one")
        if model.tuned and data.y_val is None:
            check_folds(seeded(model.model, seed), data.X, targets)
        if model.sampler is not None and hasattr(estimator, "sampler"):
            check_sampler(model.sampler)
            draw_rows(model.sampler, drawn, seed)
        elif model.sampler is not None:
            clone(model.sampler).fit_resample(data.X, data.y)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the row {model.label!r} is not possible: {error}") from error


def _settings(
    estimator: Any, data: _Data, seeds: list[int], packages: dict[str, str]
) -> dict[str, Any]:
    """What the file of a comparison says of it, with a digest that tells it from others."""
    varied, plain = ("loss", "random_state", "callbacks"), (str, int, float, type(None))
    params = {name: v for name, v in estimator.get_params().items() if name not in varied}
    settings: dict[str, Any] = {
        name: v for name, v in params.items() if isinstance(v, plain) and "__" not in name
    }
    n_val = 0 if data.y_val is None else len(data.y_val)
    settings |= {"seeds": seeds, "n_train": len(data.y), "n_val": n_val, "n_test": len(data.y_test)}
    versions = {name: value for name, value in packages.items() if name != "date"}
    return {**settings, "identity": digest(*data, params, versions)}


def _run(comparison: Comparison, model: Candidate, estimator: Any, seed: int, data: _Data) -> None:
    """Fit one row with one seed, and keep its scores on the test rows."""
    fitted = seeded(model.model, seed)
    held = {"X_val": data.X_val, "y_val": data.y_val} if has_fit_parameter(fitted, "X_val") else {}
    started = time.perf_counter()
    fitted.fit(data.X, data.y, **held)
    seconds = time.perf_counter() - started
    if isinstance(fitted, Pipeline) and model.loss is not None:
        fitted = fitted[-1]  # the model comes after its sampler
    if not hasattr(fitted, "evaluate"):
        fitted = Judged(fitted, estimator, data.y)
    figures = scores_and_parts(fitted, data.X_test, data.y_test)
    comparison.measure = fitted.task.measure(fitted)
    model.runs.append({"seed": seed, **figures, "seconds": seconds})


def _equal_updates(estimator: Any, models: list[Candidate], seed: int, data: Any) -> int:
    """Give rows with a sampler as many updates as a fit without makes, whose epochs are returned.

    What a fit trains on is counted in windows, without rows held out.
    """
    size = rows_of_update(estimator)
    data = data.X, data.y, data.X_val, data.y_val
    n_rows, epochs = length_of_fit(estimator, *data)
    for model in models:
        inner = model.model.estimator if model.tuned else model.model
        drawn, _ = length_of_fit(seeded(inner, seed), *data)
        inner.set_params(max_epochs=max(round(epochs * -(-n_rows // size) / -(-drawn // size)), 1))
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
