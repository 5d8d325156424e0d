"""The table of a search: one row for each trial that has run."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from skdice.model_selection.spaces import suggest
from skdice.model_selection.trials import Job

__all__ = ["cv_results"]


def cv_results(
    study: Any, spaces: list[Any], job: Job, n_splits: int, *, with_train: bool
) -> dict[str, Any]:
    """`cv_results_` as `GridSearchCV` has it, with each trial's number and state."""
    from optuna.trial import FixedTrial

    rows = [t for t in study.trials if "test_scores" in t.user_attrs]
    # What was fitted in full after its heads; the study keeps what the heads said.
    found = [
        job.finals[t.number].attributes() if t.number in job.finals else t.user_attrs for t in rows
    ]
    states = [
        "SCREENED" if "shared_scores" in f else t.state.name
        for f, t in zip(found, rows, strict=True)
    ]
    results: dict[str, Any] = {
        "trial": np.array([t.number for t in rows], dtype=int),
        "state": np.array(states, dtype=object),
    }
    params = [suggest(FixedTrial(t.params), spaces) for t in rows]
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
