"""Texts with entities: `skdice convert`, and what `skdice predict` reads and writes of them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import Any

import typer

from skdice._checks import counted
from skdice.cli._options import Columns
from skdice.datasets import read_annotations, read_texts, write_annotations
from skdice.datasets.annotations import as_row, find_format, format_of_name, is_text, pieces_of
from skdice.datasets.files import replacing, suffix_of
from skdice.datasets.source import Source

Rows = Iterable[tuple[str, dict[str, Any]]]  # texts with their metadata


def convert(source: Path, out: Path, read_as: str, write_as: str | None, **how: Any) -> str:
    """Write the file of one tool as that of another; returns what was written."""
    write_as = write_as or format_of_name(out)
    if write_as is None:
        raise typer.BadParameter(f"{out.name!r} does not show its format: give --to")
    found = read_annotations(source, read_as, **how)
    write_annotations(out, *found[:2], write_as, found.metadata)
    n, texts = sum(map(len, found.entities)), counted(len(found.texts), "text")
    return f"wrote {texts} with {counted(n, 'entity')} to {out} ({write_as})"


def rows_of(file: Path, columns: Columns) -> Rows:
    """The texts of a file of an annotation tool, of a table, or one on each line."""
    source = Source(file, columns.encoding)
    form = find_format(source, with_labels=True)
    if form is None and not source.is_json:
        table = columns.of_table()
        if table or suffix_of(file) in (".csv", ".tsv"):
            texts = read_texts(file, encoding=columns.encoding, **table)
        else:
            texts = [line for line in source.lines if line.strip()]
        return [(text, {}) for text in texts]
    how = columns.of_entities()
    found = read_annotations(file, form or "jsonl", with_entities=False, **how)
    return zip(found.texts, found.metadata, strict=True)


def write(estimator: Any, how: str, rows: Rows, out: Path | None, block_size: int = 4096) -> int:
    """Predict texts as they come, and write or print them; returns their number."""
    if out is None and not is_text(out, how):
        raise typer.BadParameter(f"--format {how} needs --out")
    done = 0

    def predicted() -> Iterator[Any]:
        nonlocal done
        ours, ahead = tee(rows)
        found = estimator.iter_predict((text for text, _ in ahead), "predict", block_size)
        for (text, metadata), entities in zip(ours, found, strict=True):
            yield as_row(done, text, entities, metadata, how)._replace(predicted=True)
            done += 1
        if not done:
            raise ValueError("the input is empty: give at least one text")

    if out is not None and not is_text(out, how):
        made = list(predicted())
        parts = ([getattr(row, name) for row in made] for name in ("text", "entities", "metadata"))
        texts, entities, metadata = parts
        write_annotations(out, texts, entities, how, metadata, predicted=True)
        return done
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        for piece in pieces_of(predicted(), how):
            file.write(piece)
            file.flush()
    return done
