"""Several processes at work on one study: who runs what, and what a killed one left behind."""

from __future__ import annotations

import contextlib
import os
import platform
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["claim", "heartbeat", "others_at_work", "reclaim"]


def claim(study: Any, n_trials: int, n_wanted: int) -> list[Any]:
    """Up to `n_wanted` trials to run, none if the study has its `n_trials`.

    Trials are numbered in the storage, so that of two processes which ask at once only one gets a
    number that still counts.
    """
    from optuna.trial import TrialState

    reclaim(study)
    claimed: list[Any] = []
    while len(claimed) < n_wanted:
        frozen = study.get_trials(deepcopy=False)
        lost = sum("lost" in trial.user_attrs for trial in frozen)
        surplus = sum("surplus" in trial.user_attrs for trial in frozen)
        waiting = sum(trial.state == TrialState.WAITING for trial in frozen)
        if not waiting and len(frozen) - lost - surplus >= n_trials:
            break
        trial = study.ask()
        trial.set_user_attr("worker", _me())
        before = [t for t in study.get_trials(deepcopy=False) if t.number < trial.number]
        spare = sum("lost" in t.user_attrs or "surplus" in t.user_attrs for t in before)
        if len(before) - spare >= n_trials:
            trial.set_user_attr("surplus", True)
            study.tell(trial, state=TrialState.FAIL)
            break
        claimed.append(trial)
    return claimed


def reclaim(study: Any) -> None:
    """Put what dead processes of this machine were running back into the queue."""
    import optuna
    from optuna.storages._heartbeat import is_heartbeat_enabled
    from optuna.trial import TrialState

    if is_heartbeat_enabled(study._storage):  # then also what other machines left
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            optuna.storages.fail_stale_trials(study)
    for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = frozen.user_attrs.get("worker")
        if worker is None or worker[0] != platform.node() or _alive(*worker[1:]):
            continue
        trial = optuna.trial.Trial(study, frozen._trial_id)
        try:
            trial.set_user_attr("lost", True)
            study.tell(frozen.number, state=TrialState.FAIL)
        except (ValueError, RuntimeError, optuna.exceptions.OptunaError):
            continue  # another process was first
        study.enqueue_trial(frozen.params, user_attrs={"retry_of": frozen.number})


def others_at_work(study: Any) -> bool:
    """Whether another living process of this machine is running a trial."""
    from optuna.trial import TrialState

    for frozen in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        worker = frozen.user_attrs.get("worker")
        if worker is not None and worker[0] == platform.node() and worker != _me():
            return True
    return False


@contextlib.contextmanager
def heartbeat(study: Any, trial: Any) -> Iterator[None]:
    """Tell a storage with a heartbeat that the trial is alive."""
    from optuna.storages._heartbeat import get_heartbeat_thread

    with get_heartbeat_thread(trial._trial_id, study._storage):
        yield


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
