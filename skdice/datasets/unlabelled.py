"""Files with or without labels, whole or as they come, of which the inputs are predicted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from skdice.datasets.readers import READERS
from skdice.datasets.reading import is_record, json_lines
from skdice.datasets.row import Reading
from skdice.datasets.source import Source, warn_of_notes


def read_inputs(
    source: Source,
    task: str,
    options: Mapping[str, Any],
    n_texts: int | None = None,
    tags: Collection[str] = (),
) -> Reading:
    """The rows of a file to predict, without y, and its columns.

    `n_texts` are those of a row to classify, where that is known, and `tags` those of a tagger.
    """
    read = READERS[task].inputs(source, options, n_texts, tags)
    warn_of_notes(source, read.notes, len(read.rows))
    return replace(read, rows=[row._replace(y=None) for row in read.rows])


def cut(
    path: Path, lines: Iterable[str], task_rows: str, size: int, **options: Any
) -> Iterator[Source]:
    """The lines of a stream as files of at most `size` rows, none of which is read before its time.

    Rows are lines, or blocks of lines of tokens, or records of JSON, as the first line that is not
    blank shows; where lines are "mixed", each line does.
    """
    piece: list[str] = []
    n_rows = before = 0
    in_json: bool | None = None
    in_blocks = task_rows == "blocks"

    def ended() -> Source:
        name = path if before == 0 else Path(f"{path}, from line {before + 1}")
        text = "\n".join(piece)
        content = json_lines(name, text) if in_json else text
        return Source(name, content=content, first=before, in_json=bool(in_json), **options)

    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n").removeprefix("\ufeff")
        is_filled, of_json = bool(text.strip()), in_json
        if is_filled and (in_json is None or task_rows == "mixed"):
            of_json = is_record(text)
        if n_rows and of_json != in_json:
            yield ended()
            piece, n_rows, before = [], 0, number - 1
        in_json = of_json
        ends_block = in_blocks and not in_json and not is_filled and any(map(str.strip, piece[-1:]))
        piece.append(text)
        n_rows += ends_block if in_blocks and not in_json else is_filled
        if n_rows == size:
            yield ended()
            piece, n_rows, before = [], 0, number
    if any(map(str.strip, piece)):
        yield ended()
