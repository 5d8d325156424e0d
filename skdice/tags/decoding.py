"""From log-probabilities of tags to tag sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from skdice.tags.schemes import transitions

BLOCK = 256  # sentences that `viterbi` decodes together


def viterbi(
    tables: Sequence[np.ndarray], start: np.ndarray, follow: np.ndarray, end: np.ndarray
) -> list[np.ndarray]:
    """The most probable sequence of each sentence among those that the masks allow.

    All sentences advance together, the longest first, for a call of numpy's costs as much as a
    token of a sentence.

    Parameters
    ----------
    tables : sequence of ndarray of shape (n_tokens, n_classes)
        Log-probabilities, of one token at least.
    start, end : ndarray of bool, shape (n_classes,)
        Classes that may begin and end a sentence.
    follow : ndarray of bool, shape (n_classes, n_classes)
        ``follow[i, j]``: class j may follow class i.

    Returns
    -------
    list of ndarray of int
        Class indices, as many as tokens; none where no sequence is well-formed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.tags.decoding import viterbi
    >>> log_probs = np.log([[0.4, 0.6], [0.1, 0.9]])
    >>> no_class_1_first = np.array([True, False])
    >>> every = np.ones(2, bool)
    >>> viterbi([log_probs], no_class_1_first, np.ones((2, 2), bool), every)
    [array([0, 1])]
    """
    lengths = np.array([len(table) for table in tables])
    order = np.argsort(-lengths, kind="stable")
    shape = lengths.max(), len(tables), len(start)
    scores, back = np.zeros(shape), np.empty(shape, dtype=np.int64)
    for place, i in enumerate(order):
        scores[: lengths[i], place] = tables[i]
    n_longer = (lengths > np.arange(shape[0])[:, None]).sum(axis=1)  # than each position
    steps = np.where(follow, 0.0, -np.inf)
    best = scores[0] + np.where(start, 0.0, -np.inf)
    for i, n in enumerate(n_longer[1:], 1):
        paths = best[:n, :, None] + steps
        back[i, :n] = paths.argmax(axis=1)
        best[:n] = paths.max(axis=1) + scores[i, :n]
    best += np.where(end, 0.0, -np.inf)
    every, found = np.arange(shape[1]), np.empty(shape[:2], dtype=np.int64)
    found[lengths[order] - 1, every] = best.argmax(axis=1)
    for i in range(shape[0] - 1, 0, -1):
        n = n_longer[i]
        found[i - 1, :n] = back[i, every[:n], found[i, :n]]
    sizes = np.where(best.max(axis=1) > -np.inf, lengths[order], 0)
    return [found[: sizes[place], place] for place in np.argsort(order)]


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
        wrong = _ill_formed(best, ends, *masks)
        for start in range(0, len(wrong), BLOCK):
            part = wrong[start : start + BLOCK]
            found = viterbi([np.maximum(tables[i], floor) for i in part], *masks)
            for i, tags in zip(part, found, strict=True):
                best[ends[i] - len(tags) : ends[i]] = tags
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
