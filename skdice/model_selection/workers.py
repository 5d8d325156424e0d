"""Several processes at work on one study: who runs what, and what a killed one left behind."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
from collections.abc import Iterator
from typing import Any

__all__ = ["Claim", "claimed", "others_at_work", "reclaim", "stoppable"]

_RUNNING: set[tuple[str, int]] = set()  # studies and trials that this process is at


@contextlib.contextmanager
def stoppable(study: Any) -> Iterator[None]:
    """`Study.stop` may be called, as in Optuna's own loop."""
    study._thread_local.in_optimize_loop = True
    try:
        yield
    finally:
        study._thread_local.in_optimize_loop = False


class Claim(list[Any]):
    """Trials that are this process's to run."""

    def __init__(self, study: Any, n_trials: int) -> None:
        super().__init__()
        self.study, self.n_trials = study, n_trials
        self.asked: set[tuple[str, int]] = set()
        self.beating: dict[int, Any] = {}  # what tells the storage of each trial

    def more(self, n_wanted: int) -> list[Any]:
        """Up to `n_wanted` trials more."""
        from optuna.storages._heartbeat import get_heartbeat_thread
        from optuna.trial import TrialState

        study, first = self.study, len(self)
        reclaim(study)
        while len(self) < first + n_wanted and _has_room(study, self.n_trials):
            trial = study.ask()
            self.append(trial)
            self.asked.add((study.study_name, trial.number))
            _RUNNING.update(self.asked)
            trial.set_user_attr("worker", _me())
            if not _counts(study, trial.number, self.n_trials):
                trial.set_user_attr("surplus", True)
                study.tell(trial, state=TrialState.FAIL)
                self.pop()
                break
            self.beating[trial.number] = get_heartbeat_thread(trial._trial_id, study._storage)
            self.beating[trial.number].__enter__()
        return self[first:]

    def has_ended(self, number: int) -> None:
        """Tell the storage no more of a trial."""
        self.beating.pop(number).__exit__(None, None, None)


@contextlib.contextmanager
def claimed(study: Any, n_trials: int, n_wanted: int) -> Iterator[Claim]:
    """Up to `n_wanted` trials to run, none if the study has its `n_trials`.

    Trials are numbered in the storage, so that of two processes which ask at once only one gets a
    number that still counts. While they run, a storage with a heartbeat hears of them and
    `Study.stop` may be called; those that an interrupt or an error leaves behind go back into the
    queue.
    """
    from optuna.trial import TrialState

    with stoppable(study):
        trials = Claim(study, n_trials)
        try:
            trials.more(n_wanted)
            yield trials
        except BaseException:
            numbers = {trial.number for trial in trials}
            for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if frozen.number in numbers:
                    _give_back(study, frozen)
            raise
        finally:
            for number in list(trials.beating):
                trials.has_ended(number)
            _RUNNING.difference_update(trials.asked)


def _has_room(study: Any, n_trials: int) -> bool:
    from optuna.trial import TrialState

    frozen = study.get_trials(deepcopy=False)
    waiting = any(trial.state == TrialState.WAITING for trial in frozen)
    return waiting or sum(map(_is_counted, frozen)) < n_trials


def _counts(study: Any, number: int, n_trials: int) -> bool:
    before = [t for t in study.get_trials(deepcopy=False) if t.number < number]
    return sum(map(_is_counted, before)) < n_trials


def _is_counted(frozen: Any) -> bool:
    return not {"lost", "surplus"} & set(frozen.user_attrs)


def reclaim(study: Any) -> None:
    """Put back into the queue what dead processes of this machine were running, and what this
    process left behind.
    """
    from optuna.storages._heartbeat import is_heartbeat_enabled
    from optuna.trial import TrialState

    stale: list[int] = []
    if is_heartbeat_enabled(study._storage):  # then also what other machines left
        stale = study._storage._get_stale_trial_ids(study._study_id)
    for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = frozen.user_attrs.get("worker")
        if worker is None:  # asked for, and not yet said by whom
            gone = not _just_begun(frozen)
        elif worker == _me():
            gone = (study.study_name, frozen.number) not in _RUNNING
        else:
            gone = worker[0] == platform.node() and not _alive(*worker[1:])
        if gone or frozen._trial_id in stale:
            _give_back(study, frozen)


def _give_back(study: Any, frozen: Any) -> None:
    """Fail a trial that has not ended, so that it does not count, and queue its parameters."""
    import optuna
    from optuna.trial import TrialState

    trial = optuna.trial.Trial(study, frozen._trial_id)
    try:
        trial.set_user_attr("lost", True)
        study.tell(frozen.number, state=TrialState.FAIL)
    except (ValueError, RuntimeError, optuna.exceptions.OptunaError):
        return  # another process was first
    study.enqueue_trial(frozen.params, user_attrs={"retry_of": frozen.number})


def others_at_work(study: Any) -> bool:
    """Whether another living process of this machine is running a trial."""
    from optuna.trial import TrialState

    for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = frozen.user_attrs.get("worker")
        if worker is None and _just_begun(frozen):
            return True
        if worker is not None and worker[0] == platform.node() and worker != _me():
            return True
    return False


def _just_begun(frozen: Any) -> bool:
    age = datetime.datetime.now() - (frozen.datetime_start or datetime.datetime.min)
    return age < datetime.timedelta(seconds=30)


def _me() -> list[Any]:
    return [platform.node(), os.getpid(), _started(os.getpid())]


def _alive(pid: int, started: str) -> bool:
    """Whether the process is there, and is the one that began the trial."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _started(pid) in (started, "")


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where that cannot be read."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "gone" if fields[0] == "Z" else fields[19]
