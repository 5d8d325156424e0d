"""The table of a search: one row for each trial that has run."""

from __future__ import annotations

from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from skdice.model_selection.spaces import suggest
from skdice.model_selection.study import full_fits
from skdice.model_selection.trials import Job

__all__ = ["Judged", "cv_results", "judged", "so_far"]


class Judged(NamedTuple):
    """A trial whose heads, or lanes, have scores."""

    number: int
    params: dict[str, Any]
    scores: list[float]  # of the folds


def judged(study: Any, spaces: list[Any], key: str) -> list[Judged]:
    """The trials of a study that were judged by their heads or lanes."""
    found = []
    for trial in _that_ran(study):
        scores = trial.user_attrs.get("shared_scores", {}).get(key)
        if scores and None not in scores:
            found.append(Judged(trial.number, _params(trial, spaces), scores))
    return found


def _that_ran(study: Any) -> list[Any]:
    """Trials to their end, and not those that were given back."""
    return [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state.is_finished()
        and "test_scores" in trial.user_attrs
        and "lost" not in trial.user_attrs
    ]


def _params(trial: Any, spaces: list[Any]) -> dict[str, Any]:
    from optuna.trial import FixedTrial

    # What a function of the space once said it may not say again.
    return {**suggest(FixedTrial(trial.params), spaces), **trial.user_attrs["ran"]}


def _rows(study: Any, key: str) -> tuple[list[Any], list[dict[str, Any]], list[str]]:
    """Trials, what was found of each, and their states.

    States are as Optuna says them; where heads came first, of the full fit if there was one, and so
    is what was found; the trial keeps what the heads said.
    """
    rows, finals = _that_ran(study), full_fits(study)
    found = [finals.get(trial.number, trial.user_attrs) for trial in rows]
    states = []
    for trial, of_trial in zip(rows, found, strict=True):
        state, scores = trial.state.name, of_trial["test_scores"][key]
        if "shared_scores" in trial.user_attrs and state == "COMPLETE":
            state = "SCREENED" if not scores else "FAIL" if None in scores else "COMPLETE"
        states.append(state)
    return rows, found, states


def so_far(study: Any, key: str) -> dict[str, Any]:
    """What a search that goes on has of `cv_results_`: one score's means, and of the parameters
    those that are plain values.
    """
    rows, found, states = _rows(study, key)
    scores = [of_trial["test_scores"][key] for of_trial in found]
    full = [v if s == "COMPLETE" else None for v, s in zip(scores, states, strict=True)]
    results: dict[str, Any] = {
        "trial": [trial.number for trial in rows],
        "state": states,
        "params": [trial.user_attrs["ran"] for trial in rows],
        f"mean_test_{key}": _means(full),
    }
    heads = [trial.user_attrs.get("shared_scores", {}).get(key) for trial in rows]
    if any(heads):
        results[f"mean_shared_{key}"] = _means(heads)
    return results


def _means(table: list[Any]) -> np.ndarray:
    """Of each row that has all its values; NaN of others."""
    return np.array([np.mean(v) if v and None not in v else np.nan for v in table], dtype=float)


def cv_results(
    study: Any, spaces: list[Any], job: Job, n_splits: int, *, with_train: bool
) -> dict[str, Any]:
    """`cv_results_` as `GridSearchCV` has it, with each trial's number and state."""
    rows, found, states = _rows(study, job.key)
    results: dict[str, Any] = {
        "trial": np.array([t.number for t in rows], dtype=int),
        "state": np.array(states, dtype=object),
    }
    params = [_params(t, spaces) for t in rows]
    for kind in ("fit_time", "score_time"):
        times = [f[kind] or [np.nan] for f in found]
        results[f"mean_{kind}"] = np.array([np.mean(row) for row in times])
        results[f"std_{kind}"] = np.array([np.std(row) for row in times])
    for name in sorted({n for p in params for n in p}):
        held = {i: p[name] for i, p in enumerate(params) if name in p}
        numbers = all(isinstance(value, (Number, np.bool_)) for value in held.values())
        dtype = np.asarray(list(held.values())).dtype if numbers else object
        values = results[f"param_{name}"] = np.ma.masked_all(len(rows), dtype=dtype)
        for i, value in held.items():
            values[i] = value
    results["params"] = params
    names = list(job.scorers)
    for kind in ["test", "train"] if with_train else ["test"]:
        for name in names:
            table = np.full((len(rows), n_splits), np.nan)
            for i, of_trial in enumerate(found):
                values = of_trial[f"{kind}_scores"].get(name, [])
                table[i, : len(values)] = [np.nan if v is None else v for v in values]
            for split in range(n_splits):
                results[f"split{split}_{kind}_{name}"] = table[:, split]
            results[f"mean_{kind}_{name}"] = table.mean(axis=1) if len(rows) else np.zeros(0)
            results[f"std_{kind}_{name}"] = table.std(axis=1) if len(rows) else np.zeros(0)
    if any("shared_scores" in t.user_attrs for t in rows):
        for name in names:
            heads = [t.user_attrs.get("shared_scores", {}).get(name) for t in rows]
            results[f"mean_shared_{name}"] = _means(heads)
    for name in names:
        means = results[f"mean_test_{name}"]
        worst = np.where(np.isfinite(means), means, -np.inf)
        results[f"rank_test_{name}"] = rankdata(-worst, method="min").astype(np.int32)
    return results
