"""`skdice predict`: predictions of a file or of standard input, as text."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from itertools import chain, count, tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._tables import table_pieces

BLOCK, STREAMED = 4096, 64  # rows of a file, and of standard input, that are predicted at a time
TABLE = "table"  # as it came, with the columns of predictions
ADDED = ("predicted", "probability")

if TYPE_CHECKING:
    from skdice.datasets.row import Row
    from skdice.datasets.source import Source


def predict(
    ctx: typer.Context,
    model: options.Model,
    file: Annotated[Path, Argument(help="File to predict; - is standard input.")],
    out: Annotated[Path | None, Option(help="File to write; default: the screen.")] = None,
    form: Annotated[
        options.Written,
        Option(
            "--format",
            metavar="FORMAT",
            help="conll, jsonl or spans; for a recognizer that of an annotation tool; auto is the "
            "format described above.",
        ),
    ] = "auto",
    device: options.Device = "auto",
    force: options.ForceFile = False,
    text_columns: options.TextColumns = None,
    separator: options.Separator = None,
    quoting: options.Quoting = None,
    header: options.Header = None,
    encoding: options.Encoding = None,
) -> None:
    """Predict a file: token TAB tag lines for a tagger, labels for a classifier.

    A classifier writes a table as it came, with two columns more, predicted and probability: as
    CSV, TSV or JSON lines, by the name of --out, or else as it was read. Columns without names
    get numbers; several labels are a list, as train reads them. Of a file of plain texts it writes
    label TAB text lines, or a table if --out names a .csv file.

    A recognizer reads texts, one on each line or from the file of an annotation tool, and writes
    their entities as JSON lines, or as a tool imports them, with scores.

    The model is one that train wrote, or any fine-tuned model of transformers for the task. A file
    without labels has one token (or one text) on each line. Tables have the columns of the one that
    the model learned from, in any order; --text-columns names others. A reader of answers takes
    SQuAD's JSON and writes the JSON that SQuAD's evaluation takes; entities that may be nested are
    written as JSON lines.

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
    from skdice.datasets.reading import suffix_of
    from skdice.tasks.files import files_of

    # A folder is replaced as a whole by the format that writes one.
    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    if out is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the locale
    source, first, rest, has_cells = _opened(file, estimator, ctx.params)
    suffix = "" if out is None else suffix_of(out)
    how = _format_of(estimator, form, suffix, file, has_cells)
    method = files_of(estimator.task).formats_of(estimator)["jsonl" if how == TABLE else how]
    rows, ahead = tee(chain(first, rest))
    block = STREAMED if str(file) == "-" else BLOCK
    found = estimator.iter_predict((row.x for row in ahead), method, block)
    done = count()  # it is asked last, so that it counts the rows
    pairs = zip(zip(rows, found, strict=True), done, strict=False)
    predicted = (row._replace(y=y) for (row, y), _ in pairs)
    if how == TABLE:
        names = _names(source, first)
        _write(_table(estimator, source, names, predicted, out), out)
    else:
        _write_as(estimator, how, predicted, out)
    if out is not None:
        OUT.print(f"wrote {counted(next(done), 'prediction')} to {out}", soft_wrap=True)


def _format_of(estimator: Any, asked: str, suffix: str, file: Path, has_cells: bool) -> str:
    """The format to write, if the task has it, and if the name of the output is no other's."""
    from skdice.tasks.files import files_of

    known = [*files_of(estimator.task).formats_of(estimator)]
    if asked == "auto":
        asked = _usual_format(known[0], suffix, file, has_cells)
    if asked == TABLE:
        return TABLE
    if asked not in known:
        raise typer.BadParameter(
            f"--format {asked} is not for {estimator.task}: give one of {', '.join(known)}"
        )
    if suffix == ".csv" or (suffix == ".tsv" and asked not in ("conll", "tsv")):
        raise typer.BadParameter(
            f"--out names a {suffix} table, and {asked} is none: give a name such as out.jsonl"
        )
    return asked


def _usual_format(usual: str, suffix: str, file: Path, has_cells: bool) -> str:
    """What a task usually writes, unless the input or the name of the output says otherwise."""
    if usual == "tsv" and (suffix == ".csv" or has_cells):  # labels of texts
        return TABLE
    in_json = usual in ("conll", "tsv") and suffix in (".jsonl", ".json")
    without_ids = usual == "squad" and (str(file) == "-" or suffix == ".jsonl")
    return "jsonl" if in_json or without_ids else usual


# ---- reading


def _opened(
    file: Path, estimator: Any, params: Mapping[str, Any]
) -> tuple[Source, list[Row], Iterator[Row], bool]:
    """The first part of the input, its rows, those that follow, and whether they have cells."""
    parts, as_lines = _parts(file, estimator, params)
    source, first = next(parts, (None, []))
    if source is None:
        raise ValueError("the input is empty: give at least one example")
    rest = chain.from_iterable(part for _, part in parts)
    return source, first, rest, not as_lines and any(row.meta for row in first)


def _parts(
    file: Path, estimator: Any, params: Mapping[str, Any]
) -> tuple[Iterator[tuple[Source, list[Row]]], bool]:
    """The rows of a file or of standard input in parts; True if lines are read as they come."""
    from skdice.datasets.reading import is_plain, iter_lines

    if str(file) == "-":
        name, lines = Path("standard input"), _standard_input(params)
        return _files.inputs_of_lines(name, lines, estimator, params, STREAMED), True
    one_text = estimator.task.name == "classification" and estimator.n_features_in_ in (None, 1)
    if one_text and not options.of_table(params) and is_plain(file):
        first = next(filter(str.strip, iter_lines(file)), "")
        if first and not _files.is_table(file, first, getattr(estimator, "table_", {})):
            return _files.inputs_of_lines(file, iter_lines(file), estimator, params, BLOCK), True
    return _files.inputs(file, estimator, params), False


def _standard_input(params: Mapping[str, Any]) -> Iterator[str]:
    """The lines of standard input, whatever the locale; a byte that is not text names its line."""
    from skdice.inputs.texts import check_characters

    given = options.of_table(params)
    encoding = given.pop("encoding", "utf-8")
    for name in given.keys() - {"text_columns"}:
        raise typer.BadParameter(f"--{name.replace('_', '-')} is for files, and - is no table")
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


def _write(pieces: Iterator[str], out: Path | None) -> None:
    """Write pieces of text as they come."""
    from skdice.whole_files import replacing

    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as target:
        for piece in pieces:
            target.write(piece)
            target.flush()


def _write_as(estimator: Any, how: str, rows: Iterator[Row], out: Path | None) -> None:
    """Write predicted rows in a format."""
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import as_row, is_text, pieces_of

    if estimator.task.has_words:
        _write(_pieces(estimator, how, rows, out), out)
    elif is_text(out, how):
        found = (as_row(i, row.x, row.y, row.meta, how) for i, row in enumerate(rows))
        _write(pieces_of(found, how, out, predicted=True), out)
    elif out is None:
        raise typer.BadParameter(f"--format {how} needs --out")
    else:
        _, texts, entities, metadata = map(list, zip(*rows, strict=True))
        write_annotations(out, texts, entities, how, metadata, predicted=True)


def _pieces(estimator: Any, how: str, rows: Iterator[Row], out: Path | None) -> Iterator[str]:
    """The text of predicted rows in a format, in pieces that each end with a row."""
    from skdice.datasets.annotations import as_json
    from skdice.datasets.reading import json_pieces
    from skdice.datasets.squad import answers_json
    from skdice.tasks.files import files_of

    if how == "squad":  # one object, from id to answer
        yield answers_json({row.meta["id"]: row.y for row in rows})
        return
    written = (files_of(estimator.task).written(estimator, how, row) for row in rows)
    if how in ("conll", "tsv"):
        yield from (
            "\n" * (i > 0 and how == "conll") + text + "\n" for i, text in enumerate(written)
        )
    else:
        yield from json_pieces(map(as_json, written), out)


def _names(source: Source, rows: list[Row]) -> list[str]:
    """The columns of a table, or the one of texts, if none is that of a prediction."""
    names = dict.fromkeys(name for row in rows for name in row.meta) or {"text": None}
    if taken := [name for name in ADDED if name in names]:
        raise ValueError(
            f"{str(source.path)!r} has a column {taken[0]!r}, which its predictions would get: "
            "rename it"
        )
    return [*names]


def _table(
    estimator: Any, source: Source, names: list[str], rows: Iterator[Row], out: Path | None
) -> Iterator[str]:
    """The text of a table as it came with two columns more, or of texts with these."""
    from skdice.datasets.reading import suffix_of

    separator = None if source.is_json else source.separator
    suffix = "" if out is None else suffix_of(out)
    if suffix not in (".csv", ".tsv", ".jsonl", ".json"):
        suffix = ".jsonl" if source.is_json else ".tsv" if separator == "\t" else ".csv"
    records = ({**(row.meta or {"text": row.x}), **_added(estimator, row)} for row in rows)
    separator = "," if separator in (None, "\t") else separator
    yield from table_pieces(records, [*names, *ADDED], suffix, out, separator)


def _added(estimator: Any, row: Row) -> dict[str, Any]:
    """What a predicted row has more: its label and the probability, or lists of several."""
    from skdice.tasks.files import files_of

    record = files_of(estimator.task).written(estimator, "jsonl", row)
    label, each = record["label"], record["probabilities"]
    several = isinstance(label, list)
    probability = [each[str(name)] for name in label] if several else each[str(label)]
    return dict(zip(ADDED, (label, probability), strict=True))
