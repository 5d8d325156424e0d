"""The work of a search: Optuna suggests trials, a strategy runs them, finalists get full fits."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdice._checks import counted
from skdice._warn import warn
from skdice.exceptions import TrialWarning
from skdice.model_selection.full_fits import FullFits
from skdice.model_selection.heads import finalists
from skdice.model_selection.heads.head_fits import HeadFits
from skdice.model_selection.progress import SearchProgress
from skdice.model_selection.records import TrialRecord, TrialRow, ended_trials, has_ended
from skdice.model_selection.retries import (
    enter,
    number_without_retries,
    own,
    take_over,
    try_again,
)
from skdice.model_selection.spaces import import_optuna, suggest

COMPARED, AGREES = 6, 0.7  # trials that auto also fits in full; the lowest accepted correlation


@dataclass
class SearchRun:
    """A search of `LossSearchCV`, between its checks and its results."""

    search: Any
    study: Any
    spaces: list[Any]
    full: FullFits
    strategy: FullFits | HeadFits  # auto may change from heads to full fits
    seed: int | None
    ends: float  # by `time.monotonic`
    agreement: float | None = None  # of heads with full fits, if auto compared them
    error: Exception | None = None  # of the last trial that failed
    _running: list[Any] = field(default_factory=list)  # trials of this round
    _records: list[TrialRecord] = field(default_factory=list)  # of these trials
    _told: int | None = None  # the trial whose result Optuna took last
    _progress: SearchProgress = field(init=False)

    def to_the_end(self) -> None:
        """Run the missing trials, then the finalists."""
        enter(self.study)
        with SearchProgress(self.search.verbose) as self._progress:
            self._begin_trials()
            try:
                self._optimize()
            except BaseException as error:
                self._give_up(again=not isinstance(error, Exception))
                raise
            trial_rows = [row for row in ended_trials(self.study) if row.has_heads]
            if trial_rows and not self.strategy.is_exact:
                settings = [row.params(self.spaces) for row in trial_rows]
                scores = np.array([row.record.shared[self.full.key] for row in trial_rows])
                best = finalists.finalists(settings, scores, self.search.n_finalists)
                trial_rows = [trial_rows[i] for i in best]
            self._fit_in_full(trial_rows)

    @contextlib.contextmanager
    def explained_interrupts(self) -> Iterator[None]:
        """Let an interrupt say what is kept, and how to go on."""
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._kept()) from None

    def _kept(self) -> str:
        n_trials = self.search.n_trials
        kept = f"{n_trials - self._n_missing()} of {n_trials} trials are kept"
        if self.search.storage is not None and self.search.study_name is not None:
            return f"{kept}, run again to go on"
        return f"{kept}; with storage='study.db' and study_name='mine' a search can go on"

    # ---- the trials

    def _begin_trials(self) -> None:
        """Tell how many trials there will be, and of what kind."""
        total, known = int(self.search.n_trials), ended_trials(self.study)
        scores = [row.shown.result(self.full.key) for row in known if not row.heads_only]
        of = "" if self.strategy.is_exact else " of heads"
        earlier = f"{len(known)} done before" if known else ""
        folds = f"{len(self.full.splits)} folds"
        self._progress.say(f"{counted(total, 'trial')}{of} on {folds}", earlier)
        best = float(np.fmax.reduce(scores, initial=np.nan))
        self._progress.begin_kind("trial", len(known), total, best)

    def _optimize(self) -> None:
        """Run Optuna's loop, in which each round is one call of the strategy."""
        from optuna.trial import TrialState

        while self._n_missing() > 0:
            try:
                return self.study.optimize(self._round, callbacks=[self._after_round])
            except ValueError:
                # Two processes may take one waiting trial from a database: the second cannot tell
                # Optuna its result, and goes on.
                first = self._running[0].number if self._records else None
                known = self.study.get_trials(deepcopy=False)
                made = TrialState.COMPLETE, TrialState.PRUNED
                if first in (None, self._told) or known[first].state not in made:
                    raise
                self._running, self._records = [], []

    def _n_missing(self) -> int:
        known = self.study.get_trials(deepcopy=False)
        return int(self.search.n_trials) - sum(map(has_ended, known))

    def _is_late(self) -> bool:
        return self._rest() <= 0

    def _rest(self) -> float:
        """The seconds that are left by `timeout`."""
        return self.ends - time.monotonic()

    def _round(self, first: Any) -> float:
        """Run `first`, the trial of Optuna's loop, and as many others as the strategy wants."""
        import optuna

        if first.study is not self.study:  # `_compare` made a new study for full fits
            first.study.stop()
            self._optimize()
            raise optuna.TrialPruned
        self._running = [first]
        for _ in range(min(self.strategy.trials_at_once, self._n_missing()) - 1):
            self._running.append(self.study.ask())
        settings = [self._suggest(trial) for trial in self._running]
        for trial in self._running:
            own(trial)
        self._records = self.strategy.run(settings, self._running)
        for params, record in zip(settings, self._records, strict=True):
            record.params = params
        record = self._records[0]
        first.set_user_attr("record", record.to_attrs())
        if record.state == "PRUNED":
            raise optuna.TrialPruned
        return record.result(self.full.key)

    def _suggest(self, trial: Any) -> dict[str, Any]:
        if self.search.sampler is None and self.seed is not None:
            # The seed depends on the number. So several processes, or a continued search, repeat no
            # settings, and together they try the same ones as a single run.
            number = number_without_retries(self.study, trial)
            seed = np.random.SeedSequence([self.seed, number]).generate_state(1)[0]
            self.study.sampler = import_optuna().samplers.TPESampler(seed=int(seed))
        return suggest(trial, self.spaces)

    def _after_round(self, study: Any, first: Any) -> None:
        """Tell Optuna the other trials of the round, and the callbacks all of them."""
        from optuna.trial import TrialState

        self._told = first.number
        for trial, record in zip(self._running, self._records, strict=True):
            if trial.number != first.number:
                trial.set_user_attr("record", record.to_attrs())
                score = record.score(self.full.key) if record.state == "COMPLETE" else None
                study.tell(trial, score, None if score is not None else TrialState[record.state])
            self._note_error(trial.number, record)
            self._call_back(copy.deepcopy(study.get_trials(deepcopy=False)[trial.number]))
            self._progress.tell(trial.number, record, self.full.key)
        done = int(self.search.n_trials) - self._n_missing()
        results = [record.result(self.full.key) for record in self._records]
        self._progress.end_some(done, results, self._rest())
        self._running, self._records = [], []
        take_over(self.study)
        unsure = not self.strategy.is_exact and self.agreement is None
        if unsure and self.search.strategy == "auto":
            self._compare()
            if self._progress.unit != "trial":
                self._begin_trials()
        if self._n_missing() < 1 or self._is_late():
            study.stop()

    def _give_up(self, *, again: bool) -> None:
        """End what an interrupt or an error left running; `again` puts it back into the queue."""
        from optuna.trial import TrialState

        known = self.study.get_trials(deepcopy=False)
        for trial in self._running:
            if not has_ended(known[trial.number]):
                self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
                if again:
                    try_again(self.study, known[trial.number], times=None)

    def _note_error(self, number: int, record: TrialRecord) -> None:
        """Raise the error of a trial, or warn of it."""
        if record.exception is None:
            return
        self.error = record.exception
        if self.full.raises:
            raise record.exception
        what = "failed" if record.fit_failed else "could not be scored"
        warn(
            f"trial {number} {what} and scores {self.full.score_of_error}: {record.exception!r}",
            TrialWarning,
        )

    def _call_back(self, trial: Any) -> None:
        for callback in self.search.callbacks or []:
            try:
                callback(self.study, trial)
            except RuntimeError as error:
                # Optuna raises this error if there is nothing left to stop.
                if "Study.stop" not in str(error):
                    raise

    # ---- full fits after heads

    def _compare(self) -> None:
        """Fit some trials in full, and change to full fits if these rank differently than heads."""
        trial_rows = [row for row in ended_trials(self.study) if row.has_heads]
        if len(trial_rows) < COMPARED:
            return
        heads = [float(np.mean(row.record.shared[self.full.key])) for row in trial_rows]
        compared = finalists.spread_over(heads, COMPARED)
        self._fit_in_full([trial_rows[i] for i in compared])
        if self._is_late():
            return  # nothing is left to decide
        done = [i for i in compared if trial_rows[i].shown.state == "COMPLETE"]
        full = [trial_rows[i].shown.score(self.full.key) for i in done]
        self.agreement = finalists.agreement([heads[i] for i in done], full)
        if self.agreement >= AGREES:
            return
        self._progress.say(
            "heads on the frozen encoder rank these losses otherwise than full fits do (Spearman "
            f"{self.agreement:.2f} over {len(full)} trials): going on with full fits"
        )
        self.strategy = self.full
        self._fit_in_full(trial_rows)
        if self._is_late():
            return
        # A sampler must not learn from scores of both kinds: the rest is a study of full fits.
        before, create = self.study, import_optuna().create_study
        self.study = create(direction="maximize", sampler=before.sampler, pruner=before.pruner)
        for row in ended_trials(before):
            self.study.add_trial(row.fitted_in_full(self.full.key) if row.full else row.trial)

    def _fit_in_full(self, trial_rows: Sequence[TrialRow]) -> None:
        """Fit trials in full for which only heads were trained, and keep that in the study."""
        trial_rows, n = [row for row in trial_rows if row.heads_only], self.full.trials_at_once
        if trial_rows:
            self._progress.say(f"{counted(len(trial_rows), 'trial')} again, fitted in full")
        self._progress.begin_kind("full fit", 0, len(trial_rows))
        for start in range(0, len(trial_rows), n):
            known = ended_trials(self.study)
            if self._is_late() and any(r.full and r.full.state == "COMPLETE" for r in known):
                return  # one full fit has a score
            part = trial_rows[start : start + n]
            records = self.full.run([row.params(self.spaces) for row in part])
            for row, record in zip(part, records, strict=True):
                self._note_error(row.trial.number, record)
                row.full = record
                self.study.set_user_attr(f"full:{row.trial.number}", record.to_attrs())
                self._call_back(row.fitted_in_full(self.full.key))
            results = [record.result(self.full.key) for record in records]
            self._progress.end_some(start + len(part), results, self._rest())
