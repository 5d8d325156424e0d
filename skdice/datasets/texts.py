"""TSV, CSV and JSON-lines files of texts or pairs, with or without labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from skdice._checks import checked, counted, shown
from skdice._types import Labels, Texts
from skdice.datasets.detection import find
from skdice.datasets.formats._base import formats
from skdice.datasets.multilabel import NamedRows, label_columns_of, names_of_columns
from skdice.datasets.reading import fault, first_line, suffix_of
from skdice.datasets.row import Row
from skdice.datasets.source import TEXT_NAMES, Source, warn_of_skipped
from skdice.datasets.table import Table, TableOptions
from skdice.inputs.rows import as_row_list


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
) -> tuple[Texts, Labels]:
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
        None takes two columns with the names of a pair (``sentence1`` and ``sentence2``, or the
        like of ``question``, ``text``, ``premise`` and ``hypothesis``), the one column with the
        usual name of a text, such as ``text``, ``sentence``, ``tweet`` or ``review``, or the only
        one beside the label and ``id``, ``idx``, ``index``, ``guid`` or ``uid``.
    label_column : int, str or None, default=None
        By index or by name. None is the one column named ``label``, ``target``, ``class``, ``y``,
        ``tag``, ``labels``, ``gold_label``, ``is_duplicate`` or ``quality``, or the only column
        that `text_columns` leaves. It is never guessed from the values. A column of lists of
        names (``["toxic", "threat"]``) gives a text several labels; lists that all hold one name
        give it one.
    label_columns : list of int or str or None, default=None
        Columns of 0 and 1, one for each of several labels, by index or by name.
    label_separator : str or None, default=None
        Between several labels in one cell, as in ``spam, ad``. ``""`` splits nothing. None does
        not either, and is refused where cells hold ``,``, ``;``, ``|`` or ``#`` between labels
        that other cells hold alone.
    separator : str or None, default=None
        None takes what the first line has: a tab, else a comma, else a semicolon in a ``.csv``
        file.
    header : bool or None, default=None
        Whether the first line names the columns. None says yes if a column is given by name, or
        the line holds one of the names above for a label or a text, and no if its label comes
        again below.
    quoting : bool or None, default=None
        Whether ``"`` quotes a field. None says yes for commas and no for tabs, where quotes are
        part of the text (as in MRPC).
    encoding : str, default="utf-8"

    Returns
    -------
    X : list of str or list of (str, str)
    y : list of str, or list of lists of str
        Labels, or the names of several for each text. Of `label_columns` the list knows all, as
        ``columns``, and a label that no text has is a class, too.

    Warns
    -----
    SkippedRowsWarning
        If rows are left out, whose label is an empty cell (or null), or a label was rejected.
        Whatever else stands there is a label, such as ``None`` or ``-``.

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
    source = Source(Path(path), encoding, separator=separator, header=header, quoting=quoting)
    how: dict[str, Any] = {"text_columns": text_columns, "label_column": label_column}
    how |= {"label_columns": label_columns, "label_separator": label_separator}
    rows = labelled_rows(source, **how)
    return [row.x for row in rows], labels_of(source, rows)


def labelled_rows(
    source: Source,
    *,
    text_columns: Any = None,
    label_column: Any = None,
    label_columns: Any = None,
    label_separator: str | None = None,
) -> list[Row]:
    """The texts that `read_table` reads, with their labels."""
    labels_in = label_columns_of(label_column, label_columns)
    texts_in = _wanted(text_columns)
    table, texts, labels = _columns(source, texts_in, labels_in)
    _refuse_foreign(table)
    if table.width < 2:
        problem = f"one column only, {table.shown([0])}; a text and a label are needed"
        raise source.fault(table.rows[0][0], f"{problem}: check the parameter separator")
    if not labels:
        labels = [table.find_label([i for i in table.columns if i not in texts], bool(texts))]
    if not texts:
        texts = table.find_texts([i for i in table.columns if i not in labels])
    if table.names is None and source.header is None:
        table.check_headless(labels)
    table = table.with_labels(source, labels)
    X = table.texts(texts)
    if label_columns is None:
        y = table.labels(labels[0], label_separator)
    else:
        names = {i: str(table.named(i)) for i in labels}
        y = names_of_columns(source.path, table.rows, names)
    if table.answers is not None and table.answers not in labels:
        y = _obey(source, y, table.values(table.answers))
    warn_of_skipped(source, len(X))
    of_labels = [table.named(i) for i in labels]
    of_label = of_labels[0] if label_columns is None else of_labels
    source.columns = {"text": [table.named(i) for i in texts], "label": of_label}
    if not table.of_tool:
        source.table_options = _options_of(source, table, texts, of_labels, label_columns is None)
        source.table_options = replace(source.table_options, label_separator=label_separator)
    return [Row(row[0], x, of, {}) for row, x, of in zip(table.rows, X, y, strict=True)]


def _options_of(
    source: Source, table: Table, texts: list[int], labels: list[Any], is_one: bool
) -> TableOptions:
    """The arguments that read a table like this one."""
    how: dict[str, Any] = {"label_column": labels[0]} if is_one else {"label_columns": labels}
    if not source.is_json:
        quoting = source.quoting if source.quoting is not None else source.separator != "\t"
        how |= {"separator": source.separator, "quoting": quoting}
        how |= {"header": table.names is not None}
    return TableOptions([table.named(i) for i in texts], **how, encoding=source.encoding)


def labels_of(source: Source, rows: list[Row]) -> list[Any]:
    """The labels of rows; those of columns of 0 and 1 know all columns."""
    columns, y = (source.columns or {}).get("label"), [row.y for row in rows]
    if isinstance(columns, list) and len(columns) > 1:  # of one, its rows are the names alone
        return NamedRows(map(str, columns), y)
    return y


def _obey(source: Source, y: list[Any], answers: list[Any]) -> list[Any]:
    """Labels of rows of which Prodigy's answers are known: one that was rejected has none."""
    n_rejected = answers.count("reject")
    if not n_rejected:
        return y
    source.told.append(f"{counted(n_rejected, 'row')} kept without the labels that were rejected")
    lists = [row if isinstance(row, list) else [row] for row in y]
    return [[] if answer == "reject" else row for answer, row in zip(answers, lists, strict=True)]


@checked
def read_texts(
    path: str | Path,
    *,
    n_texts: int = 1,
    text_columns: int | str | Sequence[int | str] | None = None,
    label_column: int | str | None = None,
    label_columns: Sequence[int | str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    quoting: bool | None = None,
    encoding: str = "utf-8",
) -> Texts:
    r"""Read texts, or pairs of texts, to predict: their labels may be there or not.

    Parameters
    ----------
    path : str or Path
        A table as for `read_table`, or a file with one text a line.
    n_texts : {1, 2}, default=1
        How many texts a row has: 1, or 2 for pairs.
    text_columns : int, str or a list of one or two, default=None
        Columns of the texts. None takes them by their names, as `read_table` does, or `n_texts`
        that are left beside those of labels and ids.
    label_column : int, str or None, default=None
    label_columns : list of int or str or None, default=None
        Columns that are not text. Where `text_columns` are given, these need not be there.
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
    source = Source(Path(path), encoding, separator=separator, header=header, quoting=quoting)
    how = {"text_columns": text_columns, "label_column": label_column}
    table, at = _to_predict(source, n_texts, label_columns=label_columns, **how)
    return table.texts(at)


def text_rows(source: Source, n_texts: int = 1, **columns: Any) -> list[Row]:
    """The texts that `read_texts` reads; the metadata of each is its row as it came."""
    table, at = _to_predict(source, n_texts, **columns)
    source.columns = {"text": [table.named(i) for i in at]}
    found = zip(table.rows, table.texts(at), table.records(), strict=True)
    return [Row(place, x, None, record) for (place, _), x, record in found]


def _to_predict(
    source: Source,
    n_texts: int,
    text_columns: Any = None,
    label_column: Any = None,
    label_columns: Any = None,
) -> tuple[Table, list[int]]:
    """The table of texts to predict, and the columns of the texts."""
    if n_texts not in (1, 2):
        raise ValueError(f"n_texts={n_texts!r} must be 1, or 2 for pairs")
    labels_in, texts_in = label_columns_of(label_column, label_columns), _wanted(text_columns)
    is_plain = suffix_of(source.path) != ".csv" and not source.is_json
    if source.separator is None and is_plain:
        asked = texts_in or labels_in or source.header
        source.separator = None if asked and "," in first_line(source.head) else "\t"
    source.labelled = False
    table, texts, labels = _columns(source, texts_in, labels_in)
    if not texts:
        texts = table.find_texts([i for i in table.columns if i not in labels], n_texts)
    return table, texts


def _columns(
    source: Source, texts: list[Any], labels: list[tuple[str, Any]]
) -> tuple[Table, list[int], list[int]]:
    """The table of a file, and the columns of texts and labels that were asked for."""
    source.name_columns([*texts, *(column for _, column in labels)])
    table = _of_tool(source, texts, labels) or _load(source)
    at = [table.index(column, "text_columns") for column in texts]
    if texts and not source.labelled:
        return table, at, []
    return table, at, [table.index(column, name) for name, column in labels]


def _wanted(text_columns: Any) -> list[Any]:
    """The columns of texts that were asked for."""
    wanted = [] if text_columns is None else [text_columns]
    if isinstance(text_columns, Iterable) and not isinstance(text_columns, str):
        wanted = as_row_list("text_columns", text_columns)
    if len(wanted) > 2:
        raise ValueError(f"text_columns={shown(text_columns)} names more than two columns")
    return wanted


def _load(source: Source) -> Table:
    """The table of a file."""
    path = source.path
    if not source.is_json and first_line(source.head).startswith(_FASTTEXT):
        lines = enumerate(source.iter_lines(), 1)
        found = [(number, _of_fasttext(line)) for number, line in lines if line.strip()]
        return Table(path, ["text", "label"], found, ("label",))
    if not source.is_json:
        return Table(path, *source.table)
    for place, record in source.values:
        if not isinstance(record, dict):
            problem = f"{record!s:.60} is not a JSON object, as each line or element must be: "
            raise fault(path, place, problem + 'write {"text": ..., "label": ...}')
    names = list(dict.fromkeys(name for _, record in source.values for name in record))
    if not names:
        raise ValueError(f"{str(path)!r} holds no text, or empty JSON objects: give examples")
    first = source.values[0][1]
    if len(source.values) == 1 and all(isinstance(value, dict) for value in first.values()):
        problem = "one object of columns, as pandas writes it: write rows by "
        raise fault(path, source.values[0][0], problem + "to_json(orient='records', lines=True)")
    rows = [(place, [record.get(name) for name in names]) for place, record in source.values]
    return Table(path, names, rows, given=[record for _, record in source.values])


_SLASHES = re.compile(r"\S+/(O|[BI]-\S+)( \S+/(O|[BI]-\S+))*")


def _refuse_foreign(table: Table) -> None:
    """Refuse tables and lines of other forms by their names."""
    place, first = table.rows[0]
    names = {str(cell).strip().lower() for cell in (table.names or first)}
    if {"begin offset", "end offset"} <= names:
        problem = "entities of Amazon Comprehend without their texts: write both, as in "
        raise fault(table.path, place, problem + '{"text": "Ann", "entities": [[0, 3, "PER"]]}')
    if table.width == 1 and _SLASHES.fullmatch(str(first[0]).strip()):
        problem = f"{str(first[0])!r:.40} has tags behind slashes, which are not read: write a "
        raise fault(table.path, place, problem + "token and its tag on each line")


_FASTTEXT = "__label__"


def _of_fasttext(line: str) -> list[Any]:
    """The text and the labels of a line of fastText."""
    words = line.split()
    labels = [word.removeprefix(_FASTTEXT) for word in words if word.startswith(_FASTTEXT)]
    return [" ".join(word for word in words if not word.startswith(_FASTTEXT)), labels]


def _of_tool(source: Source, texts: list[Any], labels: list[tuple[str, Any]]) -> Table | None:
    """The table of texts and labels that an annotation tool wrote; None of other files."""
    if any(not isinstance(column, str) for column in (*texts, *(c for _, c in labels))):
        return None
    if suffix_of(source.path) == ".csv" and not source.is_json and not source.holds_structures:
        return None  # no tool writes such a table
    if not source.labelled and source.is_json and all(
        isinstance(value, dict) and any(isinstance(value.get(name), str) for name in TEXT_NAMES)
        for _, value in source.values
    ):  # fmt: skip
        return None  # plain records, to be given back as they are
    found = find(source, "classification")
    if found.format is None or (source.labelled and found.task != "classification"):
        return None
    source.of_labels = found.task == "classification"
    source.text_column = texts[0] if texts else None
    skipped = source.skipped.copy()
    rows = list(formats()[found.format].read(source))
    names = tuple(dict.fromkeys(name for row in rows for name in _labels(row)))
    first = source.values[0][1] if source.is_json or source.holds_structures else {}
    others = any(name not in names and name in first for _, name in labels)
    if others or (source.labelled and not names):
        source.skipped = skipped
        return None
    given = None
    if source.labelled:
        n_before = len(rows)
        rows = [row for row in rows if row.y is not None]
        source.skipped["without a label"] += n_before - len(rows)
    else:
        given = [{"text": row.x, **row.meta} for row in rows]
    has_answers = any("answer" in row.meta for row in rows)
    cells = [
        (row.place, [row.x, *(_labels(row).get(name, []) for name in names),
                     *[row.meta.get("answer")] * has_answers]) for row in rows
    ]  # fmt: skip
    columns = [texts[0] if texts else "text", *names, *["answer"] * has_answers]
    return Table(source.path, columns, cells, names, given)


def _labels(row: Row) -> dict[str, list[str]]:
    """The labels of a text by the name of the question."""
    return row.y if isinstance(row.y, dict) else {}
