"""The Optuna study of a search: made, or gone on with if it is of the same search."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import joblib
import numpy as np

__all__ = ["described", "import_optuna", "open_study", "quiet_optuna", "sampler_of"]

# What tells the searches in a storage apart, and what to call each.
_PARTS = {
    "space": "another space",
    "estimator": "another estimator",
    "scoring": "another scoring",
    "folds": "other folds",
    "data": "other data",
}
# Parameters that say where and how loudly a fit runs, and not what comes out; and steps, which are
# listed by themselves.
_ELSEWHERE = ("device", "n_jobs", "verbose", "cache", "steps", "transformers", "transformer_list")


def import_optuna() -> ModuleType:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("searches need Optuna: pip install 'skdice[search]'") from error
    return optuna


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Optuna's log below warnings, and the caller's setting back afterwards."""
    logging = import_optuna().logging
    level = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(level)


def open_study(
    storage: Any, study_name: str | None, pruner: Any, sampler: Any, search: dict[str, str]
) -> Any:
    """The study in `storage`, or one in memory.

    Parameters
    ----------
    storage, study_name, pruner, sampler : as in `LossSearchCV`
    search : dict
        What `described` says of the search.

    Raises
    ------
    ValueError
        If the storage cannot be reached, or the study in it is of another search.
    """
    optuna = import_optuna()
    pruner = optuna.pruners.NopPruner() if pruner is None else pruner
    if pruner == "median":
        pruner = optuna.pruners.MedianPruner(n_startup_trials=5)
    waits = iter((0.1, 0.2, 0.4, 0.8))
    while True:
        try:
            study = optuna.create_study(
                storage=storage,
                study_name=study_name,
                sampler=sampler,
                pruner=pruner,
                direction="maximize",
                load_if_exists=study_name is not None,
            )
            break
        except Exception as error:
            # Processes that begin together may make the tables of a new database at once.
            if re.search("OperationalError|IntegrityError|StorageInternalError", repr(error)):
                wait = next(waits, None)
                if wait is not None:
                    time.sleep(wait)
                    continue
            raise ValueError(
                f"storage={storage!r} with study_name={study_name!r} cannot be used: "
                f"{type(error).__name__}: {error}"
            ) from error
    if storage is None:
        return study
    begun = study.get_trials(deepcopy=False)  # before the attributes, which come first
    found = study.user_attrs.get("search")
    other: list[str] = []
    if found is not None:
        other = [name for part, name in _PARTS.items() if found.get(part) != search[part]]
    elif begun:
        other = ["trials that no search of skdice made"]
    if study.direction != optuna.study.StudyDirection.MAXIMIZE:
        other.append("a score to minimize")
    if other:
        space = f" ({found['space'][:200]})" if "another space" in other and found else ""
        raise ValueError(
            f"study_name={study_name!r} is a study of {' and '.join(other)} in this storage{space}:"
            " give another study_name"
        )
    study.set_user_attr("search", search)
    return study


def described(
    estimator: Any, spaces: list[Any], scorers: dict[str, Any], key: str, splits: Any, data: Any
) -> dict[str, str]:
    """What a search is of, as plain text that is the same in every process."""
    params = {
        name: _text(value)
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] not in _ELSEWHERE
    }
    return {
        "space": _text(spaces),
        "estimator": f"{type(estimator).__name__} {sorted(params.items())}",
        "scoring": f"{key} of {_text(scorers)}",
        "folds": joblib.hash(splits),
        "data": joblib.hash([_content(data[0]), *data[1:]]),
    }


def _text(value: Any) -> str:
    if hasattr(value, "get_params"):
        return type(value).__qualname__  # get_params(deep=True) has its parameters, too
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _content(X: Any) -> Any:
    """The data; of vectors, whose last digits differ between machines, some rough sums."""
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
        return X
    table = X.reshape(len(X), -1)
    norm = float(np.linalg.norm(table))
    over_rows = np.cos(np.arange(len(table))) @ table
    columns = np.arange(table.shape[1])
    sums = [float(over_rows @ np.cos(k * columns)) / (norm or 1.0) for k in range(1, 5)]
    return X.shape, f"{norm:.3g}", [f"{value:.2f}" for value in sums]


def sampler_of(sampler: Any, seed: int | None, number: int) -> Any:
    """The sampler that a trial is asked of: as given, or TPE with a seed of the trial's own.

    So processes that share a study, and searches that go on with one, ask for other settings than
    those before them, and for the same as one process at one go.
    """
    if sampler is not None or seed is None:
        return sampler
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return import_optuna().samplers.TPESampler(seed=mixed)
