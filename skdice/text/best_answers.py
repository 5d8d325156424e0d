"""From scores of starts and ends to answers, and the score below which there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer: characters `start` to `end` of a context, and its score."""

    start: int
    end: int
    score: float


def best_answers(
    windows: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
    n_best: int,
    max_tokens: int,
) -> tuple[list[Candidate], float]:
    """The best answers over all windows of a question, and the score of no answer.

    A start counts in the window where its token has most context. The score of "no answer" is its
    lowest over the windows: every window must say that it is not there.

    Parameters
    ----------
    windows : list of (scores, words, offsets, context_score)
        Scores of shape (n, 2) and the arrays of a `ReadingWindow`.
    n_best : int
    max_tokens : int
        The longest answer, in tokens.

    Returns
    -------
    answers : list of Candidate
        Best first, no two with the same characters.
    null : float
    """
    best_context = np.full(1 + max(words.max() for _, words, _, _ in windows), -np.inf)
    for _, words, _, context in windows:
        np.maximum.at(best_context, words[words >= 0], context[words >= 0])
    null = min(float(scores[words == -1].sum()) for scores, words, _, _ in windows)
    score_at: dict[tuple[int, int], float] = {}
    for scores, words, offsets, context in windows:
        inside = np.flatnonzero(words >= 0)  # a run of the context's tokens
        starts = inside[context[inside] >= best_context[words[inside]]]
        if not len(starts):
            continue
        # Every length of every start, with no end past the window's.
        ends = starts[:, None] + np.arange(min(max_tokens, len(inside)))
        beyond = ends > inside[-1]
        ends[beyond] = inside[-1]
        total = np.where(beyond, -np.inf, scores[starts, 0][:, None] + scores[ends, 1])
        for flat in _highest(total.ravel(), 3 * n_best):
            a, b = np.unravel_index(flat, total.shape)
            if total[a, b] == -np.inf:
                break
            place = int(offsets[starts[a], 0]), int(offsets[ends[a, b], 1])
            if place[0] < place[1]:
                score_at[place] = max(score_at.get(place, -np.inf), float(total[a, b]))
    ranked = sorted(score_at.items(), key=lambda item: (-item[1], item[0]))[:n_best]
    return [Candidate(*place, score) for place, score in ranked], null


def _highest(values: np.ndarray, n: int) -> np.ndarray:
    """Places of the `n` highest values, the highest first."""
    rows = np.argpartition(-values, n)[:n] if n < len(values) else np.arange(len(values))
    rows.sort()  # so that of equals the first comes first
    return rows[np.argsort(-values[rows], kind="stable")]


def tune_null_threshold(
    gaps: np.ndarray, value_of_answer: np.ndarray, value_of_null: np.ndarray
) -> float:
    """The threshold of "no answer" that gives the best mean value.

    A question is left unanswered where its gap, the score of no answer minus that of the best
    answer, is above the threshold.

    Parameters
    ----------
    gaps : ndarray of shape (n,)
    value_of_answer, value_of_null : ndarray of shape (n,)
        What each question earns (its F1) if it is answered, and if it is not.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.text.best_answers import tune_null_threshold
    >>> tune_null_threshold(np.array([-2.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    -0.5
    """
    order = np.argsort(gaps, kind="stable")
    sorted_gaps = gaps[order]
    answered = np.append(0.0, np.cumsum(value_of_answer[order]))
    refused = np.append(0.0, np.cumsum(value_of_null[order]))
    # With the first k in the order answered, the others refused.
    total = answered + refused[-1] - refused
    middles = (sorted_gaps[1:] + sorted_gaps[:-1]) / 2
    between = np.concatenate([[sorted_gaps[0] - 1], middles, [sorted_gaps[-1] + 1]])
    possible = np.concatenate([[True], sorted_gaps[1:] > sorted_gaps[:-1], [True]])
    total = np.where(possible, total, -np.inf)
    best = np.flatnonzero(total >= total.max() - 1e-12)
    return float(between[best[np.argmin(np.abs(between[best]))]])
