"""From log-probabilities of tags to tag sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

import numpy as np

from skdice.tags.schemes import transitions


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
    >>> from skdice.tags.decoding import viterbi
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
    """Tags of many sentences, as `best_tags` chooses them."""
    names = [str(c) for c in classes]
    tables = list(log_probs)
    tags = [names[i] for i in best_tags(tables, names, scheme, constrained=constrained).tolist()]
    ends = np.cumsum([0, *map(len, tables)]).tolist()
    return [tags[start:end] for start, end in pairwise(ends)]


def best_tags(
    tables: Sequence[np.ndarray], names: Sequence[str], scheme: str, *, constrained: bool = False
) -> np.ndarray:
    """Indices of tags for the tokens of all sentences, one after another.

    They are the best tag of each token, or the best well-formed sequence. Where the classes allow
    no well-formed sequence of a sentence's length, its tags are the best ones of each token.
    """
    masks = transitions(names, scheme) if constrained and scheme != "plain" else None
    # A probability that rounds to 0 must not look like a forbidden tag.
    floor = np.finfo(np.float64).min / 1e6
    ends = np.cumsum([len(table) for table in tables], dtype=np.int64)
    if not len(ends) or not ends[-1]:
        return np.zeros(0, dtype=np.int64)
    # All at once, for a call of numpy's costs as much as a sentence.
    best = np.concatenate([table for table in tables if len(table)]).argmax(axis=1)
    if masks is not None:
        for i in _ill_formed(best, ends, *masks):
            with suppress(ValueError):
                found = viterbi(np.maximum(tables[i], floor), *masks)
                best[ends[i] - len(found) : ends[i]] = found
    return best


def _ill_formed(
    best: np.ndarray, ends: np.ndarray, start: np.ndarray, follow: np.ndarray, end: np.ndarray
) -> list[int]:
    """Sequences that the masks forbid; others are the best of those that they allow."""
    is_first = np.zeros(len(best) + 1, dtype=bool)
    is_first[0] = True
    is_first[ends] = True
    before = np.append(best[:1], best[:-1])
    bad = ~np.where(is_first[:-1], start[best], follow[before, best])
    bad |= is_first[1:] & ~end[best]
    return np.unique(np.searchsorted(ends, np.flatnonzero(bad), side="right")).tolist()
