"""Tag schemes: how tags mark spans, and which tag may follow which.

Tags are ``O`` or ``PREFIX-TYPE``. In every scheme a span is read leniently, as the CoNLL evaluation
script does, so that an ill-formed sequence still has spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

__all__ = [
    "SCHEMES",
    "check_tags",
    "get_spans",
    "infer_scheme",
    "is_whole",
    "to_tags",
    "transitions",
]

SCHEMES = ("iob1", "iob2", "bioes", "bmes", "bilou", "plain")

# In this order: begin, inside, last, single.
_PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES", "bmes": "BMES", "bilou": "BILU"}
_EVERY = {letter for letters in _PREFIXES.values() for letter in letters}
_FIRST, _LAST = {"B", "S", "U"}, {"E", "S", "L", "U"}


def _split(tag: str) -> tuple[str, str]:
    prefix, _, kind = tag.partition("-")
    return prefix, kind or "_"


def infer_scheme(tag_lists: Iterable[Sequence[str]]) -> str:
    """The scheme of tagged sentences.

    Plain if any tag is neither ``O`` nor ``PREFIX-TYPE`` with a prefix of B, I, E, S, M, L, U; bmes
    if there is an M; bioes if there is an S or E; bilou if there is an L or U; iob1 if spans start
    with I and B is only seen right after a span of the same type; iob2 otherwise.

    Examples
    --------
    >>> from skdice.metrics.schemes import infer_scheme
    >>> infer_scheme([["B-PER", "I-PER", "O"]]), infer_scheme([["NOUN", "VERB"]])
    ('iob2', 'plain')
    """
    prefixes: set[str] = set()
    starts_with_i = starts_with_b = False
    for tags in tag_lists:
        previous = "O"
        for tag in tags:
            if tag != "O":
                prefix, kind = _split(tag)
                if prefix not in _EVERY:
                    return "plain"
                prefixes.add(prefix)
                after_same = previous != "O" and _split(previous)[1] == kind
                starts_with_i |= prefix == "I" and not after_same
                starts_with_b |= prefix == "B" and not after_same
            previous = tag
    if not prefixes:
        return "plain" if not tag_lists else "iob2"
    if "M" in prefixes:
        return "bmes"
    if prefixes & {"S", "E"}:
        return "bioes"
    if prefixes & {"L", "U"}:
        return "bilou"
    return "iob1" if starts_with_i and not starts_with_b else "iob2"


def get_spans(
    tags: Sequence[str], scheme: str = "iob2", background: str | None = "O"
) -> list[tuple[str, int, int]]:
    """Spans as (type, start, end), end exclusive.

    Parameters
    ----------
    tags : list of str
    scheme : {"iob1", "iob2", "bioes", "bmes", "bilou", "plain"}, default="iob2"
        ``plain`` makes a span of every token, with its tag as the type.
    background : str or None, default="O"
        The plain tag that makes none.

    Examples
    --------
    >>> from skdice.metrics.schemes import get_spans
    >>> get_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    """
    _check_scheme(scheme)
    if scheme == "plain":
        return [(tag, i, i + 1) for i, tag in enumerate(tags) if tag != background]
    spans: list[tuple[str, int, int]] = []
    start, previous, kind = 0, "O", ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, new_kind = _split(tag)
        if previous in _LAST or prefix in _FIRST or "O" in (previous, prefix) or kind != new_kind:
            if previous != "O":
                spans.append((kind, start, i))
            start = i
        previous, kind = prefix, new_kind
    return spans


def is_whole(tags: Sequence[str], scheme: str) -> bool:
    """Whether a span that `get_spans` found is tagged just as the scheme tags it."""
    if scheme in ("plain", "iob1"):
        return True
    prefixes = "".join(_split(tag)[0] for tag in tags)
    if scheme == "iob2":
        return prefixes.startswith("B")
    begin, inside, last, single = tuple(_PREFIXES[scheme])
    return prefixes in (single, begin + inside * (len(tags) - 2) + last)


def to_tags(spans: Iterable[tuple[str, int, int]], n: int, scheme: str = "iob2") -> list[str]:
    """Tags of `n` tokens from spans that do not overlap; the inverse of `get_spans`.

    Examples
    --------
    >>> from skdice.metrics.schemes import to_tags
    >>> to_tags([("PER", 0, 2)], 3, "bioes")
    ['B-PER', 'E-PER', 'O']
    """
    _check_scheme(scheme)
    tags = ["O"] * n
    before: tuple[str, int] | None = None
    for kind, start, end in sorted(spans, key=lambda span: span[1]):
        if not 0 <= start < end <= n or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(
                f"span {(kind, start, end)} lies outside {n} tokens or overlaps another"
            )
        size = end - start
        if scheme == "plain":
            tags[start:end] = [kind] * size
            continue
        prefixes = _PREFIXES[scheme]
        row = [prefixes[0]] + [prefixes[1]] * (size - 1)
        if len(prefixes) == 4:
            row = [prefixes[3]] if size == 1 else [*row[:-1], prefixes[2]]
        elif scheme == "iob1" and before != (kind, start):
            row[0] = "I"
        tags[start:end] = [f"{prefix}-{kind}" for prefix in row]
        before = (kind, end)
    return tags


def _check_scheme(scheme: str) -> None:
    if scheme not in SCHEMES:
        raise ValueError(f"scheme={scheme!r} is unknown: use one of {SCHEMES}")


def _follows(previous: str, tag: str, scheme: str) -> bool:
    """Whether `tag` may follow `previous` (``O`` at both ends of a sentence)."""
    (old, old_kind), (new, new_kind) = _split(previous), _split(tag)
    same = old != "O" and new != "O" and old_kind == new_kind
    if scheme == "iob2":
        return new != "I" or same
    if scheme == "iob1":
        return new != "B" or same
    begin, inside, last, single = tuple(_PREFIXES[scheme])
    if old in (begin, inside):  # an open span must go on
        return new in (inside, last) and same
    return new in ("O", begin, single)


def check_tags(y: Iterable[Sequence[str]], scheme: str) -> None:
    """Refuse ill-formed tags.

    Raises
    ------
    ValueError
        It names the sentence and the position of the first wrong tag.

    Examples
    --------
    >>> from skdice.metrics.schemes import check_tags
    >>> check_tags([["O", "I-PER"]], "iob2")
    Traceback (most recent call last):
    ...
    ValueError: y[0][1]: the tag 'I-PER' cannot follow 'O' in scheme 'iob2'...
    """
    _check_scheme(scheme)
    if scheme == "plain":
        return
    for i, tags in enumerate(y):
        fault = find_fault(tags, scheme)
        if fault is not None:
            raise ValueError(
                f"y[{i}][{fault[0]}]: {fault[1]} in scheme {scheme!r}: mend the tags, or use "
                "scheme='auto' to read them leniently"
            )


def find_fault(tags: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """Position and description of the first ill-formed tag, or None."""
    previous = "O"
    for j, tag in enumerate(tags):
        prefix = _split(tag)[0]
        if tag != "O" and (prefix not in _PREFIXES[scheme] or "-" not in tag):
            return j, f"the tag {tag!r} has no prefix of {', '.join(_PREFIXES[scheme])}"
        if not _follows(previous, tag, scheme):
            where = f"follow {previous!r}" if j else "begin a sentence"
            return j, f"the tag {tag!r} cannot {where}"
        previous = tag
    if tags and not _follows(previous, "O", scheme):
        return len(tags) - 1, f"the tag {previous!r} cannot end a sentence"
    return None


def transitions(classes: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which tags may begin a sentence, follow one another, and end it.

    Returns
    -------
    start : ndarray of bool, shape (n_classes,)
    follow : ndarray of bool, shape (n_classes, n_classes)
        ``follow[i, j]``: class j may follow class i.
    end : ndarray of bool, shape (n_classes,)
    """
    _check_scheme(scheme)
    n = len(classes)
    if scheme == "plain":
        return np.ones(n, bool), np.ones((n, n), bool), np.ones(n, bool)
    names = [*map(str, classes), "O"]  # O stands for both ends of a sentence
    table = np.array([[_follows(a, b, scheme) for b in names] for a in names])
    return table[-1, :-1], table[:-1, :-1], table[:-1, -1]
