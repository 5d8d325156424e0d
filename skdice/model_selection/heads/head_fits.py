"""The trials of a search as linear heads, and when it is possible."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdice.engine.fit_plan import needs_windows
from skdice.estimators import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.inputs.labels import read_labels
from skdice.inputs.texts import as_texts
from skdice.losses import Loss
from skdice.model_selection.heads.data import HeadData
from skdice.model_selection.heads.training import FoldHeads
from skdice.model_selection.spaces import import_optuna
from skdice.model_selection.trials import FullFits, Record, ended_trials

AT_ONCE = 16  # trials whose heads are trained together


class HeadFits:
    """The objective that trains linear heads of several trials at once, on every fold.

    Parameters
    ----------
    full : FullFits
    n_trials : int
        Of the whole study.
    callbacks : list of callables
        Called after each trial but the first of those that are trained at once, of which Optuna
        calls them.
    """

    def __init__(self, full: FullFits, n_trials: int, callbacks: Sequence[Any] = ()) -> None:
        self.full, self.n_trials, self.callbacks = full, n_trials, callbacks
        self.data = HeadData(full.estimator, full.X, full.y)

    def __call__(self, first: Any) -> float:
        """The score of a trial; others are asked for and told in between."""
        study = first.study
        n_others = min(AT_ONCE, self.n_trials - len(ended_trials(study))) - 1
        trials = [first, *(study.ask() for _ in range(n_others))]
        settings = [self.full.suggested(trial) for trial in trials]
        records = self._records(trials, settings)
        for trial, record in zip(trials[1:], records[1:], strict=True):
            score = record.end(trial)
            failed = {} if np.isfinite(score) else {"state": import_optuna().trial.TrialState.FAIL}
            told = study.tell(trial, score if not failed else None, **failed)
            for callback in self.callbacks:
                callback(study, told)
        return records[0].end(first)

    def _records(self, trials: list[Any], settings: list[dict[str, Any]]) -> list[Record]:
        """The records of trials with the given parameters."""
        full, started = self.full, time.perf_counter()
        heads, models = None, [full.model(params) for params in settings]
        try:
            heads = self.data.fit(models, [train for train, _ in full.splits])
        except Exception as error:
            if len(trials) == 1:
                failed = Record()
                full.fail(error, trials[0], failed)
                return [failed]
        if heads is None:  # a bad setting must cost its own trial only
            alone = zip(trials, settings, strict=True)
            return [record for t, given in alone for record in self._records([t], [given])]
        seconds = (time.perf_counter() - started) / (len(settings) * len(heads))
        records = [Record(fit_time=[seconds] * len(heads)) for _ in settings]
        self._score(heads, trials, records)
        return records

    def _score(self, heads: list[FoldHeads], trials: list[Any], records: list[Record]) -> None:
        """Add the scores of heads on the test rows of every fold to the records of their trials."""
        full = self.full
        for of_fold, (_, rows) in zip(heads, full.splits, strict=True):
            data = full.take(rows)
            models = self.data.predict(of_fold, rows, data[0])
            for model, trial, record in zip(models, trials, records, strict=True):
                try:
                    if record.error is None:
                        full.score(model, data, rows, record)
                except Exception as error:
                    full.fail(error, trial, record)


def why_no_heads(full: FullFits, losses: list[Loss]) -> str | None:
    """Why trials over the spaces of a search cannot run as heads; None if they can."""
    return next(chain(_of_estimator(full), _of_search(full, losses)), None)


def _of_estimator(full: FullFits) -> Iterator[str]:
    estimator, X, kind = full.estimator, full.X, type(full.estimator).__name__
    if type(estimator) is DiceClassifier:
        if len(estimator.hidden_layer_sizes):
            yield "its head is not linear"
        if not isinstance(X, np.ndarray):
            yield f"X is a {type(X).__name__} and not an array"
    elif not isinstance(estimator, (DiceSequenceClassifier, DiceTokenClassifier)):
        yield f"{kind} is not DiceClassifier, DiceSequenceClassifier or DiceTokenClassifier"
    elif not estimator.task.has_words:
        yield f"{kind} finds its words in texts"
    elif isinstance(estimator, DiceSequenceClassifier) and needs_windows(estimator, as_texts(X)):
        yield "some texts are read in several windows, and heads see one vector of each text"
    of_numbers = ("early_stopping", "callbacks", "net_params")  # heads of texts have their own
    for name in ("sampler",) if full.is_text else of_numbers:
        if value := getattr(estimator, name, None):
            yield f"it has {name}={value!r}"


def _of_search(full: FullFits, losses: list[Loss]) -> Iterator[str]:
    estimator = full.estimator
    if is_classifier(estimator) and read_labels(full.y, missing=True).multilabel:
        yield "the labels are 0/1 rows or lists, and heads give one label a row"
    for name in sorted(set().union(*full.spaces)):
        if name.partition("__")[0] != "loss":
            yield f"{name!r} is searched, which heads have in common"
    if full.fit_params:
        yield f"fit got {sorted(full.fit_params)}"
    for loss in losses:
        if not loss.has_functional_form:
            yield f"{type(loss).__name__} has no functional form, which heads need"
