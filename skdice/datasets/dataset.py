"""Read a file of any of the formats that skdice knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import unwrap
from pathlib import Path
from types import MappingProxyType
from typing import Any

from skdice._checks import check_choice, checked
from skdice._names import TASK_NAMES
from skdice.datasets.annotations import is_saved, read_annotations
from skdice.datasets.detection import find
from skdice.datasets.reading import suffix_of
from skdice.datasets.source import OF_LABELS, Source, check_options, warn_of_skipped
from skdice.datasets.squad import read_mrc_ner, read_squad
from skdice.datasets.tagged import has_even_lines, is_tagged, read_tagged
from skdice.datasets.texts import read_table

OF_CELLS = ("separator", "quoting", "header")  # options of how a table is written
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
        text.
    queries : dict or None
        Maps each entity type to its question in a BERT-MRC file.
    columns : dict or None
        Of a table the columns of ``"text"`` and ``"label"``, of CoNLL columns those of ``"token"``
        and ``"tag"``: names, or indices where no header names them.

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
    source = Source(Path(path), encoding, **of_cells)
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
    others = {name: value for name, value in table.items() if name != "text_columns"}
    return {**of_tool, **others, **({} if columns is None else {"text_column": str(columns)})}


def read_source(source: Source, task: str, options: Mapping[str, Any]) -> Dataset:
    """Read the examples of a task."""
    if is_saved(source.path):
        remedy = "load it by datasets.load_from_disk, and give one split to from_hf"
        raise ValueError(f"{str(source.path)!r} is a data set of Hugging Face: {remedy}")
    if task == "qa" and not source.is_json and not source.holds_structures:
        what = "is not a SQuAD file: questions are read from JSON"
        raise ValueError(f"{str(source.path)!r} {what}")
    by_query = task == "mrc-ner" and suffix_of(source.path) == ".json"
    reader: Any = read_mrc_ner if by_query else _READERS.get(task)
    if reader is None:
        X, y = read_tagged(source, nested=task == "mrc-ner", **options)
        warn_of_skipped(source, len(X))
        return Dataset(X, y, task, source.path, columns=source.columns)
    options = {name: value for name, value in options.items() if name != "with_tags"}
    check_options(reader, options)
    try:
        X, y, *more = unwrap(reader)(source, **options)
    except ValueError as error:
        lines = task == "classification" and not source.is_json
        if lines and (suffix_of(source.path) == ".conll" or has_even_lines(source.head)):
            remedy = "for tagged sentences, give task='tagging'"
            raise ValueError(f"{error}; or, {remedy}") from error
        raise
    queries = more[0] if by_query else None
    return Dataset(X, y, task, source.path, source.meta, queries, source.columns)


_READERS = {"classification": read_table, "qa": read_squad, "entities": read_annotations}
_TASKS = {
    "entities": "entities",
    "labels": "classification",
    "tags": "tagging",
    "questions": "qa",
    "queries": "mrc-ner",
}


def task_of(source: Source, options: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The task of a file that is read by ``task="auto"``, with some `options`."""
    if is_saved(source.path) or "format" in options:
        return "entities"
    found = find(source, "labels" if OF_LABELS & set(options) else "")
    if found.holds == "entities" and OF_LABELS & set(options):
        return "classification"
    if found.holds or source.is_json:
        return _TASKS.get(found.holds, "classification")
    return "tagging" if is_tagged(source) else "classification"
