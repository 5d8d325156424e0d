"""`skdice predict`: predictions of a file or of standard input, as text."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import tee
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._rows import Row, rows_of, standard_input, stream_of, table_of
from skdice.cli._tables import write_predicted

BLOCK = 64  # rows of standard input that are predicted at a time


def predict(
    model: options.Model,
    file: Annotated[Path, Argument(help="File to predict; - is standard input.")],
    out: Annotated[Path | None, Option(help="File to write; default: the screen.")] = None,
    form: Annotated[
        options.Format,
        Option(
            "--format",
            metavar="FORMAT",
            help="conll, jsonl or spans; for a recognizer that of an annotation tool; auto is the "
            "format described above.",
        ),
    ] = "auto",
    device: options.Device = "auto",
    force: options.ForceFile = False,
    *,
    columns: options.Columns,
) -> None:
    """Predict a file: token TAB tag lines for a tagger, labels for a classifier.

    A classifier writes a table as it came, with two columns more, predicted and probability: as
    CSV, TSV or JSON lines, by the name of --out, or else as it was read. Columns without names
    get numbers. Of a file of plain texts it writes label TAB text lines.

    A recognizer reads texts, one on each line or from the file of an annotation tool, and writes
    their entities as JSON lines, or as a tool imports them, with scores.

    The model is one that train wrote, or any fine-tuned model of transformers for the task. A file
    without labels has one token (or one text) on each line. In .csv, .tsv and .jsonl files
    --text-columns names the texts; the default is all columns but labels and ids. A reader of
    answers takes SQuAD's JSON and writes the JSON that SQuAD's evaluation takes; entities that may
    be nested are written as JSON lines.

    From standard input rows are read and written 64 at a time: tokens with blank lines between
    sentences, one text on each line, or JSON lines with "tokens", "text" (and "text_pair"), or
    "question" and "context". A .txt file with a text to classify on each line is not read whole
    either.

    For example:

    skdice predict tagger test.conll --out predicted.conll

    skdice predict classifier new.csv --text-columns text --out predicted.csv

    skdice predict reader squad-dev.json --out predictions.json

    cat messages.txt | skdice predict classifier - --format jsonl

    skdice predict folder-of-transformers test.conll --format spans

    skdice predict recognizer new.txt --format label-studio --out tasks.json
    """
    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    how = _format_of(estimator, form)
    if out is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the locale
    is_table = form == "auto" and str(file) != "-"
    if is_table and (table := table_of(estimator, file, columns)) is not None:
        write_predicted(estimator, file, table, out)
        _tell(len(table.rows), out)
        return
    if str(file) == "-":
        rows, block_size = stream_of(estimator, standard_input(columns.encoding)), BLOCK
        if estimator.task.rows_are == "json":  # which may have no ids
            how = "jsonl"
            rows = ((x, name or str(i)) for i, (x, name) in enumerate(rows))
    else:
        rows, block_size = iter(rows_of(estimator, file, columns)), 4096
    write = _write_rows if estimator.task.has_words else _write_entities
    _tell(write(estimator, how, rows, out, block_size), out)


def _tell(n_rows: int, out: Path | None) -> None:
    if out is not None:
        OUT.print(f"wrote {counted(n_rows, 'prediction')} to {out}", soft_wrap=True)


def _format_of(estimator: Any, asked: str) -> str:
    """The format to write, if the task has it."""
    known = estimator.task.formats_of(estimator)
    if asked == "auto":
        return str(known[0])
    if asked not in known:
        raise typer.BadParameter(
            f"--format {asked} is not for {estimator.task}: give one of {known}"
        )
    return asked


def _lines_of(estimator: Any, how: str, rows: Iterable[Row], block_size: int) -> Iterator[str]:
    """Return the lines of each row, without the end of the last one."""
    rows, ahead = tee(rows)
    method = estimator.task.method_for(how)
    predicted = estimator.iter_predict((x for x, _ in ahead), method, block_size)
    for i, ((x, name), found) in enumerate(zip(rows, predicted, strict=True)):
        text = estimator.task.written(estimator, how, x, name, found)
        yield f"\n{text}" if i and how == "conll" else text


def _write_rows(
    estimator: Any, how: str, rows: Iterable[Row], out: Path | None, block_size: int
) -> int:
    """Predict rows as they come, and write or print them; returns their number."""
    from skdice.datasets.files import json_pieces, replacing

    done = 0
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        if how == "squad":  # one object, from id to answer
            if not (rows := list(rows)):
                raise ValueError("the input is empty: give at least one example")
            found = estimator.predict([x for x, _ in rows])
            answers = dict(zip([name for _, name in rows], found, strict=True))
            file.write(json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
            return len(rows)

        def counted_lines() -> Iterator[str]:
            nonlocal done
            for line in _lines_of(estimator, how, rows, block_size):
                yield line
                done += 1
            if not done:
                raise ValueError("the input is empty: give at least one example")

        # Only JSON can be an array.
        for piece in json_pieces(counted_lines(), out if how in ("jsonl", "spans") else None):
            file.write(piece)
            file.flush()
    return done


def _write_entities(
    estimator: Any, how: str, rows: Iterable[Row], out: Path | None, block_size: int
) -> int:
    """Predict texts as they come, and write or print them; returns their number."""
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import as_row, is_text, pieces_of
    from skdice.datasets.files import replacing

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
        for piece in pieces_of(predicted(), how, out):
            file.write(piece)
            file.flush()
    return done
