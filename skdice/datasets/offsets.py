"""Offsets into code points, from what a tool counts; a span that cannot be right is named."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.formats._base import Format, if_any
from skdice.datasets.reading import fault
from skdice.datasets.row import UNITS, Row
from skdice.exceptions import MisalignedWarning
from skdice.inputs.entities import Entity, fault_of_label
from skdice.inputs.texts import is_text, nearest_place

_NAMES = {"codepoints": "code points", "utf16": "UTF-16 code units", "bytes": "bytes of UTF-8"}

Rulers = Mapping[int, int] | range


class _Fault(NamedTuple):
    problem: str
    hull: tuple[int, int] | None = None  # of a discontinuous span
    is_of_label: bool = False  # which no move mends


def units_before(text: str, unit: str) -> Sequence[int]:
    """Count the units before each code point of a text, and before its end."""
    if unit == "codepoints" or text.isascii():
        return range(len(text) + 1)
    if unit == "utf16":
        return list(accumulate((1 + (c > "\uffff") for c in text), initial=0))
    return list(accumulate((len(c.encode()) for c in text), initial=0))


def _ruler(text: str, unit: str) -> Rulers:
    """Maps an offset in units to one in code points."""
    before = units_before(text, unit)
    return before if isinstance(before, range) else {n: i for i, n in enumerate(before)}


def _squeezed(text: str) -> str:
    r"""A text as it is compared: tools write other white space, or ``\n`` as two characters."""
    return unicodedata.normalize("NFC", "".join(text.replace("\\n", " ").split()))


def _parts(span: Entity) -> list[tuple[Any, Any]]:
    """The start and end of an entity, or of each of its parts."""
    start, end = span[:2]
    return [*zip(start, end, strict=True)] if isinstance(start, tuple) else [(start, end)]


def _locate(span: Entity, text: str, ruler: Rulers, unit: str) -> tuple[int, int] | _Fault:
    """Return the begin and end of a span in code points, or what is wrong with it."""
    places = []
    for part in _parts(span):
        for what, offset in zip(("start", "end"), part, strict=True):
            if isinstance(offset, bool) or not isinstance(offset, (int, float)) or offset % 1:
                return _Fault(f"its {what} is {shown(offset)}, not a whole number")
        start, end = int(part[0]), int(part[1])
        if start >= end:
            return _Fault("it is empty" if start == end else "it ends before it begins")
        for offset in (start, end):
            if offset not in ruler:
                size = next(reversed(ruler))
                if 0 < offset < size:
                    return _Fault(
                        f"offset {offset} is inside a character of several {_NAMES[unit]}"
                    )
                return _Fault(f"it lies outside the text, which has {size} {_NAMES[unit]}")
        places.append((ruler[start], ruler[end]))
    places.sort()
    held = "".join(text[start:end] for start, end in places)
    if isinstance(span.text, str) and _squeezed(held) != _squeezed(span.text):
        return _Fault(f"its offsets hold {shown(held)}, but its text is {shown(span.text)}")
    hull = places[0][0], max(end for _, end in places)
    if any(text[end:start].strip() for (_, end), (start, _) in pairwise(places)):
        return _Fault("it is discontinuous", hull)
    return hull


def _located(row: Row, text: str, unit: str) -> list[tuple[int, int] | _Fault]:
    ruler = _ruler(text, unit)
    return [_locate(span, text, ruler, unit) for span in (*row.y.spans, *row.y.checks)]


def _find_unit(path: Path, rows: list[Row], tool_unit: str) -> str:
    """Return the unit of a file's offsets: code points, or UTF-16 if only that can be right.

    The texts of the entities decide, where the tool writes them. Of a tool that counts UTF-16, and
    whose files programs write too, it is refused what both can be.
    """
    wrong = {"codepoints": 0, "utf16": 0}
    unclear = None  # the first row that may be read in two ways
    for row in rows:
        text, marks = row.x, row.y
        if marks.unit or not text or max(text) <= "\uffff":
            continue
        trials = {unit: _located(row, text, unit) for unit in wrong}
        for i, span in enumerate((*marks.spans, *marks.checks)):
            places = {unit: trials[unit][i] for unit in wrong}
            if places["codepoints"] == places["utf16"]:
                continue
            if span.text is None and tool_unit != "utf16":
                continue
            unclear = unclear or row
            for unit, place in places.items():
                wrong[unit] += isinstance(place, _Fault)
    if unclear is not None and tool_unit == "utf16" and not any(wrong.values()):
        problem = "its offsets after emoji may count UTF-16 code units, as the tool does, or code "
        problem += "points, as programs do: give offsets='utf16' or offsets='codepoints'"
        raise fault(path, unclear.place, problem)
    return "utf16" if wrong["codepoints"] and not wrong["utf16"] else "codepoints"


def _hint(row: Row, unit: str) -> str:
    """Name what would make the offsets of a row right, if that is easily found."""

    def fit(text: str, unit: str) -> bool:
        places = _located(row, text, unit)
        return not any(isinstance(place, _Fault) and place.hull is None for place in places)

    text = row.x
    if fit(text, unit):  # so that it is a label that is wrong
        return ""
    others = {f"offsets={other!r}": (text, other) for other in UNITS}
    for form in ("NFC", "NFD"):
        others[f"the text in {form}"] = (unicodedata.normalize(form, text), unit)
    others[r"the text with \n in place of \r\n"] = (text.replace("\r\n", "\n"), unit)
    fitting = [name for name, how in others.items() if fit(*how)]
    return f"the offsets fit {' or '.join(fitting)}" if fitting else ""


def _nearest(span: Entity, text: str) -> tuple[int, int] | None:
    """Return the place of a span's text that is nearest to its offsets."""
    start, held = _parts(span)[0][0], span.text
    if not isinstance(held, str) or not held or not isinstance(start, (int, float)):
        return None
    at = nearest_place(text, held, int(start))
    return None if at is None else (at, at + len(held))


def resolve(
    path: Path, rows: list[Row], form: Format, offsets: str, on_misaligned: str
) -> list[Row]:
    """The rows with their entities as (start, end, label) in code points, in place of `Marks`."""
    unit = _find_unit(path, rows, form.unit) if offsets == "auto" else offsets
    resolved: list[Row] = []
    problems, n_mended = [], 0
    for row in rows:
        marks, name = row.y, row.meta.get("id")
        place = row.place if name is None else f"{row.place} (id {shown(name)})"
        texts = row.x, *marks.others
        if not all(map(is_text, texts)):
            raise fault(path, place, "the text holds half of a surrogate pair: write it anew")
        if marks.unit and offsets not in ("auto", marks.unit):
            problem = f"it says that its offsets count {marks.unit!r}, but offsets={offsets!r}"
            raise fault(path, place, problem)
        counted = marks.unit or unit
        trials = [_located(row, text, counted) for text in texts]
        wrong = [sum(isinstance(where, _Fault) for where in trial) for trial in trials]
        best = wrong.index(min(wrong))
        text, entities, scores = texts[best], [], []
        every = zip((*marks.spans, *marks.checks), trials[best], strict=True)
        for i, (span, where) in enumerate(every):
            is_token = i >= len(marks.spans)
            label = str(span.label) if type(span.label) is int else span.label
            is_unknown = label is None and form.knows_unlabelled
            if not (is_token or is_unknown) and fault_of_label(label):
                where = _Fault(f"its label is {shown(label)}, not a name", is_of_label=True)
            if isinstance(where, _Fault):
                what = "token" if is_token else f"entity {shown(label)}"
                parts = ";".join(f"{start} to {end}" for start, end in _parts(span))
                problem = f"the {what} from {parts}: {where.problem}"
                if on_misaligned == "raise":
                    raise fault(path, place, f"{problem}: {_remedy(row, counted, where)}")
                mendable = on_misaligned == "fix" and not where.is_of_label
                mended = where.hull or _nearest(span, text) if mendable else None
                if not is_token:
                    problems.append(f"{place}: {problem}")
                    n_mended += mended is not None
                if mended is None:
                    continue
                where = mended
            if not is_token:
                entities.append((*where, label))
                scores.append(span.score)
        meta = {**row.meta, **if_any("entity_scores", scores)}
        resolved.append(Row(row.place, text, entities, meta))
    if problems:
        n = sum(len(row.y) for row in resolved) + len(problems) - n_mended
        warn(
            f"{str(path)!r}: {len(problems)} of {n} entities are misaligned; {n_mended} of them "
            f"were moved or joined, and the others left out. The first: {problems[0]}",
            MisalignedWarning,
        )
    return resolved


def _remedy(row: Row, unit: str, wrong: _Fault) -> str:
    if wrong.hull is not None:
        return "on_misaligned='fix' reads it from its start to its end"
    if wrong.is_of_label:
        return "mend the file, or give on_misaligned='drop' to leave it out"
    return _hint(row, unit) or (
        "mend the file, or give on_misaligned='fix' to look for its text nearby, or "
        "on_misaligned='drop' to leave it out"
    )
