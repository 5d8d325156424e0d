"""Offsets into code points, from what a tool counts; a span that cannot be right is named."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import is_number, shown
from skdice._warn import warn
from skdice.datasets.formats._base import Format, if_any
from skdice.datasets.row import UNITS, Row, Span
from skdice.datasets.source import fault
from skdice.exceptions import MisalignedWarning
from skdice.inputs.entities import fault_of_label
from skdice.inputs.texts import is_text, nearest_place

_NAMES = {"codepoints": "code points", "utf16": "UTF-16 code units"}

Rulers = Mapping[int, int] | range


class _Fault(NamedTuple):
    problem: str
    hull: tuple[int, int] | None = None  # of a discontinuous span
    is_of_label: bool = False  # which no move mends


def units_before(text: str, unit: str) -> Sequence[int]:
    """Count the units before each code point of a text, and before its end."""
    if unit == "codepoints" or text.isascii():
        return range(len(text) + 1)
    return list(accumulate((1 + (c > "\uffff") for c in text), initial=0))


def _ruler(text: str, unit: str) -> Rulers:
    """Maps an offset in units to one in code points."""
    before = units_before(text, unit)
    return before if isinstance(before, range) else {n: i for i, n in enumerate(before)}


def _squeezed(text: str) -> str:
    r"""A text as it is compared: tools write other white space, or ``\n`` as two characters."""
    return unicodedata.normalize("NFC", "".join(text.replace("\\n", " ").split()))


def _locate(span: Span, text: str, ruler: Rulers, unit: str) -> tuple[int, int] | _Fault:
    """Return the begin and end of a span in code points, or what is wrong with it."""
    places = []
    for part in span.parts:
        if problem := _fault_of(part, ruler, unit):
            return _Fault(problem)
        start, end = int(part[0]), int(part[1])
        places.append((ruler[start], ruler[end]))
    places.sort()
    held = "".join(text[start:end] for start, end in places)
    if isinstance(span.text, str) and _squeezed(held) != _squeezed(span.text):
        return _Fault(f"its offsets hold {shown(held)}, but its text is {shown(span.text)}")
    hull = places[0][0], max(end for _, end in places)
    if any(text[end:start].strip() for (_, end), (start, _) in pairwise(places)):
        return _Fault("it is discontinuous", hull)
    return hull


def _fault_of(part: tuple[Any, Any], ruler: Rulers, unit: str) -> str:
    """Say what is wrong with a start and an end; empty if they are right."""
    for what, offset in zip(("start", "end"), part, strict=True):
        if not is_number(offset) or offset % 1:
            return f"its {what} is {shown(offset)}, not a whole number"
    start, end = int(part[0]), int(part[1])
    if start >= end:
        return "it is empty" if start == end else "it ends before it begins"
    missing = [offset for offset in (start, end) if offset not in ruler]
    if not missing:
        return ""
    size = next(reversed(ruler))
    if 0 < missing[0] < size:
        return f"offset {missing[0]} is inside a character of several {_NAMES[unit]}"
    return f"it lies outside the text, which has {size} {_NAMES[unit]}"


def _located(row: Row, text: str, unit: str) -> list[Any]:
    """The places of the spans of a row, or what is wrong with them."""
    ruler = _ruler(text, unit)
    return [_locate(span, text, ruler, unit) for span in (*row.y.spans, *row.y.checks)]


def _find_unit(path: Path, rows: list[Row], tool_unit: str) -> str:
    """Return the unit of a file's offsets: code points, or UTF-16 if only that can be right.

    The texts of the entities decide, where the tool writes them. Of a tool that counts UTF-16, and
    whose files programs write too, it is refused what both can be.
    """
    wrong = dict.fromkeys(UNITS, 0)
    unclear = None  # the first row that may be read in two ways
    for row in rows:
        for places in _readings(row, tool_unit):
            unclear = unclear or row
            for unit, place in zip(UNITS, places, strict=True):
                wrong[unit] += isinstance(place, _Fault)
    if unclear is not None and tool_unit == "utf16" and not any(wrong.values()):
        problem = "its offsets after emoji may count UTF-16 code units, as the tool does, or code "
        problem += "points, as programs do: give offsets='utf16' or offsets='codepoints'"
        raise fault(path, unclear.place, problem)
    return "utf16" if wrong["codepoints"] and not wrong["utf16"] else "codepoints"


def _readings(row: Row, tool_unit: str) -> list[Any]:
    """The places by unit of each span of a row for which the unit matters, and that can tell."""
    if row.y.unit or row.x.isascii() or max(row.x) <= "\uffff":
        return []
    spans, trials = (*row.y.spans, *row.y.checks), [_located(row, row.x, unit) for unit in UNITS]
    can_tell = [span.text is not None or tool_unit == "utf16" for span in spans]
    every = zip(can_tell, zip(*trials, strict=True), strict=True)
    return [places for told, places in every if told and places[0] != places[1]]


def _nearest(span: Span, text: str) -> tuple[int, int] | None:
    """Return the place of a span's text that is nearest to its offsets."""
    start, held = span.parts[0][0], span.text
    if not isinstance(held, str) or not held or not isinstance(start, (int, float)):
        return None
    at = nearest_place(text, held, int(start))
    return None if at is None else (at, at + len(held))


def resolve(
    path: Path, rows: list[Row], form: Format, offsets: str, on_misaligned: str
) -> list[Row]:
    """The rows with their entities as (start, end, label) in code points, in place of `Marks`."""
    unit = _find_unit(path, rows, form.unit) if offsets == "auto" else offsets
    resolver = _Resolver(path, form.knows_unlabelled, on_misaligned)
    resolved = []
    for row in rows:
        marks, place = row.y, row.place
        if (name := row.meta.get("id")) is not None:
            place = f"{place} (id {shown(name)})"
        texts = tuple(dict.fromkeys((row.x, *marks.others)))
        if not all(map(is_text, texts)):
            raise fault(path, place, "the text holds half of a surrogate pair: write it anew")
        if marks.unit and offsets not in ("auto", marks.unit):
            problem = f"it says that its offsets count {marks.unit!r}, but offsets={offsets!r}"
            raise fault(path, place, problem)
        resolved.append(resolver.row(row, place, texts, marks.unit or unit))
    resolver.warn(sum(len(row.y) for row in resolved))
    return resolved


class _Resolver:
    """Entities of rows, of which misaligned ones are refused, left out or moved."""

    def __init__(self, path: Path, knows_unlabelled: bool, on_misaligned: str) -> None:
        self.path, self.knows_unlabelled, self.how = path, knows_unlabelled, on_misaligned
        self.problems: list[str] = []
        self.n_mended = 0

    def row(self, row: Row, place: str, texts: tuple[str, ...], unit: str) -> Row:
        """A row with its entities, in the form of its text in which the fewest are wrong."""
        marks, trials = row.y, [_located(row, text, unit) for text in texts]
        wrong = [sum(isinstance(where, _Fault) for where in trial) for trial in trials]
        best = wrong.index(min(wrong))
        text, found = texts[best], trials[best]
        entities, scores = [], []
        for span, where in zip(marks.spans, found, strict=False):
            label = str(span.label) if type(span.label) is int else span.label
            where = self._fault_of_label(label) or where
            if isinstance(where, _Fault):
                name = f"the entity {shown(label)} from {_shown(span)}"
                if self.how == "raise":
                    raise self._refusal(place, name, where)
                self.problems.append(f"{place}: {name}: {where.problem}")
                where = self._mended(span, where, text)
            if where is not None:
                entities.append((*where, label))
                scores.append(span.score)
        for token, where in zip(marks.checks, found[len(marks.spans) :], strict=True):
            if isinstance(where, _Fault) and self.how == "raise":
                raise self._refusal(place, f"the token from {_shown(token)}", where)
        return Row(row.place, text, entities, {**row.meta, **if_any("entity_scores", scores)})

    def _fault_of_label(self, label: Any) -> _Fault | None:
        if (label is None and self.knows_unlabelled) or not fault_of_label(label):
            return None
        return _Fault(f"its label is {shown(label)}, not a name", is_of_label=True)

    def _mended(self, span: Span, wrong: _Fault, text: str) -> tuple[int, int] | None:
        """Where a span is moved to, or None for one that is left out."""
        if self.how != "expand" or wrong.is_of_label:
            return None
        mended = wrong.hull or _nearest(span, text)
        self.n_mended += mended is not None
        return mended

    def _refusal(self, place: str, name: str, wrong: _Fault) -> ValueError:
        return fault(self.path, place, f"{name}: {wrong.problem}: {_remedy(wrong)}")

    def warn(self, n_kept: int) -> None:
        """Count what was moved or left out."""
        if not self.problems:
            return
        n = n_kept + len(self.problems) - self.n_mended
        warn(
            f"{str(self.path)!r}: {len(self.problems)} of {n} entities are misaligned; "
            f"{self.n_mended} of them were moved or joined, and the others left out. The first: "
            f"{self.problems[0]}",
            MisalignedWarning,
        )


def _shown(span: Span) -> str:
    return ";".join(f"{start} to {end}" for start, end in span.parts)


def _remedy(wrong: _Fault) -> str:
    """The way out."""
    if wrong.hull is not None:
        return "on_misaligned='expand' reads it from its start to its end"
    if wrong.is_of_label:
        return "mend the file, or give on_misaligned='drop' to leave it out"
    return (
        "mend the file, or give offsets='utf16' if it counts these, on_misaligned='expand' to look "
        "for its text nearby, or on_misaligned='drop' to leave it out"
    )
