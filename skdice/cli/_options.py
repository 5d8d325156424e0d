"""Options that several commands have, and the values that they take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Task(StrEnum):
    """What a file holds."""

    auto = "auto"
    tagging = "tagging"
    classification = "classification"
    qa = "qa"
    mrc_ner = "mrc-ner"


class Strategy(StrEnum):
    """How trials of a search are run."""

    auto = "auto"
    full = "full"
    shared = "shared"


class Misaligned(StrEnum):
    """What to do with an answer that is not where its file says."""

    stop = "raise"
    drop = "drop"
    fix = "fix"


MisalignedOption = Annotated[
    Misaligned,
    typer.Option(
        "--on-misaligned",
        help="Answers that their context does not hold at their offset: raise, drop or fix.",
    ),
]
TaskOption = Annotated[Task, typer.Option(help="Kind of file; auto looks at it.")]
TextColumns = Annotated[
    list[str] | None,
    typer.Option("--text-column", help="Text column by name or index; twice for pairs."),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        help="Label column, by name or index; else one named label, target, class, y or tag."
    ),
]
Header = Annotated[
    bool | None, typer.Option("--header/--no-header", help="First line names columns.")
]
Encoding = Annotated[str, typer.Option(help="Of the files, such as latin-1.")]
Backbone = Annotated[str | None, typer.Option(help="Hub id or local folder of the encoder.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Epochs to train.")]
Rate = Annotated[float | None, typer.Option("--lr", help="Peak learning rate.")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Examples in a batch.")]
Frozen = Annotated[
    str | None, typer.Option(help="none, embeddings, encoder, or how many lower layers to freeze.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")]
Precision = Annotated[str | None, typer.Option(help="auto, fp32, fp16 or bf16.")]


class Format(StrEnum):
    """How predictions are written."""

    auto = "auto"
    conll = "conll"
    jsonl = "jsonl"
    spans = "spans"


Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        "--losses",
        help="What to compare, comma between: losses, also with a sampler or a tuned decision, as "
        "in 'ce + RandomOverSampler, ce + tuned, dsc'; default: the paper's six losses and "
        "ce_dice.",
    ),
]
Page = Annotated[
    Path | None,
    typer.Option("--report", help="HTML page to write: intervals, pictures, hard examples."),
]
