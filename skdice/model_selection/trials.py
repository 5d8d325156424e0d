"""The trials of a search: an objective for Optuna that fits and scores a model on every fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from numbers import Number
from typing import Any

import numpy as np
from scipy.stats import rankdata

from skdice._compat import check_method_params, safe_indexing
from skdice._warn import warn
from skdice.engine.callbacks import AfterEpoch
from skdice.estimators.classifier import DiceClassifier
from skdice.estimators.transformer import TransformerEstimator
from skdice.exceptions import TrialWarning
from skdice.model_selection.intervals import Replayed
from skdice.model_selection.spaces import import_optuna, suggest, with_params

RECORD = "record"  # the attribute of a trial that ran to its end
FOLD = 10_000  # Optuna's steps for a fold; no fit has as many epochs


@dataclass
class Record:
    """What the study keeps of a trial."""

    scores: list[float] = field(default_factory=list)  # of each fold, so far
    fit_time: list[float] = field(default_factory=list)  # seconds of each fold
    n_empty: int = 0  # folds whose test predictions are all of one class, or hold no span
    error: str | None = None

    @property
    def mean(self) -> float:
        """The mean score of the folds so far; NaN without any."""
        return float(np.mean(self.scores)) if self.scores else float("nan")

    def end(self, trial: Any) -> float:
        """Keep the record in the study, and return the score."""
        trial.set_user_attr(RECORD, asdict(self))
        return self.mean


@dataclass
class FullFits:
    """The objective that fits the estimator on every fold."""

    estimator: Any
    spaces: list[dict[str, Any]]
    X: Any
    y: Any
    splits: list[Any]  # of (train, test)
    fit_params: Mapping[str, Any]
    scorer: Any
    score_params: Mapping[str, Any]
    error_score: Any
    prunes: bool = True
    seed: int | None = None  # of Optuna's own sampler

    def __call__(self, trial: Any) -> float:
        """The mean score of the trial's folds; a pruner or an error may end it early."""
        params, record = self.suggested(trial), Record()
        for fold in range(len(self.splits)):
            model, started = self.model(params), time.perf_counter()
            try:
                self._fit(model, fold, trial)
                record.fit_time.append(time.perf_counter() - started)
                rows = self.splits[fold][1]
                self.score(model, self.take(rows), rows, record)
            except import_optuna().TrialPruned:
                record.end(trial)
                raise
            except Exception as error:
                self.fail(error, trial, record)
                break
            last = fold + 1 == len(self.splits)
            # The step is after the epochs of this fold, and before those of the next.
            if not last and self.prunes and _is_pruned(trial, (fold + 1) * FOLD - 1, record.mean):
                record.end(trial)
                raise import_optuna().TrialPruned
        return record.end(trial)

    @property
    def is_text(self) -> bool:
        """Whether heads of the estimator are on a frozen encoder, and do not equal its fits."""
        return not isinstance(self.estimator, DiceClassifier)

    def suggested(self, trial: Any) -> dict[str, Any]:
        """The parameters of a trial.

        The seed depends on its number. So several processes repeat no settings, and a continued
        search asks for those of one run.
        """
        if self.seed is not None:
            seed = np.random.SeedSequence([self.seed, trial.number]).generate_state(1)[0]
            trial.study.sampler = import_optuna().samplers.TPESampler(seed=int(seed))
        return suggest(trial, self.spaces)

    def model(self, params: Mapping[str, Any]) -> Any:
        """The unfitted estimator of a trial."""
        return with_params(self.estimator, params)

    def take(self, rows: Any) -> list[Any]:
        """X and y of some rows; X alone if there is no y."""
        parts = (part for part in (self.X, self.y) if part is not None)
        return [safe_indexing(part, np.asarray(rows)) for part in parts]

    def score(self, model: Any, data: list[Any], rows: Any, record: Record) -> None:
        """Add the score of a fitted model on the test rows of a fold to a record."""
        replayed = Replayed(model, data[0])
        record.scores.append(self._scored(replayed.model, data, rows))
        record.n_empty += len(data) > 1 and replayed.found_nothing(data[1])

    def _scored(self, model: Any, data: list[Any], rows: Any) -> float:
        weights = check_method_params(self.X, self.score_params, rows)
        return float(self.scorer(model, *data, **weights))

    def fail(self, error: Exception, trial: Any, record: Record) -> None:
        """Raise an error, or warn of it and give the folds that are missing `error_score`."""
        if self.error_score == "raise":
            raise error
        record.error = f"{type(error).__name__}: {error}"
        record.scores += [float(self.error_score)] * (len(self.splits) - len(record.scores))
        warn(f"trial {trial.number} failed and scores {self.error_score}: {error!r}", TrialWarning)

    def _fit(self, model: Any, fold: int, trial: Any) -> None:
        train, test = self.splits[fold]

        def prune(draft: Any) -> None:
            step = fold * FOLD + len(draft.net_.history) - 1
            if _is_pruned(trial, step, self._score_so_far(draft, test)):
                raise import_optuna().TrialPruned

        # Scores of epochs predict that of the fit only if it keeps its last epoch.
        if self.prunes and isinstance(model, TransformerEstimator) and not model.early_stopping:
            model.set_params(callbacks=[*(model.callbacks or []), AfterEpoch(prune)])
        model.fit(*self.take(train), **check_method_params(self.X, self.fit_params, train))

    def _score_so_far(self, model: Any, rows: Any) -> float:
        """The score of a model that is being fitted; NaN if it cannot be scored."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early epochs predict no positives
                return self._scored(model, self.take(rows), rows)
        except Exception:
            return float("nan")


def _is_pruned(trial: Any, step: int, score: float) -> bool:
    """Report a score to a trial, and ask its pruner."""
    if not np.isfinite(score):
        return False
    trial.report(score, step)
    return bool(trial.should_prune())


def ended_trials(study: Any) -> list[tuple[Any, Record]]:
    """The trials of a study that ran to their end, with their records; not interrupted ones."""
    known = (trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished())
    return [(t, Record(**t.user_attrs[RECORD])) for t in known if RECORD in t.user_attrs]


def cv_results(study: Any, n_splits: int, spaces: Sequence[Any]) -> dict[str, Any]:
    """`cv_results_` as in `GridSearchCV`, with the number and the state of each trial."""
    from optuna.trial import FixedTrial

    trials, records = zip(*ended_trials(study), strict=True) if ended_trials(study) else ((), ())
    params = [suggest(FixedTrial(trial.params), spaces) for trial in trials]
    return {
        "trial": np.array([trial.number for trial in trials], dtype=int),
        "state": np.array([trial.state.name for trial in trials], dtype=object),
        "params": params,
        **_param_columns(params),
        **_score_columns(records, n_splits),
        "n_empty": np.array([record.n_empty for record in records], dtype=int),
    }


def _param_columns(params: list[dict[str, Any]]) -> dict[str, Any]:
    """A masked array for each parameter, of numbers where all its values are numbers."""
    columns = {}
    for name in sorted(set().union(*params)):
        given = {i: of_trial[name] for i, of_trial in enumerate(params) if name in of_trial}
        numbers = all(isinstance(value, (Number, np.bool_)) for value in given.values())
        dtype = np.asarray(list(given.values())).dtype if numbers else object
        columns[f"param_{name}"] = column = np.ma.masked_all(len(params), dtype=dtype)
        for i, value in given.items():
            column[i] = value
    return columns


def _score_columns(records: Sequence[Record], n_splits: int) -> dict[str, np.ndarray]:
    """The times and the scores of each trial."""
    times = [record.fit_time or [np.nan] for record in records]
    scores = np.full((len(records), n_splits), np.nan)
    for of_trial, record in zip(scores, records, strict=True):
        of_trial[: len(record.scores)] = record.scores
    means = scores.mean(axis=1)
    lost = np.where(np.isfinite(means), -means, np.inf)
    return {
        "mean_fit_time": np.array([np.mean(of_folds) for of_folds in times]),
        "std_fit_time": np.array([np.std(of_folds) for of_folds in times]),
        **{f"split{fold}_test_score": of_fold for fold, of_fold in enumerate(scores.T)},
        "mean_test_score": means,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(lost, method="min").astype(np.int32),
    }
