"""Tables as text, and in HTML for pages."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from skdice._checks import printable


def escaped(text: str) -> str:
    """A text for a page that can be written as UTF-8."""
    return html.escape(printable(text))


def html_table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with the names of its columns, all text escaped."""
    head = "".join(f"<th>{escaped(name)}</th>" for name in names)
    rows = ("".join(f"<td>{escaped(cell)}</td>" for cell in line) for line in lines)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def text_table(names: Sequence[str], lines: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table in plain text, the first column to the left and the others to the right."""
    rows = [names, *lines]
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = [caption] if caption else []
    for first, *others in rows:
        cells = (cell.rjust(size) for cell, size in zip(others, sizes[1:], strict=True))
        texts.append("  ".join([first.ljust(sizes[0]), *cells]).rstrip())
    return "\n".join(texts)


def frame_of(records: Sequence[Any], columns: Sequence[str] | None = None) -> Any:
    """Records as a frame where pandas is installed, and as they are otherwise.

    Of given columns places are whole numbers or missing, scores are floats, and all else stays what
    it is.
    """
    try:
        import pandas as pd
    except ImportError:
        return records
    if columns is None:
        return pd.DataFrame(records)
    places = {name: "Int64" for name in columns if name.endswith(("start", "end"))}
    scores = dict.fromkeys(("probability", "gain", "score", "confidence"), "float64")
    kinds = {"row": "int64"} | scores | places
    found = pd.DataFrame(records, columns=list(columns), dtype=object)
    return found.astype({name: kinds[name] for name in columns if name in kinds})
