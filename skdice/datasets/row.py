"""The one row of every file: what readers yield, whatever the format, and what writers take."""

from __future__ import annotations

from typing import Any, NamedTuple

from skdice.inputs.entities import Entity

UNITS = ("codepoints", "utf16", "bytes")  # that offsets may count


class Row(NamedTuple):
    """An example of a file.

    Attributes
    ----------
    place : int or str
        Where it stands in the file: the number of its line, or a name.
    x : str, (str, str) or list of str
        A text, two texts, a question with its context, or tokens.
    y : object
        A label, labels, tags, spans or answers; of a tool the `Marks` of a text, or the labels of
        it by the name of the question. None where the file holds nothing, or it is not asked for.
    meta : dict
        What else the file holds of it. Of a table to predict it is the row as it came.
    """

    place: Any
    x: Any
    y: Any
    meta: dict[str, Any]


class Marks(NamedTuple):
    """The spans of a text as a tool wrote them, before `skdice.datasets.offsets` checks them."""

    spans: list[Entity]
    checks: tuple[Entity, ...] = ()  # tokens, whose texts show whether offsets are right
    unit: str | None = None  # what the row says that its offsets count
    others: tuple[str, ...] = ()  # the text in other forms, in which the offsets may count


def raw(start: Any, end: Any, label: Any, text: Any = None, score: Any = None) -> Entity:
    """An entity as a tool wrote it, before its offsets are checked.

    Of one that is discontinuous, start and end are tuples with those of its parts.
    """
    return Entity(start, end, label, score, text)


def x_and_y(rows: list[Row]) -> tuple[list[Any], list[Any]]:
    """All x and all y of rows."""
    return [row.x for row in rows], [row.y for row in rows]
