"""The probability that a span is there, from the probabilities of the tags of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdice.tags.schemes import borders, transitions
from skdice.tags.spans import Span

# The log of a probability of 0. It is finite, so that tags which are all improbable still compare.
_FLOOR = -1e5


class SpanPosterior:
    """Probabilities of the spans of a sentence, by the masks of a scheme.

    Whether a span begins or ends between two tokens depends on their two tags only. So a span's
    sequences are those whose pairs of neighbours pass one mask where it begins, another within it,
    and a third where it ends.
    """

    def __init__(self, classes: Sequence[str], scheme: str) -> None:
        self.kinds, starts, ends = borders(classes, scheme)
        n = len(classes)  # the place of both ends of the sentence
        follow = np.ones((n + 1, n + 1), bool)
        follow[n, :n], follow[:n, :n], follow[:n, n] = transitions(classes, scheme)
        self.follow, self.into, self.out = map(_log_mask, (follow, follow & starts, follow & ends))
        self.within: np.ndarray = _log_mask(follow & ~starts)

    def __call__(self, log_p: np.ndarray, spans: Sequence[Span]) -> np.ndarray:
        """The probabilities of spans; `log_p` has shape (n_tokens, n_classes)."""
        if not len(spans):
            return np.zeros(0)
        log_p = np.maximum(log_p, _FLOOR)
        # An end of the sentence is one more token, of one more class, on either side.
        border = np.full((len(log_p) + 2, log_p.shape[1] + 1), -np.inf)
        border[[0, -1], -1] = 0.0
        border[1:-1, :-1] = log_p - _log_sum(log_p, axis=1)[:, None]
        before = _sweep(border, self.follow)
        after = _sweep(border[::-1], self.follow.T)[::-1]
        total = before[-1, -1]
        if total == -np.inf:  # the classes allow no sequence of this length
            return np.zeros(len(spans))
        log_probs = [self._joint(border, before, after, *span) - total for span in spans]
        return np.exp(np.minimum(log_probs, 0.0))

    def _joint(self, log_p: Any, before: Any, after: Any, kind: str, start: int, end: int) -> float:
        """The log of the summed products of all sequences with a span."""
        of_kind = np.flatnonzero(self.kinds == kind)
        if not len(of_kind):
            return -np.inf
        start, end = start + 1, end + 1  # for the token before the sentence
        steps = self.within[np.ix_(of_kind, of_kind)]
        first = _log_sum(before[start - 1][:, None] + self.into[:, of_kind])
        inside = _sweep(log_p[start:end, of_kind], steps, first)
        last = inside[-1][:, None] + self.out[of_kind] + after[end]
        return float(_log_sum(last.ravel()))


def _log_mask(mask: np.ndarray) -> np.ndarray:
    return np.where(mask, 0.0, -np.inf)


def _log_sum(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """The log of a sum of exponentials, -inf of none."""
    top = values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + top.squeeze(axis)


def _sweep(log_p: np.ndarray, steps: np.ndarray, first: Any = 0.0) -> np.ndarray:
    """For each token and class the log of the summed products of the sequences up to there."""
    sums = log_p.copy()
    sums[0] += first
    for i in range(1, len(sums)):
        sums[i] += _log_sum(sums[i - 1][:, None] + steps)
    return sums
