"""Files with or without labels, whole or as they come, of which the inputs are predicted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from inspect import unwrap
from pathlib import Path
from typing import Any

from skdice.datasets.annotations import read_annotations
from skdice.datasets.dataset import OF_CELLS, Dataset, read_source, task_of
from skdice.datasets.detection import find
from skdice.datasets.formats._base import without
from skdice.datasets.reading import is_record, suffix_of
from skdice.datasets.source import Source
from skdice.datasets.squad import read_squad
from skdice.datasets.tagged import holds_columns
from skdice.datasets.texts import to_predict


def read_inputs(
    source: Source,
    task: str,
    options: Mapping[str, Any],
    n_texts: int | None = None,
    tags: Collection[str] = (),
) -> Dataset:
    """The inputs of a file and what else it holds of each; labels are None.

    `n_texts` are those of a row to classify, where that is known, and `tags` those of a tagger.
    """
    X: list[Any]
    meta: list[Any] | None = None
    if task in ("tagging", "mrc-ner"):
        X = _sentences(source, task, options, tags)
    elif task == "qa":
        X, _ = unwrap(read_squad)(source, with_answers=False)
        meta = source.meta
    elif task == "entities":
        X, meta = _texts(source, options)
    else:  # a model of transformers does not tell whether it takes texts or pairs
        wanted = options.get("text_columns")
        width = n_texts or (len(wanted) if isinstance(wanted, list) else 1)
        table, at = to_predict(source, width, **_of_columns(options))
        X, meta = table.texts(at), table.records()
    meta = [{} for _ in X] if meta is None else meta
    return Dataset(X, [None] * len(X), task, source.path, meta)


def _of_columns(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in OF_CELLS}


def _sentences(
    source: Source, task: str, options: Mapping[str, Any], tags: Collection[str]
) -> list[list[str]]:
    """Sentences in JSON, in columns, or a token a line."""
    if source.is_json:
        return read_source(source, task, {"with_tags": False}).X
    lines = source.lines
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        return [[token for token in block.split("\n") if token] for block in blocks]
    is_named = "token_column" in options or task_of(source) == "tagging"
    if not is_named and not holds_columns(lines, tags):
        first = next(i for i, line in enumerate(lines, 1) if line.strip())
        problem = f"holds running text ({lines[first - 1]:.40}): write one token a line and blank "
        problem += "lines between sentences, or name the column of tokens (text_columns); running "
        problem += "text is for a recognizer, which is trained on texts with entities"
        raise source.fault(first, problem)
    return read_source(source, "tagging", {"with_tags": False, **options}).X


def _texts(source: Source, options: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """Texts of a tool's file, of a table, or one on each line, and their metadata."""
    form, column = find(source).format, options.get("text_column")
    if form is not None or source.is_json:
        of_tool: dict[str, Any] = {"text_column": column, "with_entities": False}
        texts, _, metadata = unwrap(read_annotations)(source, form or "jsonl", **of_tool)
        return texts, metadata
    if not options and suffix_of(source.path) not in (".csv", ".tsv"):
        texts = [line for line in source.iter_lines() if line.strip()]
        return texts, [{} for _ in texts]
    how = {name: value for name, value in _of_columns(options).items() if name != "text_column"}
    table, at = to_predict(source, text_columns=column, **how)
    return table.texts(at), [without(record, table.named(at[0])) for record in table.records()]


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
