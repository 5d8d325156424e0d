"""A row of any file, what a reader hands over, and what is asked of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

UNITS = ("codepoints", "utf16")  # that offsets may count
OF_CELLS = ("separator", "quoting", "header")  # options of readers that a `Source` has


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


class Note(NamedTuple):
    """What a user should know of the rows that were read."""

    what: str
    n_left_out: int | None = None  # how many of `what` were left out; None of another note


class Span(NamedTuple):
    """An entity as a tool wrote it, before `skdice.datasets.offsets` checks it."""

    parts: tuple[tuple[Any, Any], ...]  # start and end; several of one that is discontinuous
    label: Any
    text: Any = None
    score: Any = None


def span(start: Any, end: Any, label: Any, text: Any = None, score: Any = None) -> Span:
    """An entity of one part."""
    return Span(((start, end),), label, text, score)


class Marks(NamedTuple):
    """What a tool marked in a text."""

    spans: list[Span]
    checks: tuple[Span, ...] = ()  # tokens, whose texts show whether offsets are right
    unit: str | None = None  # what the row says that its offsets count
    others: tuple[str, ...] = ()  # the text in other forms, in which the offsets may count


@dataclass(frozen=True)
class Wanted:
    """What is read of the file of a tool."""

    labelled: bool = True  # False is for what is to be predicted
    of_labels: bool = False  # the labels of whole texts, and not entities
    text_column: str | None = None
    layer: str | None = None
    feature: str | None = None


@dataclass
class Reading:
    """The rows of a file, and what was found beside them."""

    rows: list[Row]
    notes: list[Note] = field(default_factory=list)
    columns: dict[str, Any] | None = None
    table: dict[str, Any] | None = None  # the arguments of `read_table`, as given or found
    queries: dict[str, str] | None = None


def rows_and_notes(read: Iterable[Row | Note]) -> tuple[list[Row], list[Note]]:
    """What a reader yields, apart."""
    found = list(read)
    rows = [each for each in found if isinstance(each, Row)]
    return rows, [each for each in found if isinstance(each, Note)]


def left_out(notes: list[Note]) -> str:
    """Name and count what was left out; empty if nothing was."""
    counts: dict[str, int] = {}
    for what, n in notes:
        if n:
            counts[what] = counts.get(what, 0) + n
    return ", ".join(f"{n} {what}" for what, n in counts.items())


def x_and_y(rows: list[Row]) -> tuple[list[Any], list[Any]]:
    """All x and all y of rows."""
    return [row.x for row in rows], [row.y for row in rows]


# ---- options of readers


def without(options: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    """All but some of them."""
    return {name: value for name, value in options.items() if name not in names}


def check_options(reader: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse an option that the reader of a file does not have."""
    owner = f"{reader.__name__}, which reads this file"
    refuse_unknown(owner, inspect.signature(reader).parameters, options)


def refuse_unknown(owner: str, known: Iterable[str], options: Mapping[str, Any]) -> None:
    """Refuse an option that is not among those of what reads a file, its owner."""
    for name in sorted(set(options) - set(known)):
        problem = f"{name}={options[name]!r} is no option of {owner}"
        remedy = "leave it out, or say what the file holds, as by task='classification' for texts "
        raise TypeError(f"{problem}: {remedy}with labels, or task='tagging' for tagged sentences")
