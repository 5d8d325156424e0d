"""A search at work: Optuna asks for trials, a strategy runs them, finalists are fitted in full."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from rich.progress import Progress, TaskID
from sklearn.exceptions import FitFailedWarning

from skdice.estimators.predictions import OtherRowsError
from skdice.model_selection import finalists
from skdice.model_selection.full_fits import CrossValidation, FullFits
from skdice.model_selection.records import Row, Settings, TrialRecord, has_ended, rows_of
from skdice.model_selection.shared_heads import SharedHeads
from skdice.model_selection.spaces import import_optuna, suggest
from skdice.model_selection.study import quiet_optuna

__all__ = ["SearchRun", "Strategy"]

COMPARED, AGREES = 6, 0.7  # trials that auto fits in full as well; the least rank correlation


class Strategy(Protocol):
    """A way to run trials: `FullFits` or `SharedHeads`."""

    trials_at_once: int  # that one call of `run` should get

    def run(self, settings: Settings, trials: Sequence[Any] = ()) -> list[TrialRecord]:
        """Run trials with the given parameters; `trials` are asked whether to prune."""


@dataclass
class SearchRun:
    """What `LossSearchCV` does between its checks and its results."""

    search: Any
    study: Any
    spaces: list[Any]
    cv: CrossValidation
    full_fits: FullFits
    strategy: Strategy  # to begin with; auto may turn from heads to full fits
    seed: int | None
    ends: float  # by `time.monotonic`
    agreement: float | None = None  # of heads with full fits, where auto compared them
    error: Exception | None = None  # of the last trial that failed
    _running: dict[int, tuple[Any, TrialRecord]] = field(default_factory=dict)
    _progress: Progress = field(init=False)
    _bars: dict[str, TaskID] = field(default_factory=dict)

    @property
    def heads_stand_for_fits(self) -> bool:
        """Whether scores are of heads, and full fits are to follow."""
        return isinstance(self.strategy, SharedHeads) and not self.strategy.is_exact

    def to_the_end(self) -> None:
        """Run what is left of the trials, and the finalists."""
        with quiet_optuna(), Progress(disable=not self.search.progress_bar) as self._progress:
            try:
                self._optimize()
            except BaseException as error:
                self._give_up(again=not isinstance(error, Exception))
                raise
            rows = self._rows_of_heads()
            if rows and self.heads_stand_for_fits:
                settings = [row.params(self.spaces) for row in rows]
                scores = np.array([row.record.shared[self.cv.key] for row in rows])
                best = finalists.finalists(settings, scores, self.search.n_finalists)
                rows = [rows[i] for i in best]
            self._fit_in_full(rows)

    # ---- the trials

    def _optimize(self) -> None:
        """Run Optuna's loop; each round of it is one call of the strategy."""
        if self._n_missing() > 0:
            self.study.optimize(self._round, callbacks=[self._after_round])

    def _n_missing(self) -> int:
        known = self.study.get_trials(deepcopy=False)
        return int(self.search.n_trials) - sum(map(has_ended, known))

    def _is_late(self) -> bool:
        return time.monotonic() >= self.ends

    def _round(self, first: Any) -> float:
        """Run `first`, the trial of Optuna's loop, and as many others as the strategy wants."""
        import optuna

        if first.study is not self.study:  # full fits have a study of their own, see `_compare`
            first.study.stop()
            self._optimize()
            raise optuna.TrialPruned
        self._running = {first.number: (first, TrialRecord())}
        for _ in range(min(self.strategy.trials_at_once, self._n_missing()) - 1):
            trial = self.study.ask()
            self._running[trial.number] = trial, TrialRecord()
        trials = [trial for trial, _ in self._running.values()]
        settings = [self._suggest(trial) for trial in trials]
        found = self._run(settings, trials)
        for trial, params, record in zip(trials, settings, found, strict=True):
            record.params = params
            self._running[trial.number] = trial, record
        first.set_user_attr("record", found[0].to_attrs())
        if found[0].state == "PRUNED":
            raise optuna.TrialPruned
        return found[0].score(self.cv.key) if found[0].state == "COMPLETE" else float("nan")

    def _suggest(self, trial: Any) -> dict[str, Any]:
        if self.search.sampler is None and self.seed is not None:
            # By number: processes that share a study, and searches that continue one, ask for
            # other settings than those before them, and for the same as one process in one run.
            seed = np.random.SeedSequence([self.seed, trial.number]).generate_state(1)[0]
            self.study.sampler = import_optuna().samplers.TPESampler(seed=int(seed))
        return suggest(trial, self.spaces)

    def _run(self, settings: Settings, trials: list[Any]) -> list[TrialRecord]:
        """Run trials; as full fits where a scorer asks for rows that heads did not predict."""
        try:
            return self.strategy.run(settings, trials)
        except OtherRowsError as error:
            if self.search.strategy == "shared":
                raise ValueError(
                    f"strategy='shared' is not possible: {error}; use 'full' or 'auto'"
                ) from error
        self.strategy = self.full_fits
        return [self.full_fits.run_one(params) for params in settings]

    def _after_round(self, study: Any, first: Any) -> None:
        """Tell Optuna of the other trials of the round, and the callbacks of all."""
        from optuna.trial import TrialState

        for number, (trial, record) in list(self._running.items()):
            if number != first.number:
                trial.set_user_attr("record", record.to_attrs())
                score = record.score(self.cv.key) if record.state == "COMPLETE" else None
                study.tell(trial, score, None if score is not None else TrialState[record.state])
            del self._running[number]
            self._note_error(number, record)
            self._call_back(copy.deepcopy(study.get_trials(deepcopy=False)[number]))
            n_trials = self.search.n_trials
            self._show("trials", n_trials - self._n_missing(), n_trials)
        unsure = self.heads_stand_for_fits and self.agreement is None
        if unsure and self.search.strategy == "auto":
            self._compare()
        if self._n_missing() < 1 or self._is_late():
            study.stop()

    def _give_up(self, *, again: bool) -> None:
        """End what an interrupt or an error left running; `again` puts it back into the queue."""
        from optuna.trial import TrialState

        known = self.study.get_trials(deepcopy=False)
        for number, (trial, _) in self._running.items():
            if not has_ended(known[number]):
                self.study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
                if again:
                    self.study.enqueue_trial(trial.params)

    def _note_error(self, number: int, record: TrialRecord) -> None:
        """Raise what failed in a trial, or warn of it."""
        if record.exception is None:
            return
        self.error = record.exception
        if self.cv.raises:
            raise record.exception
        what = "failed" if record.fit_failed else "could not be scored"
        warnings.warn(
            f"trial {number} {what} and scores {self.cv.score_of_error}: {record.exception!r}",
            FitFailedWarning if record.fit_failed else UserWarning,
            stacklevel=2,
        )

    def _call_back(self, trial: Any) -> None:
        for callback in self.search.callbacks or []:
            try:
                callback(self.study, trial)
            except RuntimeError as error:
                # After its last trial there is nothing to stop, and Optuna raises.
                if "Study.stop" not in str(error):
                    raise

    def _show(self, kind: str, done: int, total: int) -> None:
        """A bar for each kind of work."""
        if kind not in self._bars:
            self._bars[kind] = self._progress.add_task(kind)
        self._progress.update(self._bars[kind], completed=done, total=total)

    # ---- full fits after heads

    def _rows_of_heads(self) -> list[Row]:
        """Trials with scores of heads."""
        rows = rows_of(self.study)
        return [row for row in rows if row.record.shared and row.record.state == "COMPLETE"]

    def _compare(self) -> None:
        """Fit some trials in full, and turn to full fits where those rank otherwise than heads."""
        rows = self._rows_of_heads()
        if len(rows) < COMPARED:
            return
        heads = [float(np.mean(row.record.shared[self.cv.key])) for row in rows]
        compared = finalists.spread_over(heads, COMPARED)
        self._fit_in_full([rows[i] for i in compared])
        if self._is_late():
            return  # nothing is left to decide
        full = {i: rows[i].found.score(self.cv.key) for i in compared}
        full = {i: score for i, score in full.items() if rows[i].found.state == "COMPLETE"}
        self.agreement = finalists.agreement([heads[i] for i in full], list(full.values()))
        if self.agreement >= AGREES:
            return
        warnings.warn(
            f"heads on the frozen encoder rank these losses otherwise than full fits do (Spearman "
            f"{self.agreement:.2f} over {len(full)} trials): going on with full fits",
            stacklevel=2,
        )
        self.strategy = self.full_fits
        self._fit_in_full(rows)
        if self._is_late():
            return
        # A sampler must not learn from scores of both: the rest is in a study of full fits.
        before, create = self.study, import_optuna().create_study
        self.study = create(direction="maximize", sampler=before.sampler, pruner=before.pruner)
        for row in rows_of(before):
            self.study.add_trial(row.fitted_in_full(self.cv.key) if row.full else row.trial)

    def _fit_in_full(self, rows: Sequence[Row]) -> None:
        """Cross-validate trials of which only heads ran, and write that into the study.

        After the timeout no more of them than it takes to have a score.
        """
        rows, n = [row for row in rows if row.heads_only], self.full_fits.trials_at_once
        for start in range(0, len(rows), n):
            known = rows_of(self.study)
            if self._is_late() and any(r.full and r.full.state == "COMPLETE" for r in known):
                return
            self._show("full fits", start, len(rows))
            part = rows[start : start + n]
            found = self.full_fits.run([row.params(self.spaces) for row in part])
            for row, record in zip(part, found, strict=True):
                self._note_error(row.trial.number, record)
                row.full = record
                self.study.set_user_attr(f"full:{row.trial.number}", record.to_attrs())
                self._call_back(row.fitted_in_full(self.cv.key))
            self._show("full fits", start + len(part), len(rows))
