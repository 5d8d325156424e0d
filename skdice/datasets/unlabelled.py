"""Files with or without labels, whole or as they come, of which the inputs are predicted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from skdice.datasets.annotations import entity_rows
from skdice.datasets.dataset import OF_CELLS, rows_of, task_of
from skdice.datasets.detection import find
from skdice.datasets.formats._base import without
from skdice.datasets.reading import is_record, suffix_of
from skdice.datasets.row import Row
from skdice.datasets.source import Source
from skdice.datasets.tagged import holds_columns
from skdice.datasets.texts import text_rows


def read_inputs(
    source: Source,
    task: str,
    options: Mapping[str, Any],
    n_texts: int | None = None,
    tags: Collection[str] = (),
) -> list[Row]:
    """The rows of a file to predict, without y.

    `n_texts` are those of a row to classify, where that is known, and `tags` those of a tagger.
    """
    source.labelled = False
    if task in ("tagging", "mrc-ner"):
        rows = _sentences(source, task, options, tags)
    elif task == "qa":
        rows = rows_of(source, task, {})
    elif task == "entities":
        rows = _texts(source, options)
    else:  # a model of transformers does not tell whether it takes texts or pairs
        wanted = options.get("text_columns")
        width = n_texts or (len(wanted) if isinstance(wanted, list) else 1)
        rows = text_rows(source, width, **without(options, *OF_CELLS))
    return [row._replace(y=None) for row in rows]


def _sentences(
    source: Source, task: str, options: Mapping[str, Any], tags: Collection[str]
) -> list[Row]:
    """Sentences in JSON, in columns, or a token a line."""
    if source.is_json:
        return rows_of(source, task, {})
    lines = source.text.split("\n")
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        found = ([token for token in block.split("\n") if token] for block in blocks)
        return [Row("", tokens, None, {}) for tokens in found]
    is_named = "token_column" in options or task_of(source) == "tagging"
    if not is_named and not holds_columns(lines, tags):
        first = next(i for i, line in enumerate(lines, 1) if line.strip())
        problem = f"holds running text ({lines[first - 1]:.40}): write one token a line and blank "
        problem += "lines between sentences, or name the column of tokens (text_columns); running "
        problem += "text is for a recognizer, which is trained on texts with entities"
        raise source.fault(first, problem)
    return rows_of(source, "tagging", options)


def _texts(source: Source, options: Mapping[str, Any]) -> list[Row]:
    """Texts of a tool's file, of a table, or one on each line."""
    form, column = find(source).format, options.get("text_column")
    if form is not None or source.is_json:
        source.text_column = column
        return entity_rows(source, format=form or "jsonl")
    if not options and suffix_of(source.path) not in (".csv", ".tsv"):
        lines = enumerate(source.iter_lines(), 1)
        return [Row(number, line, None, {}) for number, line in lines if line.strip()]
    how = without(options, *OF_CELLS, "text_column")
    rows = text_rows(source, text_columns=column, **how)
    named = (source.columns or {})["text"][0]
    return [row._replace(meta=without(row.meta, named)) for row in rows]


def cut(
    path: Path, lines: Iterable[str], task_rows: str, size: int, **options: Any
) -> Iterator[Source]:
    """The lines of a stream as files of at most `size` rows, none of which is read before its time.

    Rows are lines, or blocks of lines of tokens, or records of JSON, as the first line shows.
    """
    piece: list[str] = []
    n_rows = before = 0
    in_json: bool | None = None

    def ended() -> Source:
        name = path if before == 0 else Path(f"{path}, from line {before + 1}")
        source = Source(name, first=before, **options)
        source.text = "\n".join(piece)
        return source

    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n").removeprefix("\ufeff")
        is_filled, of_json = bool(text.strip()), in_json
        if is_filled and (in_json is None or task_rows == "mixed"):
            of_json = is_record(text)
        if n_rows and of_json != in_json:
            yield ended()
            piece, n_rows, before = [], 0, number - 1
        in_json = of_json
        piece.append(text)
        n_rows += is_filled if in_json or task_rows != "blocks" else not is_filled
        if n_rows == size:
            yield ended()
            piece, n_rows, before = [], 0, number
    if any(map(str.strip, piece)):
        yield ended()
