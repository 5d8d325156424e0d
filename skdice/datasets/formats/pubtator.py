"""PubTator: blocks of a title, an abstract and a line for each entity, as PubMed's tools have them.

Read from the page "PubTator format" of PubTator 3 (ncbi.nlm.nih.gov/research/pubtator3/tutorial).
Title and abstract are one text, with one character between them, which offsets count. Lines of
relations are read past. A text is written as its first line and the rest; further line breaks
become blanks. Identifiers of entities are kept as metadata, other metadata have no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from skdice._warn import warn
from skdice.datasets.formats._base import Format, if_any, of_each
from skdice.datasets.reading import suffix_of
from skdice.datasets.row import Marks, Note, Row, Span, Wanted, span
from skdice.datasets.source import Source
from skdice.exceptions import SkippedRowsWarning
from skdice.whole_files import write_text

_PART = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)
_BREAK = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029\t]")


class PubTator(Format):
    """Titles and abstracts with entities."""

    suffixes: ClassVar[tuple[str, ...]] = (".pubtator",)

    def keeps(self, path: Path) -> frozenset[str]:
        return frozenset({"id", "identifiers"})

    def tasks_of(self, source: Source, value: Any) -> tuple[str, ...]:
        if value is not None or source.path.is_dir() or suffix_of(source.path) == ".conll":
            return ()
        return ("entities",) if re.match(r"[^|\t]+\|t\|", source.first_line) else ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        block: list[tuple[int, str]] = []
        for number, line in enumerate((*source.iter_lines(), ""), 1):
            begins = (part := _PART.fullmatch(line)) is not None and part[2] == "t"
            if block and (begins or not line.strip()):
                yield _row(source, block, wanted.labelled)
                before = block[0][1].partition("|")[0]
                if part is not None and begins and part[1] == before:
                    raise source.fault(f"line {number}", f"the document {before!r} has two titles")
                block = []
            if line.strip():
                block.append((number, line))

    def write(self, path: Path, rows: list[Row]) -> None:
        blocks, changed = [], []
        for i, row in enumerate(rows):
            title, _, abstract = row.x.partition("\n")
            if _BREAK.search(title + abstract) or row.x.endswith("\n"):
                changed.append(i)
            name = str(row.meta.get("id", i))
            if not re.fullmatch(r"[^|\s]+", name):
                name = str(i)
            lines = [f"{name}|t|{_BREAK.sub(' ', title)}", f"{name}|a|{_BREAK.sub(' ', abstract)}"]
            ids = of_each(row, "identifiers")
            for j, entity in enumerate(row.y):
                label = str(entity.label)
                if _BREAK.search(label):
                    problem = "PubTator needs a name without tabs and line breaks"
                    raise ValueError(f"entities[{i}][{j}] has the label {label!r}: {problem}")
                cells = [name, entity.start, entity.end, _BREAK.sub(" ", entity.text), label]
                if ids is not None and ids[j] is not None:
                    cells.append(_BREAK.sub(" ", str(ids[j])))
                lines.append("\t".join(map(str, cells)))
            blocks.append("\n".join(lines) + "\n")
        write_text(path, "\n".join(blocks))
        if changed:
            warn(
                f"{str(path)!r}: {len(changed)} of {len(rows)} texts hold tabs, or line breaks "
                "behind the first, which are written as blanks, as PubTator has a title and an "
                f"abstract; the first is texts[{changed[0]}]",
                SkippedRowsWarning,
            )


def _row(source: Source, block: list[tuple[int, str]], labelled: bool) -> Row:
    """The row of a document: its title, its abstract, and the lines of its entities."""
    name, title, abstract = _parts(source, block)
    entities = [e for n, line in block[2:] if (e := _entity(source, n, line, name)) is not None]
    identifiers = [identifier for _, identifier in entities]
    metadata = {"id": name, **(if_any("identifiers", identifiers) if labelled else {})}
    text = f"{title}\n{abstract}" if abstract else title
    spans = [found for found, _ in entities] if labelled else []
    return Row(f"line {block[0][0]}", text, Marks(spans), metadata)


def _parts(source: Source, block: list[tuple[int, str]]) -> tuple[str, str, str]:
    """The id, the title and the abstract of a document."""
    place, first = block[0]
    title = _PART.fullmatch(first)
    abstract = _PART.fullmatch(block[1][1]) if len(block) > 1 else None
    if title is None or title[2] != "t":
        raise _wrong(source, place, first)
    name = title[1].strip()
    if abstract is None or abstract[2] != "a":
        problem = f"the document has no line '{name}|a|' for an abstract, which may be empty"
        raise source.fault(f"line {place}", problem)
    if abstract[1].strip() != name:
        problem = f"the abstract of {abstract[1]!r} follows the title of {name!r}"
        raise source.fault(f"line {block[1][0]}", problem)
    return name, title[3], abstract[3]


def _entity(source: Source, number: int, line: str, name: str) -> tuple[Span, str | None] | None:
    """The entity of a line, and its identifier; None of a relation."""
    cells = line.split("\t")
    if len(cells) > 3 and cells[0].strip() != name:
        problem = f"the line is of the document {cells[0]!r}, and follows the text of {name!r}"
        raise source.fault(f"line {number}", problem)
    if len(cells) in (4, 5) and re.match(r"\s*[^\W\d]", cells[1]):  # a relation
        return None
    if len(cells) < 5 or not all(cell.strip().isdigit() for cell in cells[1:3]):
        raise _wrong(source, number, line)
    found = span(int(cells[1]), int(cells[2]), cells[4].strip(), cells[3])
    return found, (cells[5].strip() or None if len(cells) > 5 else None)


def _wrong(source: Source, number: int, line: str) -> ValueError:
    problem = f"{line[:60]!r} is not 'ID|t|title', 'ID|a|abstract', nor an entity "
    return source.fault(f"line {number}", problem + "'ID<tab>START<tab>END<tab>text<tab>TYPE'")
