"""How far the models of a comparison are apart: intervals of all differences of F1 at once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from skdice._compat import safe_indexing

MOST_PARTS = 40  # into which the test rows are divided
N_DRAWS = 2000  # of the bootstrap
F1_WITHOUT = "f1_without"  # the F1 without each part, in the record of a run
FOUND_NOTHING = "found_nothing"  # whether a run gave the same answer everywhere, in its record


class Replayed:
    """A copy of a fitted model that predicts some rows once, and then knows the answers."""

    def __init__(self, fitted: Any, X: Any) -> None:
        self.model, self.X, self.predictions = copy.copy(fitted), X, dict[str, Any]()
        self.kept: Any = slice(None)  # the rows whose answers are given
        for name in ("predict", "predict_spans"):
            if hasattr(fitted, name):
                setattr(self.model, name, self._known(name, getattr(fitted, name)))

    def _known(self, name: str, predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def of_kept(X: Any) -> Any:
            if X is not self.X:
                return predict(X)
            if name not in self.predictions:
                self.predictions[name] = predict(X)
            return self.predictions[name][self.kept]

        of_kept.__name__ = name  # which scikit-learn's scorers look at
        return of_kept

    def found_nothing(self, y: Any) -> bool:
        """Tell whether all answers are the same, such as one class or no span, and those of y not.

        False where nothing was predicted.
        """
        answers = list(self.predictions.values())
        return bool(answers) and all(map(_all_alike, answers)) and not _all_alike(y)


def _all_alike(answers: Any) -> bool:
    """Tell whether rows hold one class or tag only, or no span."""
    found = set[str]()
    for row in answers:
        several = isinstance(row, (list, np.ndarray))
        found.update(map(str, row) if several else [str(row)])
    return len(found) < 2


def scores_and_parts(fitted: Any, X: Any, y: Any) -> dict[str, Any]:
    """The record of a run: the scores of ``fitted.evaluate``, and its F1 without parts of the rows.

    The model predicts once. The parts are the same for every model.
    """
    replayed, n = Replayed(fitted, X), len(y)
    scores = replayed.model.evaluate(X, y)
    parts = np.array_split(np.random.default_rng(0).permutation(n), min(MOST_PARTS, n))
    without = []
    for part in parts if n > 1 else []:
        replayed.kept = np.delete(np.arange(n), part)
        replayed.X, labels = (safe_indexing(values, replayed.kept) for values in (X, y))
        without.append(float(replayed.model.evaluate(replayed.X, labels)["f1"]))
    return {**scores, F1_WITHOUT: without, FOUND_NOTHING: replayed.found_nothing(y)}


def differences(models: Sequence[Any], to: int) -> list[tuple[float, float, float]]:
    """F1 of each of `models` less that of ``models[to]``, with the ends of simultaneous intervals.

    The differences of all pairs lie in their intervals at once, in 95 of 100 comparisons. So the
    intervals may be read against the best although the same scores chose it: of models that are
    equal, at least one is called behind in 5 of 100 comparisons at most. (Hsu's intervals are
    shorter, as they may call one of several equal models "not the best".)

    Two sources of chance add up: the test rows (the jackknife over parts of them, on the same rows
    for all) and the seeds (their variance, pooled over the models; with one seed it is not known
    and left out, and a row that does not depend on it has none). The largest of all differences,
    each in units of its own standard error, is drawn from both: a parametric bootstrap.

    Parameters
    ----------
    models : sequence of Candidate
    to : int

    Returns
    -------
    list of (difference, low, high)
        The ends are NaN where the records hold no parts.

    References
    ----------
    J. Shao, D. Tu, "The Jackknife and Bootstrap", 1995, for the jackknife that leaves out groups.
    J. C. Hsu, "Multiple Comparisons", 1996, for comparisons of all pairs and with the best.
    """
    apart = np.array([model.mean("f1") - models[to].mean("f1") for model in models])
    without = [[run.get(F1_WITHOUT, []) for run in model.runs] for model in models]
    sizes = {len(of_parts) for runs in without for of_parts in runs}
    if len(sizes) != 1 or sizes.pop() < 2:
        half = np.where(np.arange(len(models)) == to, 0.0, np.nan)
    else:
        of_parts = np.array([np.mean(runs, axis=0) for runs in without])
        half = _half_widths(of_parts, *_of_seeds(models), to)
    return [(float(d), float(d - h), float(d + h)) for d, h in zip(apart, half, strict=True)]


def _of_seeds(models: Sequence[Any]) -> tuple[np.ndarray, int]:
    """The variance of each mean F1 that is due to seeds, and the degrees of freedom of all."""
    several = [m.values("f1") for m in models]
    # A model that has one run, or gives the same with every seed, tells nothing of the others.
    several = [values for values in several if np.ptp(values) > 0]
    n_free = sum(len(values) - 1 for values in several)
    spread = sum((len(values) - 1) * np.var(values, ddof=1) for values in several)
    shares = [m.depends_on_seed / len(m.runs) for m in models]
    return np.array(shares) * spread / max(n_free, 1), n_free


def _half_widths(of_parts: np.ndarray, seeds: np.ndarray, n_free: int, to: int) -> np.ndarray:
    """Half the width of the interval of each difference to one model.

    `of_parts` has shape (n_models, n_parts), and `seeds` are variances with `n_free` degrees of
    freedom.
    """
    n_models, n = of_parts.shape
    centred = of_parts - of_parts.mean(axis=1, keepdims=True)
    rows = (n - 1) / n * centred @ centred.T
    rng = np.random.default_rng(0)
    parts = rng.multivariate_normal(np.zeros(n_models), rows, (N_DRAWS, n), method="eigh")
    means = parts.sum(axis=1) / np.sqrt(n)
    means += rng.standard_normal(means.shape) * np.sqrt(seeds)
    parts -= parts.mean(axis=1, keepdims=True)
    covariances = parts.transpose(0, 2, 1) @ parts / (n - 1)
    luck = rng.chisquare(n_free, (N_DRAWS, 1)) / n_free if n_free else np.zeros((N_DRAWS, 1))
    errors = _errors(covariances, seeds * luck)
    gaps = np.abs(means[:, :, None] - means[:, None, :])
    ratios = np.divide(gaps, errors, out=np.zeros_like(gaps), where=errors > 0)
    return float(np.quantile(ratios.max(axis=(1, 2)), 0.95)) * _errors(rows, seeds)[to]


def _errors(rows: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Standard errors of all differences, from the covariances by rows and variances by seeds."""
    of_one = np.diagonal(rows, axis1=-2, axis2=-1) + seeds
    both = of_one[..., :, None] + of_one[..., None, :] - 2 * rows
    both -= 2 * np.eye(rows.shape[-1]) * seeds[..., None, :]
    # What rounding leaves of two models with the same answers is nothing.
    return np.sqrt(np.where(both > 1e-12 * of_one.max(initial=0.0), both, 0.0))
