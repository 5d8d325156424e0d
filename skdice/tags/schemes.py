"""Tag schemes: how tags mark spans, and which tag may follow which.

Tags are ``O``, ``PREFIX-TYPE``, or a prefix alone, whose type is ``_``. In every scheme a span is
read leniently, as the CoNLL evaluation script does, so that an ill-formed sequence still has spans.
The tag None means that nobody annotated the token: no span covers it, and any tag may stand
beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from skdice._checks import check_choice
from skdice._warn import warn
from skdice.exceptions import TagSchemeWarning
from skdice.tags.spans import Span

# The prefixes of a span's first, middle and last tag, and of a span of one tag. Of schemes that
# fit the same tags equally well, the first here is inferred.
_PREFIXES = dict(
    iob2="BIIB", iob1="IIII", bioes="BIES", bilou="BILU", bmes="BMES", ioe2="IIEE", ioe1="IIII"
)
# Marks the border of two adjacent spans of a type: the second's first tag, or the first's last.
_BORDER = {"iob1": "B", "ioe1": "E"}
_EVERY = set("BIESMLU")
_FIRST, _LAST = set("BSU"), set("ESLU")
_BACKGROUND_LIKE = " -_0oO"
_OTHER_SPELLING = re.compile(r"[BIESMLU][\W_].+|.+[\W_][BIESMLU]", re.IGNORECASE)

SCHEMES = (*_PREFIXES, "plain")


@lru_cache(maxsize=1 << 16)
def split_tag(tag: str | None) -> tuple[str, str]:
    """Prefix and type; the prefix is empty if the tag is neither ``O`` nor ``PREFIX-TYPE``."""
    if tag is None or tag == "O":
        return "O", ""
    prefix, _, kind = tag.partition("-")
    return (prefix, kind or "_") if prefix in _EVERY and tag == tag.strip() else ("", tag)


def infer_scheme(tag_lists: Iterable[Sequence[str | None]], classes: Iterable[str] = ()) -> str:
    """The scheme that the fewest tags of the sentences break.

    Of several, the one in which more of `classes` can be used, and then the first in the order of
    `SCHEMES`. Plain if not most of the distinct tags are ``PREFIX-TYPE`` with a prefix of B, I, E,
    S, M, L, U.

    Parameters
    ----------
    tag_lists : list of lists of str or None
    classes : list of str, default=()
        All tags that there are, if the sentences may not hold them all.

    Raises
    ------
    ValueError
        If most tags, but not all, are ``O`` or ``PREFIX-TYPE``; it names the first of the others.

    Warns
    -----
    TagSchemeWarning
        If most tags look like those of a scheme in another spelling, such as ``b-PER`` or
        ``PER-B``; they are plain tags here.

    Examples
    --------
    >>> from skdice.tags.schemes import infer_scheme
    >>> infer_scheme([["B-PER", "I-PER", "O"]]), infer_scheme([["NOUN", "VERB"]])
    ('iob2', 'plain')
    """
    rows, classes = list(tag_lists), sorted(set(classes))
    steps = Counter(step for tags in rows for step in pairwise(("O", *tags, "O")))
    names = {tag for step in steps for tag in step if tag is not None}.union(classes)
    if not names or not has_prefixes(names):
        strays = _strays(names)
        misspelt = sorted(filter(_OTHER_SPELLING.fullmatch, strays))
        if 2 * len(misspelt) > len(strays):
            warn(
                f"tags such as {misspelt[0]!r} are read as plain tags, each a type of its own: "
                "write them as 'B-PER' if they mark spans, or name scheme='plain'",
                TagSchemeWarning,
            )
        return "plain"
    refuse_strays(rows)
    refuse_strays([classes], "classes")
    broken = {
        scheme: sum(n for step, n in steps.items() if not _follows(*step, scheme))
        for scheme in _PREFIXES
    }
    best = [scheme for scheme, n in broken.items() if n == min(broken.values())]
    return max(best, key=lambda scheme: _n_usable(classes, scheme)) if classes else best[0]


def _strays(tags: Iterable[str]) -> set[str]:
    return {tag for tag in tags if not split_tag(tag)[0]}


def has_prefixes(tags: Iterable[str]) -> bool:
    """Return True if most distinct tags have prefixes, those left out that look like ``O``."""
    distinct = set(tags) - {"O"}
    others = [tag for tag in _strays(distinct) if tag.strip(_BACKGROUND_LIKE)]
    if not others:
        return distinct == set() or _strays(distinct) < distinct
    # A prefix alone, such as S, may also be a part of speech.
    return sum("-" in tag for tag in distinct - _strays(distinct)) > len(others)


def refuse_strays(rows: Sequence[Sequence[str | None]], name: str = "y") -> None:
    """Refuse tags that are neither ``O`` nor ``PREFIX-TYPE``.

    Raises
    ------
    ValueError
        It names the first, its place, and how many there are.
    """
    places = [
        (i, j) for i, row in enumerate(rows) for j, t in enumerate(row) if not split_tag(t)[0]
    ]
    if places:
        i, j = places[0]
        strays = sorted(_strays(tag for row in rows for tag in row if tag is not None))
        raise ValueError(
            f"{name}[{i}][{j}] is {rows[i][j]!r}, which is in no scheme ({len(places)} such tags: "
            f"{strays[:5]}): give 'O' or PREFIX-TYPE such as 'B-PER'; scheme='plain', where a "
            "scheme is asked for, reads each tag as a type of its own"
        )


def _n_usable(classes: Iterable[str], scheme: str) -> int:
    """Count the classes that may come after and before another, or at an end of a sentence."""
    start, follow, end = transitions(list(classes), scheme)
    np.fill_diagonal(follow, False)
    return int(((start | follow.any(axis=0)) & (end | follow.any(axis=1))).sum())


def get_spans(tags: Sequence[str | None], scheme: str = "iob2") -> list[Span]:
    """Spans as (type, start, end), end exclusive.

    Parameters
    ----------
    tags : list of str or None
        No span covers a token whose tag is None.
    scheme : str, default="iob2"
        One of `SCHEMES`. ``plain`` makes a span of every token but ``O``, with its tag as the type.

    Raises
    ------
    ValueError
        For an unknown scheme, or a tag that is neither ``O`` nor ``PREFIX-TYPE``.

    Examples
    --------
    >>> from skdice.tags.schemes import get_spans
    >>> get_spans(["B-PER", "I-PER", "O", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    """
    check_choice("scheme", scheme, SCHEMES)
    if scheme == "plain":
        return [(tag, i, i + 1) for i, tag in enumerate(tags) if tag not in (None, "O")]
    spans: list[Span] = []
    start, previous, kind = 0, "O", ""
    for i, tag in enumerate([*tags, "O"]):
        prefix, new_kind = split_tag(tag)
        if not prefix:
            refuse_strays([tags], "tags")
        if previous in _LAST or prefix in _FIRST or kind != new_kind:
            if previous != "O":
                spans.append((kind, start, i))
            start = i
        previous, kind = prefix, new_kind
    return spans


def strict_spans(tags: Sequence[str | None], scheme: str) -> list[Span]:
    """The spans of `get_spans` that are tagged just as the scheme tags them, as in seqeval."""
    spans = get_spans(tags, scheme)
    if scheme == "plain":
        return spans
    kept = []
    padded = [split_tag(tag) for tag in ("O", *tags, "O")]
    for kind, start, end in spans:
        prefixes = "".join(prefix for prefix, _ in padded[start + 1 : end + 1])
        after, after_kind = padded[end + 1]
        if scheme == "iob1" and prefixes[0] == "B" and padded[start][1] != kind:
            start, prefixes = start + 1, prefixes[1:]  # seqeval passes over such a B
        others = prefixes.strip("I")
        if scheme == "iob1":  # nor does seqeval end B-X before a B of another type
            whole = others in ("", "B") and not (prefixes == after == "B" and after_kind != kind)
        elif scheme == "ioe1":
            whole = not others or (others == "E" and after_kind == kind)
        else:
            whole = prefixes == _row(len(prefixes), scheme)
        if whole and prefixes:
            kept.append((kind, start, end))
    return kept


def _row(size: int, scheme: str) -> str:
    """The prefixes of a span that has no neighbour of its type."""
    begin, inside, last, single = tuple(_PREFIXES[scheme])
    return single if size == 1 else begin + inside * (size - 2) + last


def to_tags(spans: Iterable[Span], n: int, scheme: str = "iob2") -> list[str]:
    """Tags of `n` tokens from spans that do not overlap; the inverse of `get_spans`.

    Examples
    --------
    >>> from skdice.tags.schemes import to_tags
    >>> to_tags([("PER", 0, 2)], 3, "bioes")
    ['B-PER', 'E-PER', 'O']
    """
    check_choice("scheme", scheme, SCHEMES)
    tags = ["O"] * n
    before: tuple[str, int] | None = None
    for kind, start, end in sorted(spans, key=lambda span: span[1]):
        if not 0 <= start < end <= n or any(tag != "O" for tag in tags[start:end]):
            raise ValueError(f"span {(kind, start, end)} is outside {n} tokens or overlaps another")
        if scheme == "plain":
            tags[start:end] = [kind] * (end - start)
            continue
        suffix = "" if kind == "_" else f"-{kind}"
        tags[start:end] = [prefix + suffix for prefix in _row(end - start, scheme)]
        if scheme in _BORDER and before == (kind, start):
            tags[start if scheme == "iob1" else start - 1] = _BORDER[scheme] + suffix
        before = (kind, end)
    return tags


def _follows(previous: str | None, tag: str | None, scheme: str) -> bool:
    """Return True if `tag` may follow `previous` (``O`` at both ends of a sentence)."""
    if previous is None or tag is None:
        return True
    (old, old_kind), (new, kind) = split_tag(previous), split_tag(tag)
    begin, inside, last, single = tuple(_PREFIXES[scheme])
    border = _BORDER.get(scheme, "O")
    if border == (new if scheme == "iob1" else old) != "O":
        return kind == old_kind and new in (inside, border)
    if kind == old_kind and old in (begin, inside, border) and new in (inside, last, border):
        return True
    is_open = old in (begin, inside) and old not in (last, single)
    return not is_open and new in (begin, single, border, "O")


def faults(tags: Sequence[str | None], scheme: str) -> Iterator[tuple[int, str]]:
    """Position and description of every ill-formed tag."""
    check_choice("scheme", scheme, SCHEMES)
    if scheme == "plain":
        return
    for j, (previous, tag) in enumerate(pairwise(("O", *tags, "O"))):
        if _follows(previous, tag, scheme):
            continue
        prefixes = _PREFIXES[scheme] + _BORDER.get(scheme, "")
        if split_tag(tag)[0] not in (*prefixes, "O"):
            yield j, f"the tag {tag!r} has no prefix of {', '.join(sorted(set(prefixes)))}"
        elif j == len(tags):
            yield j - 1, f"the tag {previous!r} cannot end a sentence"
        else:
            where = f"follow {previous!r}" if j else "begin a sentence"
            yield j, f"the tag {tag!r} cannot {where}"


def check_tags(y: Sequence[Sequence[str | None]], scheme: str, *, refuse: bool = True) -> None:
    """Refuse ill-formed tags, or warn of them.

    Raises
    ------
    ValueError
        It names the sentence and the position of the first wrong tag.

    Warns
    -----
    TagSchemeWarning
        The same, and the number of such tags, if `refuse` is False.

    Examples
    --------
    >>> from skdice.tags.schemes import check_tags
    >>> check_tags([["O", "I-PER"]], "iob2")
    Traceback (most recent call last):
    ...
    ValueError: y[0][1]: the tag 'I-PER' cannot follow 'O' in scheme 'iob2'...
    """
    check_choice("scheme", scheme, SCHEMES)
    places = ((i, *fault) for i, tags in enumerate(y) for fault in faults(tags, scheme))
    for i, j, fault in places:
        first = f"y[{i}][{j}]: {fault} in scheme {scheme!r}"
        if refuse:
            raise ValueError(f"{first}: mend the tags, or use scheme='auto' to read them leniently")
        n = 1 + sum(1 for _ in places)
        warn(
            f"{n} of {sum(map(len, y))} tags break the scheme that fits best. First {first}. "
            "They are read leniently, and constrained=True never predicts them: mend them, or name "
            "the scheme to refuse them",
            TagSchemeWarning,
        )


def transitions(classes: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the tags that may begin a sentence, follow one another, and end it.

    Returns
    -------
    start : ndarray of bool, shape (n_classes,)
    follow : ndarray of bool, shape (n_classes, n_classes)
        ``follow[i, j]``: class j may follow class i.
    end : ndarray of bool, shape (n_classes,)
    """
    check_choice("scheme", scheme, SCHEMES)
    n = len(classes)
    if scheme == "plain":
        return np.ones(n, bool), np.ones((n, n), bool), np.ones(n, bool)
    names = [*map(str, classes), "O"]  # O stands for both ends of a sentence
    table = np.array([[_follows(a, b, scheme) for b in names] for a in names])
    return table[-1, :-1], table[:-1, :-1], table[:-1, -1]


def borders(classes: Sequence[str], scheme: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Between which two tags a span starts or ends, as `get_spans` reads them.

    Returns
    -------
    kinds : ndarray of str, shape (n_classes + 1,)
        The type of each class, empty if it marks no span. The last stands for both ends of a
        sentence, also in the tables.
    starts, ends : ndarray of bool, shape (n_classes + 1, n_classes + 1)
        ``starts[i, j]``: a span starts at class j after class i; ``ends[i, j]``: one ends at class
        i before class j.
    """
    names = [*map(str, classes), "O"]
    types = [span[0] for tag in names for span in get_spans([tag], scheme) or [("", 0, 0)]]
    pairs = [[get_spans([a, b], scheme) for b in names] for a in names]
    starts = np.array([[any(span[1] == 1 for span in p) for p in row] for row in pairs])
    ends = np.array([[any(span[2] == 1 for span in p) for p in row] for row in pairs])
    return np.array(types), starts, ends
