"""One trial of a search: fit and score on every fold, alone or together with others."""

from __future__ import annotations

import math
import pickle
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from skorch.callbacks import Callback

from skdice._compat import check_method_params, safe_indexing
from skdice.estimators._transformer import TransformerEstimator
from skdice.model_selection import lanes
from skdice.model_selection.screening import Screen
from skdice.model_selection.spaces import cloned

__all__ = ["FOLD", "Job", "Outcome", "has_pruner", "is_pruned", "plain"]

FOLD = 10_000  # steps of a fold, more than any fit has epochs


class Outcome:
    """What one trial ran."""

    def __init__(self, names: Sequence[str]) -> None:
        self.test: dict[str, list[float]] = {name: [] for name in names}
        self.train: dict[str, list[float]] = {name: [] for name in names}
        self.fit_time: list[float] = []
        self.score_time: list[float] = []
        self.pruned = False
        self.screened = False  # only its head ran, or its lane
        self.unfitted = False  # a fit failed, and not only a scorer
        self.error: Exception | None = None  # the last

    def __getstate__(self) -> dict[str, Any]:
        """With an error that another process can read."""
        state = dict(self.__dict__)
        try:
            pickle.loads(pickle.dumps(self.error))
        except Exception:
            state["error"] = RuntimeError(f"{type(self.error).__name__}: {self.error}")
        return state

    def mean(self, key: str) -> float:
        return float(np.mean(self.test[key])) if self.test[key] else float("nan")

    def attributes(self) -> dict[str, Any]:
        """As plain values, for the study's storage; last what says that all are there."""
        nothing: dict[str, list[float]] = {name: [] for name in self.test}
        found: dict[str, Any] = {
            "train_scores": _finite(self.train),
            "fit_time": self.fit_time,
            "score_time": self.score_time,
        }
        if self.screened:
            found["shared_scores"] = _finite(nothing if self.pruned else self.test)
        if self.error is not None:
            found["error"] = f"{type(self.error).__name__}: {self.error}"
        found["test_scores"] = _finite(nothing if self.screened else self.test)
        return found


class Job:
    """What each trial does: fit and score on every fold, ended early where the pruner says so."""

    def __init__(
        self,
        search: Any,
        X: Any,
        y: Any,
        fit_params: dict[str, Any],
        splits: list[Any],
        scorers: dict[str, Any],
        key: str,
        score_params: dict[str, dict[str, Any]],
    ) -> None:
        self.estimator = search.estimator
        self.raises = search.error_score == "raise"
        self.error_score = np.nan if self.raises else float(search.error_score)
        self.with_train = search.return_train_score
        self.X, self.y, self.fit_params = X, y, fit_params
        self.splits, self.scorers, self.key = splits, scorers, key
        self.score_params = score_params  # of each scorer
        self.error: Exception | None = None  # of the last trial that failed
        self.n_jobs = 1 if search.n_jobs is None else search.n_jobs
        self.ends = math.inf if search.timeout is None else time.monotonic() + search.timeout

    @property
    def n_workers(self) -> int:
        return effective_n_jobs(self.n_jobs)

    def is_late(self) -> bool:
        """Whether the search has had its time."""
        return time.monotonic() >= self.ends

    def run_all(self, chosen: list[dict[str, Any]], trials: Sequence[Any] = ()) -> list[Outcome]:
        """Run several trials, by so many processes as were asked for; `trials` as in `run`, where
        that is one.
        """
        if self.n_jobs == 1:
            return [self.run(*pair) for pair in zip_longest(chosen, trials)]
        return Parallel(n_jobs=self.n_jobs)(delayed(self.run)(params) for params in chosen)

    def tell(self, study: Any, trial: Any, outcome: Outcome) -> None:
        """Write what a trial ran into the study."""
        from optuna.trial import TrialState

        for name, value in outcome.attributes().items():
            trial.set_user_attr(name, value)
        value = outcome.mean(self.key)
        if outcome.pruned:
            study.tell(trial, state=TrialState.PRUNED)
        elif not np.isfinite(value) or (self.raises and outcome.error is not None):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, value)
        self.note(trial.number, outcome)

    def note(self, number: int, outcome: Outcome) -> None:
        """Raise what failed in a trial, or warn of it."""
        if outcome.error is None:
            return
        self.error = outcome.error
        if self.raises:
            raise outcome.error
        kind = FitFailedWarning if outcome.unfitted else UserWarning
        what = "failed" if outcome.unfitted else "could not be scored"
        warnings.warn(
            f"trial {number} {what} and scores {self.error_score}: {outcome.error!r}",
            kind,
            stacklevel=5,
        )

    def run(self, params: dict[str, Any], trial: Any = None) -> Outcome:
        """Run a trial; `trial` lets its pruner end it."""
        import optuna

        outcome = Outcome(list(self.scorers))
        for fold, (train, test) in enumerate(self.splits):
            started = time.perf_counter()
            try:
                model = self.model(params)
                self._fit(model, fold, train, test, trial)
            except optuna.TrialPruned:
                outcome.pruned = True
                return outcome
            except Exception as error:
                self.give_up(outcome, error, fold)
                return outcome
            outcome.fit_time.append(time.perf_counter() - started)
            if self.ends_after(fold, model, outcome, trial):
                return outcome
        return outcome

    def _sides(self, outcome: Outcome) -> list[dict[str, list[float]]]:
        """Scores to fill in; what stands for fits has none of training rows."""
        both = self.with_train and not outcome.screened
        return [outcome.test, outcome.train] if both else [outcome.test]

    def give_up(self, outcome: Outcome, error: Exception, fold: int) -> None:
        """Note that a fit failed, and `error_score` for its fold and those that would follow."""
        outcome.error, outcome.unfitted = error, True
        for scores in self._sides(outcome):
            for name in self.scorers:
                scores[name] += [self.error_score] * (len(self.splits) - fold)

    def ends_after(self, fold: int, model: Any, outcome: Outcome, trial: Any) -> bool:
        """Score what was fitted on a fold; whether the trial ends with it, pruned or failed."""
        train, test = self.splits[fold]
        started = time.perf_counter()
        for side, rows in zip(self._sides(outcome), (test, train), strict=False):
            X, y, given = self.to_score(rows)
            for name in self.scorers:
                side[name].append(self.score(name, model, X, y, given, outcome))
        outcome.score_time.append(time.perf_counter() - started)
        if self.raises and outcome.error is not None:
            return True
        if fold + 1 < len(self.splits):
            # After the epochs of this fold, and before those of the next.
            outcome.pruned = is_pruned(trial, (fold + 1) * FOLD - 1, outcome.mean(self.key))
        return outcome.pruned

    def run_lanes(self, chosen: list[dict[str, Any]]) -> list[Outcome]:
        """Run several trials at once; where that fails, in halves, and what fails by itself as a
        fit, so that it has its error.
        """
        outcomes = [Outcome(list(self.scorers)) for _ in chosen]
        asked = [
            (train, np.concatenate([test, train]) if self.with_train else test)
            for train, test in self.splits
        ]
        started = time.perf_counter()
        try:
            models = [self.model(params) for params in chosen]
            fitted = lanes.fit_lanes(models, self.X, self.y, asked)
        except Exception:
            if len(chosen) == 1:
                return [self.run(chosen[0])]
            return _in_halves(self.run_lanes, chosen)
        share = (time.perf_counter() - started) / (len(chosen) * len(asked))
        for (train, test), of_fold in zip(self.splits, fitted, strict=True):
            sides = [("test", _LaneScores(self, test), slice(None, len(test)))]
            if self.with_train:
                sides.append(("train", _LaneScores(self, train), slice(len(test), None)))
            for outcome, model in zip(outcomes, of_fold, strict=True):
                outcome.fit_time.append(share)
                started = time.perf_counter()
                for side, scores, part in sides:
                    scores.add(model.part(part), getattr(outcome, side), outcome)
                outcome.score_time.append(time.perf_counter() - started)
        return outcomes

    def run_heads(self, screen: Screen, chosen: list[dict[str, Any]]) -> list[Outcome]:
        """Judge several trials by their heads; where that fails, in halves, as above."""
        outcomes = [Outcome(list(self.scorers)) for _ in chosen]
        started = time.perf_counter()
        try:
            fitted = screen.models([self.model(params).loss for params in chosen])
        except Exception as error:
            if len(chosen) > 1:
                return _in_halves(partial(self.run_heads, screen), chosen)
            outcomes[0].error, outcomes[0].unfitted = error, True
            outcomes[0].screened = True
            return outcomes
        share = (time.perf_counter() - started) / (len(chosen) * len(self.splits))
        for (_, test), of_fold in zip(self.splits, fitted, strict=True):
            scores = _LaneScores(self, test)
            for outcome, model in zip(outcomes, of_fold, strict=True):
                outcome.screened = True
                outcome.fit_time.append(share)
                started = time.perf_counter()
                scores.add(model, outcome.test, outcome)
                outcome.score_time.append(time.perf_counter() - started)
        return outcomes

    def model(self, params: dict[str, Any]) -> Any:
        """The unfitted estimator of a trial."""
        return clone(self.estimator).set_params(**cloned(params))

    def _fit(self, model: Any, fold: int, train: Any, test: Any, trial: Any) -> None:
        X, y, chosen = self.to_fit(train)
        callback = None
        if has_pruner(trial) and _reports_epochs(model):  # or it were scored for nobody
            callback = _PruneEpochs(trial, fold * FOLD, partial(self.look, model, test))
            model.set_params(callbacks=[*(model.callbacks or []), callback])
        if y is None:
            model.fit(X, **chosen)
        else:
            model.fit(X, y, **chosen)
        if callback is not None and callback.interrupted:
            raise KeyboardInterrupt

    def look(self, model: Any, rows: Any) -> float:
        """The score that is searched of a model in mid-fit; NaN where it cannot be scored."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early epochs predict no positives
                X, y, given = self.to_score(rows)
                scorer, params = self.scorers[self.key], given.get(self.key, {})
                return float(_score_of(scorer, model, X, y, params))
        except Exception:
            return float("nan")

    def score(
        self, name: str, model: Any, X: Any, y: Any, given: dict[str, Any], outcome: Outcome
    ) -> float:
        """One score, or `error_score` where its scorer fails."""
        try:
            score = _score_of(self.scorers[name], model, X, y, given.get(name, {}))
        except lanes.OtherRows:
            raise
        except Exception as error:
            outcome.error = error
            return self.error_score
        try:
            return float(score)
        except (TypeError, ValueError) as error:
            several = "; several scores are a dict of scorers, and refit the name of one"
            raise ValueError(
                f"scoring must return a number, and {self.scorers[name]!r} returned {score!r}"
                f"{several if isinstance(score, dict) else ''}"
            ) from error

    def to_fit(self, rows: Any) -> tuple[Any, Any, dict[str, Any]]:
        """X, y and parameters of ``fit``, of some rows."""
        chosen = check_method_params(self.X, self.fit_params, rows)
        return take_rows(self.X, rows), take_rows(self.y, rows), chosen

    def to_score(self, rows: Any) -> tuple[Any, Any, dict[str, dict[str, Any]]]:
        """X, y and each scorer's parameters, of some rows."""
        params = {
            name: check_method_params(self.X, given, rows)
            for name, given in self.score_params.items()
        }
        return take_rows(self.X, rows), take_rows(self.y, rows), params


def _score_of(scorer: Any, model: Any, X: Any, y: Any, params: dict[str, Any]) -> Any:
    return scorer(model, X, **params) if y is None else scorer(model, X, y, **params)


def has_pruner(trial: Any) -> bool:
    """Whether anybody looks at what is reported to a trial."""
    from optuna.pruners import NopPruner

    return trial is not None and type(trial.study.pruner) is not NopPruner


def is_pruned(trial: Any, step: int, score: float) -> bool:
    """Report a score to a trial, if there is one, and ask its pruner."""
    if not has_pruner(trial) or not np.isfinite(score):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has this step already, where it had to begin anew
        trial.report(score, step)
    return bool(trial.should_prune())


def _in_halves(run: Callable[[list[Any]], list[Outcome]], chosen: list[Any]) -> list[Outcome]:
    half = len(chosen) // 2
    return run(chosen[:half]) + run(chosen[half:])


def _reports_epochs(model: Any) -> bool:
    """Whether the model has epochs to see, and the last of them is what it ends as."""
    return isinstance(model, TransformerEstimator) and not model.early_stopping


class _LaneScores:
    """Scores of lanes on the same rows: lanes that predict alike are scored once.

    Neighbouring settings often predict the same, and scikit-learn's scorers cost more than a lane's
    training. A scorer that asks for more than `predict` is called for each lane.
    """

    def __init__(self, job: Job, rows: Any) -> None:
        self.X, self.y, self.params = job.to_score(rows)
        self.job = job
        self.known: dict[tuple[str, bytes], float] = {}
        self.by_prediction = set(job.scorers)

    def add(self, model: Any, into: dict[str, list[float]], outcome: Outcome) -> None:
        """Append the model's score to each scorer's list."""
        model.rows, said = self.X, model.said()
        for name in self.job.scorers:
            if name in self.by_prediction and (name, said) in self.known:
                into[name].append(self.known[name, said])
                continue
            model.only_predicted, before = True, outcome.error
            score = self.job.score(name, model, self.X, self.y, self.params, outcome)
            if not model.only_predicted:
                self.by_prediction.discard(name)
            elif outcome.error is before:
                self.known[name, said] = score
            into[name].append(score)


class _PruneEpochs(Callback):
    """Report each epoch's score to a trial, and end it where its pruner says so.

    It is the score that is searched: a pruner weighs it against those of finished folds.
    """

    def __init__(self, trial: Any, first: int, score: Callable[[], Any]) -> None:
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
            pruned = is_pruned(self.trial, self.first + len(net.history) - 1, self.score())
        except KeyboardInterrupt:
            self.interrupted = True  # the net takes it for the end of the training
            raise
        if pruned:
            raise optuna.TrialPruned


def take_rows(X: Any, rows: Any) -> Any:
    """Rows of X with their own index, or None."""
    return None if X is None else safe_indexing(X, np.asarray(rows))


def plain(params: dict[str, Any]) -> dict[str, Any]:
    """Those of a trial's parameters that any storage keeps as they are."""
    values = {n: v.item() if isinstance(v, np.generic) else v for n, v in params.items()}
    return {n: v for n, v in values.items() if isinstance(v, (bool, int, float, str, type(None)))}


def _finite(scores: dict[str, list[float]]) -> dict[str, list[float | None]]:
    return {n: [v if np.isfinite(v) else None for v in values] for n, values in scores.items()}
