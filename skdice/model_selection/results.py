"""The table of a search: one row for each trial that has run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from skdice.model_selection.spaces import suggest
from skdice.model_selection.study import full_fits
from skdice.model_selection.trials import Job

__all__ = ["Judged", "cv_results", "judged"]


class Judged(NamedTuple):
    """A trial whose heads have scores."""

    number: int
    params: dict[str, Any]
    scores: list[float]  # of the folds


def judged(study: Any, spaces: list[Any], key: str) -> list[Judged]:
    """The trials of a study that were judged by their heads."""
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
        for trial in study.trials
        if trial.state.is_finished()
        and "test_scores" in trial.user_attrs
        and "lost" not in trial.user_attrs
    ]


def _params(trial: Any, spaces: list[Any]) -> dict[str, Any]:
    from optuna.trial import FixedTrial

    return suggest(FixedTrial(trial.params), spaces)


def _state(trial: Any, found: dict[str, Any], key: str) -> str:
    """As Optuna says it; where heads came first, of the full fit if there was one."""
    if "shared_scores" not in trial.user_attrs or trial.state.name == "FAIL":
        return str(trial.state.name)
    scores = found["test_scores"][key]
    if not scores:
        return "SCREENED"
    return "FAIL" if None in scores else "COMPLETE"


def cv_results(
    study: Any, spaces: list[Any], job: Job, n_splits: int, *, with_train: bool
) -> dict[str, Any]:
    """`cv_results_` as `GridSearchCV` has it, with each trial's number and state."""
    rows, finals = _that_ran(study), full_fits(study)
    # What was fitted in full after its heads; the trial keeps what the heads said.
    found = [finals.get(t.number, t.user_attrs) for t in rows]
    states = [_state(t, f, job.key) for t, f in zip(rows, found, strict=True)]
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
        values = np.ma.masked_all(len(rows), dtype=object)
        for i, p in enumerate(params):
            if name in p:
                values[i] = p[name]
        results[f"param_{name}"] = values
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
            heads = [t.user_attrs.get("shared_scores", {}).get(name, []) for t in rows]
            results[f"mean_shared_{name}"] = np.array(
                [np.mean(v) if v and None not in v else np.nan for v in heads], dtype=float
            )
    for name in names:
        means = results[f"mean_test_{name}"]
        worst = np.where(np.isfinite(means), means, -np.inf)
        results[f"rank_test_{name}"] = rankdata(-worst, method="min").astype(np.int32)
    return results
