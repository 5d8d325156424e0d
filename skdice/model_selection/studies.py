"""Optuna's study of a search: its storage, its pruner, and what tells it from others."""

from __future__ import annotations

import contextlib
import copy
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
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


def open_study(search: Any, description: Mapping[str, str] | None) -> Any:
    """The study of a search; refuses a study of another search. Without a description it is new.

    It lies in the storage of the search, and without a description in memory.
    """
    optuna, storage, name = import_optuna(), search.storage, search.study_name
    how: dict[str, Any] = {"direction": "maximize", **_methods(search)}
    if description is None:
        return optuna.create_study(**how)
    failure: Exception | None = None
    for wait in (0, 0.1, 0.2, 0.4):
        time.sleep(wait)  # processes that start together may collide as they make the tables
        try:
            study = optuna.create_study(
                storage=as_storage(storage), study_name=name, load_if_exists=name is not None, **how
            )
            break
        except Exception as error:
            failure = error
    else:
        raise ValueError(
            f"storage={storage!r} with study_name={name!r} cannot be used: "
            f"{type(failure).__name__}: {str(failure).splitlines()[0]}: give a new file, one that "
            "a search wrote, the URL of a database, or an Optuna storage"
        ) from failure
    _check_same(study, description)
    study.set_user_attr("search", description)
    return study


def load_study(search: Any, name: str) -> Any:
    """The study of a search in another process."""
    how = {"storage": as_storage(search.storage), **_methods(search)}
    return import_optuna().load_study(study_name=name, **how)


def _methods(search: Any) -> dict[str, Any]:
    """The sampler and the pruner of a search."""
    pruner = MedianOfStep() if search.pruner == "median" else search.pruner
    return {
        "sampler": search.optuna_sampler,
        "pruner": pruner or import_optuna().pruners.NopPruner(),
    }


def _check_same(study: Any, description: Mapping[str, str]) -> None:
    """Refuse a study of another search."""
    trials, earlier = study.get_trials(deepcopy=False), study.user_attrs.get("search")
    if study.direction != import_optuna().study.StudyDirection.MAXIMIZE:
        raise ValueError(f"study_name={study.study_name!r} is a study of a score to minimize")
    if (trials or earlier) and earlier != description:
        changed = [part for part in description if (earlier or {}).get(part) != description[part]]
        raise ValueError(
            f"study_name={study.study_name!r} is a study of another search in this storage (other "
            f"{', '.join(changed)}): give another study_name"
        )


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
