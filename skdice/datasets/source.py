"""A file, read, decoded and parsed once; every fault names the file and the place."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile, islice
from pathlib import Path
from typing import Any

from skdice._checks import counted, shown
from skdice._warn import warn
from skdice.datasets.row import Note, left_out
from skdice.exceptions import SkippedRowsWarning

_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What is not text, by its first bytes.
_BINARY = {
    b"PAR1": "a Parquet file: read it with pandas.read_parquet, and write CSV or JSON lines",
    b"ARROW1": "an Arrow file: read it with pandas.read_feather, and write CSV or JSON lines",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet: unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet or document of Office: save it as CSV",
    b"\x1f\x8b": "packed by gzip: unpack it",
    b"BZh": "packed by bzip2: unpack it",
    b"\xfd7zXZ": "packed by xz: unpack it",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it",
    b"\x78\x9c": "packed by zlib, as .spacy files are: read it with spacy.tokens.DocBin, and write "
    "doc.to_json() and doc.cats of each document as JSON lines",
}
_BY_PANDAS = {  # the function of pandas by a file's first bytes, and the suffix that it needs
    b"PAR1": ("read_parquet", ""),
    b"ARROW1": ("read_feather", ""),
    b"PK\x03\x04": ("read_excel", ".xlsx"),
    b"\xd0\xcf\x11\xe0": ("read_excel", ".xls"),
}

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


# ---- bytes as text


def fault(path: str | Path, place: int | str, problem: str) -> ValueError:
    """An error that names the file, and the line or another place."""
    where = f"line {place}" if isinstance(place, int) else place
    return ValueError(f"{str(path)!r}, {where}: {problem}")


def iter_split(text: str) -> Iterator[str]:
    """The lines of a text, without a list of them all."""
    start, size = 0, len(text)
    while start <= size:
        end = text.find("\n", start + 1_000_000)
        end = size if end < 0 else end
        yield from text[start:end].split("\n")
        start = end + 1


def read_data(path: Path) -> bytes:
    """The bytes of a file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check the path")
    return path.read_bytes()


def read_text(path: Path, encoding: str = "utf-8", data: bytes | None = None) -> str:
    """A text file without its byte order mark; its bytes may be known.

    A file that starts with the byte order mark of UTF-16 is decoded so.
    """
    data = read_data(path) if data is None else data
    for start, what in _BINARY.items():
        if data.startswith(start):
            raise ValueError(f"{str(path)!r} is {what}")
    try:
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    except (LookupError, ValueError) as error:  # a name that is no codec, or no name
        raise ValueError(f"encoding={encoding!r} is unknown: use one such as 'latin-1'") from error
    if is_utf8:
        _refuse_utf16(path, data)
        encoding = "utf-16" if data.startswith(_BOMS) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        name = encoding.removesuffix("-sig")
        # Windows has letters where latin-1 has control characters.
        other = "cp1252" if any(byte in data for byte in range(0x80, 0xA0)) else "latin-1"
        problem = f"byte {error.start} is not {name}: give the file's encoding, such as "
        raise fault(path, line, f"{problem}encoding={other!r}, or convert it") from error


def _refuse_utf16(path: Path, data: bytes) -> None:
    """Refuse bytes of which every second one is 0, without the mark that says why."""
    if len(data) > 7 and not data.startswith(_BOMS) and 4 * data[:400].count(0) > len(data[:400]):
        form = "utf-16-le" if data[0] else "utf-16-be"
        problem = f"looks like UTF-16 without its mark: give encoding={form!r}"
        raise ValueError(f"{str(path)!r} {problem}")


def pandas_values(path: Path, data: bytes) -> list[tuple[str, Any]] | None:
    """The rows of a Parquet file or a spreadsheet, if pandas is there; None of other files."""
    start = next((start for start in _BY_PANDAS if data.startswith(start)), None)
    if start is None or not path.suffix.lower().endswith(_BY_PANDAS[start][1]):
        return None
    name = _BY_PANDAS[start][0]
    try:
        import pandas as pd

        frame = getattr(pd, name)(io.BytesIO(data))
    except Exception as error:  # of pandas, or of what it needs for such a file
        raise ValueError(f"{str(path)!r} is {_BINARY[start]} (pandas.{name}: {error})") from error
    records = frame.rename(columns=str).to_dict("records")
    return [(f"row {i}", record) for i, record in enumerate(records)]


# ---- JSON


def parse_json(text: str, path: str | Path, line: int = 1) -> Any:
    """A JSON value that begins on a line of a file; every fault is a ValueError that names it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.colno - 1}: it must be JSON"
        raise fault(path, line + error.lineno - 1, problem) from error
    except (RecursionError, ValueError) as error:  # a number of thousands of digits, too
        raise fault(path, line, f"JSON nested too deep, or {error}") from error


def is_record(line: str) -> bool:
    """Return True if a line is a JSON object."""
    return line.lstrip().startswith("{") and isinstance(_value(line), dict)


def is_document(text: str) -> bool:
    """Return True if a text is one JSON object or an array of some, perhaps on many lines."""
    if text.lstrip()[:1] not in ("[", "{"):
        return False
    value = _value(text)
    values = value if isinstance(value, list) else [value]
    return bool(values) and all(isinstance(each, dict) for each in values)


def json_values(path: Path, text: str) -> list[tuple[Any, Any]]:
    """The values of JSON lines or of an array, or the one value of a file, with their places."""
    first = next(filter(str.strip, iter_split(text)))
    if first.lstrip().startswith("["):
        if _is_array(path, text, first):
            return [(f"record {i}", each) for i, each in enumerate(parse_json(text, path), 1)]
    elif (path.suffix.lower() == ".json" and not is_record(first)) or first.strip() == "{":
        return [("line 1", parse_json(text, path))]  # one value, perhaps on many lines
    return json_lines(path, text)


def _is_array(path: Path, text: str, first: str) -> bool:
    """Return True if a text is one array, and not one on each line."""
    value = _value(first)
    # A pair [text, {...}] on a line of its own is a record.
    is_pair = bool(value) and isinstance(value[0], str) and path.suffix.lower() == ".jsonl"
    return value is None or not (is_pair or "\n" in text.strip())


def json_lines(path: Path, text: str) -> list[tuple[Any, Any]]:
    """The values of JSON lines, with their places."""
    return [
        (f"line {number}", parse_json(line, path, number))
        for number, line in enumerate(iter_split(text), 1)
        if line and not line.isspace()
    ]


def _value(line: str) -> Any:
    """The JSON value of a line; None if there is none."""
    try:
        return parse_json(line, "")
    except ValueError:
        return None


# ---- writing


def json_text(values: Iterable[str], path: Path | None, *, lines: bool = True) -> str:
    """The text of a file of JSON values.

    A file whose name ends in ``.json`` is an array. Others have a value on each `line`, if that is
    what they are to have.
    """
    if lines and not (path is not None and path.suffix.lower() == ".json"):
        return "".join(f"{value}\n" for value in values)
    inside = ",\n".join(values)
    return f"[\n{inside}\n]\n" if inside else "[]\n"
