"""Optuna's study of a search: its storage, its pruner, and what tells it from others."""

from __future__ import annotations

import contextlib
import copy
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.base import clone

from skdice._digest import digest
from skdice.model_selection.spaces import import_optuna

NEUTRAL = ("device", "n_jobs", "verbose", "cache")  # do not change the result of a fit
HEARTBEAT = 60  # seconds; a trial whose process is silent for twice as long is tried again


@contextlib.contextmanager
def optuna_log(verbose: int) -> Iterator[None]:
    """Let Optuna log each trial, or errors only: the search has warnings of its own."""
    logging = import_optuna().logging
    level = logging.get_verbosity()
    logging.set_verbosity(logging.INFO if verbose else logging.ERROR)
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
    storages, url = import_optuna().storages, str(storage)
    url = url if "://" in url else f"sqlite:///{Path(storage).absolute()}"
    waits = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls the heartbeat experimental
        again = storages.RetryHeartbeatStaleTrialCallback(max_retry=3)
        return storages.RDBStorage(
            url, waits, heartbeat_interval=HEARTBEAT, heartbeat_stale_trial_callback=again
        )


def new_study(search: Any, storage: Any = None, name: str | None = None) -> Any:
    """A study with the sampler and the pruner of a search, in memory or in a storage."""
    sampler = search.optuna_sampler
    with contextlib.suppress(TypeError):  # one that cannot be copied keeps its state
        sampler = copy.deepcopy(sampler)
    pruner = MedianOfStep() if search.pruner == "median" else search.pruner
    return import_optuna().create_study(
        storage=as_storage(storage),
        sampler=sampler,
        pruner=pruner or import_optuna().pruners.NopPruner(),
        study_name=name,
        direction="maximize",
        load_if_exists=True,
    )


def open_study(search: Any, identity: str) -> Any:
    """The study of a search in its storage; refuses a study of another search."""
    storage, name = search.storage, search.study_name
    for wait in (0.1, 0.2, 0.4, None):  # seconds
        try:
            study = new_study(search, storage, name)
            break
        except Exception as error:
            if wait is None:
                raise ValueError(
                    f"storage={storage!r} with study_name={name!r} cannot be used: "
                    f"{type(error).__name__}: {str(error).splitlines()[0]}: give a new file, one "
                    "that a search wrote, the URL of a database, or an Optuna storage"
                ) from error
            time.sleep(wait)  # processes that start together may collide as they make the tables
    # An empty study, which somebody made beforehand, is anybody's.
    usual = None if study.get_trials(deepcopy=False) else identity
    same = study.user_attrs.get("search", usual) == identity
    if study.direction.name != "MAXIMIZE" or not same:
        raise ValueError(
            f"study_name={study.study_name!r} is a study of another search in this storage, with "
            "another space, estimator, scoring or folds: give another study_name"
        )
    study.set_user_attr("search", identity)
    return study


def identity_of(search: Any, spaces: Any, splits: Any) -> str:
    """A checksum of what makes two searches the same, in every process."""
    return digest(spaces, neutral(search.estimator), search.scoring, splits)


def neutral(estimator: Any) -> Any:
    """A clone without what does not change the result of a fit."""
    names = [name for name in estimator.get_params() if name.rpartition("__")[2] in NEUTRAL]
    return clone(estimator).set_params(**dict.fromkeys(names))
