"""A search for class biases with which the predicted classes score best."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_OFFSETS = np.concatenate([-np.geomspace(0.1, 8, 12), np.geomspace(0.1, 8, 12)])
_TAUS = np.arange(-0.5, 2.01, 0.125)


def tune_bias(
    log_p: np.ndarray,
    truth: np.ndarray,
    score: Callable[[np.ndarray], float],
    *,
    per_class: bool = True,
    n_passes: int = 3,
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
    per_class : bool, default=True
        False stops after the search along the log-prior.
    n_passes : int, default=3

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
    >>> from skdice.metrics.decisions import tune_bias
    >>> log_p = np.log([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    >>> truth = np.array([0, 0, 1, 1])
    >>> bias = tune_bias(log_p, truth, lambda predicted: f1_score(truth, predicted))
    >>> (log_p + bias).argmax(axis=1).tolist()
    [0, 0, 1, 1]
    """
    n_classes = log_p.shape[1]
    known = truth[truth >= 0]
    prior = np.log((np.bincount(known, minlength=n_classes) + 1.0) / (len(known) + n_classes))
    best = score(log_p.argmax(axis=1))
    bias = np.zeros(n_classes)
    for tau in sorted(_TAUS, key=abs):  # among equal scores the smallest change wins
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
            order = np.sort(flip)
            own = flip[truth == k]
            after = np.minimum(np.searchsorted(order, own, "right"), len(order) - 1)
            between = np.unique((own + np.maximum(order[after], own + 1e-6)) / 2)
            if len(between) > 64:
                between = between[np.linspace(0, len(between) - 1, 64).astype(int)]
            candidates = np.concatenate([bias[k] + _OFFSETS, between])
            candidates = candidates[np.isfinite(candidates)]
            for candidate in candidates[np.argsort(np.abs(candidates - bias[k]), kind="stable")]:
                value = score(np.where(flip < candidate, k, rival))
                if value > best + 1e-12:
                    best, bias[k] = value, candidate
        if best <= before + 1e-12:
            break
    return bias
