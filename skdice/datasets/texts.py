"""TSV, CSV and JSON-lines files of texts or pairs, with or without labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skdice._checks import checked
from skdice._types import Labels, Texts
from skdice.datasets.answers import without_rejected
from skdice.datasets.cells import TEXT_NAMES, quotes, separator_of, table_of, values_of
from skdice.datasets.detection import find, read_tool
from skdice.datasets.labels import NamedRows, read_flags, read_labels
from skdice.datasets.row import Note, Reading, Row, Wanted
from skdice.datasets.source import Source, warn_of_notes
from skdice.datasets.table import Asked, Table


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
    asked = Asked.by(text_columns, label_column, label_columns, label_separator)
    header = asked.header(header)
    source = Source(Path(path), encoding, separator=separator, header=header, quoting=quoting)
    read = labelled_rows(source, asked)
    warn_of_notes(source, read.notes, len(read.rows))
    return [row.x for row in read.rows], labels_of(read)


def labelled_rows(source: Source, asked: Asked) -> Reading:
    """The texts that `read_table` reads, with their labels."""
    table, notes = _of_tool(source, asked, True) or (_load(source), [])
    if table.width < 2:
        problem = f"one column only, {table.shown([0])}; a text and a label are needed"
        problem += ": check the parameter separator; for sentences with a token and its tag on "
        problem += "each line, give task='tagging' to read_dataset"
        raise source.fault(table.rows[0][0], problem)
    texts, labels = _columns(table, asked)
    if table.names is None and source.header is None:
        table.check_headless(labels)
    table, skipped = table.labelled(labels)
    X, y = table.texts(texts), _labels_in(table, labels, asked)
    rejected: list[Note] = []
    if table.answers is not None and table.answers not in labels:
        y, rejected = without_rejected(y, table.values(table.answers))
    names = [table.named(i) for i in labels]
    of_labels = names[0] if asked.of_labels == "label_column" else names
    columns = {"text": [table.named(i) for i in texts], "label": of_labels}
    options = None
    if not table.of_tool:  # a file of a tool needs none
        how: dict[str, Any] = {"text_columns": columns["text"], asked.of_labels: of_labels}
        how["label_separator"] = asked.separator
        if not source.is_json:
            how |= {"separator": separator_of(source), "header": table.names is not None}
            how["quoting"] = quotes(source)
        how["encoding"] = source.encoding
        options = {name: value for name, value in how.items() if value is not None}
    rows = [Row(row[0], x, of, {}) for row, x, of in zip(table.rows, X, y, strict=True)]
    return Reading(rows, [*notes, *skipped, *rejected], columns, options)


def _columns(table: Table, asked: Asked) -> tuple[list[int], list[int]]:
    """The columns of texts and labels, as asked for or found."""
    texts = [table.index(column, "text_columns") for column in asked.texts]
    labels = [table.index(column, asked.of_labels) for column in asked.labels]
    labels = labels or [table.find_label([i for i in table.columns if i not in texts], bool(texts))]
    return texts or table.find_texts([i for i in table.columns if i not in labels]), labels


def _labels_in(table: Table, labels: list[int], asked: Asked) -> list[Any]:
    """The labels of the rows of a table, from one column or several of 0 and 1."""
    if asked.of_labels == "label_columns":
        names = {i: str(table.named(i)) for i in labels}
        return read_flags(table.path, table.rows, names)
    cells = ((place, row[labels[0]]) for place, row in table.rows)
    return read_labels(table.path, table.named(labels[0]), cells, asked.separator)


def labels_of(read: Reading) -> list[Any]:
    """The labels of rows; those of columns of 0 and 1 know all columns."""
    columns, y = (read.columns or {}).get("label"), [row.y for row in read.rows]
    if isinstance(columns, list) and len(columns) > 1:  # of one, its rows are the names alone
        return NamedRows(map(str, columns), y)
    return y


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
    asked = Asked.by(text_columns, label_column, label_columns)
    header = asked.header(header)
    source = Source(Path(path), encoding, separator=separator, header=header, quoting=quoting)
    return [row.x for row in text_rows(source, asked, n_texts).rows]


def text_rows(source: Source, asked: Asked, n_texts: int = 1) -> Reading:
    """The texts that `read_texts` reads; the metadata of each is its row as it came."""
    if n_texts not in (1, 2):
        raise ValueError(f"n_texts={n_texts!r} must be 1, or 2 for pairs")
    table, notes = _of_tool(source, asked, False) or (_load_to_predict(source, asked), [])
    texts = [table.index(column, "text_columns") for column in asked.texts]
    if not texts:
        labels = [table.index(column, asked.of_labels) for column in asked.labels]
        texts = table.find_texts([i for i in table.columns if i not in labels], n_texts)
    found = zip(table.rows, table.texts(texts), table.records(), strict=True)
    rows = [Row(place, x, None, record) for (place, _), x, record in found]
    return Reading(rows, notes, {"text": [table.named(i) for i in texts]})


def _load_to_predict(source: Source, asked: Asked) -> Table:
    """The table of a file whose lines are texts as they are, if nothing shows columns."""
    suffix = source.suffix
    if source.is_json or source.separator or suffix == ".csv":
        return _load(source)
    first, is_asked = source.first_line, bool(asked.all or source.header)
    if first.startswith("__label__") or (is_asked and "," in first and "\t" not in first):
        return _load(source)
    if is_asked or "\t" in first or suffix == ".tsv":
        return _load(source.again(separator="\t"))
    lines = enumerate(source.iter_lines(), 1)
    return Table(source.path, None, [(n, [line]) for n, line in lines if line.strip()])


def _load(source: Source) -> Table:
    """The table of a file."""
    if source.is_json:
        return _load_records(source)
    if source.first_line.startswith("__label__"):
        problem = "labels as fastText has them: write a table of texts and labels, or texts alone"
        raise source.fault("the first line", problem)
    return Table(source.path, *table_of(source))


def _load_records(source: Source) -> Table:
    """The table of JSON records."""
    records = list(source.records())
    names = list(dict.fromkeys(name for _, record in records for name in record))
    if not names:
        problem = "holds no text, or empty JSON objects: give examples"
        raise ValueError(f"{str(source.path)!r} {problem}")
    place, first = records[0]
    if len(records) == 1 and all(map(_is_column, first.values())):
        problem = "one object of columns, as pandas writes it: write rows by "
        raise source.fault(place, problem + "to_json(orient='records', lines=True)")
    rows = [(place, [record.get(name) for name in names]) for place, record in records]
    return Table(source.path, names, rows, given=[record for _, record in records])


def _is_column(value: Any) -> bool:
    return isinstance(value, dict) and all(map(str.isdigit, value))


# ---- files of annotation tools


def _of_tool(source: Source, asked: Asked, labelled: bool) -> tuple[Table, list[Note]] | None:
    """The table of texts and labels that an annotation tool wrote; None of other files."""
    if not _may_be_of_tool(source, asked, labelled):
        return None
    found = find(source, "classification")
    of_labels = found.task == "classification"
    if found.format is None or (labelled and not of_labels):
        return None
    wanted = Wanted(labelled, of_labels, next(iter(asked.texts), None))
    rows, notes = read_tool(source, found.format, wanted)
    if not labelled:
        return _table_of(source, rows, wanted), notes
    known = [row for row in rows if row.y is not None]
    notes.append(Note("without a label", len(rows) - len(known)))
    table = _table_of(source, known, wanted)
    return (table, notes) if table.of_tool else None


def _table_of(source: Source, rows: list[Row], wanted: Wanted) -> Table:
    """The table of a tool's rows: the text, the labels by question, and the answers."""
    names = tuple(dict.fromkeys(name for row in rows for name in _labels(row)))
    answers = ["answer"] * any("answer" in row.meta for row in rows)
    cells = [
        (row.place, [row.x, *(_labels(row).get(n, []) for n in names),
                     *map(row.meta.get, answers)]) for row in rows
    ]  # fmt: skip
    columns = [wanted.text_column or "text", *names, *answers]
    given = None if wanted.labelled else [{"text": row.x, **row.meta} for row in rows]
    return Table(source.path, columns, cells, names, given)


def _labels(row: Row) -> dict[str, list[str]]:
    """The labels of a text by the name of the question."""
    return row.y if isinstance(row.y, dict) else {}


def _may_be_of_tool(source: Source, asked: Asked, labelled: bool) -> bool:
    """Return False if columns were asked for that are there, or nothing but texts is.

    Those columns are read as they are, and records of texts are given back so.
    """
    if any(not isinstance(column, str) for column in asked.all):
        return False
    values = values_of(source, 1000)
    if not values and source.suffix == ".csv":
        return False
    if asked.labels and all(_is_field(values, name) for name in asked.all):
        return False
    records = [value if isinstance(value, dict) else {} for _, value in values]
    of_texts = (any(isinstance(each.get(n), str) for n in TEXT_NAMES) for each in records)
    return labelled or not source.is_json or not all(of_texts)


def _is_field(values: list[Any], name: str) -> bool:
    """Return True if some records have a field, which holds no objects."""
    records = [value for _, value in values if isinstance(value, dict) and name in value]
    return bool(records) and not any(isinstance(record[name], dict) for record in records)
