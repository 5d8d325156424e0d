"""Entities by their characters, and the words of a text that they cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from skdice._checks import shown
from skdice._warn import warn
from skdice.exceptions import MisalignedWarning
from skdice.inputs.entities import Entity, read_entities
from skdice.inputs.texts import as_single_texts
from skdice.tags.spans import Span, flat_spans
from skdice.text.words import SplitText, Words, plain_words

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

    entities: Sequence[Entity]


def typed_spans(rows: Iterable[Iterable[Any]]) -> list[list[Span]]:
    """Entities of texts as (type, start, end), without regions."""
    return [[(e[2], e[0], e[1]) for e in row if e[2] not in REGIONS] for row in rows]


def tags_of_texts(X: Any, y: Any) -> list[Any]:
    """Tags of `plain_words`, for what has no tokenizer and looks at no word."""
    texts = as_single_texts(X)
    spans = [np.array(plain_words(text), dtype=np.int64).reshape(-1, 2) for text in texts]
    words = (Words(s[:, 0], s[:, 1], s[:, 0], s[:, 1], [[]] * len(s)) for s in spans)
    return list(align(list(map(SplitText, texts, words)), read_entities(y, texts))[0])


def align(
    texts: Sequence[SplitText],
    rows: Sequence[Sequence[Entity]],
    on_misaligned: str = "expand",
) -> tuple[list[TextTags], list[Misfit]]:
    """Tags of the words of each text, and the entities that the tags do not hold as they are.

    Parameters
    ----------
    texts : list of SplitText
    rows : list of lists of Entity
        None of which ends beyond its text.
    on_misaligned : str
        As in `DiceEntityRecognizer`.

    Raises
    ------
    ValueError
        If it is ``"raise"`` and there is such an entity; it names the first.
    """
    tags: list[TextTags] = []
    misfits: list[Misfit] = []
    for i, (text, spans) in enumerate(zip(texts, rows, strict=True)):
        words = text.words
        # The words that each entity touches, the second index exclusive.
        first = np.searchsorted(words.last, [e.start for e in spans], side="right").tolist()
        ends = np.searchsorted(words.first, [e.end for e in spans]).tolist()
        covered = list(zip(first, ends, strict=True))
        off = dict(_misaligned(text, spans, words, covered, on_misaligned))
        row = TextTags(["O"] * len(words.ids))
        row.entities = spans
        lost = _write(row, spans, covered, {j for j, why in off.items() if why[1] == "dropped"})
        problems = [*off.items(), *((j, (why, "dropped")) for j, why in lost.items())]
        for j, (reason, action) in sorted(problems, key=lambda problem: problem[0]):
            start, end, label = spans[j][:3]
            misfits.append(Misfit(i, j, start, end, str(label), text[start:end], reason, action))
            if on_misaligned == "raise" and j in off:
                raise ValueError(
                    f"{_told(misfits[-1])}: mend it, or set on_misaligned='expand' or 'drop'; "
                    "skdice.inspection.alignment_report lists all such entities"
                )
        tags.append(row)
    return tags, misfits


def _misaligned(
    text: str,
    spans: Sequence[Entity],
    words: Words,
    covered: Sequence[tuple[int, int]],
    on_misaligned: str,
) -> Iterator[tuple[int, tuple[str, str]]]:
    """Index, reason and action of each entity that does not begin and end with a word."""
    for j, ((start, end, label, *_), (first, last)) in enumerate(zip(spans, covered, strict=True)):
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
            reasons.append(f"ends {'inside a word' if end < stop else 'in white space'}")
        if reasons:
            expanded = f"expanded to {text[begin:stop]!r}"
            yield j, (" and ".join(reasons), expanded if on_misaligned == "expand" else "dropped")


def _write(
    row: TextTags, spans: Sequence[Entity], covered: Sequence[tuple[int, int]], dropped: set[int]
) -> dict[int, str]:
    """Write the tags of entities, the longest first; give those that overlap one, with reasons."""
    named = [j for j, e in enumerate(spans) if e.label not in REGIONS and j not in dropped]
    named.sort(key=lambda j: (spans[j].start - spans[j].end, spans[j].start))
    kept = flat_spans(named, covered.__getitem__)
    for j in kept:
        label, (first, last) = spans[j].label, covered[j]
        row[first:last] = [f"B-{label}", *[f"I-{label}"] * (last - first - 1)]
    written = {spans[j][:3] for j in kept}
    lost = {
        j: "is there twice" if spans[j][:3] in written else "overlaps another"
        for j in set(named).difference(kept)
    }
    for region in REGIONS:  # in this order: what was annotated is within what was not
        for entity, (first, last) in zip(spans, covered, strict=True):
            if entity.label == region:
                row[first:last] = [t if t not in REGIONS else region for t in row[first:last]]
    return lost


def _told(misfit: Misfit) -> str:
    row, entity, start, end, label, text, reason, _ = misfit
    span = f"({start}, {end}, {label!r})"
    return f"y[{row}][{entity}] is {span} {shown(text)}, which {reason}"


def warn_of(
    misfits: Sequence[Misfit],
    rows: Sequence[Sequence[Entity]],
    of_answers: Sequence[int] | np.ndarray | None = None,
) -> None:
    """One warning that counts the misfits and shows the first.

    Answers come with the numbers of their rows in y.
    """
    if not misfits:
        return
    row, _, start, _, _, text, reason, action = misfits[0]
    what, first, more = "entities", _told(misfits[0]), ""
    if of_answers is None:
        more = ". skdice.inspection.alignment_report lists all"
    else:
        what = "answers"
        first = (
            f"y[{of_answers[row]}], the answer {shown(text)} at character {start}, which {reason}"
        )
    reasons = Counter(misfit.reason for misfit in misfits).most_common()
    n = len({misfit[:2] for misfit in misfits})
    warn(
        f"{n} of {sum(map(len, rows))} {what} do not fit the words of their texts, or each other: "
        f"{', '.join(f'{why} ({n_of})' for why, n_of in reasons)}. First: {first}: {action}{more}",
        MisalignedWarning,
    )
