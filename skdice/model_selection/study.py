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

__all__ = [
    "described",
    "full_fits",
    "import_optuna",
    "keep_full_fit",
    "open_study",
    "quiet_optuna",
    "sampler_of",
    "told_in_full",
]

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
    storage: Any, study_name: str | None, pruner: Any, sampler: Any, search: dict[str, Any]
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
        other = [name for part, name in _PARTS.items() if not _same(found.get(part), search[part])]
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


def keep_full_fit(study: Any, number: int, attributes: dict[str, Any]) -> None:
    """Write what a full fit of a screened trial found; the trial itself has ended before."""
    study.set_user_attr(f"full:{number}", attributes)


def full_fits(study: Any) -> dict[int, dict[str, Any]]:
    """What full fits of screened trials found, by the trials' numbers."""
    found = study.user_attrs.items()
    return {int(name[5:]): value for name, value in found if name.startswith("full:")}


def told_in_full(study: Any, key: str) -> Any:
    """A study in memory as it were had full fits scored its screened trials, and not heads.

    A sampler that goes on must not learn from both.
    """
    from optuna.trial import TrialState

    again = open_study(None, None, study.pruner, study.sampler, {})
    found = full_fits(study)
    for number, attributes in found.items():
        keep_full_fit(again, number, attributes)
    for trial in study.get_trials():
        if trial.number in found:
            scores = found[trial.number]["test_scores"][key]
            fitted = bool(scores) and None not in scores
            trial.state = TrialState.COMPLETE if fitted else TrialState.FAIL
            trial.values = [float(np.mean(scores))] if fitted else None
        again.add_trial(trial)
    return again


def described(
    estimator: Any, spaces: list[Any], scorers: dict[str, Any], key: str, splits: Any, data: Any
) -> dict[str, Any]:
    """What a search is of, as plain values that are the same in every process."""
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
        "data": _content(*data),
    }


def _text(value: Any) -> str:
    if hasattr(value, "get_params"):
        return type(value).__qualname__  # get_params(deep=True) has its parameters, too
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _content(X: Any, *others: Any) -> list[Any]:
    """The data as a hash, and vectors, whose last digits differ between machines, as rough sums."""
    X, rest = _plain(X), [_plain(other) for other in others]
    if not (isinstance(X, np.ndarray) and X.dtype.kind == "f"):
        return [joblib.hash([X, *rest]), []]
    table = X.reshape(len(X), -1)
    finite = np.isfinite(table)
    holes = None
    if not finite.all():
        holes = np.isnan(table), np.isposinf(table), np.isneginf(table)
        table = np.where(finite, table, 0)
    # Of each column by its own norm, that a wide one does not hide the others.
    norms = np.sqrt(np.einsum("ij,ij->j", table, table, dtype=np.float64))
    scaled = np.divide(
        np.cos(np.arange(len(table))) @ table, norms, out=np.zeros(len(norms)), where=norms > 0
    )
    sizes = np.log(norms, out=np.zeros(len(norms)), where=norms > 0)
    mixes = np.cos(np.outer(np.arange(4), np.arange(len(norms)))) / max(len(norms), 1) ** 0.5
    sums = np.concatenate([mixes @ scaled, mixes @ sizes])
    return [joblib.hash([X.shape, holes, norms > 0, *rest]), [float(v) for v in sums.round(4)]]


def _plain(value: Any) -> Any:
    """Frames and arrays of any layout as arrays of one."""
    value = value.to_numpy() if hasattr(value, "to_numpy") else value
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value


def _same(one: Any, other: Any) -> bool:
    """Whether two parts of what `described` says are the same, their rough sums within 0.01."""
    if not (isinstance(one, list) and isinstance(other, list)):
        return bool(one == other)
    return one[0] == other[0] and np.allclose(one[1], other[1], rtol=0, atol=0.01, equal_nan=True)


def sampler_of(sampler: Any, seed: int | None, number: int) -> Any:
    """The sampler that a trial is asked of: as given, or TPE with a seed of the trial's own.

    So processes that share a study, and searches that go on with one, ask for other settings than
    those before them, and for the same as one process at one go.
    """
    if sampler is not None or seed is None:
        return sampler
    mixed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return import_optuna().samplers.TPESampler(seed=mixed)
