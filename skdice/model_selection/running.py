"""A search at work: trials are asked for, run and told, and the finalists fitted in full."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import numpy as np

from skdice.model_selection import lanes, layers, screening, workers
from skdice.model_selection.results import Judged, judged
from skdice.model_selection.spaces import suggest
from skdice.model_selection.study import (
    fitted_in_full,
    full_fits,
    full_scores,
    keep_full_fit,
    progress,
    quiet_optuna,
    sampler_of,
    told_in_full,
)
from skdice.model_selection.trials import Job, Outcome, plain

__all__ = ["WORTH_A_PROBE", "Run"]

WORTH_A_PROBE = 16  # trials; a probe costs as much as some of them
_PROBE, _AGREES = 6, 0.7


class Run:
    """What `LossSearchCV` does between its checks and its results.

    Parameters
    ----------
    search : LossSearchCV
        With ``study_`` and ``strategy_``.
    spaces : list of dict
    job : Job
    screen : Screen, TopLayers or None
        What stands for full fits.

    Attributes
    ----------
    study : optuna.Study
    strategy : {"full", "shared"}
        As it stands; auto may turn from the one to the other.
    agreement : float or None
        Of what stands for full fits with these, where auto looked at it.
    """

    def __init__(self, search: Any, spaces: list[Any], job: Job, screen: Any) -> None:
        self.search, self.spaces, self.job, self.screen = search, spaces, job, screen
        self.study, self.strategy = search.study_, search.strategy_
        self.agreement: float | None = None
        self._show: Callable[[str, int, int], None] = lambda kind, done, total: None

    def to_the_end(self) -> None:
        """Run what is left of the trials, and the finalists."""
        job, n_trials = self.job, self.search.n_trials
        with quiet_optuna(), progress(shown=self.search.progress_bar) as self._show:
            stopped = False  # by a callback or the sampler
            while not stopped:
                study, probing = self.study, self._is_to_probe
                n_wanted = self.search.n_lanes if self.strategy == "shared" else job.n_workers
                with workers.claimed(study, n_trials, n_wanted) as trials:
                    for trial, outcome in self._ended(trials):
                        job.tell(study, trial, outcome)
                        trials.has_ended(trial.number)
                        self._call_back(_copied(study, trial.number))
                        known = study.get_trials(deepcopy=False)
                        self._show("trials", sum(t.state.is_finished() for t in known), n_trials)
                if not trials:
                    if not workers.others_at_work(study):
                        break
                    time.sleep(0.2)  # a trial of theirs may yet be lost, and ours to repeat
                if probing:
                    self._probe()
                stopped = study._stop_flag or job.is_late()
            rows = judged(self.study, self.spaces, job.key)
            if self.strategy == "shared" and rows:
                scores = np.array([row.scores for row in rows])
                n_finalists = self.search.n_finalists
                best = screening.finalists([row.params for row in rows], scores, n_finalists)
                rows = [rows[i] for i in best]
            self._run_in_full(rows)

    @property
    def _is_to_probe(self) -> bool:
        """Whether auto has yet to look at how what stands for full fits ranks losses."""
        unsure = self.screen is not None and not self.screen.exact and self.agreement is None
        return unsure and self.search.strategy == "auto" and self.strategy == "shared"

    def _ended(self, claim: workers.Claim) -> Iterable[tuple[Any, Outcome]]:
        """Trials and what they ran, as they end."""
        trials = list(claim)
        chosen = [self._suggest(trial) for trial in trials]
        if self.strategy == "full" or not trials:
            return zip(trials, self.job.run_all(chosen, trials), strict=True)
        if not isinstance(self.screen, layers.TopLayers):
            return zip(trials, self._share(chosen), strict=True)
        probing = self._is_to_probe

        def more(n: int) -> tuple[list[Any], list[dict[str, Any]]]:
            if probing or self.study._stop_flag or self.job.is_late():
                return [], []
            others = claim.more(n)
            return others, [self._suggest(trial) for trial in others]

        return layers.run_cohorts(self.job, self.screen, trials, chosen, more)

    def _suggest(self, trial: Any) -> dict[str, Any]:
        search = self.search
        if (sampler := sampler_of(search.sampler, search._seed, trial.number)) is not None:
            self.study.sampler = sampler
        params = suggest(trial, self.spaces)
        trial.set_user_attr("ran", plain(params))
        return params

    def _share(self, chosen: list[dict[str, Any]]) -> list[Outcome]:
        """Run trials as lanes or heads; as full fits where a scorer asks for what those lack."""
        job = self.job
        try:
            if self.screen is None:
                return job.run_lanes(chosen)
            return job.run_heads(self.screen, chosen)
        except lanes.OtherRows as error:
            if self.search.strategy == "shared":
                raise ValueError(
                    f"strategy='shared' is not possible: {error}; use 'full' or 'auto'"
                ) from error
            self.strategy = "full"
            return [job.run(params) for params in chosen]

    def _call_back(self, trial: Any) -> None:
        for callback in self.search.callbacks or []:
            callback(self.study, trial)

    def _probe(self) -> None:
        """Fit some trials in full, and go on so where these rank otherwise."""
        rows = judged(self.study, self.spaces, self.job.key)
        if len(rows) < _PROBE:
            return
        chosen = screening.spread_over([float(np.mean(row.scores)) for row in rows], _PROBE)
        probed = [rows[i] for i in chosen]
        self._run_in_full(probed)
        if self.job.is_late():
            return  # nothing is left to decide
        found = full_scores(self.study, self.job.key)
        pairs = [
            (float(np.mean(row.scores)), float(np.mean(found[row.number])))
            for row in probed
            if row.number in found
        ]
        self.agreement = screening.agreement(*zip(*pairs, strict=True)) if pairs else 0.0
        if self.agreement < _AGREES:
            warnings.warn(
                f"{self.screen.what} rank these losses otherwise than full fits do (Spearman "
                f"{self.agreement:.2f} over {len(pairs)} trials): going on with full fits",
                stacklevel=4,
            )
            self.strategy = "full"
            self._run_in_full(rows)
            if not self.job.is_late():
                self.study = told_in_full(self.study, self.job.key)

    def _run_in_full(self, rows: list[Judged]) -> None:
        """Cross-validate trials of which only heads or lanes ran, and write that into the study.

        After the timeout no more of them than it takes to have a score.
        """
        study, job, n = self.study, self.job, self.job.n_workers
        known = full_fits(study)
        rows = [row for row in rows if row.number not in known]
        for start in range(0, len(rows), n):
            if job.is_late() and full_scores(study, job.key):
                return
            self._show("full fits", start, len(rows))
            part = rows[start : start + n]
            outcomes = job.run_all([row.params for row in part])
            for row, outcome in zip(part, outcomes, strict=True):
                job.note(row.number, outcome)
                found = outcome.attributes()
                keep_full_fit(study, row.number, found)
                with workers.stoppable(study):
                    self._call_back(fitted_in_full(_copied(study, row.number), found, job.key))
            self._show("full fits", start + len(part), len(rows))


def _copied(study: Any, number: int) -> Any:
    """A trial for callbacks to keep: `study.trials` would copy every one."""
    return deepcopy(study.get_trials(deepcopy=False)[number])
