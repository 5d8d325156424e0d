"""The trials of a search: an objective for Optuna that fits and scores a model on every fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

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
        try:
            for fold, (_, rows) in enumerate(self.splits):
                model, started = self.model(params), time.perf_counter()
                self._fit(model, fold, trial)
                record.fit_time.append(time.perf_counter() - started)
                self.score(model, self.take(rows), rows, record)
                last = fold + 1 == len(self.splits)
                if not last and self.prunes:
                    # The step is after the epochs of this fold, and before those of the next.
                    _report(trial, (fold + 1) * FOLD - 1, record.mean)
        except import_optuna().TrialPruned:
            record.end(trial)
            raise
        except Exception as error:
            self.fail(error, trial, record)
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
        """X and y of some rows."""
        return [safe_indexing(part, rows) for part in (self.X, self.y)]

    def score(self, model: Any, data: list[Any], rows: Any, record: Record) -> None:
        """Add the score of a fitted model on the test rows of a fold to a record."""
        replayed = Replayed(model, data[0])
        record.scores.append(self._scored(replayed.model, data, rows))
        record.n_empty += replayed.found_nothing(data[1])

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
            _report(trial, step, self._score_so_far(draft, test))

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


def _report(trial: Any, step: int, score: float) -> None:
    """Report a score to a trial, which ends where its pruner says so."""
    if np.isfinite(score):
        trial.report(score, step)
        if trial.should_prune():
            raise import_optuna().TrialPruned


def ended_trials(study: Any) -> list[tuple[Any, Record]]:
    """The trials of a study that ran to their end, with their records; not interrupted ones."""
    known = (trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished())
    return [(t, Record(**t.user_attrs[RECORD])) for t in known if RECORD in t.user_attrs]
