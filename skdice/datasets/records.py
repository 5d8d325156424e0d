"""TSV, CSV and JSON-lines files of texts or pairs, with or without labels."""

from __future__ import annotations

import csv
import io
import json
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skdice.datasets.conll import read_lines, suffix_of

__all__ = ["read_table", "read_texts"]

Column = int | str
Columns = Column | Sequence[Column] | None

LABEL_NAMES = ("label", "target", "class", "y", "tag")
TEXT_NAMES = (
    *("text", "sentence", "sentence1", "sentence2", "question", "question1", "question2"),
    *("premise", "hypothesis", "title", "review", "content", "message"),
)
ID_NAMES = ("id", "idx", "index", "guid", "uid", "")  # pandas gives its index no name


def read_table(
    path: str | Path,
    *,
    text_columns: Columns = None,
    label_column: Column | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
) -> tuple[list[Any], list[str]]:
    r"""Read labelled texts, or pairs of texts.

    A file named ``.jsonl``, or whose first line is a JSON object, is read as JSON lines: one
    object a line, whose keys are the names of columns. A label may be a number there, and
    `separator`, `header` and `quoting` have no meaning.

    Parameters
    ----------
    path : str or Path
    text_columns : int, str or a list of one or two, default=None
        Columns of the text, or of the two texts of a pair, by index or by name in the header.
        None takes all columns but the label's, of which there may be two at most. Columns with
        the name ``id``, ``idx``, ``index``, ``guid`` or ``uid``, or none, hold no text.
    label_column : int, str or None, default=None
        By index or by name. None is a column named ``label``, ``target``, ``class``, ``y`` or
        ``tag``, or the only column that `text_columns` leaves. It is never guessed from the values.
    separator : str or None, default=None
        None takes what the first line has: a tab, else a comma, else a semicolon in a ``.csv``
        file.
    header : bool or None, default=None
        Whether the first line names the columns. None says yes if a column is given by name, the
        line holds one of the names above for a label, or it holds a usual name of a text, such as
        ``text``, ``sentence1`` or ``review``, and nothing that comes again below.
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
        If the file is empty, a line has other columns than the first or is not JSON, a column is
        not there, nothing says which column holds the label, or a value is not a text or a label;
        the message names the line or the columns.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skdice.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('text,label\n"Free, now",spam\nLunch?,ham\n')
    ...     read_table(path)
    (['Free, now', 'Lunch?'], ['spam', 'ham'])
    """
    path = Path(path)
    lines = read_lines(path, encoding)
    wanted = _as_list(text_columns)
    if separator is None:
        separator = _separator(path, lines)
    table = _load(path, lines, [*wanted, label_column], separator, header, quoting)
    if table.width < 2:
        raise ValueError(
            f"{str(path)!r}, line {table.rows[0][0]}: one column only; a text and a label are "
            "needed: check separator"
        )
    texts = [table.index(column, "text_columns") for column in wanted]
    if label_column is None:
        label = table.find_label([i for i in table.columns if i not in texts], bool(texts))
    else:
        label = table.index(label_column, "label_column")
    if not texts:
        texts = table.check_texts([i for i in table.columns if i != label], 2)
    return table.texts(texts), table.labels(label)


def read_texts(
    path: str | Path,
    *,
    n_texts: int = 1,
    text_columns: Columns = None,
    label_column: Column | None = None,
    classes: Iterable[Any] = (),
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
) -> list[Any]:
    r"""Read texts, or pairs of texts, to predict: their labels may be there or not.

    Parameters
    ----------
    path : str or Path
        A table as for `read_table`, or a file with one text a line.
    n_texts : {1, 2}, default=1
        How many texts a row has: 1, or 2 for pairs.
    text_columns : int, str or a list of one or two, default=None
        Columns of the texts. None takes all but the label's and those that hold no text, as
        `read_table` tells them by their names.
    label_column : int, str or None, default=None
        A column that is not text.
    classes : list, default=()
        Where there are more than `n_texts` columns, one that holds nothing but these labels is
        not text.
    separator : str or None, default=None
        None is a tab where the first line has one; a comma or semicolon in a ``.csv`` file, as in
        `read_table`; a comma where the first line has one and a column or ``header=True`` is given.
        Otherwise nothing separates: each line is a text, commas and all.
    header, quoting, encoding
        As in `read_table`. Of files with one column, only ``.csv`` and ``.tsv`` are looked at for
        a header.

    Returns
    -------
    X : list of str or list of (str, str)

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        As in `read_table`, and if there are more columns that may hold text than `n_texts`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skdice.datasets import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('id,text\n7,"Free, now"\n8,Lunch?\n')
    ...     read_texts(path)
    ['Free, now', 'Lunch?']
    """
    if n_texts not in (1, 2):
        raise ValueError(f"n_texts={n_texts!r} must be 1, or 2 for pairs")
    path = Path(path)
    lines = read_lines(path, encoding)
    wanted = _as_list(text_columns)
    if separator is None:
        asked = bool(wanted) or label_column is not None or bool(header)
        cut = suffix_of(path) == ".csv" or (asked and "," in _first(lines))
        # Without a tab a line is one text.
        separator = _separator(path, lines) if cut else "\t"
    table = _load(path, lines, [*wanted, label_column], separator, header, quoting)
    label = None if label_column is None else table.index(label_column, "label_column")
    texts = [table.index(column, "text_columns") for column in wanted]
    if not texts:
        left = [i for i in table.columns if i != label and not table.is_named(i, LABEL_NAMES)]
        if len(left) > n_texts:
            known = {"", *map(str, classes)}
            rows = [cells for _, cells in table.rows]
            others = [i for i in left if any(str(row[i]).strip() not in known for row in rows)]
            left = others if len(others) >= n_texts else left
        texts = table.check_texts(left, n_texts)
    return table.texts(texts)


def is_json_lines(path: Path, lines: list[str]) -> bool:
    """Whether a table is JSON lines: by its name, or by its first line."""
    return suffix_of(path) in (".jsonl", ".json") or is_record(_first(lines))


def is_record(line: str) -> bool:
    """Whether a line is a JSON object."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


@dataclass(frozen=True)
class _Table:
    """Rows of one width, each with its line number; cells of JSON need not be strings."""

    path: Path
    names: list[str] | None
    rows: list[tuple[int, list[Any]]]

    @property
    def width(self) -> int:
        return len(self.rows[0][1])

    @property
    def columns(self) -> list[int]:
        """Columns that may hold a text or a label."""
        return [i for i in range(self.width) if not self.is_named(i, ID_NAMES)]

    def is_named(self, i: int, names: tuple[str, ...]) -> bool:
        return self.names is not None and self.names[i].lower() in names

    def index(self, column: Column, what: str) -> int:
        if isinstance(column, str):
            if self.names is None or column not in self.names:
                raise ValueError(
                    f"{what}={column!r} is not in the header of {str(self.path)!r}: {self.names}"
                )
            return self.names.index(column)
        if not -self.width <= column < self.width:
            raise ValueError(
                f"{what}={column} is beyond the {self.width} columns of {str(self.path)!r}"
            )
        return column % self.width

    def find_label(self, columns: list[int], knows_texts: bool) -> int:
        """The column whose name says so, or the only one beside the texts."""
        if not columns:
            raise ValueError(
                f"{str(self.path)!r} has no column left for the label: give label_column "
                "(--label-column)"
            )
        named = [i for i in columns if self.is_named(i, LABEL_NAMES)]
        if named or (knows_texts and len(columns) == 1):
            return (named or columns)[0]
        raise ValueError(
            f"which column of {str(self.path)!r} holds the label? It has {self.shown(columns)}: "
            "give label_column (--label-column) by index or name, or name the column in a header: "
            f"{', '.join(LABEL_NAMES)}"
        )

    def shown(self, columns: list[int]) -> list[str]:
        """Columns by name, or by index with their first value."""
        names = self.names or [f"{i}: {cell:.20}" for i, cell in enumerate(self.rows[0][1])]
        return [names[i] for i in columns]

    def check_texts(self, columns: list[int], n_texts: int) -> list[int]:
        """`columns`, which may hold text, if they are not too many."""
        if not 1 <= len(columns) <= n_texts:
            wanted = "1" if n_texts == 1 else "1 or 2"
            raise ValueError(
                f"{str(self.path)!r} has {len(columns)} columns that may be text "
                f"{self.shown(columns)}, not {wanted}: say which hold the text with text_columns "
                "(--text-column), and which the label with label_column (--label-column)"
            )
        return columns

    def texts(self, columns: list[int]) -> list[Any]:
        for i in columns:
            for number, cells in self.rows:
                if not isinstance(cells[i], str):
                    raise self._refusal(number, i, cells[i], "a string")
        read = operator.itemgetter(*columns)  # a value of one column, a tuple of two
        return [read(cells) for _, cells in self.rows]

    def labels(self, i: int) -> list[str]:
        found = []
        for number, cells in self.rows:
            value = cells[i]
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not isinstance(value, str) and not (is_number and math.isfinite(value)):
                raise self._refusal(number, i, value, "a string or a number")
            if not str(value).strip():
                raise ValueError(f"{str(self.path)!r}, line {number}: the label is empty")
            found.append(str(value).strip())
        return found

    def _refusal(self, number: int, i: int, value: Any, wanted: str) -> ValueError:
        name = i if self.names is None else self.names[i]
        what = "missing" if value is None else f"{value!r:.60}"
        return ValueError(
            f"{str(self.path)!r}, line {number}: {name!r} is {what}, not {wanted}: mend the line, "
            "or name other columns with text_columns and label_column (--text-column, "
            "--label-column)"
        )


def _as_list(columns: Columns) -> list[Column]:
    wanted = [columns] if isinstance(columns, (int, str)) else list(columns or [])
    if len(wanted) > 2:
        raise ValueError(f"text_columns={columns!r} names more than two columns")
    return wanted


def _first(lines: list[str]) -> str:
    return next(line for line in lines if line.strip())


def _separator(path: Path, lines: list[str]) -> str:
    first = _first(lines)
    if "\t" in first:
        return "\t"
    # Spreadsheets write it where the comma is the decimal point.
    return ";" if suffix_of(path) == ".csv" and ";" in first and "," not in first else ","


def _load(
    path: Path,
    lines: list[str],
    asked: list[Column | None],
    separator: str,
    header: bool | None,
    quoting: bool | None,
) -> _Table:
    if is_json_lines(path, lines):
        return _load_json(path, lines)
    rows = _rows(path, lines, separator, separator != "\t" if quoting is None else quoting)
    if header is None:
        named = any(isinstance(column, str) for column in asked)
        # The first of plain lines is a text.
        plain = len(rows[0][1]) == 1 and suffix_of(path) not in (".csv", ".tsv")
        header = named or (not plain and _names_columns([cells for _, cells in rows]))
    if not header:
        return _Table(path, None, rows)
    if not rows[1:]:
        raise ValueError(f"{str(path)!r} holds a header only: give a file with examples")
    return _Table(path, [cell.strip() for cell in rows[0][1]], rows[1:])


def _names_columns(rows: list[list[str]]) -> bool:
    """Whether the first row is a header."""
    first = [cell.strip() for cell in rows[0]]
    names = [cell.lower() for cell in first]
    if not set(names).isdisjoint(LABEL_NAMES):
        return True
    if set(names).isdisjoint(TEXT_NAMES):
        return False
    # Beside a text that happens to be such a word stands a label, which other rows have, too.
    others = [i for i, name in enumerate(names) if name not in (*TEXT_NAMES, *ID_NAMES)]
    return not any(row[i].strip() == first[i] for row in rows[1:] for i in others)


def _load_json(path: Path, lines: list[str]) -> _Table:
    records: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{str(path)!r}, line {number}: {error.msg} at character {error.pos}: each line "
                "must be a JSON object"
            ) from error
        if not isinstance(record, dict):
            raise ValueError(
                f"{str(path)!r}, line {number}: {line.strip():.60} is not a JSON object, as each "
                "line must be"
            )
        records.append((number, record))
    names = list(dict.fromkeys(name for _, record in records for name in record))
    if not names:
        raise ValueError(f"{str(path)!r} holds empty JSON objects: give a file with examples")
    rows = [(number, [record.get(name) for name in names]) for number, record in records]
    return _Table(path, names, rows)


def _rows(
    path: Path, lines: list[str], separator: str, quoting: bool
) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank, all of one width."""
    if quoting:
        reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, strict=True)
        rows = []
        start = 1
        try:
            for cells in reader:
                # An empty line has no cell; a quoted empty text is one.
                if any(cell.strip() for cell in cells) or cells == [""]:
                    rows.append((start, cells))
                start = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{str(path)!r}, line {start}: {error}: mend the quotes, or read the file with "
                "quoting=False"
            ) from error
    else:
        rows = [(i, line.split(separator)) for i, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise ValueError(f"{str(path)!r} has empty cells only: give a file with examples")
    width = len(rows[0][1])
    for number, cells in rows:
        if len(cells) != width:
            raise ValueError(
                f"{str(path)!r}, line {number}: {len(cells)} column(s), but {width} in the first "
                "line: mend it, check separator and quoting, or the file may be cut short"
            )
    return rows
