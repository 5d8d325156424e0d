"""The record of a trial, and the table that a search makes of all of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Number
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata

from skdice.model_selection.spaces import all_params

__all__ = ["Row", "TrialRecord", "cv_results", "fitted_in_full", "keep_full_record", "rows_of"]

Scores = dict[str, list[float]]  # of each fold, by scorer


@dataclass
class TrialRecord:
    """What one trial ran.

    Attributes
    ----------
    test, train : dict of lists
        Scores of full fits: one list for each scorer, one score for each fold.
    shared : dict of lists
        Scores of the heads that stand for full fits, on the test rows.
    fit_times, score_times : list of float
        Seconds of each fold.
    params : dict
        Parameters that are plain values.
    state : {"COMPLETE", "PRUNED", "FAIL"}
    error : str or None
        The last error, as text.
    fit_failed : bool
        Whether that was a fit's, and not only a scorer's.
    exception : Exception or None
        The same as an exception without frames; not kept in the study.
    """

    test: Scores = field(default_factory=dict)
    train: Scores = field(default_factory=dict)
    shared: Scores = field(default_factory=dict)
    fit_times: list[float] = field(default_factory=list)
    score_times: list[float] = field(default_factory=list)
    params: dict[str, Any] = field(default_factory=dict)
    state: str = "COMPLETE"
    error: str | None = None
    fit_failed: bool = False
    exception: Exception | None = None

    def fail(self, error: Exception, *, of_fit: bool = False, keep_frames: bool = False) -> None:
        """Note an error; without its frames, which hold the model and the data, if it may stay."""
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

    def to_attrs(self) -> dict[str, Any]:
        """As a user attribute of an Optuna trial, of plain values."""
        return {"record": self.to_dict()}

    @classmethod
    def from_attrs(cls, attrs: Mapping[str, Any]) -> Self | None:
        """The record in a trial's user attributes; None where there is none."""
        return cls.from_dict(attrs["record"]) if "record" in attrs else None

    def to_dict(self) -> dict[str, Any]:
        """All but the exception, with None in place of NaN."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "exception"}
        for side in ("test", "train", "shared"):
            found[side] = {
                name: [v if np.isfinite(v) else None for v in scores]
                for name, scores in found[side].items()
            }
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""
        record = cls(**values)
        for side in ("test", "train", "shared"):
            scores = getattr(record, side)
            setattr(
                record,
                side,
                {n: [np.nan if v is None else v for v in s] for n, s in scores.items()},
            )
        return record

    def __getstate__(self) -> dict[str, Any]:
        """With an exception that another process can read."""
        state = dict(self.__dict__)
        try:
            pickle.loads(pickle.dumps(self.exception))
        except Exception:
            state["exception"] = RuntimeError(self.error)
        return state


@dataclass
class Row:
    """A trial that has ended, and its full fit if that came after heads."""

    trial: Any
    record: TrialRecord
    full: TrialRecord | None

    @property
    def heads_only(self) -> bool:
        """Whether scores are of heads, and no full fit has run."""
        shared = self.record.shared and self.record.state == "COMPLETE"
        return bool(shared) and self.full is None and not self.record.test

    @property
    def found(self) -> TrialRecord:
        """What the table shows."""
        return self.full or self.record

    @property
    def state(self) -> str:
        """As Optuna has it; SHARED where only heads ran."""
        return "SHARED" if self.heads_only else self.found.state

    def params(self, spaces: list[Any]) -> dict[str, Any]:
        """Its parameters; without `spaces`, those that are plain values."""
        return all_params(self.trial, spaces, self.record.params)


def rows_of(study: Any) -> list[Row]:
    """The trials of a study that have ended; those that an interrupt ended are not among them."""
    rows, attrs = [], study.user_attrs
    for trial in study.get_trials(deepcopy=False):
        record = TrialRecord.from_attrs(trial.user_attrs)
        if record is not None and record.state == trial.state.name:
            full = attrs.get(f"full:{trial.number}")
            rows.append(Row(trial, record, full and TrialRecord.from_dict(full)))
    return rows


def keep_full_record(study: Any, number: int, record: TrialRecord) -> None:
    """Write the full fit of a trial into the study: the trial itself ended with its heads."""
    study.set_user_attr(f"full:{number}", record.to_dict())


def fitted_in_full(row: Row, key: str) -> Any:
    """The trial of a row as it were had its full fit scored it from the start, and not its head."""
    from optuna.trial import TrialState

    trial, record = copy.deepcopy(row.trial), replace(row.found, shared=row.record.shared)
    record.params = row.record.params
    trial.state = TrialState[record.state]
    trial.values = [record.score(key)] if record.state == "COMPLETE" else None
    trial.intermediate_values = {}  # a pruner must not compare fits with heads
    trial.user_attrs = record.to_attrs()
    return trial


def cv_results(
    study: Any,
    names: Sequence[str],
    n_splits: int,
    *,
    spaces: list[Any] | None = None,
    with_train: bool = False,
) -> dict[str, Any]:
    """`cv_results_` as `GridSearchCV` has it, with each trial's number and state.

    Parameters
    ----------
    study : optuna.Study
    names : list of str
        Scorers.
    n_splits : int
    spaces : list of dicts or None, default=None
        None leaves out parameters that are not plain values.
    with_train : bool, default=False
    """
    rows = rows_of(study)
    results: dict[str, Any] = {
        "trial": np.array([row.trial.number for row in rows], dtype=int),
        "state": np.array([row.state for row in rows], dtype=object),
    }
    params = [row.params(spaces or []) for row in rows]
    for kind in ("fit_time", "score_time"):
        times = [getattr(row.found, f"{kind}s") or [np.nan] for row in rows]
        results[f"mean_{kind}"] = np.array([np.mean(of_folds) for of_folds in times])
        results[f"std_{kind}"] = np.array([np.std(of_folds) for of_folds in times])
    for name in sorted({n for p in params for n in p}):
        results[f"param_{name}"] = _column([p.get(name, np.ma.masked) for p in params])
    results["params"] = params
    for side in ["test", "train"] if with_train else ["test"]:
        for name in names:
            table = np.full((len(rows), n_splits), np.nan)
            for i, row in enumerate(rows):
                scores = getattr(row.found, side).get(name, [])
                table[i, : len(scores)] = scores
            for split in range(n_splits):
                results[f"split{split}_{side}_{name}"] = table[:, split]
            results[f"mean_{side}_{name}"] = table.mean(axis=1) if len(rows) else np.zeros(0)
            results[f"std_{side}_{name}"] = table.std(axis=1) if len(rows) else np.zeros(0)
    for name in names:
        heads = [np.mean(row.record.shared.get(name) or [np.nan]) for row in rows]
        if any(row.record.shared for row in rows):
            results[f"mean_shared_{name}"] = np.array(heads, dtype=float)
        means = results[f"mean_test_{name}"]
        worst = np.where(np.isfinite(means), means, -np.inf)
        results[f"rank_test_{name}"] = rankdata(-worst, method="min").astype(np.int32)
    return results


def _column(values: list[Any]) -> np.ma.MaskedArray:
    held = [value for value in values if value is not np.ma.masked]
    numbers = all(isinstance(value, (Number, np.bool_)) for value in held)
    column = np.ma.masked_all(len(values), dtype=np.asarray(held).dtype if numbers else object)
    for i, value in enumerate(values):
        if value is not np.ma.masked:
            column[i] = value
    return column
