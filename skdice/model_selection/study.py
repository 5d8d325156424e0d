"""The Optuna study of a search: made, or gone on with if it is of the same search."""

from __future__ import annotations

import contextlib
import copy
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib
import numpy as np

__all__ = [
    "described",
    "fitted_in_full",
    "full_fits",
    "full_scores",
    "import_optuna",
    "keep_full_fit",
    "open_study",
    "progress",
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
# Parameters that say where and how loudly a fit runs, and not what comes out.
_ELSEWHERE = ("device", "n_jobs", "verbose", "cache")


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


@contextlib.contextmanager
def progress(*, shown: bool) -> Iterator[Callable[[str, int, int], None]]:
    """What to call with a kind of work, how much is done and how much there is, for bars."""
    if not shown:
        yield lambda kind, done, total: None
        return
    from rich.progress import Progress

    with Progress() as bars:
        tasks: dict[str, Any] = {}

        def show(kind: str, done: int, total: int) -> None:
            if kind not in tasks:
                tasks[kind] = bars.add_task(kind)
            bars.update(tasks[kind], completed=done, total=total)

        yield show


class MedianOfStep:
    """Optuna's median rule by a trial's last score.

    Its own goes by the best of all steps, and ends nothing once a fold was easier than the next.
    """

    def __init__(self) -> None:
        self.median = import_optuna().pruners.MedianPruner(n_startup_trials=5, n_min_trials=5)

    def prune(self, study: Any, trial: Any) -> bool:
        """Whether the last score is below the median of those that finished trials had there."""
        last = copy.copy(trial)
        last.intermediate_values = {trial.last_step: trial.intermediate_values[trial.last_step]}
        return bool(self.median.prune(study, last))


def _storage(storage: Any) -> Any:
    """A storage as Optuna takes it; what is neither a URL nor one of its storages names a file."""
    if not isinstance(storage, (str, Path)) or "://" in str(storage):
        return storage
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    journal = JournalFileBackend(str(storage))  # which makes the file
    with open(storage, "rb") as file:
        first = file.readline(1000)
    # Optuna would take a line that it cannot read for one half written, and go on behind it.
    if first and b'"op_code"' not in first:
        raise ValueError("the file is no journal of Optuna")
    return JournalStorage(journal)


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
    if isinstance(pruner, str):
        pruner = MedianOfStep()
    waits = iter((0.1, 0.2, 0.4, 0.8))
    while True:
        try:
            study = optuna.create_study(
                storage=_storage(storage),
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
                f"{type(error).__name__}: {error}: give a new file, one that a search wrote, the "
                "URL of a database, or an Optuna storage, as storage= or --storage"
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


def full_scores(study: Any, key: str) -> dict[int, list[float]]:
    """The scores of full fits of screened trials, of those which have one for each fold."""
    found = {number: fit["test_scores"][key] for number, fit in full_fits(study).items()}
    return {number: scores for number, scores in found.items() if None not in scores}


def fitted_in_full(trial: Any, attributes: dict[str, Any], key: str) -> Any:
    """A screened trial as it were had its full fit scored it, and not its head or lane."""
    from optuna.trial import TrialState

    trial, scores = copy.copy(trial), attributes["test_scores"][key]
    fitted = None not in scores
    trial.state = TrialState.COMPLETE if fitted else TrialState.FAIL
    trial.values = [float(np.mean(scores))] if fitted else None
    trial.intermediate_values = {}  # a pruner must not weigh fits against what stood for them
    trial.user_attrs = {**trial.user_attrs, **attributes}
    return trial


def told_in_full(study: Any, key: str) -> Any:
    """A study in memory as it were had full fits scored its screened trials, and not heads.

    A sampler that goes on must not learn from both.
    """
    again = open_study(None, None, study.pruner, study.sampler, {})
    found = full_fits(study)
    for number, attributes in found.items():
        keep_full_fit(again, number, attributes)
    for trial in study.trials:
        if trial.number in found:
            trial = fitted_in_full(trial, found[trial.number], key)
        again.add_trial(trial)
    return again


def described(
    estimator: Any, spaces: list[Any], scorers: dict[str, Any], key: str, splits: Any, data: Any
) -> dict[str, Any]:
    """What a search is of, as plain values that are the same in every process."""
    return {
        "space": _text(spaces),
        "estimator": _text(estimator),
        "scoring": f"{key} of {_text(scorers)}",
        "folds": joblib.hash(splits),
        "data": _content(*data),
    }


def _text(value: Any) -> str:
    """A value as text that is the same in every process, and other where the value is."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_text(v)}" for name, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_text, value))) + "}"
    if isinstance(value, np.ndarray):  # whose repr leaves out most of a long one
        objects = value.dtype == object
        return _text(value.tolist()) if objects else f"array {joblib.hash(_plain(value))}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        held = value.get_params(deep=False).items()
        params = {name: v for name, v in sorted(held) if name not in _ELSEWHERE}
        return f"{type(value).__qualname__} {_text(params)}"
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
    inner = getattr(value, "_score_func", getattr(value, "func", None))  # of a scorer, a partial
    if inner is not None:
        return f"{text} {_text(inner)}"
    ad_hoc = isinstance(value, FunctionType) and _is_ad_hoc(value)
    return f"{text} {joblib.hash(_code(value))}" if ad_hoc else text


def _is_ad_hoc(function: FunctionType) -> bool:
    """Whether a function is of a script or a session: its name says little of it."""
    return "<" in function.__qualname__ or function.__module__ == "__main__"


def _code(function: FunctionType) -> str:
    """What a function does, and the plain values that it does it with."""

    def of(code: CodeType) -> list[Any]:
        consts = [of(c) if isinstance(c, CodeType) else _text(c) for c in code.co_consts]
        return [code.co_code, code.co_names, consts]

    kept = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty yet
            kept.append(cell.cell_contents)
    simple = [_text(v) for v in kept if isinstance(v, (int, float, str, np.ndarray, type(None)))]
    return repr([of(function.__code__), simple])


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
