"""`skdice predict`: predictions of a file or of standard input, as text."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._tables import table_pieces

BLOCK, STREAMED = 4096, 64  # rows of a file, and of standard input, that are predicted at a time
ADDED = ("predicted", "probability")  # columns of predictions

if TYPE_CHECKING:
    from skdice.datasets.row import Row
    from skdice.datasets.source import Source


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
    get numbers; several labels are a list, as train reads them. Of a file of plain texts it writes
    label TAB text lines, or a table if --out names a .csv file.

    A recognizer reads texts, one on each line or from the file of an annotation tool, and writes
    their entities as JSON lines, or as a tool imports them, with scores.

    The model is one that train wrote, or any fine-tuned model of transformers for the task. A file
    without labels has one token (or one text) on each line. In .csv, .tsv and .jsonl files
    --text-columns names the texts; the default is all columns but labels and ids. A reader of
    answers takes SQuAD's JSON and writes the JSON that SQuAD's evaluation takes; entities that may
    be nested are written as JSON lines.

    From standard input rows are read and written 64 at a time: tokens with blank lines between
    sentences, one text on each line, or JSON lines as a file has them. A .txt file with a text to
    classify on each line is not read whole either.

    For example:

    skdice predict tagger test.conll --out predicted.conll

    skdice predict classifier new.csv --text-columns text --out predicted.csv

    skdice predict reader squad-dev.json --out predictions.json

    cat messages.txt | skdice predict classifier - --format jsonl

    skdice predict folder-of-transformers test.conll --format spans

    skdice predict recognizer new.txt --format label-studio --out tasks.json
    """
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import is_text
    from skdice.datasets.reading import suffix_of
    from skdice.whole_files import replacing

    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    task = estimator.task
    if out is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the locale
    lines, size = _lines(file, estimator, columns)
    name = Path("standard input") if str(file) == "-" else file
    parts = columns.inputs(name, estimator, lines, size)
    begin = next(parts, None)
    if begin is None:
        raise ValueError("the input is empty: give at least one example")
    source, first = begin
    suffix, done = "" if out is None else suffix_of(out), 0
    is_table = form == "auto" and task.name == "classification" and (
        suffix == ".csv" or (lines is None and any(row.meta for row in first))
    )  # fmt: skip
    how = "jsonl" if is_table else _format_of(estimator, form, suffix, file)
    rows = chain(first, chain.from_iterable(part for _, part in parts))

    def predicted() -> Iterator[Row]:
        nonlocal done
        ours, ahead = tee(rows)
        method, block = task.formats_of(estimator)[how], size or BLOCK
        found = estimator.iter_predict((row.x for row in ahead), method, block)
        for row, y in zip(ours, found, strict=True):
            yield row._replace(y=y)
            done += 1

    if task.has_words or is_text(out, how):
        pieces = _pieces(estimator, how, predicted(), out)
        if is_table:
            pieces = _table(estimator, source, first, predicted(), out)
        with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as target:
            for piece in pieces:
                target.write(piece)
                target.flush()
    elif out is None:
        raise typer.BadParameter(f"--format {how} needs --out")
    else:
        _, texts, entities, metadata = map(list, zip(*predicted(), strict=True))
        write_annotations(out, texts, entities, how, metadata, predicted=True)
    if out is not None:
        OUT.print(f"wrote {counted(done, 'prediction')} to {out}", soft_wrap=True)


def _format_of(estimator: Any, asked: str, suffix: str, file: Path) -> str:
    """The format to write, if the task has it, and if the name of the output is no other's."""
    known = [*estimator.task.formats_of(estimator)]
    if asked == "auto":
        asked = known[0]
        if asked in ("conll", "tsv") and suffix in (".jsonl", ".json"):
            asked = "jsonl"
        if asked == "squad" and (str(file) == "-" or suffix == ".jsonl"):  # which may have no ids
            asked = "jsonl"
    if asked not in known:
        raise typer.BadParameter(
            f"--format {asked} is not for {estimator.task}: give one of {', '.join(known)}"
        )
    if suffix == ".csv" or (suffix == ".tsv" and asked not in ("conll", "tsv")):
        raise typer.BadParameter(
            f"--out names a {suffix} table, and {asked} is none: give a name such as out.jsonl"
        )
    return asked


# ---- reading


def _lines(
    file: Path, estimator: Any, columns: options.Columns
) -> tuple[Iterable[str] | None, int]:
    """The lines of standard input, or of a file of texts to classify that is not read whole."""
    from skdice.datasets.reading import is_plain, is_record, iter_lines

    if str(file) == "-":
        return _standard_input(columns), STREAMED
    one_text = estimator.task.name == "classification" and estimator.n_features_in_ in (None, 1)
    if one_text and not columns.of_table() and columns.encoding == "utf-8" and is_plain(file):
        first = next(filter(str.strip, iter_lines(file)), "")
        if first and "\t" not in first and not is_record(first):
            return iter_lines(file), BLOCK
    return None, 0


def _standard_input(columns: options.Columns) -> Iterable[str]:
    """The lines of standard input, whatever the locale; a byte that is not text names its line."""
    from skdice.inputs.texts import check_characters

    for name in columns.of_table().keys() - {"text_columns"}:
        raise typer.BadParameter(f"--{name.replace('_', '-')} is for files, and - is no table")
    encoding = columns.encoding
    if isinstance(sys.stdin, TextIOWrapper):
        try:
            sys.stdin.reconfigure(encoding=encoding, errors="surrogateescape")
        except LookupError:
            problem = f"encoding={encoding!r} is unknown: use one such as 'latin-1'"
            raise ValueError(problem) from None
    for number, line in enumerate(sys.stdin, 1):
        check_characters(line, f"standard input, line {number},")
        yield line


# ---- writing


def _pieces(estimator: Any, how: str, rows: Iterator[Row], out: Path | None) -> Iterator[str]:
    """The text of predicted rows in a format, in pieces that each end with a row."""
    from skdice.datasets.annotations import as_json, as_row, pieces_of
    from skdice.datasets.reading import json_pieces
    from skdice.datasets.squad import answers_json

    task = estimator.task
    if not task.has_words:
        found = (as_row(i, row.x, row.y, row.meta, how) for i, row in enumerate(rows))
        yield from pieces_of(found, how, out, predicted=True)
        return
    if how == "squad":  # one object, from id to answer
        yield answers_json({row.meta["id"]: row.y for row in rows})
        return
    written = (task.written(estimator, how, row) for row in rows)
    if how in ("conll", "tsv"):
        yield from (
            "\n" * (i > 0 and how == "conll") + text + "\n" for i, text in enumerate(written)
        )
    else:
        yield from json_pieces(map(as_json, written), out)


def _table(
    estimator: Any, source: Source, first: list[Row], rows: Iterator[Row], out: Path | None
) -> Iterator[str]:
    """The text of a table as it came with two columns more, or of texts with these."""
    from skdice.datasets.cells import separator_of
    from skdice.datasets.reading import suffix_of

    names = dict.fromkeys(name for row in first for name in row.meta) or {"text": None}
    for name in ADDED:
        if name in names:
            raise ValueError(
                f"{str(source.path)!r} has a column {name!r}, which its predictions would get: "
                "rename it"
            )
    separator = None if source.is_json else separator_of(source)
    suffix = "" if out is None else suffix_of(out)
    if suffix not in (".csv", ".tsv", ".jsonl", ".json"):
        suffix = ".jsonl" if source.is_json else ".tsv" if separator == "\t" else ".csv"

    def records() -> Iterator[dict[str, Any]]:
        for row in rows:
            record = estimator.task.written(estimator, "jsonl", row)
            label, each = record["label"], record["probabilities"]
            several = isinstance(label, list)
            probability = [each[str(n)] for n in label] if several else each[str(label)]
            added = dict(zip(ADDED, (label, probability), strict=True))
            yield {**(row.meta or {"text": row.x}), **added}

    separator = "," if separator in (None, "\t") else separator
    yield from table_pieces(records(), [*names, *ADDED], suffix, out, separator)
