"""Read a file of any of the formats that skdice knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skdice._checks import check_choice, checked
from skdice._names import TASK_NAMES
from skdice.datasets.annotations import entity_rows, read_annotations
from skdice.datasets.detection import find, is_saved
from skdice.datasets.formats._base import without
from skdice.datasets.reading import suffix_of
from skdice.datasets.row import Row
from skdice.datasets.source import OF_LABELS, Source, check_options
from skdice.datasets.squad import query_rows, question_rows, read_mrc_ner, read_squad
from skdice.datasets.table import TableOptions
from skdice.datasets.tagged import has_even_lines, tagged_rows
from skdice.datasets.texts import labelled_rows, labels_of, read_table

# Options of all readers that a `Source` has.
OF_CELLS = ("separator", "quoting", "header")
_OF_SOURCE = (*OF_CELLS, "text_column", "layer", "feature")
_LABELLED = ("with_tags", "with_answers", "with_entities")
# The kinds of data sets; each is the name of a task of `skdice.tasks`.
KINDS = ("tagging", "classification", "qa", "mrc-ner", "entities")


@checked
@dataclass(frozen=True)
class Dataset:
    """Examples of one task.

    Attributes
    ----------
    X, y : list
    task : {"tagging", "classification", "qa", "mrc-ner", "entities"}
    path : Path or None
    meta : list of dict or None
        What else the file holds of each row: the ids of questions, all that a tool wrote beside a
        text or tokens; nothing of tables.
    queries : dict or None
        Maps each entity type to its question in a BERT-MRC file.
    columns : dict or None
        Of a table the columns of ``"text"`` and ``"label"``, of CoNLL columns those of ``"token"``
        and ``"tag"``: names, or indices where no header names them.
    table : TableOptions or None
        Of a table of texts with labels, or JSON of such records: all arguments of `read_table` as
        they were given or found. ``read_dataset(other, task="classification",
        **data.table.given())`` reads another file in the same way.

    Examples
    --------
    >>> from skdice.datasets import Dataset
    >>> data = Dataset([["Ann", "sings"]], [["B-PER", "O"]], "tagging")
    >>> len(data), data.task
    (1, 'tagging')
    """

    X: list[Any]
    y: list[Any]
    task: str
    path: Path | None = None
    meta: list[dict[str, Any]] | None = None
    queries: dict[str, str] | None = None
    columns: dict[str, Any] | None = None
    table: TableOptions | None = None

    def __post_init__(self) -> None:
        if self.task not in TASK_NAMES:
            raise ValueError(f"task={self.task!r} must be one of {list(TASK_NAMES)}")

    def __len__(self) -> int:
        return len(self.X)


@checked
def read_dataset(
    path: str | Path, *, task: str = "auto", encoding: str = "utf-8", **options: Any
) -> Dataset:
    r"""Read tagged sentences, labelled texts, or questions with answers.

    Parameters
    ----------
    path : str or Path
    task : {"auto", "tagging", "classification", "qa", "mrc-ner", "entities"}, default="auto"
        ``"auto"`` looks at the file. CoNLL-U, or columns in blocks between blank lines, is tagging
        (columns are separated by tabs, or by spaces with tags such as ``O`` and ``B-PER`` in the
        last or first), and so is a table whose header names a token, a tag and a sentence (as
        Kaggle's ``Sentence #,Word,POS,Tag``). JSON is SQuAD's, BERT-MRC's, lists of tokens and
        tags, texts with entities as annotation tools write them (see `read_annotations`), or
        records of texts with labels, by its keys. Other tables are texts with labels. Tagged
        sentences can also be read for ``task="mrc-ner"`` and ``"entities"``.
    encoding : str, default="utf-8"
    **options
        Of `read_table`, `read_conll`, `read_conllu`, `read_squad` or `read_annotations`, whichever
        reads the file.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError, ValueError
        As the reader does, and for an unknown `task`.
    TypeError
        If the reader has no such option.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skdice.datasets import read_dataset
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "messages.csv"
    ...     _ = path.write_text("text,label\nwin money,spam\nsee you,ham\n")
    ...     data = read_dataset(path)
    >>> data.task, list(data.y)
    ('classification', ['spam', 'ham'])
    """
    check_choice("task", task, ("auto", *KINDS))
    source = source_of(path, encoding, options)
    return read_source(source, task_of(source, options) if task == "auto" else task, options)


def source_of(path: str | Path, encoding: str, options: Mapping[str, Any]) -> Source:
    """A file that is opened once, to be looked at by `task_of` and read by `read_source`."""
    of_cells = {name: options[name] for name in OF_CELLS if name in options}
    labelled = all(options.get(name, True) for name in _LABELLED)
    source = Source(Path(path), encoding, labelled=labelled, **of_cells)
    for name in ("text_columns", "label_column", "label_columns"):
        wanted = options.get(name)
        source.name_columns([wanted] if isinstance(wanted, (str, int)) else wanted or ())
    return source


def options_of(task: str, table: Mapping[str, Any], of_tool: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the reader of a task's files, from those of `read_table`.

    `of_tool` are those of `read_annotations`.
    """
    columns = table.get("text_columns")
    if task in ("tagging", "mrc-ner"):
        names = {"text_columns": "token_column", "label_column": "tag_column"}
        return {names.get(name, name): value for name, value in table.items()}
    if task == "qa":
        how = {name: value for name, value in of_tool.items() if name == "on_misaligned"}
        return {**table, **how}
    if task != "entities":
        return dict(table)
    if isinstance(columns, list):
        raise ValueError(f"text_columns={columns} names several: texts with entities have no pair")
    named = {} if columns is None else {"text_column": str(columns)}
    return {**of_tool, **without(table, "text_columns"), **named}


def read_source(source: Source, task: str, options: Mapping[str, Any]) -> Dataset:
    """Read the examples of a task."""
    rows = rows_of(source, task, options)
    y = labels_of(source, rows) if task == "classification" else [row.y for row in rows]
    X, meta = [row.x for row in rows], [row.meta for row in rows]
    beside = source.queries, source.columns, source.table_options
    return Dataset(X, y, task, source.path, meta, *beside)


def rows_of(source: Source, task: str, options: Mapping[str, Any]) -> list[Row]:
    """The rows of a file, each an example of a task."""
    if is_saved(source.path):
        remedy = "load it by datasets.load_from_disk, and give one split to from_hf"
        raise ValueError(f"{str(source.path)!r} is a data set of Hugging Face: {remedy}")
    if task == "qa" and not source.is_json and not source.holds_structures:
        what = "is not a SQuAD file: questions are read from JSON"
        raise ValueError(f"{str(source.path)!r} {what}")
    by_query = task == "mrc-ner" and suffix_of(source.path) == ".json"
    public, read = (read_mrc_ner, query_rows) if by_query else _READERS[task]
    options = without(options, *_LABELLED)
    if public is not None:
        check_options(public, options)
        for name in options.keys() & {*_OF_SOURCE}:
            setattr(source, name, options[name])
        options = without(options, *_OF_SOURCE)
    try:
        return list(read(source, **options))
    except ValueError as error:
        lines = task == "classification" and not source.is_json
        if lines and (suffix_of(source.path) == ".conll" or has_even_lines(source.head)):
            remedy = "for tagged sentences, give task='tagging'"
            raise ValueError(f"{error}; or, {remedy}") from error
        raise


# What reads the rows of a task, and the public function that has its options; a file of tagged
# sentences tells which has.
_READERS: dict[str, tuple[Any, Any]] = {
    "classification": (read_table, labelled_rows),
    "qa": (read_squad, question_rows),
    "entities": (read_annotations, entity_rows),
    "tagging": (None, tagged_rows),
    "mrc-ner": (None, partial(tagged_rows, nested=True)),
}


def task_of(source: Source, options: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The task of a file that is read by ``task="auto"``, with some `options`."""
    if is_saved(source.path) or "format" in options:
        return "entities"
    wants_labels = bool(OF_LABELS & set(options))
    found = find(source, "classification" if wants_labels else "")
    if found.task == "entities" and wants_labels:
        return "classification"
    return found.task or "classification"
