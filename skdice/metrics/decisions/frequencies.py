"""Frequencies of classes in rows without labels, and a test that only these have changed."""

from __future__ import annotations

import numpy as np


def mixture_weights(ratios: np.ndarray, counts: np.ndarray | None = None) -> np.ndarray:
    """The frequencies of classes that make some rows likeliest, by expectation maximisation.

    Parameters
    ----------
    ratios : ndarray of shape (n, n_classes)
        Calibrated probabilities over the classes' frequencies in the rows that calibrated them.
    counts : ndarray of shape (n,), default=None
        How often each row was drawn; None is once.

    Returns
    -------
    ndarray of shape (n_classes,)

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities", Neural Computation 2002. The steps are extrapolated as by R. Varadhan, C.
    Roland, "Simple and Globally Convergent Methods for Accelerating the Convergence of Any EM
    Algorithm", Scandinavian Journal of Statistics 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.metrics.decisions.frequencies import mixture_weights
    >>> mixture_weights(np.array([[2.0, 0.0]] * 3 + [[0.0, 2.0]])).tolist()
    [0.75, 0.25]
    """
    share = np.ones(len(ratios)) if counts is None else np.asarray(counts, dtype=float)
    share = share / share.sum()

    def gains(weights: np.ndarray) -> np.ndarray:
        return (share / (ratios @ weights)) @ ratios

    def likelihood(weights: np.ndarray) -> float:
        return float(share @ np.log(ratios @ weights))

    weights = np.full(ratios.shape[1], 1 / ratios.shape[1])
    for _ in range(2000):
        gain = gains(weights)
        if gain.max() < 1 + 1e-10:  # no class would gain by more weight: this is the maximum
            break
        first = weights * gain
        second = first * gains(first)
        step, bend = first - weights, second - 2 * first + weights
        length = np.linalg.norm(step) / max(float(np.linalg.norm(bend)), 1e-300)
        jump = weights + 2 * length * step + length**2 * bend
        jump = np.maximum(jump, second * 1e-3)
        jump /= jump.sum()
        weights = jump if likelihood(jump) > likelihood(second) else second
    return weights / weights.sum()


def distance(scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the distance of two distributions of the same scores (Kolmogorov and Smirnov).

    Parameters
    ----------
    scores : ndarray of shape (n,)
    weights : ndarray of shape (..., n)
        Those of one distribution less those of the other.

    Returns
    -------
    ndarray of shape (...)
        From 0 to 1: the largest difference between the shares below a score.
    """
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[..., order], axis=-1)
    ends = np.append(np.diff(scores[order]) > 0, True)  # equal scores count at once
    return np.abs(below[..., ends]).max(axis=-1)


def shift_p_value(
    new: np.ndarray,
    held: np.ndarray,
    truth: np.ndarray,
    weights: np.ndarray,
    n_draws: int,
    random: np.random.Generator,
) -> float:
    """Return how often rows would be as far from the best mixture, if only that had shifted.

    The statistic is the largest `distance` over the classes' probabilities, between new rows and
    held-out rows of which each class counts by its weight. Its distribution is that of draws from
    the held-out rows in place of both.

    Parameters
    ----------
    new, held : ndarray of shape (n, n_classes)
        Calibrated probabilities.
    truth : ndarray of int, shape (n_held,)
    weights : ndarray of shape (n_classes,)
        Of `mixture_weights`.
    n_draws : int
    random : Generator
    """
    n_classes, n_new = len(weights), len(new)
    sizes = np.bincount(truth, minlength=n_classes)
    columns = [1] if n_classes == 2 else range(n_classes)
    mixed = weights[truth] / sizes[truth]
    both = np.concatenate([new, held])
    signed = np.append(np.full(n_new, 1 / n_new), -mixed)
    found = max(float(distance(both[:, k], signed)) for k in columns)
    ratios = held / (sizes / len(truth))
    drawn = np.empty((n_draws, len(truth)))
    for row in drawn:
        counts = random.multinomial(n_new, mixed / mixed.sum())
        again = np.zeros(len(truth))
        for k in range(n_classes):
            own = np.flatnonzero(truth == k)
            again[own] = random.multinomial(len(own), np.full(len(own), 1 / len(own)))
        best = mixture_weights(ratios[counts > 0], counts[counts > 0])
        row[:] = counts / n_new - best[truth] / sizes[truth] * again
    far = np.max([distance(held[:, k], drawn) for k in columns], axis=0)
    return float((1 + (far >= found).sum()) / (1 + n_draws))
