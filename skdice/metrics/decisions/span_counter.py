"""Counts of spans, fast enough for a search: from two tables, without a loop over tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from skdice.metrics.decisions.counts import Counts
from skdice.tags.schemes import borders


class SpanCounter:
    """Spans of predicted class indices against those of fixed true tags.

    Whether a span starts or ends between two tokens depends on their two tags only, so that two
    tables over pairs of classes find all spans at once.

    Parameters
    ----------
    y_true : list of lists of str or None
        Where a tag is None, whatever is predicted does not count.
    classes : list of str
    scheme : {"iob1", "iob2", "bioes", "bmes", "bilou", "plain"}

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.metrics.decisions.span_counter import SpanCounter
    >>> counter = SpanCounter([["B-PER", "O"]], ["B-PER", "O"], "iob2")
    >>> counter.counts(np.array([0, 1])).hits.tolist(), counter.true.tolist()
    ([1], [1])
    """

    def __init__(self, y_true: Sequence[Sequence[str | None]], classes: Sequence[str], scheme: str):
        tags = [str(tag) for tag in classes]
        tags += sorted({tag for row in y_true for tag in row if tag is not None} - set(tags))
        index = {tag: i for i, tag in enumerate(tags)}
        n = len(tags)  # the index of the border between sentences
        types, self.starts, self.ends = borders(tags, scheme)
        kinds, self.kinds = np.unique(types, return_inverse=True)
        self.types = [str(kind) for kind in kinds[1:]]  # the first is that of no span
        self.lengths = np.array([len(row) for row in y_true], dtype=np.int64)
        # A border precedes every sentence, and one ends the text.
        borders_before = np.repeat(np.arange(len(self.lengths)) + 1, self.lengths)
        self.sentence = np.repeat(np.arange(len(self.lengths) + 1), np.append(self.lengths + 1, 0))
        self.places = np.arange(self.lengths.sum()) + borders_before
        self.n_places = len(self.places) + len(self.lengths) + 1
        flat = np.array([index.get(tag, n) for row in y_true for tag in row], dtype=np.int64)  # type: ignore[arg-type]
        self.border, self.unknown = n, flat == n  # no span is there
        starts, ends, kinds = self._spans(flat)
        self.true_spans = starts, ends, kinds
        self.end_at = np.full(self.n_places, -1)
        self.kind_at = np.full(self.n_places, -1)
        self.end_at[starts], self.kind_at[starts] = ends, kinds
        self.true = np.bincount(kinds, minlength=len(self.types) + 1)[1:]

    def counts(self, predicted: np.ndarray, kinds: Sequence[int] | None = None) -> Counts:
        """Counts of each of `types`, or of some of them.

        Alerts are sentences in which any of these spans is predicted, also where no truth is known.
        """
        starts, ends, found = self._spans(predicted)
        hits = (self.end_at[starts] == ends) & (self.kind_at[starts] == found)
        n = len(self.types) + 1
        which = slice(None) if kinds is None else list(kinds)
        wanted = np.zeros(n, dtype=bool)
        wanted[1:][which] = True
        alarms = (starts, ends, found) if not self.unknown.any() else self._spans(predicted, True)
        sentences = self.sentence[alarms[0][wanted[alarms[2]]]]  # in ascending order
        alerts = np.count_nonzero(np.diff(sentences, prepend=-1))
        right, predicted = (np.bincount(k, minlength=n)[1:][which] for k in (found[hits], found))
        return Counts(right, predicted, self.true[which], np.asarray(alerts), len(self.lengths))

    def counts_by_step(self, k: int, rival: np.ndarray, steps: np.ndarray, n_steps: int) -> Counts:
        """Counts of each of `types` at each step, where tokens become class `k` one after another.

        The same as `counts` of ``np.where(steps <= step, k, rival)`` for each step, without a pass
        over all tokens for each; without alerts.

        Parameters
        ----------
        k : int
        rival : ndarray of int, shape (n_tokens,)
            The class of each token before its step.
        steps : ndarray of int, shape (n_tokens,)
            From which step on a token is of class `k`; `n_steps` for never.
        n_steps : int
        """
        before, after = (self._text_of(classes) for classes in (rival, k))
        step = np.zeros(self.n_places, dtype=np.int64)
        step[self.places] = steps
        left_first = step[:-1] <= step[1:]
        one, both = np.minimum(step[:-1], step[1:]), np.maximum(step[:-1], step[1:])
        # Two tokens side by side change twice: with the first of them, and with the second.
        middle = (
            np.where(left_first, after[:-1], before[:-1]),
            np.where(left_first, before[1:], after[1:]),
        )
        stages = [
            (np.zeros_like(one), one, before[:-1], before[1:]),
            (one, both, *middle),
            (both, np.full_like(both, n_steps), after[:-1], after[1:]),
        ]
        first_at, end_at, kind_at = self.true_spans
        lengths = end_at - first_at
        span = np.repeat(np.arange(len(first_at)), lengths)
        inside = np.arange(len(span)) + np.repeat(first_at - np.cumsum(lengths) + lengths, lengths)
        is_end = inside == end_at[span] - 1
        places, found, missed = first_at - 1, [], []
        for first, last, left, right in stages:
            pairs, kinds = left * (self.border + 1) + right, self.kinds[right]
            starts, ends = self.starts.take(pairs), self.ends.take(pairs)
            found.append((first[starts], last[starts], kinds[starts]))
            # A true span is missed while it does not start, has another type or ends elsewhere.
            wrong = ~starts[places] | (kinds[places] != kind_at)
            missed.append((first[places][wrong], last[places][wrong], np.flatnonzero(wrong)))
            wrong = ends[inside] != is_end
            missed.append((first[inside][wrong], last[inside][wrong], span[wrong]))
        n = len(self.types) + 1
        predicted = running_counts(found, n_steps, n)[:, 1:]
        hit = running_counts(missed, n_steps, len(first_at)) == 0
        hits = [np.count_nonzero(hit[:, kind_at == kind], axis=1) for kind in range(1, n)]
        right = np.reshape(hits, (n - 1, n_steps)).T
        return Counts(right, predicted, self.true, np.zeros(()), len(self.lengths))

    def _text_of(self, classes: np.ndarray | int, whole: bool = False) -> np.ndarray:
        """Classes of all tokens, with a border around each sentence.

        Where the truth is not known, there is a border too, unless the `whole` text is asked for.
        """
        text = np.full(self.n_places, self.border)
        text[self.places] = classes if whole else np.where(self.unknown, self.border, classes)
        return text

    def _spans(
        self, flat: np.ndarray, whole: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        text = self._text_of(flat, whole)
        pairs = text[:-1] * (self.border + 1) + text[1:]  # as one number, which is faster
        starts = np.flatnonzero(self.starts.take(pairs)) + 1
        ends = np.flatnonzero(self.ends.take(pairs)) + 1
        return starts, ends, self.kinds[text[starts]]


def running_counts(
    parts: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], n_steps: int, n_kinds: int
) -> np.ndarray:
    """Count each kind at each step; of shape (n_steps, n_kinds).

    Each of `parts` is the steps from which on and up to which something is there, and its kind.
    """
    first, last, kinds = map(np.concatenate, zip(*parts, strict=True))
    came, went = (
        np.bincount(kinds * (n_steps + 1) + steps, minlength=n_kinds * (n_steps + 1))
        for steps in (first, last)
    )
    return (came - went).reshape(n_kinds, n_steps + 1).cumsum(axis=1)[:, :n_steps].T
