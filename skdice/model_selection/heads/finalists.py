"""The trials that are fitted in full after heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from skdice._checks import is_number


def finalists(settings: Sequence[Mapping[str, Any]], scores: np.ndarray, n: int) -> list[int]:
    """Indices of `n` settings that may be the best, from the scores of their heads on each fold.

    Half are the best. The others differ most, among those within one standard error of the best.
    """
    means, n_folds = scores.mean(axis=1), scores.shape[1]
    order = np.argsort(-means, kind="stable")
    error = scores[order[0]].std(ddof=1) / n_folds**0.5 if n_folds > 1 else 0.0
    level = order[means[order] >= means[order[0]] - error].tolist()
    if len(level) <= n:
        return order[:n].tolist()
    apart = _distances([settings[i] for i in level])
    chosen = list(range((n + 1) // 2))
    while len(chosen) < n:
        chosen.append(int(apart[chosen].min(axis=0).argmax()))
    return [level[i] for i in chosen]


def _distances(settings: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Distances of settings: each parameter adds its gap over its range, or 1 if choices differ."""
    total = np.zeros((len(settings), len(settings)))
    for name in {name for params in settings for name in params}:
        values = [params.get(name) for params in settings]
        if all(is_number(value) for value in values):
            column = np.array(values, dtype=np.float64)
            gaps = np.abs(column[:, None] - column)
            total += gaps / max(float(gaps.max()), np.finfo(np.float64).tiny)
        else:
            texts = np.array([repr(value) for value in values])
            total += texts[:, None] != texts
    return total
