"""A file and its values, for the readers; every fault names the file and the place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from skdice._checks import counted, shown
from skdice._warn import warn
from skdice.datasets.files import fault, is_json, json_values, read_lines
from skdice.exceptions import SkippedRowsWarning

ANSWERS = ("accept", "reject", "ignore")  # of Prodigy


@dataclass
class Source:
    """A file, or its values."""

    path: Path
    encoding: str = "utf-8"
    text_column: str | None = None
    with_entities: bool = True
    separator: str | None = None  # of the cells of a table
    quoting: bool | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of a file."""
        return read_lines(self.path, self.encoding)

    @cached_property
    def is_json(self) -> bool:
        """True if there are JSON values."""
        if "values" in vars(self):  # of a data set
            return True
        return not self.path.is_dir() and is_json(self.path, self.lines)

    @cached_property
    def values(self) -> list[tuple[str, Any]]:
        """The values of a JSON file and their places."""
        return json_values(self.path, self.lines)

    def records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The JSON objects of a file, but what a person rejected or ignored in Prodigy."""
        for place, value in self.kept():
            if not isinstance(value, dict):
                raise self.fault(place, f"{shown(value)} is not a JSON object, as each must be")
            yield place, value

    def kept(self) -> Iterator[tuple[str, Any]]:
        """The JSON values of a file, but what a person rejected or ignored in Prodigy."""
        answers = [value.get("answer") for _, value in self.values if isinstance(value, dict)]
        obeyed = self.with_entities and all(answer in (*ANSWERS, None) for answer in answers)
        for place, value in self.values:
            if obeyed and isinstance(value, dict) and value.get("answer") in ANSWERS[1:]:
                self.skipped[f"whose answer is {value['answer']}"] += 1
            else:
                yield place, value

    def left_out(self) -> str:
        """Name and count what was left out; empty if nothing was."""
        return ", ".join(f"{n} {what}" for what, n in self.skipped.items() if n)

    def fault(self, place: str, problem: str) -> ValueError:
        """An error that names the file and the place."""
        return fault(self.path, place, problem)

    def text_key(self, place: str, record: Mapping[str, Any], names: tuple[str, ...]) -> str:
        """The first of the usual names, or the one that the user gave, that holds a text."""
        for name in (self.text_column,) if self.text_column else names:
            if isinstance(record.get(name), str):
                return str(name)
        wanted = self.text_column or " or ".join(names)
        problem = f"no text under {wanted!r}, but {list(record)}"
        raise self.fault(place, f"{problem}: say where it is with text_column")

    def listed(self, place: str, record: Any, name: str, kind: type = object) -> list[Any]:
        """A list of a record, which may be null or missing, of values of a kind."""
        if not isinstance(record, dict):
            raise self.fault(place, f"{shown(record)} is not a JSON object")
        value = record.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(place, f"{name!r} is {shown(value)}, not a list")
        for each in value:
            if not isinstance(each, kind):
                wanted = "a string" if kind is str else "an object"
                raise self.fault(place, f"{name!r} holds {shown(each)}, which is not {wanted}")
        return value


def warn_of_skipped(source: Source, n_read: int) -> None:
    """Count what a reader left out."""
    if left_out := source.left_out():
        read = counted(n_read, "text")
        warn(f"{str(source.path)!r}: left out {left_out}; {read} read", SkippedRowsWarning)
