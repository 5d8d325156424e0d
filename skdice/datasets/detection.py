"""The format of a file: by its name, its first lines, or its first record that says something."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from skdice.datasets.answers import accepted
from skdice.datasets.cells import LABEL_NAMES, values_of
from skdice.datasets.formats._base import formats
from skdice.datasets.row import Note, Row, Wanted, rows_and_notes
from skdice.datasets.source import Source, json_values
from skdice.datasets.tagged import is_tagged, token_fields


class Found(NamedTuple):
    """The task of a file's rows, and the format of the tool that wrote it, if one did."""

    format: str | None
    task: str  # empty where nothing shows it


def find(source: Source, wanted: str = "") -> Found:
    """The format of a file, and the task of its rows, of which one may be `wanted`.

    Two that both fit are refused, unless one alone is of the wanted task.
    """
    if source not in _LOOKS:
        _LOOKS[source] = _look(source)
    place, every, empty = _LOOKS[source]
    fitting = [found for found in every if found.task == wanted] or every
    if len(fitting) > 1:
        raise source.fault(place, _of_two(fitting))
    return fitting[0] if fitting else Found(empty, "entities" if empty else "")


# What was seen of each file, which is looked at once.
_LOOKS: WeakKeyDictionary[Source, tuple[Any, list[Found], str | None]] = WeakKeyDictionary()


def _look(source: Source) -> tuple[Any, list[Found], str | None]:
    """What fits and its place, or the format in which nothing is marked."""
    if not source.is_json and (fitting := _of_text(source)):
        return "the file", fitting, None
    empty = None
    for place, value in islice(values_of(source, 1000), 1000):
        fitting, is_empty = _of_record(value)
        if fitting:
            return place, fitting, None
        empty = empty or is_empty
    return None, [], empty


def _of_text(source: Source) -> list[Found]:
    """The formats of a folder, or of a file that is not JSON; columns have no mark of their own."""
    every = formats().items()
    if not source.is_text:
        return [Found(name, "entities") for name, form in every if form.is_folder(source.path)]
    is_conll = source.suffix == ".conll"
    begins = "" if is_conll else "\n".join(source.head[:100])
    fitting = [name for name, form in every if form.begins and re.match(form.begins, begins)]
    if not fitting and (is_conll or is_tagged(source)):
        return [Found("conll", "tagging")]
    return [Found(name, "entities") for name in fitting]


def _of_record(value: Any) -> tuple[list[Found], str | None]:
    """The formats and tasks of a record, and the format in which nothing is marked in it."""
    if (own := _of_fields(value)) is not None:
        return [own], None
    held = [(n, task) for n, form in formats().items() for task in form.tasks_of(value)]
    found = [Found(name, task) for name, task in held if task != "empty"]
    if not any(each.task == "classification" for each in found) and _has_label(value):
        found.append(Found(None, "classification"))
    return found, next((name for name, task in held if task == "empty"), None)


def _of_fields(value: Any) -> Found | None:
    """What the fields of a record alone show: questions, or tokens with their tags."""
    if not isinstance(value, dict):
        return None
    if {"query", "entity_label"} <= set(value):
        return Found(None, "mrc-ner")
    if _has_questions(value):
        return Found(None, "qa")
    fields = token_fields(value)
    return Found("jsonl", "tagging") if fields and fields[1] is not None else None


def _has_questions(value: dict[str, Any]) -> bool:
    data = value.get("data")
    if isinstance(data, list):
        return any(isinstance(each, dict) and _is_article(each) for each in data)
    if {"question", "context"} <= set(value):  # which may be a pair with a label
        return not value.keys().isdisjoint(("answers", "answer")) or not _has_label(value)
    return {"context", "qas"} <= set(value)


def _is_article(value: dict[str, Any]) -> bool:
    """Return True of an article of SQuAD's, or a question with its context."""
    return bool({"paragraphs", "qas"} & set(value)) or {"question", "context"} <= set(value)


def _has_label(value: Any) -> bool:
    """Return True if a record has a label, or a list of some, under a usual name."""
    named = LABEL_NAMES if isinstance(value, dict) else ()
    return any(_is_label(value[name]) for name in named if name in value)


def _is_label(cell: Any) -> bool:
    if isinstance(cell, list):
        return bool(cell) and all(isinstance(each, (str, int)) for each in cell)
    if isinstance(cell, str):
        return bool(cell) and not cell.startswith(("http://", "https://"))
    return isinstance(cell, (int, float))


def _of_two(fitting: list[Found]) -> str:
    """Name the two formats that a record fits, and the option that says which."""
    names = sorted({found.format for found in fitting if found.format})
    tasks = sorted({found.task for found in fitting})
    if len(tasks) > 1:
        what = " and ".join(f"{task} ({name or 'a table'})" for name, task in fitting)
        return f"the record holds {what}: give task={tasks[0]!r} or task={tasks[1]!r}"
    return f"the record fits {' and '.join(map(repr, names))}: give format={names[0]!r} or another"


def read_tool(source: Source, name: str, wanted: Wanted) -> tuple[list[Row], list[Note]]:
    """The rows of a file in a format, without those that a person refused, and what to tell."""
    form = formats()[name]
    notes: list[Note] = []
    if source.is_json or form.is_json:
        values = values_of(source)
        if not values and not source.is_json:
            values = json_values(source.path, source.text)
        if wanted.labelled:
            values, notes = accepted(values, keep_rejected=wanted.of_labels)
        source = source.holding(values)
    rows, more = rows_and_notes(form.read(source, wanted))
    return rows, [*notes, *more]
