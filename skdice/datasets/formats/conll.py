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
from itertools import groupby
from pathlib import Path
from typing import Any

from skdice._checks import shown
from skdice._warn import warn
from skdice.datasets.conll import column_rows
from skdice.datasets.formats._base import Format, as_json, without
from skdice.datasets.reading import first_line, suffix_of
from skdice.datasets.row import Row
from skdice.datasets.source import Source
from skdice.datasets.tagged import is_tagged, tagged_rows
from skdice.datasets.words import joined_rows, longest, tags_of
from skdice.exceptions import UnwrittenWarning
from skdice.whole_files import write_text

_NAME = re.compile(r"(?!(?:text|metadata)$)[\w.-]+")  # of a comment for one of the metadata
MARK = '# text = "'  # begins our own files


class Conll(Format):
    """Columns of words and tags, ours with the texts as comments."""

    rank = -10
    suffixes = (".conll",)

    def claims(self, source: Source) -> bool:
        if source.path.is_dir() or source.is_json:
            return False
        begins = first_line(source.head).startswith(MARK)
        return begins or suffix_of(source.path) == ".conll" or is_tagged(source)

    def task_of(self, source: Source) -> str:
        return "tagging"

    def read(self, source: Source) -> Iterator[Row]:
        return _read(source)

    def write(self, path: Path, rows: list[Row]) -> None:
        _write(path, rows)


def _read(source: Source) -> Iterator[Row]:
    blocks: list[dict[str, Any]] = []
    labelled, source.labelled = source.labelled, True  # columns without tags may be anything
    if first_line(source.head).startswith(MARK):
        how: dict[str, Any] = {"separator": "\t", "comment": "# "}
        rows = column_rows(source, token_column=0, tag_column=1, **how)
        blocks = _comments(source.lines)
    else:
        rows = tagged_rows(source)
    if blocks and len(blocks) != len(rows):
        problem = f"{len(blocks)} blocks of lines, but {len(rows)} of them hold words"
        raise source.fault("its comments", f"{problem}: mend the file")
    source.labelled = labelled
    for i, row in enumerate(rows):
        y = row.y if labelled else []
        rows[i] = row._replace(place=f"sentence {i + 1}", y=y)
    if not blocks:
        yield from joined_rows(source, rows)
        return
    for text, row, metadata in zip(joined_rows(source, rows), rows, blocks, strict=True):
        yield _in_text(source, text, row.x, metadata)


def _comments(lines: list[str]) -> list[dict[str, Any]]:
    """The values of the lines ``# name = value`` before each sentence."""
    blocks = []
    for filled, group in groupby(lines, key=lambda line: bool(line.strip())):
        pairs = [line[2:].partition(" = ") for line in group if line.startswith("# ")]
        if filled:
            block: dict[str, Any] = {}
            for name, _, value in pairs:
                block[name] = value
                with suppress(ValueError):
                    block[name] = json.loads(value)
            blocks.append(block)
    return blocks


def _in_text(source: Source, row: Row, tokens: list[str], metadata: dict[str, Any]) -> Row:
    """The row with the text of its comment, in which the tokens stand one after the other."""
    text = metadata.get("text", "")
    moved, end = {}, 0
    at = 0
    for token in tokens:
        start = text.find(token, end) if isinstance(text, str) else -1
        if start < 0 or text[end:start].strip():
            raise source.fault(row.place, f"its text is {shown(text)}, without {token!r} there")
        end = start + len(token)
        moved[at], moved[at + len(token)] = start, end
        at += len(token) + 1
    spans = [span._replace(start=moved[span.start], end=moved[span.end]) for span in row.y.spans]
    rest = metadata.get("metadata")
    more = rest if isinstance(rest, dict) else {}
    metadata = {**without(metadata, "text", *(["metadata"] if more else [])), **more}
    return row._replace(x=text, y=row.y._replace(spans=spans), meta=metadata)


def _write(path: Path, rows: list[Row]) -> None:
    blocks, lost = [], []
    for i, row in enumerate(rows):
        kept = longest([e for e in row.y if e.text == e.text.strip()])
        left = Counter(row.y) - Counter(kept)
        lost += [(i, entity) for entity in left.elements()]
        if not row.x.strip():
            raise ValueError(f"texts[{i}] is {row.x!r}: CoNLL holds no text without words")
        for e in kept:
            if not isinstance(e.label, str) or e.label != " ".join(e.label.split()):
                problem = "CoNLL needs a name without tabs, line breaks and outer blanks"
                raise ValueError(f"entities[{i}] has the label {e.label!r}: {problem}")
        words, tags = tags_of(row.x, kept)
        plain = {n: v for n, v in row.meta.items() if _NAME.fullmatch(str(n))}
        comments = {"text": row.x, **plain}
        if rest := without(row.meta, *plain):
            comments["metadata"] = rest
        lines = [
            f"# {name} = {as_json(value, ensure_ascii=True)}" for name, value in comments.items()
        ]
        lines += [f"{row.x[a:b]}\t{tag}" for (a, b), tag in zip(words, tags, strict=True)]
        blocks.append("".join(f"{line}\n" for line in lines))
    write_text(path, "\n".join(blocks))
    if lost:
        few = "; ".join(f"{shown(e.text)} {e.label} in texts[{i}]" for i, e in lost[:5])
        warn(
            f"{len(lost)} of {sum(len(row.y) for row in rows)} entities are not in "
            f"{str(path)!r}, as they overlap longer ones, are there twice, or begin or end with "
            f"white space, which CoNLL cannot hold: {few}{' ...' * (len(lost) > 5)}",
            UnwrittenWarning,
        )
