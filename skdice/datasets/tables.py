"""TSV, CSV and JSON-lines files of texts or pairs, with or without labels."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from skdice._checks import KINDS, as_row_list, checked, counted, shown
from skdice._warn import warn
from skdice.datasets.cells import rows_of, separator_of
from skdice.datasets.files import fault, first_line, is_json, json_values, read_lines, suffix_of
from skdice.datasets.labelled import are_answers, labelled, obey, texts_of
from skdice.datasets.multilabel import (
    WRITTEN_LIST,
    label_columns_of,
    lists_of_names,
    names_of_columns,
    split_cells,
)
from skdice.exceptions import SkippedRowsWarning

Column = int | str

LABEL_NAMES = (
    *("label", "target", "class", "y", "tag", "labels"),
    *("gold_label", "is_duplicate", "quality"),  # of SNLI's, Quora's and Microsoft's pairs
)
TEXT_NAMES = (
    *("text", "sentence", "sentence1", "sentence2", "question", "question1", "question2"),
    *("premise", "hypothesis", "title", "review", "content", "message"),
    *("tweet", "comment", "comment_text", "body", "#1 string", "#2 string"),
)
ID_NAMES = ("id", "idx", "index", "guid", "uid", "")  # pandas gives its index no name


@checked
def read_table(
    path: str | Path,
    *,
    text_columns: int | str | Sequence[int | str] | None = None,
    label_column: int | str | None = None,
    label_columns: Sequence[int | str] | None = None,
    label_separator: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
    return_columns: bool = False,
) -> Any:
    r"""Read labelled texts, or pairs of texts.

    A file named ``.jsonl``, or whose first line is a JSON object, is read as JSON lines: one
    object a line, whose keys are the names of columns. So is a JSON array of objects. A label may
    be a number there, and `separator`, `header` and `quoting` have no meaning. The JSON of
    annotation tools is read as their labels: Prodigy's ``label`` or ``accept``, Label Studio's
    choices, spaCy's ``cats``. Prodigy's ``answer`` is obeyed: what was ignored is left out, and
    what was rejected is a text without that label, so that each text has a list of labels.

    Parameters
    ----------
    path : str or Path
    text_columns : int, str or a list of one or two, default=None
        Columns of the text, or of the two texts of a pair, by index or by name in the header.
        None takes the columns that hold texts, of which there may be two at most. These are not
        the label's, nor columns with the name ``id``, ``idx``, ``index``, ``guid`` or ``uid`` or
        none. Beside a longer text, a column of numbers, of single words, or of a few short values
        holds none either, unless it has the usual name of a text.
    label_column : int, str or None, default=None
        By index or by name. None is the one column named ``label``, ``target``, ``class``, ``y``,
        ``tag``, ``labels``, ``gold_label``, ``is_duplicate`` or ``quality``, or the only column
        that `text_columns` leaves. It is never guessed from the values. A column of lists of
        names, in JSON or as its text (``["toxic", "threat"]``), gives a text several labels.
    label_columns : list of int or str or None, default=None
        Columns of 0 and 1, one for each of several labels, by index or by name.
    label_separator : str or None, default=None
        Between several labels in one cell, as in ``spam, ad``. None looks for ``,``, ``;``, ``|``
        or ``#`` between labels that other cells hold alone, and warns where it splits there;
        ``""`` splits nothing.
    separator : str or None, default=None
        None takes what the first line has: a tab, else a comma, else a semicolon in a ``.csv``
        file.
    header : bool or None, default=None
        Whether the first line names the columns. None says yes if a column is given by name, the
        line holds one of the names above for a label, or it holds a usual name of a text, such as
        ``text``, ``sentence1`` or ``review``, and nothing that comes again below. Other short
        cells, of which none comes again below, are names as well if one is written ``like_this``,
        or stands above nothing but numbers, or above labels that come again beside longer texts.
    quoting : bool or None, default=None
        Whether ``"`` quotes a field. None says yes for commas and no for tabs, where quotes are
        part of the text (as in MRPC).
    encoding : str, default="utf-8"
    return_columns : bool, default=False

    Returns
    -------
    X : list of str or list of (str, str)
    y : list of str, or list of lists of str
        Labels, or the names of several for each text. Of `label_columns` the list knows all, as
        ``columns``, and a label that no text has is a class, too.
    columns : dict
        With ``return_columns``: the columns of ``"text"`` and of ``"label"``, by name, or by index
        in a file without a header.

    Warns
    -----
    SkippedRowsWarning, SeveralLabelsWarning
        If rows are left out or a label was rejected, and if cells are split at a separator as
        found.

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
    path, how = Path(path), _Format(separator, header, quoting, encoding)
    labels_in = label_columns_of(label_column, label_columns)
    table, texts, labels = _load(path, how, text_columns, labels_in)
    if table.width < 2:
        problem = "one column only; a text and a label are needed: check the parameter separator"
        raise fault(path, table.rows[0][0], problem)
    if not labels:
        labels = [table.find_label([i for i in table.columns if i not in texts], bool(texts))]
    if not texts:
        left = [i for i in table.columns if i not in labels]
        texts = table.find_texts([i for i in left if not table.is_named(i, LABEL_NAMES)] or left, 2)
    names: Sequence[Column] = table.names or range(table.width)
    answers, n_ignored = table.answers if table.answers not in labels else None, 0
    if answers is not None:
        table, n_ignored = table.without_ignored(answers)
    X = table.texts(texts)
    if label_columns is None:
        y = table.labels(labels[0], label_separator)
    else:
        y = names_of_columns(path, table.rows, {i: str(names[i]) for i in labels})
    if answers is not None:
        y = obey(path, y, table.values(answers), n_ignored)
    if not return_columns:
        return X, y
    of_labels = [names[i] for i in labels]
    of_label = of_labels[0] if label_columns is None else of_labels
    return X, y, {"text": [names[i] for i in texts], "label": of_label}


@checked
def read_texts(
    path: str | Path,
    *,
    n_texts: int = 1,
    text_columns: int | str | Sequence[int | str] | None = None,
    label_column: int | str | None = None,
    label_columns: Sequence[int | str] | None = None,
    classes: str | Iterable[Any] = (),
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
    label_columns : list of int or str or None, default=None
        Columns that are not text.
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
    return table_to_predict(
        Path(path),
        n_texts=n_texts,
        text_columns=text_columns,
        label_column=label_column,
        label_columns=label_columns,
        classes=classes,
        separator=separator,
        header=header,
        quoting=quoting,
        encoding=encoding,
    ).texts


class ToPredict(NamedTuple):
    """A table to predict: its rows as they are, and their texts."""

    names: list[str] | None
    rows: list[list[Any]]
    texts: list[Any]
    separator: str | None  # None of JSON


def table_to_predict(
    path: Path,
    *,
    n_texts: int = 1,
    text_columns: Any = None,
    label_column: Any = None,
    label_columns: Any = None,
    classes: str | Iterable[Any] = (),
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
) -> ToPredict:
    """The table that `read_texts` reads the texts of."""
    if n_texts not in (1, 2):
        raise ValueError(f"n_texts={n_texts!r} must be 1, or 2 for pairs")
    how = _Format(separator, header, quoting, encoding)
    labels_in = label_columns_of(label_column, label_columns)
    table, texts, labels = _load(path, how, text_columns, labels_in, may_be_lines=True)
    if not texts:
        left = [i for i in table.columns if i not in labels and not table.is_named(i, LABEL_NAMES)]
        if len(left) > n_texts:
            known = {"", *map(str, classes)}
            others = [i for i in left if any(str(v).strip() not in known for v in table.values(i))]
            left = others if len(others) >= n_texts else left
        texts = table.find_texts(left, n_texts, labelled=False)
    cells = [cells for _, cells in table.rows]
    return ToPredict(table.names, cells, table.texts(texts), table.separator)


@dataclass(frozen=True)
class _Table:
    """Rows of one width, each with its place; cells of JSON need not be strings."""

    path: Path
    names: list[str] | None
    rows: list[tuple[str, list[Any]]]  # "line 2" and its cells
    of_tool: list[str] | None = None  # columns in which an annotation tool wrote labels
    separator: str | None = None  # of the cells

    @property
    def width(self) -> int:
        return len(self.rows[0][1])

    @property
    def columns(self) -> list[int]:
        """Columns that may hold a text or a label."""
        others = range(self.width)
        return [i for i in others if i != self.answers and not self.is_named(i, ID_NAMES)]

    @cached_property
    def answers(self) -> int | None:
        """The column of Prodigy's answers."""
        named = [i for i in range(self.width) if self.is_named(i, ("answer",))]
        return next((i for i in named if are_answers(self.values(i))), None)

    def values(self, i: int) -> list[Any]:
        return [cells[i] for _, cells in self.rows]

    def without_ignored(self, answers: int) -> tuple[_Table, int]:
        """The table without rows that a person ignored, and their number."""
        rows = [(place, cells) for place, cells in self.rows if cells[answers] != "ignore"]
        if not rows:
            raise ValueError(f"{str(self.path)!r} holds no row whose answer is not ignore")
        return replace(self, rows=rows), len(self.rows) - len(rows)

    def is_named(self, i: int, names: tuple[str, ...]) -> bool:
        return self.names is not None and self.names[i].lower() in names

    def index(self, column: Any, what: str) -> int:
        if isinstance(column, str) and self.names is not None and column in self.names:
            return self.names.index(column)
        if KINDS["int"][1](column) and -self.width <= column < self.width:
            return column % self.width
        header = "no header" if self.names is None else f"the header {self.names}"
        problem = f"which has {self.width} columns and {header}"
        raise ValueError(f"{what}={shown(column)} is not in {str(self.path)!r}, {problem}")

    def find_label(self, columns: list[int], knows_texts: bool) -> int:
        """The column whose name says so, or the only one beside the texts."""
        named = [i for i in columns if self.is_named(i, LABEL_NAMES)]
        if self.of_tool is not None:
            named = columns = [self.index(name, "label_column") for name in self.of_tool]
        if len(named) == 1 or (knows_texts and len(columns) == 1):
            return (named or columns)[0]
        remedy = "give label_column by index or name, or name the column in a "
        remedy += f"header: {', '.join(LABEL_NAMES)}"
        flags = [i for i in columns if all(str(v).strip() in ("0", "1") for v in self.values(i))]
        if len(flags) > 1 and self.names is not None:
            remedy = f"for several labels a text, give label_columns={self.shown(flags)}; or, "
            remedy += "for one, label_column"
        raise ValueError(
            f"which column of {str(self.path)!r} holds the label? It has {self.shown(columns)}: "
            + remedy
        )

    def shown(self, columns: list[int]) -> list[str]:
        """Columns by name, or by index with their first value."""
        names = self.names or [f"{i}: {cell:.20}" for i, cell in enumerate(self.rows[0][1])]
        return [names[i] for i in columns]

    def find_texts(self, columns: list[int], n_texts: int, labelled: bool = True) -> list[int]:
        """Those of the columns that hold texts, if they are not too many."""
        if self.of_tool is not None:
            columns = [i for i in columns if self.names and self.names[i] not in self.of_tool]
            columns = [i for i in columns if self.is_named(i, ("text",))] or columns
        strings = {i: [v.strip() for v in self.values(i) if isinstance(v, str)] for i in columns}
        longest = max(map(_mean_length, strings.values()), default=0.0)
        named = [i for i in columns if self.is_named(i, TEXT_NAMES)]
        columns = [i for i in columns if i in named or _are_texts(strings[i], longest)] or columns
        if not 1 <= len(columns) <= n_texts:
            wanted = "1" if n_texts == 1 else "1 or 2"
            remedy = "say which hold the text with text_columns"
            if labelled:
                remedy += ", and which the label with label_column"
            raise ValueError(
                f"{str(self.path)!r} has {len(columns)} columns that may be text "
                f"{self.shown(columns)}, not {wanted}: {remedy}"
            )
        return columns

    def texts(self, columns: list[int]) -> list[Any]:
        for i in columns:
            for place, cells in self.rows:
                if not isinstance(cells[i], str):
                    raise self._refusal(place, i, cells[i], "a string")
        read = operator.itemgetter(*columns)  # a value of one column, a tuple of two
        return [read(cells) for _, cells in self.rows]

    def labels(self, i: int, separator: str | None = None) -> list[Any]:
        """The label of each row, or the list of its labels."""
        cells = [(place, row[i]) for place, row in self.rows]
        lists = lists_of_names(self.path, cells)
        if lists is not None and not self.is_named(i, ("tag",)):  # of tokens
            is_own = self.names is not None and self.names[i] in (self.of_tool or ())
            one_each = is_own and all(len(row) == 1 for row in lists)
            return [row[0] for row in lists] if one_each else lists
        labels = []
        for place, value in cells:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not isinstance(value, str) and not (is_number and abs(value) < math.inf):
                raise self._refusal(place, i, value, "a string or a number")
            is_whole = isinstance(value, float) and value.is_integer()  # JSON's 1.0 is 1
            labels.append(str(int(value) if is_whole else value).strip())
            if not labels[-1]:
                raise fault(self.path, place, "the label is empty")
        if all(map(WRITTEN_LIST.fullmatch, labels)):
            raise self._refusal(self.rows[0][0], i, labels[0], "one label")
        return split_cells(self.path, labels, separator)

    def _refusal(self, place: str, i: int, value: Any, wanted: str) -> ValueError:
        name = i if self.names is None else self.names[i]
        what = "missing" if value is None else f"{value!r:.60}"
        remedy = "mend the line, or name other columns with text_columns and label_column"
        if isinstance(value, list) or wanted == "one label":
            remedy = 'a list of labels is written as JSON, ["a", "b"]'
            if isinstance(value, list) and any(isinstance(each, (list, dict)) for each in value):
                remedy = "texts with entities are read with task='entities'"
        return fault(self.path, place, f"{name!r} is {what}, not {wanted}: {remedy}")


def _mean_length(values: list[str]) -> float:
    return sum(map(len, values)) / max(1, len(values))


def _are_texts(values: list[str], longest: float) -> bool:
    """Tell if strings are texts, beside a column of a mean length: neither numbers nor labels."""
    filled = [value for value in values if any(map(str.isalpha, value))]
    if not filled or 2 * len(filled) < len(values):
        return False
    few = 2 * len(set(filled)) <= len(filled)
    phrases = 2 * sum(" " in value for value in filled) > len(filled)
    return 2 * _mean_length(filled) >= longest or (phrases and not few)


class _Format(NamedTuple):
    """The form of a table; None is what the file looks like."""

    separator: str | None
    header: bool | None
    quoting: bool | None
    encoding: str


def _load(
    path: Path,
    how: _Format,
    texts_in: Any,
    labels_in: list[tuple[str, Any]],
    may_be_lines: bool = False,
) -> tuple[_Table, list[int], list[int]]:
    """The table of a file, and the columns of texts and of labels that were asked for.

    With `may_be_lines`, a line without a tab is one text where nothing asks for columns.
    """
    separator, header, quoting, encoding = how
    lines = read_lines(path, encoding)
    wanted = [] if texts_in is None else [texts_in]
    if isinstance(texts_in, Iterable) and not isinstance(texts_in, str):
        wanted = as_row_list("text_columns", texts_in)
    if len(wanted) > 2:
        raise ValueError(f"text_columns={shown(texts_in)} names more than two columns")
    asked = [*wanted, *(column for _, column in labels_in)]
    if separator is None and may_be_lines and suffix_of(path) != ".csv":
        separator = None if (asked or header) and "," in first_line(lines) else "\t"
    if is_json(path, lines):
        table = _load_json(path, lines, with_labels=not may_be_lines)
    else:
        separator = separator or separator_of(path, lines)
        rows = rows_of(path, lines, separator, quoting)
        if header is None:
            named = any(isinstance(column, str) for column in asked)
            # The first of plain lines is a text.
            plain = len(rows[0][1]) == 1 and suffix_of(path) not in (".csv", ".tsv")
            header = named or (not plain and _names_columns([cells for _, cells in rows]))
        if header and not rows[1:]:
            raise ValueError(f"{str(path)!r} holds a header only: give a file with examples")
        names = [cell.strip() for cell in rows[0][1]] if header else None
        table = _Table(path, names, rows[1:] if header else rows, separator=separator)
    texts = [table.index(column, "text_columns") for column in wanted]
    return table, texts, [table.index(column, name) for name, column in labels_in]


def _names_columns(rows: list[list[str]]) -> bool:
    """Return True if the first row is a header; see `read_table`."""
    first, *below = [[cell.strip() for cell in row] for row in rows]
    names = [cell.lower() for cell in first]
    if not set(names).isdisjoint(LABEL_NAMES):
        return True
    # Beside a text that happens to be a usual name stands a label, which other rows have, too.
    others = [i for i, name in enumerate(names) if name not in (*TEXT_NAMES, *ID_NAMES)]
    columns = {i: [row[i] for row in below if row[i]] for i in range(len(first))}
    if any(first[i] in columns[i] for i in others):
        return False
    if not set(names).isdisjoint(TEXT_NAMES):
        return True
    if not all(re.fullmatch(r"[^\W\d]\S*( \S+)?|#.+|", cell) and len(cell) < 40 for cell in first):
        return False
    if not below or len(first) == 1:
        return False
    with_texts = any(sum(len(v.split()) for v in c) > 2 * len(c) for c in columns.values())
    for i, cell in enumerate(first):
        over_numbers = bool(columns[i]) and all(map(_is_number, columns[i]))
        over_labels = with_texts and 2 * len(set(columns[i])) <= len(columns[i])
        if cell and (over_numbers or over_labels or re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", cell)):
            return True
    return False


def _is_number(cell: str) -> bool:
    return bool(re.fullmatch(r"[-+]?\d+([.,]\d+)?%?", cell))


def _load_json(path: Path, lines: list[str], with_labels: bool) -> _Table:
    """The table of JSON; with labels, those of an annotation tool are lists of names."""
    records, of_tool = json_values(path, lines), None
    if not with_labels:
        records = texts_of(records)
    elif found := labelled(path, records):
        records, of_tool = found.records, found.columns
        if found.told:
            n_read = counted(len(records), "text")
            warn(f"{str(path)!r}: {', '.join(found.told)}; {n_read} read", SkippedRowsWarning)
    for place, record in records:
        if not isinstance(record, dict):
            problem = f"{record!s:.60} is not a JSON object, as each line or element must be"
            raise fault(path, place, problem)
    names = list(dict.fromkeys(name for _, record in records for name in record))
    if not names:
        raise ValueError(f"{str(path)!r} holds no text, or empty JSON objects: give examples")
    rows = [(place, [record.get(name) for name in names]) for place, record in records]
    return _Table(path, names, rows, of_tool)
