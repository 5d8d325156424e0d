"""CoNLL columns: words with tags, where entities cannot overlap.

Words of a file are joined by blanks, unless a line ``# text = ...`` before a sentence holds its
text, as in CoNLL-U. Such a line (a string of JSON) and lines for the metadata are written, so that
texts and offsets can be read back; other readers take them for comments.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.conll import column_rows
from skdice.datasets.formats._base import Format, as_json
from skdice.datasets.options import without
from skdice.datasets.reading import suffix_of
from skdice.datasets.row import Note, Row, Wanted
from skdice.datasets.source import Source
from skdice.datasets.tagged import is_tagged, tagged_rows
from skdice.datasets.words import joined_rows, longest, tags_of
from skdice.exceptions import SkippedRowsWarning
from skdice.inputs.entities import Entity
from skdice.whole_files import write_text

_NAME = re.compile(r"(?!(?:text|metadata)$)[\w.-]+")  # of a comment for one of the metadata
MARK = '# text = "'  # begins our own files


class Conll(Format):
    """Columns of words and tags, ours with the texts as comments."""

    suffixes: ClassVar[tuple[str, ...]] = (".conll",)

    def tasks_of(self, source: Source, value: Any) -> tuple[str, ...]:
        if value is not None or source.path.is_dir():
            return ()
        is_ours = source.first_line.startswith(MARK) or suffix_of(source.path) == ".conll"
        return ("tagging",) if is_ours or is_tagged(source) else ()

    def read(self, source: Source, wanted: Wanted) -> Iterator[Row | Note]:
        texts: list[Any] | None = None
        if source.first_line.startswith(MARK):
            ours = replace(source, separator="\t", content=source.text)
            rows = column_rows(ours, token_column=0, tag_column=1, comment="# ").rows
            texts, known = _comments(source.iter_lines())
            if len(texts) != len(rows):
                problem = f"{len(texts)} blocks of lines, but {len(rows)} of them hold words"
                raise source.fault("its comments", f"{problem}: mend the file")
            rows = [row._replace(meta=meta) for row, meta in zip(rows, known, strict=True)]
        else:
            rows = tagged_rows(source, {}).rows  # columns without tags may be anything
        for i, row in enumerate(rows):
            y = row.y if wanted.labelled else []
            rows[i] = row._replace(place=f"sentence {i + 1}", y=y)
        yield from joined_rows(source, rows, texts)

    def write(self, path: Path, rows: list[Row]) -> None:
        blocks: list[str] = []
        lost: list[tuple[int, Entity]] = []
        for i, row in enumerate(rows):
            kept = longest([e for e in row.y if e.text == e.text.strip()])
            lost += [(i, entity) for entity in (Counter(row.y) - Counter(kept)).elements()]
            blocks.append("".join(f"{line}\n" for line in _lines(i, row, kept)))
        write_text(path, "\n".join(blocks))
        if lost:
            few = "; ".join(f"{shown(e.text)} {e.label} in texts[{i}]" for i, e in lost[:5])
            warn(
                f"{len(lost)} of {sum(len(row.y) for row in rows)} entities are not in "
                f"{str(path)!r}, as they overlap longer ones, are there twice, or begin or end "
                f"with white space, which CoNLL cannot hold: {few}{' ...' * (len(lost) > 5)}",
                SkippedRowsWarning,
            )


def _lines(i: int, row: Row, entities: list[Entity]) -> list[str]:
    """The lines of a text: comments for it and its metadata, and its words with tags."""
    if not row.x.strip():
        raise ValueError(f"texts[{i}] is {row.x!r}: CoNLL holds no text without words")
    for entity in entities:
        label = entity.label
        if not isinstance(label, str) or label != " ".join(label.split()):
            problem = "CoNLL needs a name without tabs, line breaks and outer blanks"
            raise ValueError(f"entities[{i}] has the label {label!r}: {problem}")
    words, tags = tags_of(row.x, entities)
    plain = {name: value for name, value in row.meta.items() if _NAME.fullmatch(str(name))}
    comments = {"text": row.x, **plain}
    if rest := without(row.meta, *plain):
        comments["metadata"] = rest
    lines = [f"# {n} = {as_json(value, ensure_ascii=True)}" for n, value in comments.items()]
    return lines + [f"{row.x[a:b]}\t{tag}" for (a, b), tag in zip(words, tags, strict=True)]


def _comments(lines: Iterator[str]) -> tuple[list[Any], list[dict[str, Any]]]:
    """The texts and the metadata in the lines ``# name = value`` before each sentence."""
    texts, metadata = [], []
    for filled, group in groupby(lines, key=lambda line: bool(line.strip())):
        pairs = [line[2:].partition(" = ") for line in group if line.startswith("# ")]
        if filled:
            known: dict[str, Any] = {}
            for name, _, value in pairs:
                known[name] = value
                with suppress(ValueError):
                    known[name] = json.loads(value)
            texts.append(known.pop("text", ""))
            rest = known.get("metadata")
            if rest and isinstance(rest, dict):
                known = {**without(known, "metadata"), **rest}
            metadata.append(known)
    return texts, metadata
