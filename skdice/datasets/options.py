"""Options of readers: which reader has one, and what another is told."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

OF_CELLS = ("separator", "quoting", "header")  # that a `Source` has
OF_LABELS = {"label_column", "label_columns", "label_separator"}
OF_TOOLS = {"format", "offsets", "layer", "feature", "text_column"}


def without(options: Mapping[str, Any], *names: str | None) -> dict[str, Any]:
    """All but some of them."""
    return {name: value for name, value in options.items() if name not in names}


def task_asked_for(options: Mapping[str, Any]) -> str:
    """The task whose files alone have one of the options; empty if none says it."""
    asked = set(options)
    if asked & (OF_LABELS | {"text_columns"}):
        return "classification"
    if asked & {"token_column", "tag_column"}:
        return "tagging"
    return "entities" if asked & OF_TOOLS else ""


def check_options(reader: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse an option that the reader of a file does not have."""
    owner = f"{reader.__name__}, which reads this file"
    refuse_unknown(owner, inspect.signature(reader).parameters, options)


def refuse_unknown(owner: str, known: Iterable[str], options: Mapping[str, Any]) -> None:
    """Refuse an option that is not among those of what reads a file, its owner."""
    for name in sorted(set(options) - set(known)):
        problem = f"{name}={options[name]!r} is no option of {owner}"
        remedy = "leave it out, or say what the file holds, as by task='classification' for texts "
        raise TypeError(f"{problem}: {remedy}with labels, or task='tagging' for tagged sentences")
