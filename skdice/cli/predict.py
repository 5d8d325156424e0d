"""`skdice predict`: predictions of a file or of standard input, as text."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import chain, tee
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT
from skdice.cli._tables import table_pieces

BLOCK = 64  # rows of standard input that are predicted at a time

# An input with its id, the metadata of its text, or the cells of its row.
Row = tuple[Any, Any]
# The same with what was predicted.
Predicted = tuple[Any, Any, Any]


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
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import is_text
    from skdice.datasets.files import replacing

    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    task, how = estimator.task, _format_of(estimator, form)
    if out is None and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the locale
    found, block_size = None, 4096
    rows: Iterable[Row]
    if str(file) == "-":
        rows, block_size = _stream(estimator, _standard_input(columns.encoding)), BLOCK
        if task.rows_are == "json":  # which may have no ids
            how = "jsonl"
            rows = ((x, name or str(i)) for i, (x, name) in enumerate(rows))
    elif _has_a_text_a_line(estimator, file, columns):
        rows = ((line, "") for line in _lines_of(file))
    else:
        found = columns.unlabelled(file, estimator)
        rows = zip(found.X, found.meta, strict=True)
    as_table = form == "auto" and found is not None and found.names is not None
    method, done = task.formats_of(estimator)["jsonl" if as_table else how], 0

    def predicted() -> Iterator[Predicted]:
        nonlocal done
        ours, ahead = tee(rows)
        of_rows = estimator.iter_predict((x for x, _ in ahead), method, block_size)
        for row, y in zip(ours, of_rows, strict=True):
            yield *row, y
            done += 1
        if not done:
            raise ValueError("the input is empty: give at least one example")

    if task.has_words or is_text(out, how):
        pieces = _pieces(estimator, how, predicted(), out)
        if as_table:
            pieces = table_pieces(estimator, file, found, predicted(), out)
        with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as target:
            for piece in pieces:
                target.write(piece)
                target.flush()
    elif out is None:
        raise typer.BadParameter(f"--format {how} needs --out")
    else:
        texts, metadata, entities = map(list, zip(*predicted(), strict=True))
        write_annotations(out, texts, entities, how, metadata, predicted=True)
    if out is not None:
        OUT.print(f"wrote {counted(done, 'prediction')} to {out}", soft_wrap=True)


def _format_of(estimator: Any, asked: str) -> str:
    """The format to write, if the task has it."""
    known = [*estimator.task.formats_of(estimator)]
    if asked == "auto":
        return str(known[0])
    if asked not in known:
        raise typer.BadParameter(
            f"--format {asked} is not for {estimator.task}: give one of {', '.join(known)}"
        )
    return asked


# ---- reading


def _has_a_text_a_line(estimator: Any, file: Path, columns: options.Columns) -> bool:
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


def _standard_input(encoding: str) -> Iterable[str]:
    """The lines of standard input, whatever the locale; a byte that is not text names its line."""
    from skdice.inputs.texts import check_characters

    if isinstance(sys.stdin, TextIOWrapper):
        try:
            sys.stdin.reconfigure(encoding=encoding, errors="surrogateescape")
        except LookupError:
            problem = f"encoding={encoding!r} is unknown: use one such as 'latin-1'"
            raise ValueError(problem) from None
    for number, line in enumerate(sys.stdin, 1):
        check_characters(line, f"standard input, line {number},")
        yield line


def _stream(estimator: Any, lines: Iterable[str]) -> Iterator[Row]:
    """Rows of standard input: JSON lines, lines of text, or blocks of lines of tokens."""
    from skdice.datasets.files import is_record
    from skdice.tasks.token_rows import tokens_of_block

    task, block = estimator.task, list[str]()
    as_json = True if task.rows_are == "json" else None
    for number, line in enumerate(chain(lines, [""]), 1):
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        if not line.strip():
            if block:
                where = f"standard input, line {number - len(block)},"
                yield tokens_of_block(estimator, where, block), ""
            block = []
            continue
        if as_json is None or not task.has_words:  # texts and records may be mixed
            as_json = is_record(line)
        if as_json:
            yield _read_record(task, number, line)
        elif task.rows_are == "blocks":
            block.append(line)
        else:  # a text, or a pair with a tab between its texts
            texts = line.split("\t")[:2] if len(task.keys) > 1 else [line]
            yield texts[0] if len(texts) == 1 else tuple(texts), "" if task.has_words else {}


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
        raise ValueError(f"{where} has {sorted(record)}, and {task} needs {list(needed)}")
    values = [record[key] for key in keys]
    x = values[0] if len(values) == 1 else tuple(values)
    if not task.has_words:
        return x, without(record, *keys)
    if task.rows_are == "json":  # SQuAD's predictions have ids as keys
        return x, str(record.get("id", ""))
    return x, {"id": record["id"]} if "id" in record else ""


# ---- writing


def _pieces(estimator: Any, how: str, rows: Iterator[Predicted], out: Path | None) -> Iterator[str]:
    """The text of predicted rows in a format, in pieces that each end with a row."""
    from skdice.datasets.annotations import as_row, pieces_of
    from skdice.datasets.files import json_pieces

    task = estimator.task
    if not task.has_words:
        found = (as_row(i, x, y, meta, how) for i, (x, meta, y) in enumerate(rows))
        yield from pieces_of((row._replace(predicted=True) for row in found), how, out)
    elif how == "squad":  # one object, from id to answer
        answers = {name: answer for _, name, answer in rows}
        yield json.dumps(answers, ensure_ascii=False, indent=1) + "\n"
    elif how in ("conll", "tsv"):
        for i, (x, _, y) in enumerate(rows):
            yield "\n" * (i > 0 and how == "conll") + task.line(x, y) + "\n"
    else:
        records = (task.record(estimator, how, *row) for row in rows)
        yield from json_pieces((json.dumps(each, ensure_ascii=False) for each in records), out)
