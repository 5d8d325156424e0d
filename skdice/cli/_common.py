"""Parts that the commands share: consoles, readable errors, checks, building estimators."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

OUT = Console(markup=False, highlight=False)
ERR = Console(markup=False, highlight=False, stderr=True)
DEBUG = False  # True shows errors with their tracebacks
# Readers of tagged tokens and of entities have names of their own for what is one option.
_OPTIONS = {
    "token_column": "text_columns", "tag_column": "label_column", "text_column": "text_columns",
}  # fmt: skip


@contextlib.contextmanager
def readable_errors(command: Any) -> Iterator[None]:
    """Exit 1 with one paragraph for bad data or a failed run, 130 for an interrupt.

    Warnings of skdice are one line, without the line of a program that the user did not write.
    Errors name parameters; the options that these are stand behind.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    whole = warnings.formatwarning

    def short(message: Warning | str, category: type[Warning], *where: Any) -> str:
        from skdice.exceptions import SkdiceWarning

        if not issubclass(category, SkdiceWarning):
            return whole(message, category, *where)
        return f"{category.__name__}: {message}\n"

    warnings.formatwarning = short  # type: ignore[assignment]
    try:
        yield
    except BrokenPipeError:  # as in `skdice predict ... | head`, which typer ends quietly
        raise
    except KeyboardInterrupt:
        ERR.print("[bold]interrupted[/bold]:", end=" ", markup=True)
        ERR.print("run again to go on, which skdice compare and train --checkpoint-dir do")
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if DEBUG:
            raise
        ERR.print("[bold red]error[/bold red]:", end=" ", markup=True)
        text = re.sub(r"\b[a-z_]+_column\b", lambda m: _OPTIONS.get(m[0], m[0]), str(error))
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b|\b[a-z]+(?==)", text))
        options = [param.opts[0] for param in command.params if param.name in named]
        ERR.print(f"{text} ({', '.join(options)})" if options else text)
        raise typer.Exit(1) from None
    finally:
        warnings.formatwarning = whole


# ---- outputs, checked before the work and not after


def new_file(path: Path | None, option: str, force: bool, *, folder: bool = False) -> None:
    """Refuse a file, or `folder`, that cannot be written, or that exists without `force`."""
    from skdice.whole_files import is_regular

    if path is None:
        return
    if path.suffix.lower() in (".gz", ".bz2", ".xz", ".zip"):
        raise typer.BadParameter(f"{str(path)!r} would hold plain text: drop {path.suffix!r}")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{str(path.parent)!r} is no folder: make it, or write elsewhere")
    if path.exists():
        if not path.is_dir() and not is_regular(path):  # a device or a pipe is written through
            return
        if not force:
            raise typer.BadParameter(f"{str(path)!r} exists: give another {option}, or --force")
        if path.is_dir() != folder:
            kind = "folder" if folder else "file"
            raise typer.BadParameter(f"{str(path)!r} is no {kind}: give another {option}")
    check_writable(path.resolve().parent)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written, or made."""
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise typer.BadParameter(
            f"{str(folder)!r} cannot be written ({error.strerror}): write elsewhere"
        ) from error


# ---- estimators


def class_for(task: str) -> Any:
    """The class of the estimators of a task."""
    from skdice import estimators
    from skdice.tasks import TASKS

    return getattr(estimators, TASKS[task].estimator)


def load(source: Path, device: str = "auto") -> Any:
    """The estimator saved in a folder or on the hub; models of transformers are wrapped."""
    from skdice import backbones, estimators
    from skdice.estimators.hub import local_folder
    from skdice.estimators.storage import STATE, read_state

    folder = local_folder(source if source.is_dir() else str(source), None)
    if (folder / STATE).is_file() or not (folder / "config.json").is_file():
        name = str(read_state(folder)["class"])
        if not hasattr(estimators, name):
            raise ValueError(f"{str(folder)!r} holds a {name}, which this skdice does not have")
        return getattr(estimators, name).from_pretrained(folder, device=device)
    architecture = (backbones.load_config(str(folder)).architectures or ["no architecture"])[0]
    from skdice.tasks import TASKS
    from skdice.tasks.cards import card_of

    for task in TASKS.values():
        if task.head and card_of(task).is_default and f"For{task.head}" in architecture:
            return class_for(task.name).from_transformers(folder, device=device)
    raise ValueError(
        f"{str(folder)!r} holds a {architecture}: give a model for token classification, sequence "
        "classification or question answering, or one that skdice train wrote"
    )


def estimator_of(data: Any, **params: Any) -> Any:
    """An unfitted estimator for a data set; a parameter of None keeps its default."""
    given = {name: value for name, value in params.items() if value is not None}
    cls = class_for(data.task)
    if data.queries is not None:
        given["queries"] = data.queries
    return cls(**given)
