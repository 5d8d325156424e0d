"""Read a file of any of the formats that skdice knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skdice._checks import check_choice, checked
from skdice._names import TASK_NAMES
from skdice.datasets.detection import find
from skdice.datasets.options import OF_CELLS, OF_LABELS, task_asked_for
from skdice.datasets.readers import READERS, Learned
from skdice.datasets.row import Row
from skdice.datasets.source import Source, warn_of_notes
from skdice.datasets.table import Asked
from skdice.datasets.texts import labels_of


@checked
@dataclass(frozen=True)
class Dataset:
    """Examples of one task.

    Parameters
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
    table : dict or None
        Of a table of texts with labels, or JSON of such records: the arguments of `read_table` as
        they were given or found. ``read_dataset(other, task="classification", **data.table)``
        reads another file in the same way.

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
    table: dict[str, Any] | None = None

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
        Of `read_table`, `read_conll`, `read_squad` or `read_annotations`, whichever reads the file;
        of CoNLL-U ``tag_column``: ``"upos"`` (the default), ``"xpos"``, ``"deprel"``, ``"lemma"``
        or ``"feats"``.

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
    check_choice("task", task, ("auto", *READERS))
    source = with_cells(Source(Path(path), encoding), options)
    if task == "auto":
        task = task_asked_for(options) or task_of(source)
    return read_source(source, task, options)


def with_cells(source: Source, options: Mapping[str, Any]) -> Source:
    """A file with what makes its lines cells of a table; it is not read a second time."""
    of_cells = {name: options[name] for name in OF_CELLS if name in options}
    names = ("text_columns", "label_column", "label_columns")
    asked = Asked.by(**{name: options[name] for name in names if name in options})
    of_cells["header"] = asked.header(of_cells.get("header"))
    return source.again(**of_cells)


def read_source(source: Source, task: str, options: Mapping[str, Any]) -> Dataset:
    """Read the examples of a task."""
    read = READERS[task].read(source, options)
    warn_of_notes(source, read.notes, len(read.rows))
    X, meta = [row.x for row in read.rows], [row.meta for row in read.rows]
    beside = read.queries, read.columns, read.table
    return Dataset(X, labels_of(read), task, source.path, meta, *beside)


def task_of(source: Source, options: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The task of a file that is read by ``task="auto"``, with some `options`."""
    if "format" in options:
        return "entities"
    wants_labels = bool(OF_LABELS & set(options))
    task = find(source, "classification" if wants_labels else "").task
    return "classification" if wants_labels and task == "entities" else task or "classification"


def read_inputs(
    source: Source, task: str, options: Mapping[str, Any], learned: Learned
) -> list[Row]:
    """The rows of a file to predict, without y."""
    read = READERS[task].inputs(source, options, learned)
    warn_of_notes(source, read.notes, len(read.rows))
    return [row._replace(y=None) for row in read.rows]
