"""Entities by their characters, and the words of a text that they cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdice._checks import check_ordered, shown
from skdice._warn import warn
from skdice.metrics.labels import is_ordered, plain_values
from skdice.text.inputs import _string, _target_rows, is_whole_number, read_texts
from skdice.text.words import Words, plain_words

# What annotation tools and libraries call the parts of an entity. In spaCy and Stanza `start` and
# `end` count tokens, and `label` is a number: so the last names come last.
_NAMES = {
    "start": ("start_char", "start_offset", "start_position", "start", "begin"),
    "end": ("end_char", "end_offset", "end_position", "end"),
    "label": ("label_", "label", "entity_group", "entity_type", "type", "tag"),
}

Span = tuple[int, int, str | None]
# Labels of regions, not entities: one that was not annotated, and one that holds no entity.
REGIONS = (None, "O")


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


class TextTags(list[str | None]):
    """The tags of a text's words, and the entities that they were made from."""

    entities: Sequence[Span]


def holds_texts(X: Any) -> bool:
    """Whether the rows of X are texts, and not lists of tokens."""
    rows = plain_values(X)
    if not is_ordered(rows) or getattr(rows, "ndim", 1) == 0 or not len(rows):
        return False
    return isinstance(next(iter(rows)), str)


def tags_of_texts(X: Any, y: Any) -> list[Any]:
    """Tags of `plain_words`, for what has no tokenizer and looks at no word."""
    texts = read_texts(X)
    spans = [np.array(plain_words(text), dtype=np.int64).reshape(-1, 2) for text in texts]
    words = (Words(s[:, 0], s[:, 1], s[:, 0], s[:, 1], [[]] * len(s)) for s in spans)
    return list(align(texts, read_entities(y, texts), words)[0])


def read_entities(y: Any, texts: Sequence[str]) -> list[list[Span]]:
    """The entities of each text as (start, end, label), in the user's order.

    Parameters
    ----------
    y : list of lists of entities
        Tuples ``(start, end, label)``, or dicts or objects with these names or those of spaCy,
        Doccano, Prodigy, Stanza, Flair, Presidio or a pipeline of transformers. A label of None
        marks a region that was not annotated, and ``"O"`` one that holds no entity.
    texts : list of str
    """
    rows = _target_rows(y, len(texts), "a list of entities for each text", "texts")
    spans = []
    for i, row in enumerate(rows):
        wanted = "a list of entities, as in [(0, 3, 'PER')], which is [] for a text without any"
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
        start, end, label = (_part(entity, name, where) for name in _NAMES)
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
    if label is None:
        return int(start), int(end), None
    return int(start), int(end), check_type(label, f"the label of {where}")


def check_type(label: Any, where: str) -> str:
    """An entity type, checked."""
    label = _string(label, where, "give the entity's type as a string")
    if label != label.strip() or label == "" or "\x00" in label:
        raise ValueError(
            f"{where} is {label!r}: a type is a name without white space at its ends or null "
            "characters"
        )
    return label


def _part(entity: Any, part: str, where: str) -> Any:
    for name in _NAMES[part]:
        if isinstance(entity, Mapping) and name in entity:
            return entity[name]
        if not isinstance(entity, (Mapping, str)) and hasattr(entity, name):
            return getattr(entity, name)
    remedy = f"other names of {part} are {', '.join(n for n in _NAMES[part] if n != part)}"
    if isinstance(entity, Mapping) and "entity" in entity:
        remedy = "call the pipeline with an aggregation_strategy, which joins tokens to entities"
    raise TypeError(
        f"{where} is {shown(entity)}, which has no {part}: give (start, end, label), or a dict or "
        f"an object with these names; {remedy}"
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
        # The words that each entity touches, the second index exclusive.
        starts = [min(start, len(text) + 1) for start, _, _ in spans]
        ends = [min(end, len(text) + 1) for _, end, _ in spans]
        first = np.searchsorted(words.last, starts, side="right").tolist()
        covered = list(zip(first, np.searchsorted(words.first, ends).tolist(), strict=True))
        off = dict(_misaligned(text, spans, words, covered, misaligned))
        row = TextTags(["O"] * len(words.ids))
        row.entities = spans
        lost = _write(row, spans, covered, {j for j, why in off.items() if why[1] == "dropped"})
        problems = [
            *((j, "misaligned", *why) for j, why in off.items()),
            *((j, "overlapping", why, "dropped") for j, why in lost.items()),
        ]
        for j, parameter, reason, action in sorted(problems):
            start, end, label = spans[j]
            misfits.append(Misfit(i, j, start, end, str(label), text[start:end], reason, action))
            if (misaligned if parameter == "misaligned" else overlapping) == "error":
                others = "'expand' or 'drop'" if parameter == "misaligned" else "'longest'"
                raise ValueError(
                    f"{_told(misfits[-1])}: mend it, or set {parameter}={others}; "
                    "skdice.inspection.alignment_report lists all such entities"
                )
        tags.append(row)
    return tags, misfits


def _misaligned(
    text: str,
    spans: Sequence[Span],
    words: Words,
    covered: Sequence[tuple[int, int]],
    misaligned: str,
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Index, reason and action of each entity that does not begin and end with a word."""
    for j, ((start, end, label), (first, last)) in enumerate(zip(spans, covered, strict=True)):
        if label in REGIONS:
            continue
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


def _write(
    row: TextTags, spans: Sequence[Span], covered: Sequence[tuple[int, int]], dropped: set[int]
) -> dict[int, str]:
    """Write the tags of entities, the longest first; give those that overlap one, with reasons."""
    written: set[Span] = set()
    lost: dict[int, str] = {}
    order = sorted(range(len(spans)), key=lambda j: (spans[j][0] - spans[j][1], spans[j][0], j))
    for j in order:
        label, (first, last) = spans[j][2], covered[j]
        if label in REGIONS or j in dropped:
            continue
        if any(tag != "O" for tag in row[first:last]):
            lost[j] = "is there twice" if spans[j] in written else "overlaps another"
            continue
        written.add(spans[j])
        row[first:last] = [f"B-{label}", *[f"I-{label}"] * (last - first - 1)]
    for region in REGIONS:  # in this order: what was annotated is within what was not
        for (_, _, label), (first, last) in zip(spans, covered, strict=True):
            if label == region:
                row[first:last] = [t if t not in REGIONS else region for t in row[first:last]]
    return lost


def _told(misfit: Misfit) -> str:
    row, entity, start, end, label, text, reason, _ = misfit
    span = f"({start}, {end}, {label!r})"
    return f"y[{row}][{entity}] is {span} {shown(text)}, which {reason}"


def warn_of(misfits: Sequence[Misfit], rows: Sequence[Sequence[Span]]) -> None:
    """One warning that counts the misfits and shows the first."""
    if not misfits:
        return
    reasons = Counter(misfit.reason for misfit in misfits).most_common()
    counts = ", ".join(f"{reason} ({n})" for reason, n in reasons)
    warn(
        f"{len({misfit[:2] for misfit in misfits})} of {sum(map(len, rows))} entities do not fit "
        f"the words of their texts, or each other: {counts}. First: {_told(misfits[0])}: "
        f"{misfits[0].action}. skdice.inspection.alignment_report lists all"
    )
