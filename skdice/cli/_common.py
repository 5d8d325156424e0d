"""What the commands share: readable errors, reading files, building estimators."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

OUT = Console()
ERR = Console(stderr=True)
DEBUG = False


def set_debug(value: bool) -> None:
    """Let errors through with their tracebacks."""
    global DEBUG
    DEBUG = value


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Exit 1 with one paragraph for bad data or a failed run, 130 for an interrupt."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        yield
    except KeyboardInterrupt:
        ERR.print("[bold]interrupted[/bold]: what was written before is kept")
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if DEBUG:
            raise
        ERR.print("[bold red]error[/bold red]:", end=" ")
        ERR.print(str(error), markup=False, highlight=False)
        raise typer.Exit(1) from None


def usage(message: str) -> typer.BadParameter:
    """A mistake in the command line: exit 2."""
    return typer.BadParameter(message)


def writable(out: Path | None, *, folder: bool = False) -> None:
    """Refuse a place that cannot be written to, before the work and not after."""
    if out is None:
        return
    if folder and out.exists() and not out.is_dir():
        raise usage(f"{str(out)!r} is a file: give a folder to write to")
    if not folder and not out.parent.is_dir():
        raise usage(f"{str(out.parent)!r} is no folder: make it, or write elsewhere")


def new_file(path: Path | None, option: str, force: bool) -> None:
    """Refuse a file that cannot be written, or that exists and is not to be written over."""
    writable(path)
    if path is not None and path.exists() and not force:
        raise usage(f"{str(path)!r} exists: give another {option}, or --force")


def column(value: str | None) -> int | str | None:
    """A column given by index or by name."""
    if value is None:
        return None
    return int(value) if value.lstrip("-").isdigit() else value


def table_options(
    text_columns: list[str] | None, label_column: str | None, header: bool | None
) -> dict[str, Any]:
    """What the readers of tables take of the command line."""
    return {
        "text_columns": [column(name) for name in text_columns or ()],
        "label_column": column(label_column),
        "header": header,
    }


def read(
    path: Path,
    task: str,
    text_columns: list[str] | None = None,
    label_column: str | None = None,
    header: bool | None = None,
    on_misaligned: str = "raise",
    encoding: str = "utf-8",
) -> Any:
    """A `Dataset` from a file, with the options of the command line."""
    from skdice.datasets.auto import find_task, read_dataset

    asked = bool(text_columns) or label_column is not None
    if task == "auto":
        task = "classification" if asked else find_task(path, encoding)
    options: dict[str, Any] = {}
    if task == "classification":
        options = table_options(text_columns, label_column, header)
    elif task == "qa":
        options["on_misaligned"] = on_misaligned
    else:
        if text_columns:
            options["token_column"] = column(text_columns[0])
        if label_column is not None:
            options["tag_column"] = column(label_column)
    return read_dataset(path, task=task, encoding=encoding, **options)


def load(source: Path, device: str = "auto") -> Any:
    """The saved estimator in a folder or on the hub, or one around a model of transformers."""
    from skdice import backbones, estimators
    from skdice.estimators.hub import local_folder
    from skdice.estimators.storage import STATE, read_state

    folder = local_folder(source if source.is_dir() else str(source))
    if (folder / STATE).is_file() or not (folder / "config.json").is_file():
        name = str(read_state(folder)["class"])
        if not hasattr(estimators, name):
            raise ValueError(f"{str(folder)!r} holds a {name}, which this skdice does not have")
        return getattr(estimators, name).from_pretrained(folder, device=device)
    found = (backbones.load_config(str(folder)).architectures or ["no architecture"])[0]
    for task, head in backbones.HEADS.items():
        if f"For{head}" in found:
            return _class_of(task).from_transformers(folder, device=device)
    raise ValueError(
        f"{str(folder)!r} holds a {found}: give a model for token classification, sequence "
        "classification or question answering, or one that skdice train wrote"
    )


def _class_of(task: str) -> Any:
    """The estimator of a task."""
    from skdice import estimators as e

    readers = (e.DiceTokenClassifier, e.DiceSequenceClassifier, e.DiceQuestionAnswerer)
    return {each.task: each for each in (*readers, e.DiceMRCTagger)}[task]


def estimator_for(task: str, **params: Any) -> Any:
    """An unfitted estimator; parameters that are None keep their defaults."""
    return _class_of(task)(**{name: value for name, value in params.items() if value is not None})


def frozen(value: str | None) -> str | int | None:
    """``--frozen``: a name or a number of layers."""
    return int(value) if value is not None and value.isdigit() else value


def is_terminal() -> bool:
    """Whether somebody looks at the progress bar."""
    return sys.stderr.isatty()
