"""Entities by their characters, and the words of a text that they cover."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdice._checks import check_ordered, shown
from skdice._warn import warn
from skdice.text.inputs import _string, _target_rows, as_texts, is_whole_number
from skdice.text.words import Words

# What annotation tools and libraries call the parts of an entity. In spaCy and Stanza `start` and
# `end` count tokens, and `label` is a number: so these names come first.
_START = ("start_char", "start_offset", "start_position", "start", "begin")
_END = ("end_char", "end_offset", "end_position", "end")
_LABEL = ("label_", "label", "entity_group", "entity_type", "type", "tag")

Span = tuple[int, int, str]


class Misfit(NamedTuple):
    """An entity that does not fit the words of its text, or another entity."""

    row: int
    entity: int
    start: int
    end: int
    label: str
    text: str
    reason: str
    action: str


class TextTags(list[str]):
    """The tags of a text's words, and the entities that they were made from."""

    entities: Sequence[Span]


def read_texts(X: Any) -> list[str]:
    """Texts, one a row."""
    texts = as_texts(X)
    if not isinstance(texts[0], str):
        raise ValueError(
            f"X[0] holds {len(texts[0])} strings, and a recognizer reads one text a row: join them "
            "to one, or use DiceTokenClassifier for lists of tokens"
        )
    for i, text in enumerate(texts):
        if re.search("[\ud800-\udfff]", text):
            raise ValueError(
                f"X[{i}] holds half of a surrogate pair, which is no character: decode the text "
                "anew, as by text.encode('utf-16', 'surrogatepass').decode('utf-16')"
            )
    return texts


def read_entities(y: Any, texts: Sequence[str]) -> list[list[Span]]:
    """The entities of each text as (start, end, label), in the user's order.

    Parameters
    ----------
    y : list of lists of entities
        Tuples ``(start, end, label)``, or dicts or objects with these names or those of spaCy,
        Doccano, Prodigy, Stanza, Flair, Presidio or a pipeline of transformers.
    texts : list of str
    """
    rows = _target_rows(y, len(texts), "a list of entities for each text", "texts")
    spans = []
    for i, row in enumerate(rows):
        wanted = "a list of entities (start, end, label), which is [] for a text without any"
        check_ordered(row, f"y[{i}]", wanted)
        spans.append([_span(entity, f"y[{i}][{j}]") for j, entity in enumerate(row)])
    return spans


def _span(entity: Any, where: str) -> Span:
    entity = entity.tolist() if isinstance(entity, np.ndarray) else entity
    if isinstance(entity, (tuple, list)) and not hasattr(entity, "_fields"):
        if len(entity) != 3:
            raise ValueError(
                f"{where} is {shown(entity)}: an entity is (start, end, label), in characters"
            )
        start, end, label = entity
    else:
        start, end, label = (_part(entity, names, where) for names in (_START, _END, _LABEL))
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, bool) or not is_whole_number(value):
            raise TypeError(
                f"{where} is {shown(entity)}, whose {name} is {shown(value)}: an entity is "
                "(start, end, label), with whole numbers of characters"
            )
    if not 0 <= start <= end:
        raise ValueError(
            f"{where} is {shown(entity)}: start and end count characters from 0, and the end is "
            "not before the start"
        )
    label = _string(label, f"the label of {where}", "give the entity's type as a string")
    if label != label.strip() or label in ("", "O") or "\x00" in label:
        raise ValueError(
            f"the label of {where} is {label!r}: a type is a name without white space at its ends "
            "or null characters, and not 'O', which is the tag of all other words"
        )
    return int(start), int(end), label


def _part(entity: Any, names: Sequence[str], where: str) -> Any:
    for name in names:
        if isinstance(entity, Mapping) and name in entity:
            return entity[name]
        if not isinstance(entity, (Mapping, str)) and hasattr(entity, name):
            return getattr(entity, name)
    remedy = "it may also be called " + ", ".join(n for n in names if n != names[-1])
    if isinstance(entity, Mapping) and "entity" in entity:
        remedy = "call the pipeline with an aggregation_strategy, which joins tokens to entities"
    raise TypeError(
        f"{where} is {shown(entity)}, which has no {names[-1]}: give (start, end, label), or a "
        f"dict or an object with these names; {remedy}"
    )


def align(
    texts: Sequence[str],
    rows: Sequence[Sequence[Span]],
    words_of_texts: Iterable[Words],
    misaligned: str = "expand",
    overlapping: str = "longest",
) -> tuple[list[TextTags], list[Misfit]]:
    """Tags of the words of each text, and the entities that the tags do not hold as they are.

    Parameters
    ----------
    texts : list of str
    rows : list of lists of (start, end, label)
    words_of_texts : iterable of Words
    misaligned, overlapping : str
        As in `DiceEntityRecognizer`.

    Raises
    ------
    ValueError
        If one of them is ``"error"`` and there is such an entity; it names the first.
    """
    tags: list[TextTags] = []
    misfits: list[Misfit] = []
    for i, (text, spans, words) in enumerate(zip(texts, rows, words_of_texts, strict=True)):
        found = dict(_misaligned(text, spans, words, misaligned))
        kept, lost = _without_overlaps(text, spans, words, found)
        problems = [
            *((j, "misaligned", *why) for j, why in found.items()),
            *((j, "overlapping", why, "dropped") for j, why in lost.items()),
        ]
        for j, parameter, reason, action in sorted(problems):
            start, end, label = spans[j]
            misfits.append(Misfit(i, j, start, end, label, text[start:end], reason, action))
            if (misaligned if parameter == "misaligned" else overlapping) == "error":
                others = "'expand' or 'drop'" if parameter == "misaligned" else "'longest'"
                raise ValueError(
                    f"{_told(misfits[-1])}: mend it, or set {parameter}={others}; "
                    "skdice.inspection.alignment_report lists all such entities"
                )
        row = TextTags(["O"] * len(words.ids))
        row.entities = spans
        for label, first, last in kept:
            row[first:last] = [f"B-{label}", *[f"I-{label}"] * (last - first - 1)]
        tags.append(row)
    return tags, misfits


def _covered(span: Span, words: Words) -> tuple[int, int]:
    """The words that a span touches, the second index exclusive."""
    first = np.searchsorted(words.last, span[0], side="right")
    return int(first), int(np.searchsorted(words.first, span[1], side="left"))


def _misaligned(
    text: str, spans: Sequence[Span], words: Words, misaligned: str
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Index, reason and action of each entity that does not begin and end with a word."""
    for j, (start, end, label) in enumerate(spans):
        first, last = _covered((start, end, label), words)
        if start == end or first >= last:
            yield j, ("is empty" if start == end else "covers no word", "dropped")
            continue
        begin, stop = int(words.first[first]), int(words.last[last - 1])
        reasons = []
        if start != begin:
            reasons.append(f"begins {'in white space' if start < begin else 'inside a word'}")
        if end != stop:
            where = "inside a word" if end < stop else "in white space"
            reasons.append(f"ends {'outside the text' if end > len(text) else where}")
        if reasons:
            expanded = f"expanded to {text[begin:stop]!r}"
            yield j, (" and ".join(reasons), expanded if misaligned == "expand" else "dropped")


def _without_overlaps(
    text: str, spans: Sequence[Span], words: Words, misfits: dict[int, tuple[str, str]]
) -> tuple[list[tuple[str, int, int]], dict[int, str]]:
    """Entities as (label, first word, last word), the longest first; and why others are not."""
    free = np.ones(len(words.ids), dtype=bool)
    kept: list[tuple[str, int, int]] = []
    lost: dict[int, str] = {}
    for j in sorted(range(len(spans)), key=lambda j: (spans[j][0] - spans[j][1], spans[j][0], j)):
        if misfits.get(j, ("", ""))[1] == "dropped":
            continue
        first, last = _covered(spans[j], words)
        if free[first:last].all():
            free[first:last] = False
            kept.append((spans[j][2], first, last))
        elif spans[j] in spans[:j]:
            lost[j] = "is there twice"
        else:
            lost[j] = "overlaps another"
    return kept, lost


def _told(misfit: Misfit) -> str:
    row, entity, start, end, label, text, reason, _ = misfit
    span = f"({start}, {end}, {label!r})"
    return f"y[{row}][{entity}] is {span} {shown(text)}, which {reason}"


def warn_of(misfits: Sequence[Misfit], rows: Sequence[Sequence[Span]]) -> None:
    """One warning that counts the misfits and shows the first."""
    if not misfits:
        return
    reasons = Counter(misfit.reason for misfit in misfits).most_common()
    counts = ", ".join(f"{n} {reason}" for reason, n in reasons)
    warn(
        f"{len({misfit[:2] for misfit in misfits})} of {sum(map(len, rows))} entities do not fit "
        f"the words of their texts, or each other: {counts}. First: {_told(misfits[0])}: "
        f"{misfits[0].action}. skdice.inspection.alignment_report lists all"
    )
