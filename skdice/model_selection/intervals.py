"""The difference between two models of a comparison, and its confidence interval."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from skdice._compat import safe_indexing

MOST_PARTS = 20  # into which the test rows are divided
F1_WITHOUT = "f1_without"  # the F1 without each part, in the record of a run


def scores_and_parts(fitted: Any, X: Any, y: Any) -> tuple[dict[str, float], list[float]]:
    """The scores of ``fitted.evaluate`` for all rows, and its F1 without each part of them.

    The model predicts once. The parts are the same for every model.
    """
    kept: Any = slice(None)
    twin, predictions = copy.copy(fitted), {}

    def replayed(name: str, predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def of_kept(X: Any) -> Any:
            if name not in predictions:
                predictions[name] = predict(X)
            return predictions[name][kept]

        return of_kept

    for name in ("predict", "predict_spans"):
        if hasattr(fitted, name):
            setattr(twin, name, replayed(name, getattr(fitted, name)))
    scores, n = twin.evaluate(X, y), len(y)
    parts = np.array_split(np.random.default_rng(0).permutation(n), min(MOST_PARTS, n))
    without = []
    for part in parts if n > 1 else []:
        kept = np.delete(np.arange(n), part)
        rows, labels = (safe_indexing(values, kept) for values in (X, y))
        without.append(float(twin.evaluate(rows, labels)["f1"]))
    return scores, without


def difference(one: Any, other: Any, models: Sequence[Any]) -> tuple[float, float, float]:
    """Mean F1 of `one` less that of `other`, and the ends of its 95 % interval.

    Two sources of chance add up: the test rows (the jackknife over parts of them, on the difference
    of the same rows) and the seeds (their variance, pooled over `models`; nothing is known of it
    with one seed, and a row that does not depend on it has none). The ends are NaN where the
    records hold no parts.

    Parameters
    ----------
    one, other : Candidate
    models : sequence of Candidate
        All of the comparison, which share the variance of their seeds.

    References
    ----------
    J. Shao, D. Tu, "The Jackknife and Bootstrap", 1995, for the jackknife that leaves out groups.
    """
    apart = one.mean("f1") - other.mean("f1")
    without = [[run.get(F1_WITHOUT) or [] for run in model.runs] for model in (one, other)]
    sizes = {len(of_parts) for runs in without for of_parts in runs}
    if len(sizes) != 1 or (n := sizes.pop()) < 2:
        return apart, np.nan, np.nan
    of_parts = np.mean(without[0], axis=0) - np.mean(without[1], axis=0)
    rows = (n - 1) / n * np.square(of_parts - of_parts.mean()).sum()
    drawn = [model for model in models if model.depends_on_seed]
    several = [model.values("f1") for model in drawn if len(model.runs) > 1]
    n_free = sum(len(values) - 1 for values in several)
    spread = sum((len(values) - 1) * np.var(values, ddof=1) for values in several)
    share = sum(1 / len(model.runs) for model in (one, other) if model.depends_on_seed)
    seeds = spread / max(n_free, 1) * share
    if one is other or not rows + seeds:
        return apart, apart, apart
    # The degrees of freedom of a sum of two variances (Welch and Satterthwaite).
    freedom = (rows + seeds) ** 2 / (rows**2 / (n - 1) + seeds**2 / max(n_free, 1))
    half = float(stats.t.ppf(0.975, freedom) * np.sqrt(rows + seeds))
    return apart, apart - half, apart + half
