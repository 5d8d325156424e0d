"""Files that commands read: by their options, and else as the table that a model learned from."""

from __future__ import annotations

import contextlib
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdice.cli import _options as options

if TYPE_CHECKING:
    from skdice.datasets.row import Row
    from skdice.datasets.source import Source

_TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".feather", ".arrow", ".xlsx", ".xls")
_LABELS = {"label_column", "label_columns"}


def read(path: Path, task: str, params: Mapping[str, Any], known: Any = None) -> Any:
    """A `Dataset` from a file, by the options of a command.

    `known` are the arguments of `read_table` that read the table which a model learned from. What
    no option says is taken from there, so that columns are the same by name and in order.
    """
    from skdice.datasets.dataset import options_of, read_source, source_of, task_of
    from skdice.tasks import TASKS
    from skdice.tasks.files import files_of

    given, of_tool = options.of_table(params), options.of_tool(params)
    table = _completed(path, given, known or {})
    source = source_of(path, table.pop("encoding"), table)
    chosen = {n: v for n, v in of_tool.items() if n in ("format", "layer", "feature")}
    if task == "auto":
        task = task_of(source, {**table, **chosen})
    if chosen and task != "entities":
        raise typer.BadParameter(f"--{next(iter(chosen))} is for texts with entities")
    kind = files_of(TASKS[task]).kind or task
    with _explained(given, known):
        data = read_source(source, kind, options_of(kind, table, of_tool))
        _check_names(path, data.columns, given, known)
    return replace(data, task=task)


def inputs(
    path: Path, estimator: Any, params: Mapping[str, Any]
) -> Iterator[tuple[Source, list[Row]]]:
    """The `Source` and the rows of a file to predict."""
    from skdice.datasets.dataset import source_of

    given, known = options.of_table(params), getattr(estimator, "table_", {})
    if known and not given and not is_table(path, _first_line(path), known):
        known = {}
    # A first line that names the columns is found, and refused if training had none.
    how = {name: value for name, value in known.items() if (name, value) != ("header", False)}
    table = _completed(path, given, how)
    source = source_of(path, table.pop("encoding"), table)
    yield source, _rows(source, estimator, table, given, known)


def inputs_of_lines(
    path: Path, lines: Iterable[str], estimator: Any, params: Mapping[str, Any], size: int
) -> Iterator[tuple[Source, list[Row]]]:
    """The `Source` and the rows of each `size` rows of a stream, of which columns name fields."""
    from skdice.datasets.unlabelled import cut
    from skdice.tasks.files import files_of

    rows_are, given = files_of(estimator.task).rows_are, options.of_table(params)
    asked = {name: given[name] for name in ("text_columns",) if name in given}
    for source in cut(path, lines, rows_are, size):
        if asked and not source.is_json and rows_are != "blocks":
            problem = "text_columns names a field of JSON lines, and this is a line of text"
            raise source.fault(1, problem)
        known = getattr(estimator, "table_", {}) if source.is_json else {}
        table = {n: known[n] for n in ("text_columns",) if n in known} | asked
        yield source, _rows(source, estimator, table, asked, known)


def _rows(
    source: Source, estimator: Any, table: Any, given: Mapping[str, Any], known: Mapping[str, Any]
) -> list[Row]:
    """The rows of a file or a piece of a stream to predict, by the options of a `table`."""
    from skdice.datasets.dataset import options_of
    from skdice.datasets.unlabelled import read_inputs
    from skdice.tasks.files import files_of

    kind = files_of(estimator.task).kind or estimator.task.name
    asked = {name: value for name, value in table.items() if name != "label_separator"}
    learned = getattr(estimator, "n_features_in_", None), getattr(estimator, "classes_", ())
    with _explained(given, known):
        rows = read_inputs(source, kind, options_of(kind, asked, {}), *learned)
        _check_names(source.path, source.columns, given, known)
    return rows


def is_table(path: Path, first: str, known: Mapping[str, Any]) -> bool:
    """Return False of a file that holds a text on each line, by its name and its first line.

    The names of the columns that are `known` show a table, or their separator if it has no names.
    """
    from skdice.datasets.reading import is_record, suffix_of

    if suffix_of(path) in _TABLES or "\t" in first or is_record(first):
        return True
    separator = known.get("separator") or "\t"
    if not known.get("header"):
        return separator in first
    cells = [cell.strip().strip('"') for cell in first.split(separator)]
    return set(known["text_columns"]) <= set(cells)


def _completed(path: Path, given: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command, with what is known of the table for what they leave open."""
    left_open = {*known} - {*given, "encoding"}
    if given.keys() & _LABELS:
        left_open -= _LABELS
    if any(isinstance(column, int) for column in _listed(given.get("text_columns"))):
        left_open -= {"header"}  # of a number nobody knows whether names stand above it
    # Where a .csv follows a .tsv, or an option says so, quotes are others, too.
    if "separator" in given or known.get("separator", "") not in _first_line(path):
        left_open -= {"separator", "quoting"}
    kept = {name: known[name] for name in left_open}
    return {"encoding": _encoding(path, known.get("encoding", "utf-8")), **kept, **given}


def _listed(columns: Any) -> list[Any]:
    return columns if isinstance(columns, list) else [columns]


def _first_line(path: Path) -> str:
    """The first line of a file that is not blank, packed or not."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        opened = gzip.open if file.read(2) == b"\x1f\x8b" else open
    line = b""
    with opened(path, "rb") as file, contextlib.suppress(EOFError, OSError, zlib.error):
        line = next(filter(bytes.strip, file), b"")  # of a damaged file the reader tells
    return line.decode("utf-8", "replace").removeprefix("\ufeff")


def _encoding(path: Path, learned: str) -> str:
    """The encoding of the table of training, unless the file is UTF-8."""
    from skdice.datasets.reading import read_text

    if learned == "utf-8":
        return learned
    try:
        read_text(path)
    except ValueError:
        return learned
    return "utf-8"


@contextlib.contextmanager
def _explained(given: Mapping[str, Any], known: Mapping[str, Any] | None) -> Iterator[None]:
    """Say in an error about a column that the model learned from it, if no option named it."""
    try:
        yield
    except ValueError as error:
        name = str(error).partition("=")[0]
        if name not in (known or {}) or name in given or " is not in " not in str(error):
            raise
        remedy = f"the model learned from it: give {name} to take another"
        raise ValueError(f"{error}; {remedy}") from error


def _check_names(
    path: Path, columns: Any, given: Mapping[str, Any], known: Mapping[str, Any] | None
) -> None:
    """Refuse a file that names its columns, where training knew them by their number."""
    learned = _listed((known or {}).get("text_columns"))
    if "text_columns" in given or not any(isinstance(column, int) for column in learned):
        return
    if any(isinstance(column, str) for column in (columns or {}).get("text", ())):
        raise ValueError(
            f"{str(path)!r} names its columns, and the table that the model learned from did not: "
            "give text_columns, or header=False if its first line is a row"
        )
