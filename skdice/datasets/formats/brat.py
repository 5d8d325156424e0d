"""brat: a folder with a ``.txt`` and an ``.ann`` for each document.

Read from brat's "standoff format" page (brat.nlplab.org/standoff.html) and version 1.3's
``server/src/annotation.py`` and ``annotator.py``. Offsets count code points. Lines of text-bound
annotations (``T``) are entities, triggers of events among them; attributes, relations, events,
normalizations and notes are read past. brat cuts a span at line ends: its parts are put together
where only white space lies between them. Whether offsets count a line end of two characters as two
or as one, and a byte order mark at all, is seen from the text in the third column.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from skdice.datasets.formats._base import Format
from skdice.datasets.formats.webanno import is_webanno
from skdice.datasets.row import Marks, Note, Row, Span, Wanted
from skdice.datasets.source import Source, fault, read_text
from skdice.folders import replaced
from skdice.inputs.entities import Entity

_READ_PAST = "AMRENF*#"
_PART = re.compile(r"[\w+,=@ -][\w.+,=@ -]*")  # of a file's name
_LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


class Brat(Format):
    """A folder of texts and their annotations."""

    suffixes: ClassVar[tuple[str, ...]] = ("",)
    keeps: ClassVar[tuple[str, ...] | None] = ("id",)
    begins = r"T\d+\t\S+ \d+ \d+[;\t]"  # one of the files, which `read` refuses

    def is_folder(self, path: Path) -> bool:
        return not any(map(is_webanno, path.rglob("*.tsv")))

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        for name, document in _documents(source.path):
            text_file, file = (document.with_suffix(s) for s in (".txt", ".ann"))
            text = read_text(text_file, source.encoding)
            if wanted.labelled and not file.is_file():
                yield Note("without a file .ann", 1)
                continue
            others = [text.replace("\r\n", "\n")]
            if text_file.read_bytes().startswith(codecs.BOM_UTF8):
                others += ["\ufeff" + each for each in (text, *others)]
            spans = list(_spans(file, source.encoding)) if wanted.labelled else []
            yield Row(f"{name}.ann", text, Marks(spans, others=tuple(others)), {"id": name})

    def write(self, path: Path, rows: list[Row]) -> None:
        files: dict[str, str] = {}  # before the folder is made, so that a bad text leaves none
        for row, name in zip(rows, _names_of(rows), strict=True):
            files |= {f"{name}{suffix}": text for suffix, text in _files_of(row, name).items()}
        with replaced(path, lambda name: False) as folder:
            for name, text in files.items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())


def _documents(folder: Path) -> list[tuple[str, Path]]:
    """The documents by name, each with one of its files."""
    files = (p for p in folder.rglob("*") if p.suffix in (".txt", ".ann") and p.is_file())
    names = {p.with_suffix("").relative_to(folder).as_posix(): p for p in files}
    if not names:
        raise FileNotFoundError(
            f"no file .txt or .ann below {str(folder)!r}: give a folder of them"
        )
    return sorted(names.items())


def _spans(file: Path, encoding: str) -> Iterator[Span]:
    for number, line in enumerate(read_text(file, encoding).split("\n"), 1):
        name, _, rest = line.rstrip("\r").partition("\t")
        if not line.strip() or name[:1] in _READ_PAST:
            continue
        match = re.fullmatch(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)[ ]*(?:\t(.*))?", rest, re.DOTALL)
        if not name.startswith("T") or match is None:
            problem = f"{line[:60]!r} is not 'T1<tab>TYPE START END<tab>text', nor another "
            raise fault(file, number, problem + "line of brat's: mend it")
        label, places, text = match.groups()
        pairs = (place.split() for place in places.split(";"))
        parts = tuple((int(start), int(end)) for start, end in pairs)
        yield Span(parts, label, text)


def _names_of(rows: list[Row]) -> list[str]:
    """A file name for each text: its id, where that is one and no other text has it."""
    names: dict[str, str] = {}  # by their forms on a disk that knows no capitals
    for i, row in enumerate(rows):
        name = str(row.meta.get("id", ""))
        if not all(map(_PART.fullmatch, name.split("/"))) or len(name.encode()) > 200:
            name = f"text-{i:0{len(str(len(rows)))}}"
        while name.casefold() in names:
            name += f"-{i}"
        names[name.casefold()] = name
    return [*names.values()]


def _files_of(row: Row, name: str) -> dict[str, str]:
    """The text and the annotations of a document."""
    if row.x.startswith("\ufeff"):
        raise ValueError(f"the text of {name!r} begins with a byte order mark: leave it out")
    lines = [_line(row, i, entity) for i, entity in enumerate(row.y, 1)]
    return {".txt": row.x, ".ann": "".join(lines)}


def _line(row: Row, number: int, entity: Entity) -> str:
    if not isinstance(entity.label, str) or not re.fullmatch(r"\S+", entity.label):
        raise ValueError(f"the label {entity.label!r} holds white space, which brat's cannot")
    parts, start = [], entity.start
    for gap in _LINE_ENDS.finditer(row.x, entity.start, entity.end):
        parts.append((start, gap.start()))
        start = gap.end()
    parts.append((start, entity.end))
    if any(a == b for a, b in parts):  # at an end, where no part can be cut off
        parts = [(entity.start, entity.end)]
    places = ";".join(f"{a} {b}" for a, b in parts)
    text = " ".join(_LINE_ENDS.sub(" ", row.x[a:b]) for a, b in parts)
    return f"T{number}\t{entity.label} {places}\t{text}\n"
