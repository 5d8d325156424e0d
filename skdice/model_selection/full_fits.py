"""The strategy that runs trials as full fits, with the data, folds and scorers of a search."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone

from skdice._compat import check_method_params, safe_indexing
from skdice.engine.callbacks import AfterEpoch
from skdice.estimators.transformer import TransformerEstimator
from skdice.model_selection.records import Scores, Settings, TrialRecord
from skdice.model_selection.spaces import cloned, import_optuna

FOLD = 10_000  # Optuna's steps for a fold; no fit has as many epochs


@dataclass
class FullFits:
    """The strategy that fits the estimator of a `search` for each trial and fold.

    It prunes only with one job.
    """

    is_exact: ClassVar[bool] = True  # the scores are those of the estimator itself

    search: InitVar[Any]
    X: Any
    y: Any
    fit_params: dict[str, Any]
    splits: list[Any]  # of (train, test)
    scorers: dict[str, Any]
    key: str  # of the score that is searched
    score_params: dict[str, dict[str, Any]]  # of each scorer

    def __post_init__(self, search: Any) -> None:
        self.estimator, self.with_train = search.estimator, search.return_train_score
        self.raises = search.error_score == "raise"
        self.score_of_error = float("nan") if self.raises else float(search.error_score)
        self.prunes = search.pruner is not None
        self.n_jobs = 1 if search.n_jobs is None else search.n_jobs
        self.trials_at_once = int(effective_n_jobs(self.n_jobs))

    def model(self, params: dict[str, Any]) -> Any:
        """The unfitted estimator of a trial."""
        return clone(self.estimator).set_params(**cloned(params))

    def take(self, rows: Any) -> list[Any]:
        """X and y of some rows; X alone if there is no y."""
        parts = (part for part in (self.X, self.y) if part is not None)
        return [safe_indexing(part, np.asarray(rows)) for part in parts]

    def scored(self, rows: Any) -> tuple[list[Any], dict[str, dict[str, Any]]]:
        """X and y of some rows, and each scorer's own parameters for them."""
        of_scorer = self.score_params.items()
        return self.take(rows), {
            name: check_method_params(self.X, p, rows) for name, p in of_scorer
        }

    def score(self, name: str, model: Any, scored: Any, record: TrialRecord) -> float:
        """One score, or `score_of_error` if its scorer fails."""
        data, params = scored
        try:
            score = self.scorers[name](model, *data, **params[name])
        except Exception as error:
            record.fail(error, keep_frames=self.raises)
            return self.score_of_error
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            several = "; several scores are a dict of scorers, and refit the name of one"
            raise ValueError(
                f"scoring must return a number, and {self.scorers[name]!r} returned {score!r}"
                f"{several if isinstance(score, dict) else ''}"
            ) from error

    def sides(self, record: TrialRecord, fold: int) -> list[tuple[Scores, Any]]:
        """The score lists of a record, each with the rows of this fold that it is for."""
        train, test = self.splits[fold]
        return [(record.test, test), (record.train, train)][: 2 if self.with_train else 1]

    def ended(self, record: TrialRecord) -> TrialRecord:
        """The record of a finished trial, with its state."""
        failed = self.raises and record.error is not None
        if record.state == "COMPLETE" and (failed or not np.isfinite(record.score(self.key))):
            record.state = "FAIL"
        return record

    def run(self, settings: Settings, trials: Sequence[Any] = ()) -> list[TrialRecord]:
        """Run trials with the given parameters; `trials` are asked whether to prune."""
        if self.n_jobs == 1:
            return [self.run_one(*pair) for pair in zip_longest(settings, trials)]
        return Parallel(n_jobs=self.n_jobs)(delayed(self.run_one)(params) for params in settings)

    def run_one(self, params: dict[str, Any], trial: Any = None) -> TrialRecord:
        """Fit and score on every fold; a pruner or an error may end it early."""
        optuna = import_optuna()
        record, n_folds = TrialRecord(), len(self.splits)
        for fold in range(n_folds):
            started = time.perf_counter()
            try:
                model = self.model(params)
                self._fit(model, fold, trial)
            except optuna.TrialPruned:
                record.state = "PRUNED"
                break
            except Exception as error:
                record.fail(error, of_fit=True, keep_frames=self.raises)
                missing = [self.score_of_error] * (n_folds - fold)
                for scores, _ in self.sides(record, fold):
                    scores |= {name: scores.get(name, []) + missing for name in self.scorers}
                break
            fitted = time.perf_counter()
            for scores, rows in self.sides(record, fold):
                scored = self.scored(rows)
                for name in self.scorers:
                    scores.setdefault(name, []).append(self.score(name, model, scored, record))
            record.fit_time.append(fitted - started)
            record.score_time.append(time.perf_counter() - fitted)
            if fold + 1 == n_folds or (self.raises and record.error is not None):
                break
            # The step is after the epochs of this fold, and before those of the next.
            if self.prunes and _is_pruned(trial, (fold + 1) * FOLD - 1, record.score(self.key)):
                record.state = "PRUNED"
                break
        return self.ended(record)

    def _fit(self, model: Any, fold: int, trial: Any) -> None:
        train, test = self.splits[fold]
        optuna = import_optuna()

        def prune(draft: Any) -> None:
            step = fold * FOLD + len(draft.net_.history) - 1
            if _is_pruned(trial, step, self._score_so_far(draft, test)):
                raise optuna.TrialPruned

        # Scores of epochs predict that of the fit only if it keeps its last epoch.
        epochs = isinstance(model, TransformerEstimator) and not model.early_stopping
        if epochs and self.prunes and trial is not None:
            model.set_params(callbacks=[*(model.callbacks or []), AfterEpoch(prune)])
        params = check_method_params(self.X, self.fit_params, train)
        model.fit(*self.take(train), **params)

    def _score_so_far(self, model: Any, rows: Any) -> float:
        """The searched score of a model that is being fitted; NaN if it cannot be scored."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early epochs predict no positives
                data, params = self.scored(rows)
                key = self.key
                return float(self.scorers[key](model, *data, **params[key]))
        except Exception:
            return float("nan")


def _is_pruned(trial: Any, step: int, score: float) -> bool:
    """Report a score to a trial, if there is one, and ask its pruner."""
    if trial is None or not np.isfinite(score):
        return False
    trial.report(score, step)
    return bool(trial.should_prune())
