"""Trials run one by one: the estimator is fitted and scored on every fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from skorch.callbacks import Callback

from skdice._compat import check_method_params, safe_indexing
from skdice.estimators.predictions import OtherRowsError
from skdice.estimators.transformer import TransformerEstimator
from skdice.model_selection.records import Scores, Settings, TrialRecord
from skdice.model_selection.spaces import cloned

__all__ = ["CrossValidation", "FullFits"]

FOLD = 10_000  # steps of a fold, more than any fit has epochs


@dataclass
class CrossValidation:
    """What each trial of a `search` is fitted and scored on."""

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

    def model(self, params: dict[str, Any]) -> Any:
        """The unfitted estimator of a trial."""
        return clone(self.estimator).set_params(**cloned(params))

    def take(self, rows: Any) -> list[Any]:
        """X and y of some rows; X alone where there is no y."""
        parts = (part for part in (self.X, self.y) if part is not None)
        return [safe_indexing(part, np.asarray(rows)) for part in parts]

    def scored(self, rows: Any) -> tuple[list[Any], dict[str, dict[str, Any]]]:
        """X and y of some rows, and each scorer's own parameters of them."""
        given = {name: self.score_params.get(name, {}) for name in self.scorers}
        params = {name: check_method_params(self.X, p, rows) for name, p in given.items()}
        return self.take(rows), params

    def score(self, name: str, model: Any, scored: Any, record: TrialRecord) -> float:
        """One score, or `score_of_error` where its scorer fails."""
        data, params = scored
        try:
            score = self.scorers[name](model, *data, **params[name])
        except OtherRowsError:
            raise
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
        """Where scores of a fold go, and the rows that they are of."""
        train, test = self.splits[fold]
        return [(record.test, test), (record.train, train)][: 2 if self.with_train else 1]

    def ended(self, record: TrialRecord) -> TrialRecord:
        """The record of a trial that is through, with its state."""
        failed = self.raises and record.error is not None
        if record.state == "COMPLETE" and (failed or not np.isfinite(record.score(self.key))):
            record.state = "FAIL"
        return record


class FullFits:
    """The strategy that fits the estimator for each trial and fold.

    `n_jobs` trials run at a time, through joblib; only with 1 can a pruner end them.
    """

    def __init__(self, cv: CrossValidation, n_jobs: int | None, *, prunes: bool) -> None:
        self.cv, self.prunes = cv, prunes
        self.n_jobs = 1 if n_jobs is None else n_jobs
        self.trials_at_once = int(effective_n_jobs(self.n_jobs))

    def run(self, settings: Settings, trials: Sequence[Any] = ()) -> list[TrialRecord]:
        """Run trials with the given parameters; `trials` are asked whether to prune."""
        if self.n_jobs == 1:
            return [self.run_one(*pair) for pair in zip_longest(settings, trials)]
        return Parallel(n_jobs=self.n_jobs)(delayed(self.run_one)(params) for params in settings)

    def run_one(self, params: dict[str, Any], trial: Any = None) -> TrialRecord:
        """Fit and score on every fold; a pruner or an error may end it early."""
        import optuna

        cv, record, n_folds = self.cv, TrialRecord(), len(self.cv.splits)
        for fold in range(n_folds):
            started = time.perf_counter()
            try:
                model = cv.model(params)
                self._fit(model, fold, trial)
            except optuna.TrialPruned:
                record.state = "PRUNED"
                break
            except Exception as error:
                record.fail(error, of_fit=True, keep_frames=cv.raises)
                missing = [cv.score_of_error] * (n_folds - fold)
                for scores, _ in cv.sides(record, fold):
                    scores |= {name: scores.get(name, []) + missing for name in cv.scorers}
                break
            fitted = time.perf_counter()
            for scores, rows in cv.sides(record, fold):
                scored = cv.scored(rows)
                for name in cv.scorers:
                    scores.setdefault(name, []).append(cv.score(name, model, scored, record))
            record.fit_time.append(fitted - started)
            record.score_time.append(time.perf_counter() - fitted)
            if fold + 1 == n_folds or (cv.raises and record.error is not None):
                break
            # The step is after the epochs of this fold, and before those of the next.
            if self.prunes and _is_pruned(trial, (fold + 1) * FOLD - 1, record.score(cv.key)):
                record.state = "PRUNED"
                break
        return cv.ended(record)

    def _fit(self, model: Any, fold: int, trial: Any) -> None:
        train, test = self.cv.splits[fold]
        callback = None
        # Epochs say what the fit will be only where it ends as its last.
        epochs = isinstance(model, TransformerEstimator) and not model.early_stopping
        if epochs and self.prunes and trial is not None:
            callback = _PruneEpochs(trial, fold * FOLD, partial(self._score_so_far, model, test))
            model.set_params(callbacks=[*(model.callbacks or []), callback])
        params = check_method_params(self.cv.X, self.cv.fit_params, train)
        model.fit(*self.cv.take(train), **params)
        if callback is not None and callback.interrupted:
            raise KeyboardInterrupt

    def _score_so_far(self, model: Any, rows: Any) -> float:
        """The score that is searched of a model in mid-fit; NaN where it cannot be scored."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early epochs predict no positives
                data, params = self.cv.scored(rows)
                key = self.cv.key
                return float(self.cv.scorers[key](model, *data, **params[key]))
        except Exception:
            return float("nan")


def _is_pruned(trial: Any, step: int, score: float) -> bool:
    """Report a score to a trial, if there is one, and ask its pruner."""
    if trial is None or not np.isfinite(score):
        return False
    trial.report(score, step)
    return bool(trial.should_prune())


class _PruneEpochs(Callback):
    """Report each epoch's score to a trial, and end it where its pruner wants that.

    It is the score that is searched: a pruner compares it with those of finished folds.
    """

    def __init__(self, trial: Any, first: int, score: Callable[[], float]) -> None:
        self.trial = trial
        self.first = first
        self.score = score
        self.interrupted = False

    def __sklearn_clone__(self) -> _PruneEpochs:
        return self  # a trial cannot be copied

    def __deepcopy__(self, memo: Any) -> _PruneEpochs:
        return self

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        import optuna

        try:
            pruned = _is_pruned(self.trial, self.first + len(net.history) - 1, self.score())
        except KeyboardInterrupt:
            self.interrupted = True  # the net takes it for the end of the training
            raise
        if pruned:
            raise optuna.TrialPruned
