"""Optuna's study of a search: its storage, its pruner, and processes that work on it together."""

from __future__ import annotations

import contextlib
import copy
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from skdice.model_selection.spaces import import_optuna

NEUTRAL = ("device", "n_jobs", "verbose", "cache")  # do not change the result of a fit
HEARTBEAT = 60  # seconds; a trial whose process is silent for twice as long is tried again


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Let Optuna log errors only: the search has warnings of its own."""
    logging = import_optuna().logging
    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(level)


class MedianOfStep:
    """Optuna's median rule, applied to a trial's last score.

    Optuna takes the best score of all steps, which prunes nothing after an easy fold.
    """

    def __init__(self) -> None:
        self.median = import_optuna().pruners.MedianPruner(n_startup_trials=5, n_min_trials=5)

    def prune(self, study: Any, trial: Any) -> bool:
        """Tell whether the last score is below the median of finished trials at this step."""
        last = copy.copy(trial)
        last.intermediate_values = {trial.last_step: trial.intermediate_values[trial.last_step]}
        return bool(self.median.prune(study, last))


def as_storage(storage: Any) -> Any:
    """A storage for Optuna: a path is an SQLite file, and a database gets a heartbeat."""
    if not isinstance(storage, (str, Path)):
        return storage
    if not str(storage):  # to SQLite it is a database that ends with the process
        raise ValueError("it is empty")
    storages, url = import_optuna().storages, str(storage)
    url = url if "://" in url else f"sqlite:///{url}"
    waits = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls the heartbeat experimental
        again = storages.RetryHeartbeatStaleTrialCallback(max_retry=3)
        return storages.RDBStorage(
            url, waits, heartbeat_interval=HEARTBEAT, heartbeat_stale_trial_callback=again
        )


def open_study(storage: Any, name: str | None, description: Mapping[str, str]) -> Any:
    """The study of a search in its storage or memory; refuses a study of another search."""
    optuna = import_optuna()
    failure: Exception | None = None
    for wait in (0, 0.1, 0.2, 0.4):
        time.sleep(wait)  # processes that start together may collide as they make the tables
        try:
            study = optuna.create_study(
                storage=as_storage(storage), study_name=name, direction="maximize",
                load_if_exists=name is not None,
            )  # fmt: skip
            break
        except Exception as error:
            failure = error
    else:
        raise ValueError(
            f"storage={storage!r} with study_name={name!r} cannot be used: "
            f"{type(failure).__name__}: {str(failure).splitlines()[0]}: give a new file, one that "
            "a search wrote, the URL of a database, or an Optuna storage"
        ) from failure
    trials, earlier = study.get_trials(deepcopy=False), study.user_attrs.get("search")
    if study.direction != optuna.study.StudyDirection.MAXIMIZE:
        raise ValueError(f"study_name={name!r} is a study of a score to minimize: give another")
    if (trials or earlier) and earlier != description:
        changed = [part for part in description if (earlier or {}).get(part) != description[part]]
        raise ValueError(
            f"study_name={study.study_name!r} is a study of another search in this storage (other "
            f"{', '.join(changed)}): give another study_name"
        )
    study.set_user_attr("search", description)
    return study


def described(search: Any, spaces: Any, splits: Any) -> dict[str, str]:
    """What makes two searches the same, as texts that do not depend on the process."""
    names = search.estimator.get_params(deep=True)
    neutral = {name: None for name in names if name.rpartition("__")[2] in NEUTRAL}
    estimator = clone(search.estimator).set_params(**neutral)
    return {
        "space": _text(spaces),
        "estimator": _text(estimator, N_CHAR_MAX=sys.maxsize),
        "scoring": _text([search.scoring]),
        "folds": joblib.hash([[np.asarray(rows) for rows in split] for split in splits]),
    }


def _text(value: Any, **how: Any) -> str:
    """A value's text in full, without addresses in memory."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", value.__repr__(**how))


def work(study: Any, objective: Any, pruner: Any, sampler: Any, **how: Any) -> None:
    """Run trials in this process, by Optuna's ``optimize``; `how` is for that."""
    pruners = import_optuna().pruners
    if pruner is None or pruner == "median":
        pruner = pruners.NopPruner() if pruner is None else MedianOfStep()
    study.pruner = pruner
    if sampler is not None:
        study.sampler = sampler
    with quiet_optuna():
        study.optimize(objective, **how)


def work_together(run: Callable[..., None], study: Any, storage: Any, shares: list[int]) -> None:
    """Call `run` with the study and a number of trials, in a process for each number."""
    Parallel(n_jobs=len(shares))(
        delayed(_run_in_process)(run, study.study_name, storage, share) for share in shares
    )


def _run_in_process(run: Callable[..., None], name: str, storage: Any, share: int) -> None:
    with quiet_optuna():
        study = import_optuna().load_study(study_name=name, storage=as_storage(storage))
    run(study, share)


def in_memory(name: str, storage: Any) -> Any:
    """A copy of a study that does not need its storage any more."""
    optuna = import_optuna()
    kept = optuna.storages.InMemoryStorage()
    optuna.copy_study(from_study_name=name, from_storage=as_storage(storage), to_storage=kept)
    return optuna.load_study(study_name=name, storage=kept)
