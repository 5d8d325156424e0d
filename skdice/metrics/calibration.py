"""Probabilities that mean what they say: how far off they are, and a scale that corrects them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax

from skdice._checks import check_range, checked, same_length
from skdice._types import ArrayLike, Rows
from skdice.inputs.labels import label_table
from skdice.tags.schemes import get_spans
from skdice.tags.spans import ScoredSpan

__all__ = ["expected_calibration_error"]

FEW_SPANS = 200  # with which a correction counts half


@checked
def expected_calibration_error(y_true: Rows, y_proba: ArrayLike, *, n_bins: int = 15) -> float:
    """The mean distance between the probability of an event and how often it happens.

    Rows are sorted by probability into bins of equal width. Each bin counts by its rows.

    Parameters
    ----------
    y_true : array of bool or of 0 and 1, shape (n,)
        Whether the event happened: the row is positive, or the predicted class is right.
    y_proba : array of shape (n,)
        Its probability.
    n_bins : int, default=15

    Returns
    -------
    float
        From 0 to 1; 0 is calibrated.

    Raises
    ------
    ValueError
        If the lengths differ, `y_true` holds anything but 0 and 1, or `y_proba` holds anything but
        probabilities.

    References
    ----------
    C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, Equation 3.

    Examples
    --------
    >>> from skdice.metrics import expected_calibration_error
    >>> round(expected_calibration_error([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]), 3)
    0.15
    """
    true, p = same_length(("y_true", "y_proba"), (y_true, y_proba))
    if not np.isin(true, (0, 1)).all():
        raise ValueError("y_true must hold 0 and 1 only, 1 where the event happened")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("y_proba must hold probabilities, from 0 to 1")
    check_range(1, 1_000_000, n_bins=n_bins)
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    off = np.bincount(bins, p - true)
    return float(np.abs(off).sum() / max(len(p), 1))


def calibrate(logits: np.ndarray, truth: np.ndarray, *, biases: bool) -> tuple[float, np.ndarray]:
    """A temperature and biases that make the truth likeliest: of (logits + bias) / temperature.

    Parameters
    ----------
    logits : ndarray of shape (n, n_outputs)
        Log-probabilities of classes, or log-odds of labels.
    truth : ndarray of int, shape (n,) or (n, n_outputs)
        Indices of classes, or 0 and 1 for each label. What is below 0 is not known, and does not
        count.
    biases : bool
        False finds the temperature only.

    Returns
    -------
    temperature : float
    bias : ndarray of shape (n_outputs,)

    References
    ----------
    C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017: temperature scaling, and
    vector scaling with one scale for all.
    """
    several = truth.ndim == 2
    known: Any = truth >= 0
    if several:
        truth = truth == 1
    else:
        logits, truth = logits[known], truth[known]
        known, truth = True, truth[:, None] == np.arange(logits.shape[1])
    logits = np.maximum(logits, -100.0)  # log of 0 is the logarithm of the smallest float

    def loss(params: np.ndarray) -> tuple[float, np.ndarray]:
        scores = params[0] * logits + (params[1:] if biases else 0)
        if several:
            p = expit(scores)
            value = -(known * np.where(truth, log_expit(scores), log_expit(-scores))).sum()
        else:
            log_p = log_softmax(scores, axis=1)
            p, value = np.exp(log_p), -log_p[truth].sum()
        off = known * (p - truth)
        # A weak prior keeps rows that are all right from scaling without end.
        prior = params - start
        slope = np.append((off * logits).sum(), off.sum(axis=0) if biases else []) + prior
        return value + (prior**2).sum() / 2, slope

    start = np.append(1.0, np.zeros(logits.shape[1] if biases else 0))
    bounds = [(0.02, 50.0), *[(None, None)] * (len(start) - 1)]
    scale, *shifts = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    bias = np.array(shifts) / scale if biases else np.zeros(logits.shape[1])
    return float(1 / scale), bias


def log(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms; finite for 0 too."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def log_odds(probabilities: Any) -> np.ndarray:
    """Log-odds of labels, shape (n, n_labels); finite for 0 and 1 too."""
    p = np.asarray(label_table(probabilities), dtype=np.float64)
    return log(p) - np.log(np.maximum(1 - p, np.finfo(np.float64).epsneg))


# ---- scores of spans


def judged(
    spans: Sequence[ScoredSpan], true: Sequence[Any], scheme: str | None
) -> list[tuple[ScoredSpan, bool]]:
    """Predicted spans of a sentence, each with whether it is there.

    Those that reach into what nobody annotated are left out. `true` holds tags, or without a scheme
    spans, whose type is None where nobody annotated.
    """
    if scheme is not None:
        there = set(get_spans(true, scheme))
        return [(s, s[:3] in there) for s in spans if None not in true[s.start : s.end]]
    gaps = [span for span in true if span[0] is None]

    def is_known(span: ScoredSpan) -> bool:
        return not any(span.start < gap[2] and gap[1] < span.end for gap in gaps)

    return [(span, span[:3] in true) for span in filter(is_known, spans)]


class SpanScales:
    """Corrections of the scores of spans, for each type, from held-out spans.

    One curve is for all types together: new log-odds = a log(p) - b log(1 - p) + c, so that scores
    near 0 and near 1 may be off by different amounts. Then each type has a slope and an offset from
    its own spans. The fewer spans there are, the less is corrected.

    Parameters
    ----------
    pairs : list of (ScoredSpan, bool)
        Spans predicted for sentences that the model did not see, and whether each is there.

    Attributes
    ----------
    of_all : tuple of float
        a, b and c of all types.
    of_type : dict of tuple of float
        Slope and offset of the log-odds of each type, which come after.

    References
    ----------
    M. Kull et al., "Beta calibration", AISTATS 2017. J. Platt, "Probabilistic Outputs for Support
    Vector Machines", 1999.
    """

    def __init__(self, pairs: Sequence[tuple[ScoredSpan, bool]]) -> None:
        self.of_type: dict[str, tuple[float, float]] = {}
        self.of_all: tuple[float, ...] = (1.0, 1.0, 0.0)
        if not pairs:
            return
        spans, right = zip(*pairs, strict=True)
        truth, kinds = np.array(right), np.array([span.type for span in spans])
        scores = np.array([span.score for span in spans])
        self.of_all = _curve(scores, truth)
        log_odds = _logs(scores) @ np.array(self.of_all)
        for kind in sorted(set(kinds.tolist())):
            self.of_type[kind] = _scale(log_odds[kinds == kind], truth[kinds == kind])

    def __call__(self, spans: Sequence[ScoredSpan]) -> list[ScoredSpan]:
        """The spans with corrected scores."""
        corrected = []
        for span in spans:
            slope, offset = self.of_type.get(span.type, (1.0, 0.0))
            log_odds = slope * (_logs(span.score) @ np.array(self.of_all)) + offset
            corrected.append(span._replace(score=float(expit(log_odds))))
        return corrected


def _logs(scores: Any) -> np.ndarray:
    """log(p), -log(1 - p) and 1 of each score, shape (..., 3)."""
    p = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.stack([np.log(p), -np.log1p(-p), np.ones_like(p)], axis=-1)


def _curve(scores: np.ndarray, truth: np.ndarray) -> tuple[float, ...]:
    """The rising curve that makes the truth likeliest, for few spans near the diagonal."""
    logs, start = _logs(scores), np.array([1.0, 1.0, 0.0])

    def loss(curve: np.ndarray) -> tuple[float, np.ndarray]:
        log_odds, prior = logs @ curve, curve - start  # the prior is that of `calibrate`
        value = -log_expit(np.where(truth, log_odds, -log_odds)).sum() + (prior**2).sum() / 2
        return value, (expit(log_odds) - truth) @ logs + prior

    bounds = [(0.0, 50.0), (0.0, 50.0), (None, None)]
    curve = minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    share = len(truth) / (len(truth) + FEW_SPANS)
    return tuple((start + share * (curve - start)).tolist())


def _scale(log_odds: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    temperature, (bias,) = calibrate(log_odds[:, None], truth[:, None], biases=True)
    share = len(truth) / (len(truth) + FEW_SPANS)
    return 1 + share * (1 / temperature - 1), share * float(bias) / temperature
