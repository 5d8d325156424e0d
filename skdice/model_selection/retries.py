"""Trials that did not end by their own fault, and are tried again with the same parameters.

A trial and its study know their processes, so that the trials of one that was killed are found.
"""

from __future__ import annotations

import copy
import warnings
from datetime import datetime
from typing import Any

from skdice._processes import has_ended, this_process
from skdice.model_selection.spaces import import_optuna

OWNER = "process"  # the attribute of a trial that names its process, once it has its parameters
WORKER = "process "  # begins an attribute of the study for each process that works on it


def enter(study: Any) -> None:
    """Name this process in a study, and try again what processes left that have ended."""
    began, attribute = datetime.now(), WORKER + this_process()
    is_alone = attribute not in study.user_attrs  # another thread may search the same study
    study.set_user_attr(attribute, True)
    take_over(study, before=began if is_alone else None)


def own(trial: Any) -> None:
    """Name this process in a trial whose parameters are suggested."""
    trial.set_user_attr(OWNER, this_process())


def take_over(study: Any, *, before: datetime | None = None) -> None:
    """Try the trials again whose process was on this host and has ended.

    A process may end before it names itself in a trial. If all other processes of the study were on
    this host and have ended, such a trial that began before `before` is tried, too.
    """
    optuna, trials = import_optuna(), study.get_trials(deepcopy=False)
    running = [trial for trial in trials if trial.state == optuna.trial.TrialState.RUNNING]
    workers = [name.removeprefix(WORKER) for name in study.user_attrs if name.startswith(WORKER)]
    others = [name for name in workers if name != this_process()]
    others_ended = bool(others) and all(map(has_ended, others))
    for trial in running:
        if (owner := trial.user_attrs.get(OWNER)) is None:
            is_left = others_ended and before and trial.datetime_start < before
        else:
            is_left = has_ended(owner)
        if not is_left:
            continue
        try:
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
            continue  # another process was first
        except RuntimeError:  # a sampler that has no more settings stops the study
            pass
        try_again(study, trial)


def try_again(study: Any, trial: Any, times: int | None = 3) -> None:
    """Put a trial that has ended into the queue, if that was not done so many times."""
    trial = copy.deepcopy(trial)
    if OWNER not in trial.user_attrs:  # it ended while its parameters were suggested
        trial.params, trial.distributions = {}, {}
    trial.user_attrs = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls this experimental
        import_optuna().storages.RetryHeartbeatStaleTrialCallback(max_retry=times)(study, trial)


def number_without_retries(study: Any, trial: Any) -> int:
    """The number that a trial would have if no trial had been tried again."""
    first_number = import_optuna().storages.RetryHeartbeatStaleTrialCallback.retried_trial_number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        firsts = [first_number(known) for known in study.get_trials(deepcopy=False)]
    first = firsts[trial.number]
    number = trial.number if first is None else first
    return sum(known is None for known in firsts[:number])
