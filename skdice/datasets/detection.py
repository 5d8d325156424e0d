"""The format of a file, by its name and its first record that says something."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from skdice.datasets.formats._base import formats
from skdice.datasets.reading import suffix_of
from skdice.datasets.source import LABEL_NAMES, Source
from skdice.datasets.tagged import is_tagged, token_fields

_TEXT = '{"text": "Ann sings", "entities": [[0, 3, "PER"]]}'
_TAGS = '{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]}'
# Tools whose files are known by a field of a type, and not read.
_FOREIGN = {
    "rasa_nlu_data": (object, "Rasa", _TEXT),
    "tokenized_text": (object, "GLiNER", _TAGS),
    "denotations": (object, "PubAnnotation", _TEXT),
    "detected_answers": (object, "MRQA", "the JSON of SQuAD"),
    "header": (dict, "MRQA", "the JSON of SQuAD"),
    "ner": (str, "Stanza", _TAGS),
    "start_pos": (object, "Flair", _TEXT),
}


class Found(NamedTuple):
    """The task of a file's rows, and the format of the tool that wrote it, if one did."""

    format: str | None
    task: str  # empty where nothing shows it


_SAVED = ("state.json", "dataset_dict.json")  # files of `save_to_disk`


def is_saved(path: Path) -> bool:
    """Return True of a folder that a data set of Hugging Face was saved to."""
    return path.is_dir() and any((path / name).is_file() for name in _SAVED)


def find(source: Source, wanted: str = "") -> Found:
    """The format of a file, and the task of its rows, of which one may be `wanted`.

    The name of a file or its first line decides, or of JSON the first record that holds
    something. A record that fits two formats is refused, unless one alone is of the wanted task.
    """
    is_named_json = suffix_of(source.path) in (".json", ".jsonl") and not source.path.is_dir()
    if suffix_of(source.path) == ".csv" and not source.is_json:  # the JSON of tools may be in cells
        if is_tagged(source):
            return Found("conll", "tagging")
        if not source.holds_structures:
            return Found(None, "")
    if not is_named_json and "values" not in vars(source) and source.frame is None:
        claiming = next((name for name, form in formats().items() if form.claims(source)), None)
        if claiming is not None:
            return Found(claiming, formats()[claiming].task_of(source))
        if source.path.is_dir() or not (source.is_json or source.holds_structures):
            return Found(None, "")
    empty: str | None = None
    for place, value in islice(source.values, 1000):
        held = {name: form.holds(value) for name, form in formats().items()}
        if not any(what for name, what in held.items() if name != "jsonl"):
            _refuse_foreign(source, place, value)
        fitting = _fitting(value, held)
        if kinds := [found for found in fitting if found.task == wanted]:
            fitting = kinds
        elif not fitting and empty is None:
            empty = next((name for name, what in held.items() if "empty" in what), None)
        if len(fitting) > 1:
            raise source.fault(place, _of_two(fitting))
        if fitting:
            return fitting[0]
    return Found(empty, "entities" if empty else "")


def _fitting(value: Any, held: dict[str, tuple[str, ...]]) -> list[Found]:
    """The formats of a record, and its task in each; `held` are those of tools."""
    if isinstance(value, dict):
        if {"query", "entity_label"} <= set(value):
            return [Found(None, "mrc-ner")]
        if _has_questions(value):
            return [Found(None, "qa")]
        if (fields := token_fields(value)) and fields[1] is not None:
            return [Found("jsonl", "tagging")]
    found = [Found(name, what) for name in held for what in held[name] if what != "empty"]
    of_tool = any(each.task == "classification" for each in found)
    return found + [Found(None, "classification")] * (not of_tool and _has_label(value))


def _has_questions(value: dict[str, Any]) -> bool:
    data, of_article = value.get("data"), {"paragraphs", "qas"}
    if isinstance(data, list):
        return bool(data) and all(isinstance(each, dict) for each in data) and any(
            of_article & set(each) or {"question", "context"} <= set(each) for each in data
        )  # fmt: skip
    return {"question", "context"} <= set(value) or {"context", "qas"} <= set(value)


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
        held = {"classification": "labels"}
        what = " and ".join(
            f"{held.get(found.task, found.task)} ({found.format or 'a table'})" for found in fitting
        )
        return f"the record holds {what}: give task={tasks[0]!r} or task={tasks[1]!r}"
    return f"the record fits {' and '.join(map(repr, names))}: give format={names[0]!r} or another"


def _refuse_foreign(source: Source, place: str, value: Any) -> None:
    """Refuse a record of a tool whose files are not read, by the tool's name."""
    value = value[0] if isinstance(value, list) and value else value
    if not isinstance(value, dict):
        return
    lists = (value.get(name) for name in ("qas", "entities"))
    inner = [value, *(some[0] for some in lists if isinstance(some, list) and some)]
    for name, (kind, tool, other) in _FOREIGN.items():
        held = [each[name] for each in inner if isinstance(each, dict) and name in each]
        fits = name != "ner" or "text" in value
        if fits and any(isinstance(each, kind) for each in held):
            problem = f"{name!r} shows a file of {tool}, which is not read: write {other}"
            raise source.fault(place, problem)
