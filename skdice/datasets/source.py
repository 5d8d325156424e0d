"""A file, read and parsed once, and its values; every fault names the file and the place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any

from skdice._checks import counted, shown
from skdice._warn import warn
from skdice.datasets.reading import (
    fault,
    is_document,
    is_record,
    iter_split,
    json_values,
    pandas_values,
    read_data,
    read_text,
)
from skdice.datasets.row import Note, left_out
from skdice.exceptions import SkippedRowsWarning

Placed = tuple[Any, Any]  # a value with its place in the file: a line's number, or a name


@dataclass(frozen=True, eq=False)
class Source:
    """A file, how it is decoded, and its text or values.

    Attributes
    ----------
    path : Path
    encoding : str
    separator, quoting, header : str, bool, bool or None
        How lines become cells of a table, where that was said.
    content : bytes, str, list of (place, value) or None
        The bytes of standard input, a text, or values; None reads the file.
    """

    path: Path
    encoding: str = "utf-8"
    separator: str | None = None
    quoting: bool | None = None
    header: bool | None = None
    content: bytes | str | list[Placed] | None = None

    @cached_property
    def _content(self) -> str | list[Placed]:
        """The text of a file, with line ends of one character, or the rows that pandas reads."""
        if isinstance(self.content, (str, list)):
            return self.content
        data = read_data(self.path) if self.content is None else self.content
        rows = pandas_values(self.path, data)
        if rows is not None:
            return rows
        text = read_text(self.path, self.encoding, data)
        if not text or text.isspace():
            raise ValueError(f"{str(self.path)!r} is empty: give a file with at least one example")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def text(self) -> str:
        """All of a text file."""
        if isinstance(self._content, str):
            return self._content
        return read_text(self.path, self.encoding)  # which says what else it is

    @cached_property
    def head(self) -> list[str]:
        """The lines from the first that is not blank, or a blank one of a folder."""
        if not self.is_text:
            return [""]
        return list(islice(dropwhile(lambda line: not line.strip(), self.iter_lines()), 2000))

    @property
    def is_text(self) -> bool:
        """False of a folder."""
        return not self.path.is_dir()

    @property
    def suffix(self) -> str:
        """The suffix of its name, in lower case."""
        return self.path.suffix.lower()

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return self.head[0]

    def iter_lines(self) -> Iterator[str]:
        """The lines of a file, one after the other."""
        return iter_split(self.text)

    @cached_property
    def is_json(self) -> bool:
        """True if there are JSON values, or what is read as such."""
        if not self.is_text:
            return False
        if not isinstance(self._content, str) or self.suffix in (".jsonl", ".json"):
            return True
        return is_record(self.first_line) or is_document(self.text)

    def again(self, **changed: Any) -> Source:
        """The file with other settings, which is not read a second time."""
        return replace(self, content=self._content if self.is_text else self.content, **changed)

    def holding(self, values: list[Placed]) -> Source:
        """The file with some of its values, as JSON has them."""
        return replace(self, content=values)

    @cached_property
    def values(self) -> list[Placed]:
        """The values of a JSON file, and their places."""
        if not isinstance(self._content, str):
            return self._content
        values = json_values(self.path, self.text)
        if len(values) == 1 and isinstance(values[0][1], dict):
            data = values[0][1].get("data")
            if isinstance(data, list) and data and all(map(_is_plain, data)):
                return [(f"record {i} of 'data'", record) for i, record in enumerate(data, 1)]
        return values

    def records(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The JSON objects of a file."""
        for place, value in self.values:
            if not isinstance(value, dict):
                problem = f"{shown(value)} is not a JSON object, as each line or element must be: "
                raise self.fault(place, problem + 'write {"text": ..., "label": ...}')
            yield place, value

    def fault(self, place: int | str, problem: str) -> ValueError:
        """An error that names the file and the place."""
        return fault(self.path, place, problem)

    def text_key(
        self, place: int | str, record: Mapping[str, Any], names: tuple[str, ...], asked: str | None
    ) -> str:
        """The first of the usual names, or the one that the user asked for, that holds a text."""
        for name in (asked,) if asked else names:
            if isinstance(record.get(name), str):
                return str(name)
        problem = f"no text under {asked or ' or '.join(names)!r}, but {list(record)}"
        raise self.fault(place, f"{problem}: say where it is with text_column")

    def listed(self, place: int | str, record: Any, name: str, kind: type = object) -> list[Any]:
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


def _is_plain(value: Any) -> bool:
    """Return True if an object is no article of SQuAD's."""
    return isinstance(value, dict) and not {"paragraphs", "qas", "context"} & set(value)


def warn_of_notes(source: Source, notes: list[Note], n_read: int) -> None:
    """Tell what a reader left out, and its other notes."""
    skipped = left_out(notes)
    told = [f"left out {skipped}"] if skipped else []
    told += dict.fromkeys(note.what for note in notes if note.n_left_out is None)
    if told:
        read = counted(n_read, "text")
        warn(f"{str(source.path)!r}: {', '.join(told)}; {read} read", SkippedRowsWarning)
