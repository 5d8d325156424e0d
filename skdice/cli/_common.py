"""What the commands share: consoles, readable errors, checks of outputs, building estimators."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from skdice.tasks import TASKS

OUT = Console(markup=False, highlight=False)
ERR = Console(markup=False, highlight=False, stderr=True)
DEBUG = False  # True shows errors with their tracebacks


@contextlib.contextmanager
def readable_errors() -> Iterator[None]:
    """Exit 1 with one paragraph for bad data or a failed run, 130 for an interrupt."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        yield
    except KeyboardInterrupt:
        ERR.print("[bold]interrupted[/bold]: what was written before is kept", markup=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, ImportError, RuntimeError) as error:
        if DEBUG:
            raise
        ERR.print("[bold red]error[/bold red]:", end=" ", markup=True)
        ERR.print(str(error))
        raise typer.Exit(1) from None


# ---- outputs, checked before the work and not after


def new_folder(out: Path, option: str, *, holds_model: bool = False) -> None:
    """Refuse a file, and a folder with a model that is not to be written over."""
    if out.exists() and not out.is_dir():
        raise typer.BadParameter(f"{str(out)!r} is a file: give a folder to write to")
    if holds_model:
        raise typer.BadParameter(f"{str(out)!r} holds a model: give another {option}, or --force")


def new_file(path: Path | None, option: str, force: bool) -> None:
    """Refuse a file that cannot be written, or that exists and is not to be written over."""
    if path is None:
        return
    if not path.parent.is_dir():
        folder = str(path.parent)
        raise typer.BadParameter(f"{folder!r} is no folder: make it, or write elsewhere")
    if path.exists() and not force:
        raise typer.BadParameter(f"{str(path)!r} exists: give another {option}, or --force")


def split_commas(text: str) -> list[str]:
    """The parts of a list on the command line."""
    return [part.strip() for part in text.split(",") if part.strip()]


# ---- estimators


def load(source: Path, device: str = "auto") -> Any:
    """The estimator saved in a folder or on the hub; models of transformers are wrapped."""
    from skdice import backbones, estimators
    from skdice.estimators.hub import local_folder
    from skdice.estimators.storage import STATE, read_state

    folder = local_folder(source if source.is_dir() else str(source))
    if (folder / STATE).is_file() or not (folder / "config.json").is_file():
        name = str(read_state(folder)["class"])
        if not hasattr(estimators, name):
            raise ValueError(f"{str(folder)!r} holds a {name}, which this skdice does not have")
        return getattr(estimators, name).from_pretrained(folder, device=device)
    architecture = (backbones.load_config(str(folder)).architectures or ["no architecture"])[0]
    for task in TASKS.values():
        if task.head and f"For{task.head}" in architecture:
            return getattr(estimators, task.estimator).from_transformers(folder, device=device)
    raise ValueError(
        f"{str(folder)!r} holds a {architecture}: give a model for token classification, sequence "
        "classification or question answering, or one that skdice train wrote"
    )


def estimator_for(data: Any, **params: Any) -> Any:
    """An unfitted estimator for a data set; parameters that are None keep their defaults."""
    from skdice import estimators

    params["queries"] = data.queries
    given = {name: value for name, value in params.items() if value is not None}
    return getattr(estimators, TASKS[data.task].estimator)(**given)


def on_features(parts: dict[str, Any], params: dict[str, Any]) -> Any:
    """A head to train; replaces the texts in `parts` by vectors of the frozen backbone."""
    from skdice import DiceClassifier, TransformerFeatures

    if parts["train"].task != "classification":
        raise typer.BadParameter("--features is for texts; for tags use --frozen encoder")
    for name in ("frozen", "precision"):
        if name in params:
            raise typer.BadParameter(f"--{name} has no meaning with --features")
    of_encoder = {name: params[name] for name in ("backbone", "device") if name in params}
    of_head = {name: value for name, value in params.items() if name not in of_encoder}
    encoder = TransformerFeatures(**of_encoder).fit(parts["train"].X)
    with ERR.status("encoding the texts, once"):
        for name, part in parts.items():
            parts[name] = replace(part, X=encoder.transform(part.X))
    return DiceClassifier(**of_head)
