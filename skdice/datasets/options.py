"""Options that reach a reader by way of `read_dataset`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

# Options that only files of one kind have, and the task that reads such files.
OF_LABELS = {"label_column", "label_columns", "label_separator"}
_OF_TABLES = OF_LABELS | {"text_columns", "header", "quoting"}
_OF_TAGS = {"token_column", "tag_column", "scheme", "comment"}


def check_options(
    reader: Callable[..., Any], options: dict[str, Any], more: Sequence[str] = ()
) -> None:
    """Refuse an option that the reader of a file does not have."""
    for name in sorted(set(options) - set(inspect.signature(reader).parameters) - set(more)):
        problem = f"{name}={options[name]!r} is no option of {reader.__name__}, which reads this"
        remedy = "leave it out"
        if name in _OF_TABLES:
            remedy += ", or read the file as texts with labels by task='classification'"
        elif name in _OF_TAGS:
            remedy += ", or read the file as tagged sentences by task='tagging'"
        raise TypeError(f"{problem} file: {remedy}")
