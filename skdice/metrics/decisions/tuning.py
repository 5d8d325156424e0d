"""Biases with which decisions reach an objective, from the probabilities of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from skdice._warn import warn
from skdice.exceptions import UnkeptBoundWarning
from skdice.metrics.decisions.bounds import Bound, Promise
from skdice.metrics.decisions.objectives import Objective

if TYPE_CHECKING:
    from skdice.metrics.decisions.held_out_rows import BinaryRows, HeldOutRows, SpanRows

_OFFSETS = np.concatenate([-np.geomspace(0.1, 8, 12), np.geomspace(0.1, 8, 12)])
TAUS = np.array(sorted(np.arange(-0.5, 2.01, 0.125), key=abs))  # of equals the first wins

FAR = 10.0  # log-odds between a bias and a row, or another draw's bias, that are apart enough

# An objective, or a function from true and predicted labels to a number.
Score = Objective | Callable[[Any, Any], float]


@dataclass
class Tuning:
    """A tuned decision.

    Attributes
    ----------
    bias : ndarray of shape (n_biases,)
    biases : ndarray of shape (n_draws, n_biases)
        The best bias of each draw.
    promise : Promise or None
        Of a bound.
    """

    bias: np.ndarray
    biases: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    promise: Promise | None = None


def tune(
    rows: HeldOutRows, objective: Score, *, per_class: bool = True, n_draws: int = 20
) -> Tuning:
    """The bias with which decisions on new rows come nearest to an objective.

    Parameters
    ----------
    rows : BinaryRows, ClassRows or SpanRows
        Of `skdice.metrics.decisions.held_out_rows`.
    objective : objective or callable
    per_class : bool, default=True
        False tunes one number, tau in b = -tau log(prior).
    n_draws : int, default=20
        The bias is the mean of the best ones of as many bootstrap draws of the rows, which varies
        less than the best one of all rows. 0 tunes once on all rows.

    References
    ----------
    L. Breiman, "Bagging Predictors", Machine Learning 1996. The rule was chosen by its regret:
    ``examples/paper/decisions.py``.
    """
    if isinstance(objective, Bound):
        bias, promise = bounded(rows, objective)  # type: ignore[arg-type]  # never of classes
        return Tuning(bias, promise=promise)
    return bagged(rows, lambda drawn: drawn.best_bias(objective, per_class), n_draws)


def bagged(rows: Any, best_bias: Callable[[Any], np.ndarray], n_draws: int) -> Tuning:
    """The mean of the best biases of bootstrap draws of the rows; of all rows without draws."""
    if n_draws == 0:
        return Tuning(best_bias(rows))
    random = np.random.default_rng(0)
    drawn = (random.integers(rows.n_rows, size=rows.n_rows) for _ in range(n_draws))
    biases = np.array([best_bias(rows.take(chosen)) for chosen in drawn])
    middle = np.median(biases, axis=0)  # a bias without end, of one draw, is not to decide
    bias = np.clip(biases, middle - FAR, middle + FAR).mean(axis=0)
    return Tuning(bias, biases)


def bounded(rows: BinaryRows | SpanRows, objective: Bound) -> tuple[np.ndarray, Promise]:
    """The bias with which a bound holds for new rows, and the rest is as good as can be."""
    bias, share = np.zeros(rows.n_biases), objective.share
    groups = rows.groups(objective.each)
    while groups:
        missed = {}
        for name, together in groups.items():
            shifts, steps = rows.counts_by_shift(together, bias)
            held = objective.promised(steps)
            if not held.any():
                missed[name] = together
                if len(groups) > 1:
                    continue
                share = objective.best_share(steps)
                _tell(rows, objective, name, share, int(steps.true.max(initial=0)))
                held = objective.promised(steps, share) if share else held
            if held.any():
                values = np.where(held, objective.value(steps), -np.inf)
                bias[together] += shifts[int(values.argmax())]
        if not missed or len(groups) == 1:
            break
        # Those that are too rare to reach it by themselves are to reach it together.
        groups = {", ".join(missed): [i for together in missed.values() for i in together]}
    return bias, objective.promise(share)


def _tell(
    rows: BinaryRows | SpanRows, objective: Bound, name: str, share: float, n_true: int
) -> None:
    """Warn of the best share that can be promised, or raise if the bound is strict."""
    of = f" for {name}" if name else ""
    told = f"with {rows.n_rows} different rows to tune on, of which {n_true} are positive,"
    sure = f"at {100 * objective.confidence:g}% confidence"
    if share:
        told += f" the best that can be promised {sure} is {objective.in_words(share)}. Ask for"
        told += " that, lower the confidence,"
    else:
        told += f" no bound on {objective.measure} can be promised {sure}. Lower the confidence,"
    message = f"scoring={objective!r} cannot be promised{of}: {told} or give more rows to tune on"
    if objective.strict:
        raise ValueError(message)
    done = "keeps that promise" if share else "stays as it is"
    warn(f"{message}. The decision {done}", UnkeptBoundWarning)


def tune_bias(
    log_p: np.ndarray,
    truth: np.ndarray,
    score: Callable[[np.ndarray], float],
    *,
    scores: Callable[[int, np.ndarray, np.ndarray, int], Any] | None = None,
    per_class: bool = True,
    n_passes: int = 3,
    n_tries: int = 64,
) -> np.ndarray:
    """Biases b such that the classes argmax(log p + b) score best.

    The search first follows the log-prior, b = -tau log(prior) (post-hoc logit adjustment; tau = 0
    is no bias), and then goes class by class, in up to `n_passes` passes.

    Parameters
    ----------
    log_p : ndarray of shape (n, n_classes)
    truth : ndarray of int, shape (n,)
        True class indices; -1 for a class that the model does not know.
    score : callable
        From class indices of shape (n,) to a number, higher being better.
    scores : callable, optional
        The same for many biases of a class at once, where that is faster: from ``k``, ``rival``,
        ``steps`` and ``n_steps`` to the scores of ``np.where(steps <= step, k, rival)`` at each
        step.
    per_class : bool, default=True
        False stops after the search along the log-prior.
    n_passes : int, default=3
    n_tries : int, default=64
        Biases of a class in a pass, besides some that do not depend on the rows.

    Returns
    -------
    ndarray of shape (n_classes,)

    References
    ----------
    A. K. Menon et al., "Long-tail learning via logit adjustment", ICLR 2021, Equation 9.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import f1_score
    >>> from skdice.metrics.decisions.tuning import tune_bias
    >>> log_p = np.log([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> truth = np.array([0, 0, 1, 1])
    >>> bias = tune_bias(log_p, truth, lambda predicted: f1_score(truth, predicted))
    >>> (log_p + bias).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """

    def one_by_one(k: int, rival: np.ndarray, steps: np.ndarray, n_steps: int) -> list[float]:
        return [score(np.where(steps <= step, k, rival)) for step in range(n_steps)]

    n_classes = log_p.shape[1]
    known = truth[truth >= 0]
    prior = np.log((np.bincount(known, minlength=n_classes) + 1.0) / (len(known) + n_classes))
    best = score(log_p.argmax(axis=1))
    bias = np.zeros(n_classes)
    for tau in TAUS:
        value = score((log_p - tau * prior).argmax(axis=1))
        if value > best + 1e-12:
            best, bias = value, -tau * prior
    if not per_class:
        return bias
    # Only differences of biases matter: the most frequent class keeps its own.
    fixed = int(prior.argmax())
    for _ in range(n_passes):
        before = best
        for k in [k for k in range(n_classes) if k != fixed] + ([fixed] if n_classes > 2 else []):
            others = log_p + bias
            others[:, k] = -np.inf
            rival = others.argmax(axis=1)
            # Above this bias, a row is predicted as class k.
            flip = others[np.arange(len(rival)), rival] - log_p[:, k]
            # F1 of class k is best just above the flip of a row of class k.
            own, edges = flip[truth == k], np.unique(flip)
            following = np.append(edges, edges[-1:] + 2)[np.searchsorted(edges, own, "right")]
            between = np.unique(np.minimum((own + following) / 2, own + FAR))
            if len(between) > n_tries:
                between = between[np.linspace(0, len(between) - 1, n_tries).astype(int)]
            offsets = _OFFSETS[:: max(1, 64 // n_tries)]
            candidates = np.concatenate([bias[k] + offsets, between])
            candidates = np.sort(candidates[np.isfinite(candidates)])
            steps = np.searchsorted(candidates, flip, "right")
            values = (scores or one_by_one)(k, rival, steps, len(candidates))
            for i in np.argsort(np.abs(candidates - bias[k]), kind="stable"):
                if values[i] > best + 1e-12:
                    best, bias[k] = values[i], candidates[i]
        if best <= before + 1e-12:
            break
    return bias
