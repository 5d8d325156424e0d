"""The record of a trial, and the table that a search makes of all of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Number
from typing import Any

import numpy as np
from scipy.stats import rankdata

from skdice.model_selection.spaces import suggest

Settings = Sequence[dict[str, Any]]  # the parameters of each trial
Scores = dict[str, list[float]]  # the scores of each fold, by scorer


@dataclass
class TrialRecord:
    """Scores, times and errors of one trial."""

    test: Scores = field(default_factory=dict)
    train: Scores = field(default_factory=dict)
    shared: Scores = field(default_factory=dict)  # scores of heads on test rows
    fit_time: list[float] = field(default_factory=list)  # seconds of each fold
    score_time: list[float] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    state: str = "COMPLETE"  # or PRUNED, or FAIL
    error: str | None = None
    fit_failed: bool = False  # otherwise a scorer failed
    exception: Exception | None = None  # the study does not keep it

    def fail(self, error: Exception, *, of_fit: bool = False, keep_frames: bool = False) -> None:
        """Keep an error, without its frames if it is not raised: they hold the model and data."""
        self.exception, self.fit_failed = error, self.fit_failed or of_fit
        self.error = f"{type(error).__name__}: {error}"
        part: BaseException | None = None if keep_frames else error
        while part is not None:
            part.__traceback__ = None
            part = part.__cause__ or part.__context__

    def score(self, key: str) -> float:
        """The mean of one score over the folds so far."""
        scores = self.test.get(key) or self.shared.get(key)
        return float(np.mean(scores)) if scores else float("nan")

    def result(self, key: str) -> float:
        """The score of a trial that ran to its end; NaN of one that was pruned or failed."""
        return self.score(key) if self.state == "COMPLETE" else float("nan")

    def to_attrs(self) -> dict[str, Any]:
        """The record as plain values, which any storage keeps; other parameters are left out."""
        params = {n: v.item() if isinstance(v, np.generic) else v for n, v in self.params.items()}
        plain = {n: v for n, v in params.items() if isinstance(v, (int, float, str, type(None)))}
        attrs = {name: value for name, value in vars(self).items() if name != "exception"}
        return {**attrs, "params": plain}

    def __getstate__(self) -> dict[str, Any]:
        """The record with an exception that another process can read."""
        try:
            pickle.loads(pickle.dumps(self.exception))
        except Exception:
            return {**vars(self), "exception": RuntimeError(self.error)}
        return vars(self)


@dataclass
class TrialRow:
    """A trial that has ended, and its full fit if heads were trained first."""

    trial: Any
    record: TrialRecord
    full: TrialRecord | None

    @property
    def has_heads(self) -> bool:
        """Tell whether its heads have scores."""
        return bool(self.record.shared) and self.record.state == "COMPLETE"

    @property
    def heads_only(self) -> bool:
        """Tell whether it has no scores but those of heads."""
        return self.has_heads and self.full is None and not self.record.test

    @property
    def shown(self) -> TrialRecord:
        """The record that `cv_results_` shows."""
        return self.full or self.record

    def params(self, spaces: Sequence[Any]) -> dict[str, Any]:
        """Its parameters; without `spaces`, those that are plain values."""
        from optuna.trial import FixedTrial

        # The record comes last: a function in the space may return another value now.
        known = suggest(FixedTrial(self.trial.params), spaces) if spaces else {}
        return {**known, **self.record.params}

    def fitted_in_full(self, key: str) -> Any:
        """The trial as if it had been a full fit from the start."""
        from optuna.trial import TrialState

        record = replace(self.shown, shared=self.record.shared, params=self.record.params)
        trial = copy.deepcopy(self.trial)
        trial.state = TrialState[record.state]
        trial.values = [record.result(key)] if record.state == "COMPLETE" else None
        trial.intermediate_values = {}  # a pruner must not compare fits with heads
        trial.user_attrs = {"record": record.to_attrs()}
        return trial


def has_ended(trial: Any) -> bool:
    """Tell whether a trial ran to its end; an interrupted one has no record of that."""
    return bool(trial.user_attrs.get("record", {}).get("state") == trial.state.name)


def ended_trials(study: Any) -> list[TrialRow]:
    """The trials of a study that ran to their end."""
    trial_rows, attrs = [], study.user_attrs
    for trial in filter(has_ended, study.get_trials(deepcopy=False)):
        full = attrs.get(f"full:{trial.number}")
        record = TrialRecord(**trial.user_attrs["record"])
        trial_rows.append(TrialRow(trial, record, None if full is None else TrialRecord(**full)))
    return trial_rows


def cv_results(
    study: Any, names: Sequence[str], n_splits: int, spaces: Sequence[Any] = (), train: bool = False
) -> dict[str, Any]:
    """`cv_results_` as in `GridSearchCV` for scorers `names`, with number and state of trials."""
    trial_rows = ended_trials(study)
    states = ["SHARED" if row.heads_only else row.shown.state for row in trial_rows]
    results: dict[str, Any] = {
        "trial": np.array([row.trial.number for row in trial_rows], dtype=int),
        "state": np.array(states, dtype=object),
    }
    for kind in ("fit_time", "score_time"):
        times = [getattr(row.shown, kind) or [np.nan] for row in trial_rows]
        results[f"mean_{kind}"] = np.array([np.mean(of_folds) for of_folds in times])
        results[f"std_{kind}"] = np.array([np.std(of_folds) for of_folds in times])
    params = results["params"] = [row.params(spaces) for row in trial_rows]
    for name in sorted({n for p in params for n in p}):
        column = {i: p[name] for i, p in enumerate(params) if name in p}
        numbers = all(isinstance(value, (Number, np.bool_)) for value in column.values())
        dtype = np.asarray(list(column.values())).dtype if numbers else object
        values = results[f"param_{name}"] = np.ma.masked_all(len(trial_rows), dtype=dtype)
        for i, value in column.items():
            values[i] = value
    for side in ["test", "train"] if train else ["test"]:
        for name in names:
            table = np.full((len(trial_rows), n_splits), np.nan)
            for i, row in enumerate(trial_rows):
                scores = getattr(row.shown, side).get(name, [])
                table[i, : len(scores)] = scores
            for split in range(n_splits):
                results[f"split{split}_{side}_{name}"] = table[:, split]
            results[f"mean_{side}_{name}"] = table.mean(axis=1)
            results[f"std_{side}_{name}"] = table.std(axis=1)
    for name in names:
        if any(row.record.shared for row in trial_rows):
            heads = [np.mean(row.record.shared.get(name) or [np.nan]) for row in trial_rows]
            results[f"mean_shared_{name}"] = np.array(heads)
        means = results[f"mean_test_{name}"]
        losses = np.where(np.isfinite(means), -means, np.inf)
        results[f"rank_test_{name}"] = rankdata(losses, method="min").astype(np.int32)
    return results
