"""`skdice convert`: texts with entities, from the file of one annotation tool to another's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from skdice._names import WRITTEN
from skdice.cli import _common, _files
from skdice.cli import _options as options
from skdice.cli._common import OUT


def convert(
    ctx: typer.Context,
    file: Annotated[Path, Argument(help="File, or folder of brat, to read.")],
    out: Annotated[Path, Argument(help="File, or folder of brat, to write.")],
    write_as: Annotated[
        str | None,
        Option(
            "--to", metavar="FORMAT", help=f"One of {', '.join(WRITTEN)}; default: by the name."
        ),
    ] = None,
    force: options.ForceFile = False,
    text_columns: options.TextColumns = None,
    encoding: options.Encoding = None,
    on_misaligned: options.OnMisaligned = "raise",
    offsets: options.Offsets = "auto",
    format: options.Format = "auto",
    layer: options.Layer = None,
    feature: options.Feature = None,
) -> None:
    """Write texts with entities from one annotation tool as another reads them.

    Files of spaCy, WebAnno, BioC and PubTator are read, too. Ids and other fields go along.

    For example:

    skdice convert notes.jsonl tasks.json --to label-studio

    skdice convert brat-folder notes.jsonl --to prodigy

    skdice convert train.json tasks.jsonl --to prodigy
    """
    from skdice._checks import counted
    from skdice.datasets import write_annotations
    from skdice.datasets.annotations import format_of_name

    _common.new_file(out, "OUT", force, folder=out.is_dir())
    written = write_as or format_of_name(out)
    if written is None:
        raise typer.BadParameter(
            f"{out.name!r} does not show its format: give --to, one of {', '.join(WRITTEN)}"
        )
    data = _files.read(file, "entities", ctx.params)
    write_annotations(out, data.X, data.y, written, data.meta)
    n, texts = sum(map(len, data.y)), counted(len(data), "text")
    OUT.print(f"wrote {texts} with {counted(n, 'entity')} to {out} ({written})", soft_wrap=True)
