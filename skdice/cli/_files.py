"""Files that commands read: by their options, and else as the table that a model learned from."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from skdice.cli import _options as options

if TYPE_CHECKING:
    from skdice.datasets.row import Row
    from skdice.datasets.source import Source

_LABELS = {"label_column", "label_columns"}


def read(path: Path, task: str, params: Mapping[str, Any], known: Any = None) -> Any:
    """A `Dataset` from a file, by the options of a command.

    `known` are the arguments of `read_table` that read the table which a model learned from. What
    no option says is taken from there, so that columns are the same by name and in order.
    """
    from skdice._checks import check_choice
    from skdice.datasets.dataset import READERS, read_source, task_of

    check_choice("task", task, ("auto", *READERS))
    given, of_tool, known = options.of_table(params), options.of_tool(params), known or {}
    source, table = _as_table(_opened(path, given, known), given, known)
    chosen = {n: v for n, v in of_tool.items() if n in ("format", "layer", "feature")}
    if task == "auto":
        task = task_of(source, {**table, **chosen})
    if chosen and task != "entities":
        raise typer.BadParameter(f"--{next(iter(chosen))} is for texts with entities")
    with _explained(given, known):
        return read_source(source, task, READERS[task].options(table, of_tool))


def inputs(path: Path, estimator: Any, params: Mapping[str, Any]) -> tuple[Source, list[Row]]:
    """A file to predict, or standard input, and its rows."""
    from skdice.datasets.dataset import READERS, Learned, read_inputs

    given, known = options.of_table(params), getattr(estimator, "table_", {})
    opened = _opened(path, given, known)
    if not given.keys() - {"encoding"} and not _is_table(opened, known):
        known = {}
    source, table = _as_table(opened, given, known)
    table.pop("label_separator", None)
    task = estimator.task.name
    n_texts, tags = getattr(estimator, "n_features_in_", None), getattr(estimator, "classes_", ())
    with _explained(given, known):
        how = READERS[task].options(table, {})
        return source, read_inputs(source, task, how, Learned(n_texts, tags))


def _opened(path: Path, given: Mapping[str, Any], known: Mapping[str, Any]) -> Source:
    """A file, or standard input for ``-``, in UTF-8 or else in the encoding of training."""
    from skdice.datasets.source import Source

    source = Source(path, given.get("encoding", "utf-8"))
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        source = replace(source, path=Path("standard input"), content=content)
    if "encoding" not in given and known.get("encoding", "utf-8") != "utf-8":
        try:
            source.text  # noqa: B018
        except ValueError:
            source = replace(source, encoding=known["encoding"])
    return source


def _is_table(source: Source, known: Mapping[str, Any]) -> bool:
    """Return False of a file that holds a text on each line, by its name and its first line.

    The names of the columns that are `known` show a table, whatever separates them, or their
    separator if they have no names.
    """
    if source.is_json or source.suffix in (".csv", ".tsv") or "\t" in source.first_line:
        return True
    separator = known.get("separator", "\t")
    if not known or known.get("header") is False:
        return separator in source.first_line
    cells = re.split(f"[,;{re.escape(separator)}]", source.first_line)
    return set(known["text_columns"]) <= {cell.strip().strip('"') for cell in cells}


def _as_table(
    source: Source, given: Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[Source, dict[str, Any]]:
    """A file and the options of a command, with what is `known` for what they leave open."""
    from skdice.datasets.dataset import with_cells

    left_open = {*known} - {*given, "encoding"}
    if given.keys() & _LABELS:
        left_open -= _LABELS
    if "text_columns" in given:  # of a number nobody knows whether names stand above it
        left_open -= {"header"}
    # Where a .csv follows a .tsv, or an option says so, quotes are others, too.
    if (
        "separator" in given
        or source.is_json
        or known.get("separator", "") not in source.first_line
    ):
        left_open -= {"separator", "quoting"}
    table = {**{name: known[name] for name in left_open}, **given}
    table.pop("encoding", None)
    _check_names(source, {**table, "header": given.get("header")}, given, known)
    return with_cells(source, table), table


def _check_names(
    source: Source, table: dict[str, Any], given: Mapping[str, Any], known: Mapping[str, Any]
) -> None:
    """Refuse a file that names its columns, where training knew them by their number."""
    from skdice.datasets.cells import table_of
    from skdice.datasets.dataset import with_cells

    by_number = any(isinstance(column, int) for column in known.get("text_columns", ()))
    if "text_columns" in given or not by_number:
        return
    if source.is_json or table_of(with_cells(source, table), 1000)[0] is not None:
        raise ValueError(
            f"{str(source.path)!r} names its columns, and the table that the model learned from "
            "did not: give text_columns, or header=False if its first line is a row"
        )


@contextlib.contextmanager
def _explained(given: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[None]:
    """Say in an error about a column that the model learned from it, if no option named it."""
    try:
        yield
    except ValueError as error:
        name = str(error).partition("=")[0]
        if name not in known or name in given or " is not in " not in str(error):
            raise
        remedy = f"the model learned from it: give {name} to take another"
        raise ValueError(f"{error}; {remedy}") from error
