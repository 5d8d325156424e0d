"""Options that several commands share, and the values that they take; each has one name.

A command lists its options, as typer asks, and hands on all that it was given: `ctx.params`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from skdice._names import TASK_NAMES

Mode = Literal["lenient", "strict", "exact", "partial", "type"]

Model = Annotated[Path, Argument(help="Folder of a model, or its id on the hub.")]
Dev = Annotated[Path | None, Option(help="File whose F1 picks the best epoch.")]
ForceFile = Annotated[bool, Option("--force", help="Write over what is there.")]

# ---- reading


def split_commas(text: str) -> list[str]:
    """The parts of a list on the command line."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _column(text: str) -> int | str:
    """A column by its index or its name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def _columns(text: str) -> list[int | str]:
    """Columns separated by commas."""
    return [_column(part) for part in split_commas(text)]


def _separator(text: str) -> str:
    return text.replace(r"\t", "\t")


Task = Annotated[
    str,
    Option(metavar="TASK", help=f"What files hold: {', '.join(TASK_NAMES)}; auto looks at them."),
]
TextColumns = Annotated[
    list[str] | None,
    Option(metavar="COLUMNS", help="Column of texts or tokens, by name or index; two of pairs."),
]
LabelColumn = Annotated[
    Any,
    Option(
        parser=_column, metavar="COLUMN", help="Column of labels or tags; default: by its name."
    ),
]
LabelColumns = Annotated[
    Any,
    Option(parser=_columns, metavar="COLUMNS", help="Columns of 0 and 1, as in toxic,obscene."),
]
LabelSeparator = Annotated[
    str | None, Option(help="Between several labels in one cell, as in spam, ad.")
]
Separator = Annotated[
    Any, Option(parser=_separator, metavar="CHARACTER", help=r"Between columns, such as ; or \t.")
]
Quoting = Annotated[bool | None, Option(help='Whether " quotes a field of a table.')]
Header = Annotated[bool | None, Option(help="Whether the first line names the columns.")]
Encoding = Annotated[
    str | None, Option(help="Encoding of the files, such as latin-1; default: utf-8.")
]
OnMisaligned = Annotated[
    Literal["raise", "drop", "expand"],
    Option(help="What to do with answers and entities that are not at their offset."),
]
Offsets = Annotated[
    Literal["auto", "codepoints", "utf16"],
    Option(help="What offsets of entities count; auto finds out."),
]
Format = Annotated[
    str,
    Option(metavar="FORMAT", help="Format of an annotation tool; auto looks at the file."),
]
Layer = Annotated[
    str | None, Option(metavar="NAME", help="Layer of WebAnno to read, where it has several.")
]
Feature = Annotated[
    str | None, Option(metavar="NAME", help="Feature of the layer that holds the labels.")
]


_OF_TABLE = (
    *("text_columns", "label_column", "label_columns", "label_separator"),
    *("separator", "quoting", "header", "encoding"),
)


def of_table(params: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `read_table` that a command was given."""
    given = {name: params.get(name) for name in _OF_TABLE}
    texts = [column for part in given["text_columns"] or () for column in _columns(part)]
    given["text_columns"] = texts[0] if len(texts) == 1 else texts or None
    return {name: value for name, value in given.items() if value is not None}


def of_tool(params: Mapping[str, Any]) -> dict[str, str]:
    """The arguments of `read_annotations` that a command was given, beside those of tables."""
    names = ("on_misaligned", "offsets", "format", "layer", "feature")
    given = {name: params.get(name) for name in names}
    return {name: value for name, value in given.items() if value not in (None, "auto")}


# ---- training: parameters of the estimators; "auto" is their default


def _value(text: str) -> int | float | str | None:
    """A number, a word, or none; the estimator checks it."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None if text == "none" else text


Backbone = Annotated[
    str | None,
    Option(metavar="MODEL", help="Hub id or folder of the encoder; default: all-MiniLM-L6-v2."),
]
MaxEpochs = Annotated[
    Any, Option(parser=_value, metavar="N|auto", help="Number of epochs; default: auto.")
]
Rate = Annotated[
    Any, Option(parser=_value, metavar="RATE|auto", help="Peak learning rate; default: auto.")
]
BatchSize = Annotated[
    int | None, Option(min=1, metavar="N", help="Examples in a batch; default: 32, 16 with qa.")
]
MaxLength = Annotated[
    int | None,
    Option(metavar="N", help="Longest input, in subwords; default: the encoder's, 512 at most."),
]
Pooling = Annotated[
    str | None,
    Option(
        metavar="HOW", help="Vectors of texts: mean (default), cls, max, or native: transformers'."
    ),
]
Glued = Annotated[
    str | None,
    Option(metavar="HOW", help="Words behind others without a blank, as in @name: tag, or skip."),
]
Frozen = Annotated[
    Any,
    Option(parser=_value, metavar="PARTS", help="One of none, embeddings, encoder, or N layers."),
]
Device = Annotated[str, Option(metavar="NAME", help="One of auto, cpu, cuda, cuda:1 or mps.")]
Precision = Annotated[str, Option(metavar="NAME", help="One of auto, fp32, fp16 or bf16.")]
RandomState = Annotated[int, Option(metavar="N", help="Seed of all that is random.")]
_OF_FIT = (
    *("backbone", "max_epochs", "lr", "batch_size", "max_length"),
    *("pooling", "glued", "frozen", "device", "precision"),
)


def of_fit(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator that a command was given."""
    return {n: params[n] for n in _OF_FIT if params[n] not in (None, "auto")}
