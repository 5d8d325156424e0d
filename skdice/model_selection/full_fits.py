"""Trials run one by one: the estimator is fitted and scored on every fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from skorch.callbacks import Callback

from skdice._compat import check_method_params, safe_indexing
from skdice.estimators._transformer import TransformerEstimator
from skdice.model_selection.predictions import OtherRows
from skdice.model_selection.records import Scores, TrialRecord
from skdice.model_selection.spaces import cloned

__all__ = ["CrossValidation", "FullFits", "ScoredRows"]

FOLD = 10_000  # steps of a fold, more than any fit has epochs


@dataclass
class ScoredRows:
    """Rows to score on, with each scorer's own parameters."""

    X: Any
    y: Any
    params: dict[str, dict[str, Any]]


@dataclass
class CrossValidation:
    """The estimator, the data, the folds and the scorers of a search.

    Attributes
    ----------
    estimator : estimator
    X, y : data
    fit_params : dict
        For the estimator's ``fit``.
    splits : list of (train, test)
    scorers : dict of callables
    key : str
        The scorer that is searched.
    score_params : dict of dicts
        For each scorer.
    error_score : float or "raise"
    with_train : bool
        Whether training rows are scored, too.
    """

    estimator: Any
    X: Any
    y: Any
    fit_params: dict[str, Any]
    splits: list[Any]
    scorers: dict[str, Any]
    key: str
    score_params: dict[str, dict[str, Any]]
    error_score: Any
    with_train: bool

    @property
    def raises(self) -> bool:
        """Whether an error ends the search."""
        return bool(self.error_score == "raise")

    @property
    def score_of_error(self) -> float:
        """What a fold scores that cannot be fitted or scored."""
        return float("nan") if self.raises else float(self.error_score)

    def model(self, params: dict[str, Any]) -> Any:
        """The unfitted estimator of a trial."""
        return clone(self.estimator).set_params(**cloned(params))

    def fit(self, model: Any, train: Any) -> None:
        """Fit on some rows."""
        params = check_method_params(self.X, self.fit_params, train)
        X, y = _take(self.X, train), _take(self.y, train)
        model.fit(X, **params) if y is None else model.fit(X, y, **params)

    def rows(self, rows: Any) -> ScoredRows:
        """Some rows to score on."""
        params = {
            name: check_method_params(self.X, given, rows)
            for name, given in self.score_params.items()
        }
        return ScoredRows(_take(self.X, rows), _take(self.y, rows), params)

    def call_scorer(self, name: str, model: Any, rows: ScoredRows) -> Any:
        """What a scorer returns."""
        params = rows.params.get(name, {})
        if rows.y is None:
            return self.scorers[name](model, rows.X, **params)
        return self.scorers[name](model, rows.X, rows.y, **params)

    def score(self, name: str, model: Any, rows: ScoredRows, record: TrialRecord) -> float:
        """One score, or `score_of_error` where its scorer fails."""
        try:
            score = self.call_scorer(name, model, rows)
        except OtherRows:
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

    def score_fold(self, model: Any, fold: int, record: TrialRecord) -> None:
        """Score a fitted model on the rows of a fold."""
        started = time.perf_counter()
        train, test = self.splits[fold]
        for part, into in self.sides(record):
            rows = self.rows(test if part == "test" else train)
            for name in self.scorers:
                into.setdefault(name, []).append(self.score(name, model, rows, record))
        record.score_times.append(time.perf_counter() - started)

    def sides(self, record: TrialRecord) -> list[tuple[str, Scores]]:
        """The parts of a fold that are scored, and where their scores go."""
        return [("test", record.test), *([("train", record.train)] if self.with_train else [])]

    def closed(self, record: TrialRecord) -> TrialRecord:
        """The record of a trial that is through, with its state."""
        if record.state == "COMPLETE":
            failed = self.raises and record.error is not None
            failed |= not np.isfinite(record.score(self.key))
            record.state = "FAIL" if failed else "COMPLETE"
        return record


def _take(X: Any, rows: Any) -> Any:
    """Rows of X with their own index, or None."""
    return None if X is None else safe_indexing(X, np.asarray(rows))


class FullFits:
    """The strategy that fits the estimator for each trial and fold.

    Parameters
    ----------
    cv : CrossValidation
    n_jobs : int
        Trials at a time, through joblib; only with 1 can a pruner end them.
    """

    def __init__(self, cv: CrossValidation, n_jobs: int = 1) -> None:
        self.cv = cv
        self.n_jobs = n_jobs

    @property
    def trials_at_once(self) -> int:
        """Trials that one call of `run` should get."""
        return int(effective_n_jobs(self.n_jobs))

    def run(
        self, settings: Sequence[dict[str, Any]], trials: Sequence[Any] = ()
    ) -> list[TrialRecord]:
        """Run trials with the given parameters; `trials` are asked whether to prune."""
        if self.n_jobs == 1:
            return [self.run_one(*pair) for pair in zip_longest(settings, trials)]
        return Parallel(n_jobs=self.n_jobs)(delayed(self.run_one)(params) for params in settings)

    def run_one(self, params: dict[str, Any], trial: Any = None) -> TrialRecord:
        """Fit and score on every fold; a pruner or an error may end it early."""
        import optuna

        cv, record = self.cv, TrialRecord()
        for fold in range(len(cv.splits)):
            started = time.perf_counter()
            try:
                model = cv.model(params)
                self._fit(model, fold, trial)
            except optuna.TrialPruned:
                record.state = "PRUNED"
                break
            except Exception as error:
                record.fail(error, of_fit=True, keep_frames=cv.raises)
                for _, into in cv.sides(record):
                    for name in cv.scorers:
                        scores = into.setdefault(name, [])
                        scores += [cv.score_of_error] * (len(cv.splits) - fold)
                break
            record.fit_times.append(time.perf_counter() - started)
            cv.score_fold(model, fold, record)
            if cv.raises and record.error is not None:
                break
            # After the epochs of this fold, and before those of the next.
            last = fold + 1 == len(cv.splits)
            if not last and _is_pruned(trial, (fold + 1) * FOLD - 1, record.score(cv.key)):
                record.state = "PRUNED"
                break
        return cv.closed(record)

    def _fit(self, model: Any, fold: int, trial: Any) -> None:
        train, test = self.cv.splits[fold]
        callback = None
        # The last epoch must be what the fit ends as.
        epochs = isinstance(model, TransformerEstimator) and not model.early_stopping
        if epochs and _has_pruner(trial):
            callback = _PruneEpochs(trial, fold * FOLD, partial(self._score_so_far, model, test))
            model.set_params(callbacks=[*(model.callbacks or []), callback])
        self.cv.fit(model, train)
        if callback is not None and callback.interrupted:
            raise KeyboardInterrupt

    def _score_so_far(self, model: Any, rows: Any) -> float:
        """The score that is searched of a model in mid-fit; NaN where it cannot be scored."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early epochs predict no positives
                return float(self.cv.call_scorer(self.cv.key, model, self.cv.rows(rows)))
        except Exception:
            return float("nan")


def _has_pruner(trial: Any) -> bool:
    """Whether anybody looks at what is reported to a trial."""
    from optuna.pruners import NopPruner

    return trial is not None and type(trial.study.pruner) is not NopPruner


def _is_pruned(trial: Any, step: int, score: float) -> bool:
    """Report a score to a trial, if there is one, and ask its pruner."""
    if not _has_pruner(trial) or not np.isfinite(score):
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
