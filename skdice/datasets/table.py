"""TSV and CSV files of texts or pairs with a label."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdice.datasets.conll import read_lines

__all__ = ["read_table"]

Column = int | str


def read_table(
    path: str | Path,
    *,
    text_columns: Column | Sequence[Column] | None = None,
    label_column: Column | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
) -> tuple[list[Any], list[str]]:
    """Read labelled texts, or pairs of texts.

    Parameters
    ----------
    path : str or Path
    text_columns : int, str or a list of one or two, default=None
        Columns of the text, or of the two texts of a pair, by index or by name in the header.
        None takes all columns but the label's, of which there may be two at most.
    label_column : int, str or None, default=None
        None is a column named ``label``, ``labels``, ``class``, ``target``, ``quality``, ``y`` or
        ``intent`` if there is a header, and otherwise the column with the fewest distinct values.
    separator : str or None, default=None
        None is a tab where the first line has one, and a comma otherwise.
    header : bool or None, default=None
        Whether the first line names the columns. None says yes if a column is given by name or
        the line holds one of the names above.
    quoting : bool or None, default=None
        Whether ``"`` quotes a field. None says yes for commas and no for tabs, where quotes are
        part of the text (as in MRPC).
    encoding : str, default="utf-8"

    Returns
    -------
    X : list of str or list of (str, str)
    y : list of str

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is empty, a line has other columns than the first, or a column is not there;
        the message names the line or the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skdice.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('text,label\\n"Free, now",spam\\nLunch?,ham\\n')
    ...     read_table(path)
    (['Free, now', 'Lunch?'], ['spam', 'ham'])
    """
    lines = read_lines(path, encoding)
    if separator is None:
        separator = "\t" if "\t" in lines[0] else ","
    if quoting is None:
        quoting = separator != "\t"
    rows = _rows(path, lines, separator, quoting)
    wanted = [text_columns] if isinstance(text_columns, (int, str)) else list(text_columns or [])
    if len(wanted) > 2:
        raise ValueError(f"text_columns={text_columns!r} names more than two columns")
    first = [cell.strip() for cell in rows[0][1]]
    if header is None:
        named = any(isinstance(column, str) for column in [*wanted, label_column])
        header = named or any(cell.lower() in LABEL_NAMES for cell in first)
    names = first if header else None
    if header:
        rows = rows[1:]
    if not rows:
        raise ValueError(f"{str(path)!r} holds a header only: give a file with examples")
    width = len(rows[0][1])
    label = _find_label(path, rows, names, label_column, width)
    texts = [_index(path, column, names, width, "text_columns") for column in wanted]
    if not texts:
        texts = [column for column in range(width) if column != label]
        if len(texts) > 2:
            shown = names if names is not None else f"0 to {width - 1}"
            raise ValueError(
                f"{str(path)!r} has {width} columns ({shown}): say which hold the text with "
                "text_columns (--text-column), and which the label with label_column "
                "(--label-column)"
            )
    y = [cells[label].strip() for _, cells in rows]
    for (number, _), value in zip(rows, y, strict=True):
        if not value:
            raise ValueError(f"{str(path)!r}, line {number}: the label is empty")
    if len(texts) == 1:
        return [cells[texts[0]] for _, cells in rows], y
    return [(cells[texts[0]], cells[texts[1]]) for _, cells in rows], y


LABEL_NAMES = ("label", "labels", "class", "target", "quality", "y", "intent")


def _rows(
    path: str | Path, lines: list[str], separator: str, quoting: bool
) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank, all of one width."""
    if quoting:
        reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, strict=True)
        rows = []
        start = 1
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    rows.append((start, cells))
                start = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{str(path)!r}, line {start}: {error}: mend the quotes, or read the file with "
                "quoting=False"
            ) from error
    else:
        rows = [(i, line.split(separator)) for i, line in enumerate(lines, 1) if line.strip()]
    width = len(rows[0][1])
    if width < 2:
        raise ValueError(
            f"{str(path)!r}, line {rows[0][0]}: one column only; a text and a label are needed: "
            "check separator"
        )
    for number, cells in rows:
        if len(cells) != width:
            raise ValueError(
                f"{str(path)!r}, line {number}: {len(cells)} column(s), but {width} in the first "
                "line: mend it, check separator and quoting, or the file may be cut short"
            )
    return rows


def _index(path: str | Path, column: Column, names: list[str] | None, width: int, what: str) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            raise ValueError(f"{what}={column!r} is not in the header of {str(path)!r}: {names}")
        return names.index(column)
    if not -width <= column < width:
        raise ValueError(f"{what}={column} is beyond the {width} columns of {str(path)!r}")
    return column % width


def _find_label(
    path: str | Path,
    rows: list[tuple[int, list[str]]],
    names: list[str] | None,
    label_column: Column | None,
    width: int,
) -> int:
    if label_column is not None:
        return _index(path, label_column, names, width, "label_column")
    for i, name in enumerate(names or []):
        if name.lower() in LABEL_NAMES:
            return i
    distinct = [len({cells[i].strip() for _, cells in rows}) for i in range(width)]
    return distinct.index(min(distinct))
