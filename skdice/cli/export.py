"""`skdice export`: a graph, its size, and how its scores differ from torch's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from skdice.cli import _common
from skdice.cli import _options as options
from skdice.cli._common import OUT


def export(
    model: options.Model,
    out: Annotated[Path, Option(help="Folder for the graph.")],
    int8: Annotated[bool, Option("--int8", help="Also write a graph of 8-bit integers.")] = False,
    file: Annotated[Path | None, Option(help="Labelled file to compare F1 on.")] = None,
    *,
    source: options.Files,
) -> None:
    """Write a model as ONNX and compare its predictions with torch's.

    A tagger with the entity types of the bundled corpus is compared on its test sentences.

    For example:

    skdice export tagger --out tagger-onnx

    skdice export classifier --out classifier-onnx --int8 --file test.tsv
    """
    _common.new_folder(out, whole=True)
    estimator = _common.load(model, "cpu")
    data = None if file is None else source.read(file, estimator.task.name)
    for line in _lines(estimator, out, int8, data):
        OUT.print(line, soft_wrap=True)


def _lines(estimator: Any, out: Path, int8: bool, data: Any) -> Iterator[str]:
    """Export, and yield a line on each result."""
    from skdice._checks import counted
    from skdice.export import INT8, MODEL, export_onnx, with_onnx

    folder = export_onnx(estimator, out, int8=int8)
    rows, before = _rows(estimator, data), 0.0
    if rows is not None:
        before = estimator.evaluate(*rows)["f1"]
        yield f"torch: F1 {before:.4f} on {counted(len(rows[0]), 'row')}"
    for name in (MODEL, INT8) if int8 else (MODEL,):
        line = f"{folder / name}: {(folder / name).stat().st_size / 1e6:.1f} MB"
        if rows is not None:
            after = with_onnx(estimator, folder / name).evaluate(*rows)["f1"]
            line += f", F1 {after:.4f} ({after - before:+.4f})"
        yield line


def _rows(estimator: Any, data: Any) -> tuple[Any, Any] | None:
    """The user's rows, or those of the bundled corpus if the model knows all of its types."""
    from skdice.datasets import load_town_notes
    from skdice.tasks.files import files_of

    if data is not None:
        return data.X, data.y
    if files_of(estimator.task).rows_are != "blocks" or not estimator.task.has_classes:
        return None
    X, y = load_town_notes(subset="test")
    tags = {tag for row in y for tag in row}
    return (X, y) if tags <= set(estimator.classes_.tolist()) else None
