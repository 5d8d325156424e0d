"""Rows without labels, from files and from standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from skdice.cli._options import Columns

# An input with its id, or a text with its metadata.
Row = tuple[Any, Any]


def rows_of(estimator: Any, file: Path, columns: Columns) -> Iterable[Row]:
    """Inputs of a file with or without labels, with their ids; texts with their metadata."""
    if _is_lazy(estimator, file, columns):
        return ((line, "") for line in _lines_of(file))
    if not estimator.task.has_words:
        return _texts_of(file, columns)
    table = columns.of_texts()
    X, ids = estimator.task.read_inputs(estimator, file, columns.encoding, **table)
    return zip(X, ids or repeat(""), strict=False)


def table_of(estimator: Any, file: Path, columns: Columns) -> Any:
    """The table of texts to classify; None of a file with a text on each line."""
    from skdice.datasets.files import suffix_of

    if estimator.task.name != "classification" or _is_lazy(estimator, file, columns):
        return None
    table = estimator.task.read_table(estimator, file, columns.encoding, **columns.of_texts())
    in_cells = suffix_of(file) in (".csv", ".tsv") and len(table.rows[0]) > 1
    return table if table.names is not None or in_cells else None


def _is_lazy(estimator: Any, file: Path, columns: Columns) -> bool:
    """Return True if texts to classify stand one on each line, which nothing else can tell of."""
    from skdice.datasets.files import is_plain, is_record, iter_lines

    one_text = estimator.task.name == "classification" and estimator.n_features_in_ in (None, 1)
    if not one_text or columns.of_texts() or columns.encoding != "utf-8" or not is_plain(file):
        return False
    first = next(filter(str.strip, iter_lines(file)), "")
    return bool(first) and "\t" not in first and not is_record(first)


def _lines_of(file: Path) -> Iterator[str]:
    """Lines that are not blank, as they are needed, and the error of `read_texts` at a tab."""
    from skdice.datasets import read_texts
    from skdice.datasets.files import iter_lines

    for line in filter(str.strip, iter_lines(file)):
        if "\t" in line:
            read_texts(file)
        yield line


def _texts_of(file: Path, columns: Columns) -> Iterable[Row]:
    """The texts of a file of an annotation tool, of a table, or one on each line."""
    from skdice.datasets.annotations import annotated
    from skdice.datasets.auto import OF_CELLS, source_of
    from skdice.datasets.files import suffix_of
    from skdice.datasets.find import find
    from skdice.datasets.tables import to_predict

    table = columns.of_texts()
    source = source_of(file, columns.encoding, table)
    form = find(source).format
    if form is None and not source.is_json:
        texts = [line for line in source.iter_lines() if line.strip()]
        if table or suffix_of(file) in (".csv", ".tsv"):
            wanted = {name: value for name, value in table.items() if name not in OF_CELLS}
            texts = to_predict(source, **wanted).texts
        return [(text, {}) for text in texts]
    how = columns.of_entities()
    source.with_entities, source.text_column = False, how["text_column"]
    found = annotated(source, form or "jsonl", how["offsets"], how["on_misaligned"])
    return zip(found.texts, found.metadata, strict=True)


def standard_input(encoding: str) -> Iterable[str]:
    """The lines of standard input, whatever the locale; a byte that is not text names its line."""
    from skdice.text.inputs import check_characters

    if isinstance(sys.stdin, TextIOWrapper):
        try:
            sys.stdin.reconfigure(encoding=encoding, errors="surrogateescape")
        except LookupError:
            problem = f"encoding={encoding!r} is unknown: use one such as 'latin-1'"
            raise ValueError(problem) from None
    for number, line in enumerate(sys.stdin, 1):
        check_characters(line, f"standard input, line {number},")
        yield line


def stream_of(estimator: Any, lines: Iterable[str]) -> Iterator[Row]:
    """Rows of standard input: JSON lines, lines of text, or blocks of lines of tokens."""
    from skdice.datasets.files import is_record

    task, block = estimator.task, list[str]()
    as_json = True if task.rows_are == "json" else None
    for number, line in enumerate(chain(lines, [""]), 1):
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        if not line.strip():
            if block:
                where = f"standard input, line {number - len(block)},"
                yield task.row_of_block(estimator, where, block), ""
            block = []
            continue
        if as_json is None or not task.has_words:  # texts and records may be mixed
            as_json = is_record(line)
        if as_json:
            yield _read_record(task, number, line)
        elif task.rows_are == "blocks":
            block.append(line)
        else:
            yield task.row_of_line(line), "" if task.has_words else {}


def _read_record(task: Any, number: int, line: str) -> Row:
    from skdice.datasets.files import is_record, parse_json
    from skdice.datasets.record import without

    where = f"standard input, line {number}"
    if not is_record(line):
        raise ValueError(f"{where}: {line:.60} is not a JSON object, as each line must be")
    record = parse_json(line, "standard input", number)
    keys = [key for key in task.keys if key in record]
    needed = task.keys if task.rows_are == "json" else task.keys[:1]
    if keys[: len(needed)] != list(needed):
        raise ValueError(f"{where} has {sorted(record)}, and {task} needs {list(task.keys)}")
    values = [record[key] for key in keys]
    x = values[0] if len(values) == 1 else tuple(values)
    if not task.has_words:
        return x, without(record, *keys)
    name = record.get("id", "")
    return x, str(name) if task.rows_are == "json" else name  # SQuAD's predictions have ids as keys
