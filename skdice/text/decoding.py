"""From log-probabilities of tags to tag sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from skdice.metrics.schemes import transitions


def viterbi(
    log_probs: np.ndarray, start: np.ndarray, follow: np.ndarray, end: np.ndarray
) -> list[int]:
    """The most probable sequence among those that the masks allow.

    Parameters
    ----------
    log_probs : ndarray of shape (n_tokens, n_classes)
    start, end : ndarray of bool, shape (n_classes,)
        Classes that may begin and end a sentence.
    follow : ndarray of bool, shape (n_classes, n_classes)
        ``follow[i, j]``: class j may follow class i.

    Returns
    -------
    list of int
        Class indices, as many as tokens.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.text.decoding import viterbi
    >>> log_probs = np.log([[0.4, 0.6], [0.1, 0.9]])
    >>> no_class_1_first = np.array([True, False])
    >>> every = np.ones(2, bool)
    >>> viterbi(log_probs, no_class_1_first, np.ones((2, 2), bool), every)
    [0, 1]
    """
    n = len(log_probs)
    if n == 0:
        return []
    forbidden = -np.inf
    steps = np.where(follow, 0.0, forbidden)
    best = log_probs[0] + np.where(start, 0.0, forbidden)
    back = np.empty(log_probs.shape, dtype=np.int64)
    for i in range(1, n):
        paths = best[:, None] + steps
        back[i] = paths.argmax(axis=0)
        best = paths.max(axis=0) + log_probs[i]
    best = best + np.where(end, 0.0, forbidden)
    last = int(best.argmax())
    if best[last] == forbidden:
        raise ValueError(f"no sequence of {n} tags is well-formed")
    sequence = [last]
    for i in range(n - 1, 0, -1):
        sequence.append(int(back[i][sequence[-1]]))
    return sequence[::-1]


def decode(
    log_probs: Iterable[np.ndarray],
    classes: Sequence[str],
    scheme: str,
    *,
    constrained: bool = False,
) -> list[list[str]]:
    """Tags of many sentences: the best tag of each token, or the best well-formed sequence.

    Where the classes allow no well-formed sequence of a sentence's length, its tags are the best
    ones of each token.
    """
    names = [str(c) for c in classes]
    masks = transitions(names, scheme) if constrained and scheme != "plain" else None
    # A probability that rounds to 0 must not look like a forbidden tag.
    floor = np.finfo(np.float64).min / 1e6
    sentences = []
    for rows in log_probs:
        best = rows.argmax(axis=1) if len(rows) else np.zeros(0, int)
        if masks is not None and not _well_formed(best, *masks):
            with suppress(ValueError):
                best = np.array(viterbi(np.maximum(rows, floor), *masks))
        sentences.append([names[i] for i in best.tolist()])
    return sentences


def _well_formed(best: np.ndarray, start: np.ndarray, follow: np.ndarray, end: np.ndarray) -> bool:
    """Whether the masks allow a sequence, which is then the best of those that they allow."""
    ends = not len(best) or (start[best[0]] and end[best[-1]])
    return bool(ends and follow[best[:-1], best[1:]].all())
