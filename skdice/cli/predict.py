"""`skdice predict`: predictions of a file or of standard input, as text."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from skdice._checks import counted
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import OUT

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
        str,
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

    Standard input is read to its end, as a file of the same content.

    For example:

    skdice predict tagger test.conll --out predicted.conll

    skdice predict classifier new.csv --text-columns text --out predicted.csv

    skdice predict reader squad-dev.json --out predictions.json

    cat messages.txt | skdice predict classifier - --format jsonl

    skdice predict folder-of-transformers test.conll --format spans

    skdice predict recognizer new.txt --format label-studio --out tasks.json
    """
    from skdice.tasks.files import files_of

    # A folder is replaced as a whole by the format that writes one.
    _common.new_file(out, "--out", force, folder=form == "brat")
    estimator = _common.load(model, device)
    source, rows = _files.inputs(file, estimator, ctx.params)
    methods = files_of(estimator.task).formats_of(estimator)
    has_cells = any(row.meta for row in rows)
    how = _format_of(estimator, [*methods], form, out, file, has_cells=has_cells)
    if how == TABLE:
        _check_added(source, rows)
    found = getattr(estimator, methods["jsonl" if how == TABLE else how])([row.x for row in rows])
    rows = [row._replace(y=y) for row, y in zip(rows, found, strict=True)]
    if how == TABLE:
        _write(_table(estimator, source, rows, out), out)
    elif estimator.task.has_words:
        _write(_text(estimator, how, rows, out), out)
    else:
        _write_entities(how, rows, out)
    if out is not None:
        OUT.print(f"wrote {counted(len(rows), 'prediction')} to {out}", soft_wrap=True)


def _format_of(
    estimator: Any, known: list[str], asked: str, out: Path | None, file: Path, *, has_cells: bool
) -> str:
    """The format to write, if the task has it, and if the name of the output is no other's."""
    from skdice.datasets.annotations import is_text

    suffix = "" if out is None else out.suffix.lower()
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
    if out is None and not estimator.task.has_words and not is_text(asked):
        raise typer.BadParameter(f"--format {asked} needs --out")
    return asked


def _usual_format(usual: str, suffix: str, file: Path, has_cells: bool) -> str:
    """What a task usually writes, unless the input or the name of the output says otherwise."""
    if usual == "tsv" and (suffix == ".csv" or has_cells):  # labels of texts
        return TABLE
    in_json = usual in ("conll", "tsv") and suffix in (".jsonl", ".json")
    without_ids = usual == "squad" and (str(file) == "-" or suffix == ".jsonl")
    return "jsonl" if in_json or without_ids else usual


# ---- writing


def _write(text: str, out: Path | None) -> None:
    """Write a text to a file, or to the screen."""
    from skdice.whole_files import write_text

    if out is not None:
        write_text(out, text)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as a file has it, whatever the locale
    sys.stdout.write(text)
    sys.stdout.flush()


def _write_entities(how: str, rows: list[Row], out: Path | None) -> None:
    """Write texts with the entities that were predicted, as an annotation tool imports them."""
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import as_row, text_of

    if out is None:
        found = [as_row(i, row.x, row.y, row.meta, how) for i, row in enumerate(rows)]
        _write(text_of(found, how, out, predicted=True), out)
    else:
        _, texts, entities, metadata = map(list, zip(*rows, strict=True))
        write_annotations(out, texts, entities, how, metadata, predicted=True)


def _text(estimator: Any, how: str, rows: list[Row], out: Path | None) -> str:
    """The text of predicted rows in a format."""
    from skdice.datasets.annotations import as_json
    from skdice.datasets.source import json_text
    from skdice.tasks.files import files_of

    if how == "squad":  # one object, from id to answer
        answers = {row.meta["id"]: row.y for row in rows}
        return json.dumps(answers, ensure_ascii=False, indent=1) + "\n"
    written = [files_of(estimator.task).written(estimator, how, row) for row in rows]
    if how in ("conll", "tsv"):
        return ("\n" if how == "conll" else "").join(f"{text}\n" for text in written)
    return json_text(map(as_json, written), out)


def _check_added(source: Source, rows: list[Row]) -> None:
    """Refuse a table with a column that its predictions would get."""
    if taken := [name for name in ADDED if any(name in row.meta for row in rows)]:
        raise ValueError(
            f"{str(source.path)!r} has a column {taken[0]!r}, which its predictions would get: "
            "rename it"
        )


def _table(estimator: Any, source: Source, rows: list[Row], out: Path | None) -> str:
    """The text of a table as it came with two columns more, or of texts with these."""
    from skdice.datasets.annotations import as_json
    from skdice.datasets.cells import separator_of
    from skdice.datasets.source import json_text

    separator = "," if source.is_json else separator_of(source)
    suffix = "" if out is None else out.suffix.lower()
    records = [{**(row.meta or {"text": row.x}), **_added(estimator, row)} for row in rows]
    if suffix in (".jsonl", ".json") or (source.is_json and suffix not in (".csv", ".tsv")):
        return json_text(map(as_json, records), out)
    if suffix == ".tsv":
        separator = "\t"
    elif suffix == ".csv" and separator == "\t":
        separator = ","
    names = dict.fromkeys(name for record in records for name in record)
    return table_text(records, [name for name in names if name not in ADDED] + [*ADDED], separator)


def _added(estimator: Any, row: Row) -> dict[str, Any]:
    """What a predicted row has more: its label and the probability, or lists of several."""
    from skdice.tasks.files import files_of

    record = files_of(estimator.task).written(estimator, "jsonl", row)
    label, each = record["label"], record["probabilities"]
    several = isinstance(label, list)
    probability = [each[str(name)] for name in label] if several else each[str(label)]
    return dict(zip(ADDED, (label, probability), strict=True))


def table_text(records: Iterable[dict[str, Any]], columns: Sequence[str], separator: str) -> str:
    """The text of a table with a header.

    Lists and objects in cells are JSON, as `skdice.datasets.read_table` reads them. Between tabs
    nothing is quoted, as such tables are read.
    """
    rows = [list(columns), *([_cell(record.get(n)) for n in columns] for record in records)]
    if separator == "\t":
        lines = ("\t".join(re.sub(r"[\t\r\n]", " ", str(cell)) for cell in row) for row in rows)
        return "".join(f"{line}\n" for line in lines)
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator="\n").writerows(rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value
