"""Biases with which the classes of highest log-probability score best: a search over arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_OFFSETS = np.concatenate([-np.geomspace(0.1, 8, 12), np.geomspace(0.1, 8, 12)])
_TAUS = np.array(sorted(np.arange(-0.5, 2.01, 0.125), key=abs))  # of equals the first wins

FAR = 10.0  # log-odds between a bias and a row, or another draw's bias, that are apart enough


def tune_bias(
    log_p: np.ndarray,
    truth: np.ndarray,
    score: Callable[[np.ndarray], float],
    *,
    scores: Callable[[int, np.ndarray, np.ndarray, int], Any] | None = None,
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
    >>> from skdice.metrics.decisions.bias_search import tune_bias
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
    for tau in _TAUS:
        value = score((log_p - tau * prior).argmax(axis=1))
        if value > best + 1e-12:
            best, bias = value, -tau * prior
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
            candidates = _candidates(flip, truth == k, bias[k], n_tries)
            steps = np.searchsorted(candidates, flip, "right")
            values = (scores or one_by_one)(k, rival, steps, len(candidates))
            for i in np.argsort(np.abs(candidates - bias[k]), kind="stable"):
                if values[i] > best + 1e-12:
                    best, bias[k] = values[i], candidates[i]
        if best <= before + 1e-12:
            break
    return bias


def _candidates(flip: np.ndarray, own: np.ndarray, now: float, n_tries: int) -> np.ndarray:
    """Biases of a class that are worth a try, in rising order.

    `flip` is the bias above which each row is of the class, `own` says which rows truly are, and
    `now` is the bias that the class has. F1 is best just above the flip of a row of the class.
    """
    edges = np.unique(flip)
    following = np.append(edges, edges[-1:] + 2)[np.searchsorted(edges, flip[own], "right")]
    between = np.unique(np.minimum((flip[own] + following) / 2, flip[own] + FAR))
    if len(between) > n_tries:
        between = between[np.linspace(0, len(between) - 1, n_tries).astype(int)]
    candidates = np.concatenate([now + _OFFSETS[:: max(1, 64 // n_tries)], between])
    return np.sort(candidates[np.isfinite(candidates)])
