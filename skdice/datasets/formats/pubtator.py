"""PubTator: blocks of a title, an abstract and a line for each entity, as PubMed's tools have them.

Read from the page "PubTator format" of PubTator 3 (ncbi.nlm.nih.gov/research/pubtator3/tutorial).
Title and abstract are one text, with one character between them, which offsets count. Lines of
relations are read past. Identifiers of entities are kept as metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skdice.datasets.formats._base import Format, if_any
from skdice.datasets.row import Marks, Note, Row, Span, Wanted, span
from skdice.datasets.source import Source

_PART = re.compile(r"([^|\t]+)\|([ta])\|(.*)", re.DOTALL)


class PubTator(Format):
    """Titles and abstracts with entities."""

    begins = r"[^|\t\n]+\|t\|"

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
