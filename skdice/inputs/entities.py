"""Entities by their characters: the one type, and the one place that reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from skdice._checks import counted, is_number, shown
from skdice.inputs.rows import check_ordered, target_rows
from skdice.inputs.texts import is_text, is_whole_number

# What tools and libraries call the parts of an entity. Where one has two names, the first counts
# characters or is a name: in spaCy and Stanza `start` counts tokens and `label` is a number, and
# in Doccano a `label` may be an id.
_NAMES = {
    "start": ("start_char", "start_offset", "start_position", "startOffset", "start", "begin"),
    "end": ("end_char", "end_offset", "end_position", "endOffset", "end", "stop"),
    "label": (
        *("label_", "label_name", "label", "entity_group", "entity_type"),
        *("type", "tag", "entity"),
    ),
    # Not a pipeline's `word`, which its tokenizer decodes, perhaps in lower case.
    "text": ("text",),
    "score": ("score",),
}
_TAG = re.compile("[BIESLU]-.+")


class Entity(NamedTuple):
    """A span of a text, in Python's characters: ``text[start:end] == entity.text``.

    Parameters
    ----------
    start, end : int
        Of the first character, and after the last.
    label : str or None
        None marks a region that nobody annotated.
    score : float or None, default=None
        Probability of the span, of a prediction.
    text : str, default=""
        Its characters.

    Examples
    --------
    >>> from skdice.text import Entity
    >>> Entity(13, 17, "LOC", 0.98, "Rome").label
    'LOC'
    """

    start: int
    end: int
    label: str | None
    score: float | None = None
    text: str = ""


def fields_of(item: Any) -> dict[str, Any]:
    """The parts of an entity that an item has, unchecked.

    A list has its start, end and label, and then its text, if it is a string, and its score, if it
    is a fraction. A mapping or an object has them under the names of the tools.
    """
    if isinstance(item, Entity):
        return item._asdict()  # its label may be None
    item = item.tolist() if isinstance(item, np.ndarray) else item
    if isinstance(item, (tuple, list)) and not hasattr(item, "_fields"):
        found = dict(zip(("start", "end", "label"), item, strict=False))
        for value in reversed(item[3:]):
            if isinstance(value, str):
                found["text"] = value
            elif isinstance(value, Real) and not isinstance(value, Integral):
                found["score"] = value
        return found
    parts = {}
    for part, names in _NAMES.items():
        values = [value for name in names for value in _named(item, name)]
        if values:
            parts[part] = next((value for value in values if value is not None), None)
    return parts


def _named(item: Any, name: str) -> list[Any]:
    """The value of this name in a list, which is empty if there is none."""
    if isinstance(item, Mapping):
        return [item[name]] if name in item else []
    value = None if isinstance(item, (str, bytes)) else getattr(item, name, _named)
    return [] if value is None or callable(value) else [value]


def read_entity(item: Any, where: str) -> Entity:
    """The entity that an item is, checked.

    Parameters
    ----------
    item : tuple, list, mapping or object
        ``(start, end, label)``, perhaps with its score and text behind; or a mapping or an object
        with these names, or those of spaCy, Doccano, Prodigy, Stanza, Flair, Presidio or a pipeline
        of transformers. Their start and end are taken in characters, never in tokens.
    where : str
        Its name in messages.

    Raises
    ------
    TypeError, ValueError
        If a part is missing or is none.
    """
    found = fields_of(item)
    for part in ("start", "end", "label"):
        if part not in found:
            raise TypeError(_lacking(item, part, where))
    start, end = _checked_place(item, found, where)
    label = _checked_label(item, found["label"], where)
    text, score = found.get("text"), found.get("score")
    if score is not None and not (is_number(score) and isfinite(score)):
        raise TypeError(f"{where} has the score {shown(score)}: it must be a finite number")
    score = None if score is None else float(score)
    return Entity(start, end, label, score, text if isinstance(text, str) else "")


def _checked_place(item: Any, found: Mapping[str, Any], where: str) -> tuple[int, int]:
    start, end = found["start"], found["end"]
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, bool) or not is_whole_number(value):
            raise TypeError(
                f"{where} is {shown(item)}, whose {name} is {shown(value)}: an entity is "
                "(start, end, label), with whole numbers of characters"
            )
    if not 0 <= start <= end:
        raise ValueError(
            f"{where} is {shown(item)}: start and end count characters from 0, and the end is "
            "not before the start"
        )
    return int(start), int(end)


def _checked_label(item: Any, label: Any, where: str) -> str | None:
    if label is None:
        return None
    if problem := fault_of_label(label):
        wrong = ValueError if isinstance(label, str) else TypeError
        raise wrong(f"the label of {where} is {shown(label)}{problem}")
    if isinstance(item, Mapping) and "entity" in item and _TAG.fullmatch(label):
        raise TypeError(_lacking(item, "label", where))
    return str(label)


def fault_of_label(label: Any) -> str:
    """Say what is wrong with an entity's type; empty if it is a name."""
    if not isinstance(label, str):
        return ", not a string: give the entity's type as a string"
    if not label.strip() or "\x00" in label or not is_text(label):
        return ": a type is a name, without null characters or halves of a surrogate pair"
    return ""


def _lacking(item: Any, part: str, where: str) -> str:
    if isinstance(item, Mapping) and "entity" in item:
        remedy = "call the pipeline with an aggregation_strategy, which joins tokens to entities"
        return f"{where} is {shown(item)}, a tag of a token: {remedy}"
    others = ", ".join(name for name in _NAMES[part] if name != part)
    return (
        f"{where} is {shown(item)}, which has no {part}: an entity is (start, end, label), or a "
        f"dict or an object with these names; other names of {part} are {others}"
    )


def check_type(label: Any, where: str) -> str:
    """An entity type that tags can hold, checked."""
    problem = fault_of_label(label)
    if not problem and label != label.strip():
        problem = ": a type is a name without white space at its ends"
    if problem:
        raise (ValueError if isinstance(label, str) else TypeError)(
            f"{where} is {label!r}{problem}"
        )
    return str(label)


def check_inside(entity: Entity, text: str, where: str, of: str) -> None:
    """Refuse an entity that ends beyond its text."""
    if entity.end > len(text):
        raise ValueError(
            f"{where} is {shown(tuple(entity[:3]))}, outside {of}, which has "
            f"{counted(len(text), 'character')}: mend its offsets, which count Python's characters"
        )


def read_entities(y: Any, texts: Sequence[str]) -> list[list[Entity]]:
    """The entities of each text, in the user's order.

    Parameters
    ----------
    y : list of lists of entities
        As `read_entity` takes them. A label of None marks a region that was not annotated, and
        ``"O"`` one that holds no entity.
    texts : list of str

    Raises
    ------
    TypeError, ValueError
        If one is no entity, ends beyond its text, or has a type that tags cannot hold.
    """
    rows = target_rows(y, len(texts), "a list of entities for each text", "texts")
    entities = []
    for i, (row, text) in enumerate(zip(rows, texts, strict=True)):
        wanted = "a list of entities, as in [(0, 3, 'PER')], which is [] for a text without any"
        check_ordered(row, f"y[{i}]", wanted)
        entities.append([read_entity(item, f"y[{i}][{j}]") for j, item in enumerate(row)])
        for j, entity in enumerate(entities[-1]):
            where = f"y[{i}][{j}]"
            check_inside(entity, text, where, f"X[{i}]")
            if entity.label is not None:
                check_type(entity.label, f"the label of {where}")
    return entities
