"""CoNLL columns: words with tags, where entities cannot overlap.

Words of a file are joined by blanks. The words of a text are written as one sentence, without its
white space and its metadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.conll import write_conll
from skdice.datasets.formats._base import Format
from skdice.datasets.row import Note, Row, Wanted
from skdice.datasets.source import Source
from skdice.datasets.tagged import tagged_rows
from skdice.datasets.words import joined_rows, longest, tags_of
from skdice.exceptions import SkippedRowsWarning
from skdice.inputs.entities import Entity


class Conll(Format):
    """Columns of words and tags."""

    suffixes: ClassVar[tuple[str, ...]] = (".conll",)
    keeps: ClassVar[tuple[str, ...] | None] = ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        rows = tagged_rows(source, {}).rows  # columns without tags may be anything
        for i, row in enumerate(rows):
            y = row.y if wanted.labelled else []
            rows[i] = row._replace(place=f"sentence {i + 1}", y=y)
        yield from joined_rows(source, rows)

    def write(self, path: Path, rows: list[Row]) -> None:
        pairs: list[tuple[list[str], list[str]]] = []
        lost: list[tuple[int, Entity]] = []
        for i, row in enumerate(rows):
            kept = longest([e for e in row.y if e.text == e.text.strip()])
            lost += [(i, entity) for entity in (Counter(row.y) - Counter(kept)).elements()]
            pairs.append(_tagged(i, row, kept))
        write_conll(path, [words for words, _ in pairs], [tags for _, tags in pairs])
        if lost:
            few = "; ".join(f"{shown(e.text)} {e.label} in texts[{i}]" for i, e in lost[:5])
            warn(
                f"{len(lost)} of {sum(len(row.y) for row in rows)} entities are not in "
                f"{str(path)!r}, as they overlap longer ones, are there twice, or begin or end "
                f"with white space, which CoNLL cannot hold: {few}{' ...' * (len(lost) > 5)}",
                SkippedRowsWarning,
            )


def _tagged(i: int, row: Row, entities: list[Entity]) -> tuple[list[str], list[str]]:
    """The words of a text and their tags."""
    if not row.x.strip():
        raise ValueError(f"texts[{i}] is {row.x!r}: CoNLL holds no text without words")
    for entity in entities:
        label = entity.label
        if not isinstance(label, str) or label != " ".join(label.split()):
            problem = "CoNLL needs a name without tabs, line breaks and outer blanks"
            raise ValueError(f"entities[{i}] has the label {label!r}: {problem}")
    words, tags = tags_of(row.x, entities)
    return [row.x[start:end] for start, end in words], tags
