"""The Optuna study of a search: a new one, or an earlier one of the same search."""

from __future__ import annotations

import contextlib
import copy
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from skdice.model_selection.retries import try_again
from skdice.model_selection.spaces import import_optuna

HEARTBEAT = 60  # seconds; a trial whose process is silent for twice as long is tried again
# Parameters that do not change the result of a fit.
NEUTRAL = ("device", "n_jobs", "verbose", "cache")


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


def open_study(search: Any, description: Mapping[str, str]) -> Any:
    """The study of a search in its storage or memory; refuses a study of another search."""
    optuna, pruner = import_optuna(), search.pruner
    storage, study_name = search.storage, search.study_name
    if pruner is None or pruner == "median":
        pruner = optuna.pruners.NopPruner() if pruner is None else MedianOfStep()
    failure: Exception | None = None
    for wait in (0, 0.1, 0.2, 0.4):
        time.sleep(wait)  # processes that start together may collide as they make the tables
        try:
            study = optuna.create_study(
                storage=_storage(storage),
                study_name=study_name,
                sampler=search.sampler,
                pruner=pruner,
                direction="maximize",
                load_if_exists=study_name is not None,
            )
            break
        except Exception as error:
            failure = error
    else:
        raise ValueError(
            f"storage={storage!r} with study_name={study_name!r} cannot be used: "
            f"{type(failure).__name__}: {str(failure).splitlines()[0]}: give a new file, one that "
            "a search wrote, the URL of a database, or an Optuna storage"
        ) from failure
    if storage is not None:
        _check_same(study, description)
        study.set_user_attr("search", description)
    return study


def _storage(storage: Any) -> Any:
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
        return storages.RDBStorage(
            url, waits, heartbeat_interval=HEARTBEAT, heartbeat_stale_trial_callback=try_again
        )


def _check_same(study: Any, description: Mapping[str, Any]) -> None:
    """Refuse a study of another search."""
    # The trials are read first, as a search begins with its description.
    trials = study.get_trials(deepcopy=False)
    earlier = study.user_attrs.get("search")
    other = []
    if earlier:
        changed = [part for part in description if earlier.get(part) != description[part]]
        other = [f"{'other' if part == 'folds' else 'another'} {part}" for part in changed]
    elif trials:
        other = ["trials that no search of skdice made"]
    if study.direction != import_optuna().study.StudyDirection.MAXIMIZE:
        other.append("a score to minimize")
    if other:
        space = f" ({earlier['space'][:200]})" if "another space" in other else ""
        raise ValueError(
            f"study_name={study.study_name!r} is a study of {' and '.join(other)} in this storage"
            f"{space}: give another study_name"
        )


def described(search: Any, spaces: list[Any], splits: Sequence[Any]) -> dict[str, str]:
    """The parts that make two searches the same, as texts that do not depend on the process."""
    names = search.estimator.get_params(deep=True)
    neutral = {name: None for name in names if name.rpartition("__")[2] in NEUTRAL}
    estimator = clone(search.estimator).set_params(**neutral)
    key = search.refit if isinstance(search.refit, str) else None
    return {
        "space": _text(spaces),
        "estimator": _text(estimator, N_CHAR_MAX=sys.maxsize),
        "scoring": _text([search.scoring, key]),
        "folds": joblib.hash([[np.asarray(rows) for rows in split] for split in splits]),
    }


def _text(value: Any, **how: Any) -> str:
    """A value's text in full, without addresses in memory."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", value.__repr__(**how))
