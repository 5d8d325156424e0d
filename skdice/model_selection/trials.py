"""One trial of a search: fit and score on every fold, alone or together with others."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_method_params, has_fit_parameter
from skorch.callbacks import Callback

from skdice.model_selection import lanes
from skdice.model_selection.screening import Screen
from skdice.model_selection.spaces import cloned
from skdice.text.inputs import take

__all__ = ["Job", "Outcome"]


class Outcome:
    """What one trial ran."""

    def __init__(self, names: Sequence[str]) -> None:
        self.test: dict[str, list[float]] = {name: [] for name in names}
        self.train: dict[str, list[float]] = {name: [] for name in names}
        self.fit_time: list[float] = []
        self.score_time: list[float] = []
        self.pruned = False
        self.screened = False  # only its heads ran
        self.error: Exception | None = None

    def mean(self, key: str) -> float:
        return float(np.mean(self.test[key])) if self.test[key] else float("nan")

    def attributes(self) -> dict[str, Any]:
        """As plain values, for the study's storage."""
        nothing: dict[str, list[float]] = {name: [] for name in self.test}
        found: dict[str, Any] = {
            "test_scores": _finite(nothing if self.screened else self.test),
            "train_scores": _finite(self.train),
            "fit_time": self.fit_time,
            "score_time": self.score_time,
        }
        if self.screened:
            found["shared_scores"] = _finite(self.test)
        if self.error is not None:
            found["error"] = f"{type(self.error).__name__}: {self.error}"
        return found


class Job:
    """One trial: fit and score on every fold, ended early where the pruner says so."""

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
        self.error_score = search.error_score
        self.with_train = search.return_train_score
        self.X, self.y, self.fit_params = X, y, fit_params
        self.splits, self.scorers, self.key = splits, scorers, key
        self.score_params = score_params  # of each scorer
        self.error: Exception | None = None  # of the last trial that failed
        self.finals: dict[int, Outcome] = {}  # by trial, where its heads ran first

    @staticmethod
    def n_workers(n_jobs: int) -> int:
        from joblib import effective_n_jobs

        return effective_n_jobs(n_jobs)

    def run(self, params: dict[str, Any], trial: Any = None) -> Outcome:
        """Run a trial; `trial` lets its pruner end it."""
        import optuna

        outcome = Outcome(list(self.scorers))
        for fold, (train, test) in enumerate(self.splits):
            started = time.perf_counter()
            try:
                model = clone(self.estimator).set_params(**cloned(params))
                self._fit(model, fold, train, test, trial)
                outcome.fit_time.append(time.perf_counter() - started)
                started = time.perf_counter()
                self._score(model, test, outcome.test)
                if self.with_train:
                    self._score(model, train, outcome.train)
                outcome.score_time.append(time.perf_counter() - started)
            except optuna.TrialPruned:
                outcome.pruned = True
                return outcome
            except Exception as error:
                outcome.error = error
                scores = np.nan if self.error_score == "raise" else float(self.error_score)
                for name in self.scorers:
                    outcome.test[name] += [scores] * (len(self.splits) - fold)
                return outcome
            if trial is not None and fold + 1 < len(self.splits):
                # After the epochs of this fold, and before those of the next.
                trial.report(outcome.mean(self.key), (fold + 1) * _FOLD - 1)
                if trial.should_prune():
                    outcome.pruned = True
                    return outcome
        return outcome

    def run_lanes(self, chosen: list[dict[str, Any]]) -> list[Outcome]:
        """Run several trials at once; where that fails, one by one, so that each has its error."""
        outcomes = [Outcome(list(self.scorers)) for _ in chosen]
        models = [clone(self.estimator).set_params(**cloned(p)) for p in chosen]
        asked = [
            (train, np.concatenate([test, train]) if self.with_train else test)
            for train, test in self.splits
        ]
        started = time.perf_counter()
        try:
            fitted = lanes.fit_lanes(models, self.X, self.y, asked)
            share = (time.perf_counter() - started) / (len(chosen) * len(asked))
            for (train, test), of_fold in zip(self.splits, fitted, strict=True):
                sides = [("test", _LaneScores(self, test), slice(None, len(test)))]
                if self.with_train:
                    sides.append(("train", _LaneScores(self, train), slice(len(test), None)))
                for outcome, model in zip(outcomes, of_fold, strict=True):
                    outcome.fit_time.append(share)
                    started = time.perf_counter()
                    for side, scores, part in sides:
                        scores.add(model.part(part), getattr(outcome, side))
                    outcome.score_time.append(time.perf_counter() - started)
        except Exception:
            return [self.run(params) for params in chosen]
        return outcomes

    def run_heads(self, screen: Screen, chosen: list[dict[str, Any]]) -> list[Outcome]:
        """Judge several trials by their heads; where that fails, one by one, as above."""
        outcomes = [Outcome(list(self.scorers)) for _ in chosen]
        started = time.perf_counter()
        try:
            models = [clone(self.estimator).set_params(**cloned(p)) for p in chosen]
            fitted = screen.models([model.loss for model in models])
        except Exception as error:
            if len(chosen) > 1:
                return [self.run_heads(screen, [params])[0] for params in chosen]
            outcomes[0].error, outcomes[0].screened = error, True
            return outcomes
        share = (time.perf_counter() - started) / (len(chosen) * len(self.splits))
        for (_, test), of_fold in zip(self.splits, fitted, strict=True):
            scores = _LaneScores(self, test)
            for outcome, model in zip(outcomes, of_fold, strict=True):
                outcome.screened = True
                outcome.fit_time.append(share)
                started = time.perf_counter()
                scores.add(model, outcome.test)
                outcome.score_time.append(time.perf_counter() - started)
        return outcomes

    def _fit(self, model: Any, fold: int, train: Any, test: Any, trial: Any) -> None:
        X, y = take_rows(self.X, train), take_rows(self.y, train)
        chosen = _check_method_params(self.X, self.fit_params, train)
        callback = None
        if trial is not None and self._reports_epochs(model):
            callback = _PruneEpochs(trial, fold * _FOLD)
            model.set_params(callbacks=[*(model.callbacks or []), callback])
            chosen["X_val"], chosen["y_val"] = take_rows(self.X, test), take_rows(self.y, test)
        if y is None:
            model.fit(X, **chosen)
        else:
            model.fit(X, y, **chosen)
        if callback is not None and callback.interrupted:
            raise KeyboardInterrupt

    def _reports_epochs(self, model: Any) -> bool:
        """Whether a fit can score the fold's test rows each epoch without being led by them."""
        return (
            has_fit_parameter(model, "X_val")
            and hasattr(model, "callbacks")
            and not getattr(model, "early_stopping", True)
        )

    def _score(self, model: Any, rows: Any, into: dict[str, list[float]]) -> None:
        X, y, params = self.to_score(rows)
        for name, scorer in self.scorers.items():
            into[name].append(_score_of(scorer, model, X, y, params.get(name, {})))

    def to_score(self, rows: Any) -> tuple[Any, Any, dict[str, dict[str, Any]]]:
        """X, y and each scorer's parameters, of some rows."""
        params = {
            name: _check_method_params(self.X, given, rows)
            for name, given in self.score_params.items()
        }
        return take_rows(self.X, rows), take_rows(self.y, rows), params


def _score_of(scorer: Any, model: Any, X: Any, y: Any, params: dict[str, Any]) -> float:
    return float(scorer(model, X, **params) if y is None else scorer(model, X, y, **params))


class _LaneScores:
    """Scores of lanes on the same rows: lanes that predict alike are scored once.

    Neighbouring settings often predict the same, and scikit-learn's scorers cost more than a lane's
    training. A scorer that asks for more than `predict` is called for each lane.
    """

    def __init__(self, job: Job, rows: Any) -> None:
        self.X, self.y, self.params = job.to_score(rows)
        self.scorers = job.scorers
        self.known: dict[tuple[str, bytes], float] = {}
        self.by_prediction = set(job.scorers)

    def add(self, model: Any, into: dict[str, list[float]]) -> None:
        """Append the model's score to each scorer's list."""
        said = model.said()
        for name, scorer in self.scorers.items():
            if name in self.by_prediction and (name, said) in self.known:
                into[name].append(self.known[name, said])
                continue
            model.only_predicted = True
            score = _score_of(scorer, model, self.X, self.y, self.params.get(name, {}))
            if model.only_predicted:
                self.known[name, said] = score
            else:
                self.by_prediction.discard(name)
            into[name].append(score)


_FOLD = 10_000  # steps of a fold, more than any fit has epochs


class _PruneEpochs(Callback):
    """Report each epoch's validation score to a trial, and end it where its pruner says so."""

    def __init__(self, trial: Any, first: int) -> None:
        self.trial = trial
        self.first = first
        self.interrupted = False

    def __sklearn_clone__(self) -> _PruneEpochs:
        return self  # a trial cannot be copied

    def __deepcopy__(self, memo: Any) -> _PruneEpochs:
        return self

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        import optuna

        try:
            self.trial.report(net.history[-1]["valid_score"], self.first + len(net.history) - 1)
            pruned = self.trial.should_prune()
        except KeyboardInterrupt:
            self.interrupted = True  # the net takes it for the end of the training
            raise
        if pruned:
            raise optuna.TrialPruned


def take_rows(X: Any, rows: Any) -> Any:
    """Rows of X, or None."""
    return None if X is None else take(X, np.asarray(rows))


def _finite(scores: dict[str, list[float]]) -> dict[str, list[float | None]]:
    return {n: [v if np.isfinite(v) else None for v in values] for n, values in scores.items()}
