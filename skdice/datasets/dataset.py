"""Read a file of any of the formats that skdice knows: a reader for each task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from skdice._checks import check_choice, checked
from skdice._names import TASK_NAMES
from skdice.datasets.annotations import entity_rows, read_annotations
from skdice.datasets.detection import find
from skdice.datasets.row import OF_CELLS, Reading, Row, Wanted, check_options, without
from skdice.datasets.source import Source, warn_of_notes
from skdice.datasets.squad import query_rows, question_rows, read_squad
from skdice.datasets.table import Asked
from skdice.datasets.tagged import holds_columns, is_tagged, tagged_rows
from skdice.datasets.texts import labelled_rows, labels_of, read_table, text_rows

Options = Mapping[str, Any]
_OF_LABELS = {"label_column", "label_columns", "label_separator"}
_OF_TOOLS = {"format", "offsets", "layer", "feature", "text_column"}


@checked
@dataclass(frozen=True)
class Dataset:
    """Examples of one task.

    Parameters
    ----------
    X, y : list
    task : {"tagging", "classification", "qa", "multi-span-qa", "mrc-ner", "entities"}
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
    task : str, default="auto"
        One of those of `Dataset`, or ``"auto"``, which looks at the file. CoNLL-U, or columns in
        blocks between blank lines, is tagging (columns are separated by tabs, or by spaces with
        tags such as ``O`` and ``B-PER`` in the last or first), and so is a table whose header names
        a token, a tag and a sentence (as Kaggle's ``Sentence #,Word,POS,Tag``). JSON is SQuAD's,
        BERT-MRC's, lists of tokens and tags, texts with entities as annotation tools write them
        (see `read_annotations`), or records of texts with labels, by its keys. Other tables are
        texts with labels. Tagged sentences can also be read for ``task="mrc-ner"`` and
        ``"entities"``.
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
        task = _task_asked_for(options) or task_of(source)
    return read_source(source, task, options)


def _task_asked_for(options: Options) -> str:
    """The task whose files alone have one of the options; empty if none says it."""
    asked = set(options)
    if asked & (_OF_LABELS | {"text_columns"}):
        return "classification"
    if asked & {"token_column", "tag_column"}:
        return "tagging"
    return "entities" if asked & _OF_TOOLS else ""


def with_cells(source: Source, options: Options) -> Source:
    """A file with what makes its lines cells of a table; it is not read a second time."""
    of_cells = {name: options[name] for name in OF_CELLS if name in options}
    names = ("text_columns", "label_column", "label_columns")
    asked = Asked.by(**{name: options[name] for name in names if name in options})
    of_cells["header"] = asked.header(of_cells.get("header"))
    return source.again(**of_cells)


def read_source(source: Source, task: str, options: Options) -> Dataset:
    """Read the examples of a task."""
    read = READERS[task].read(source, options)
    warn_of_notes(source, read.notes, len(read.rows))
    X, meta = [row.x for row in read.rows], [row.meta for row in read.rows]
    beside = read.queries, read.columns, read.table
    return Dataset(X, labels_of(read), task, source.path, meta, *beside)


def task_of(source: Source, options: Options = MappingProxyType({})) -> str:
    """The task of a file that is read by ``task="auto"``, with some `options`."""
    if "format" in options:
        return "entities"
    wants_labels = bool(_OF_LABELS & set(options))
    task = find(source, "classification" if wants_labels else "").task
    return "classification" if wants_labels and task == "entities" else task or "classification"


def read_inputs(source: Source, task: str, options: Options, learned: Learned) -> list[Row]:
    """The rows of a file to predict, without y."""
    read = READERS[task].inputs(source, options, learned)
    warn_of_notes(source, read.notes, len(read.rows))
    return [row._replace(y=None) for row in read.rows]


# ---- the files of each task


class Learned(NamedTuple):
    """What a model that predicts a file shows of it."""

    n_texts: int | None = None  # of a row to classify, where that is known
    tags: Collection[str] = ()  # of a tagger


class Reader(ABC):
    """The files of one task."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        """The options of this reader, from those of `read_table` and of `read_annotations`."""
        return dict(table)

    @abstractmethod
    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        """The rows of a file."""

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        """The rows of a file to predict."""
        return self.read(source, {}, labelled=False)


class Labelled(Reader):
    """Texts, or pairs, with labels."""

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_table, options)
        return labelled_rows(source, Asked.by(**without(options, *OF_CELLS)))

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        asked = Asked.by(**without(options, *OF_CELLS))
        # A model of transformers does not tell whether it takes texts or pairs.
        return text_rows(source, asked, learned.n_texts or max(1, len(asked.texts)))


class Questions(Reader):
    """Questions with their contexts."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        how = {name: value for name, value in of_tool.items() if name == "on_misaligned"}
        return {**table, **how}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_squad, options)
        return question_rows(source, labelled=labelled, **options)


class TextsWithEntities(Reader):
    """Texts with entities, as annotation tools write them."""

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        columns = table.get("text_columns")
        named = {} if columns is None else {"text_column": str(columns)}
        return {**of_tool, **without(table, "text_columns"), **named}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        check_options(read_annotations, options)
        names = ("text_column", "layer", "feature")
        wanted = Wanted(labelled, **{n: options[n] for n in names if n in options})
        return entity_rows(source, wanted, **without(options, *names))

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        column, form = options.get("text_column"), find(source).format
        if form is not None or source.is_json:
            return entity_rows(source, Wanted(False, text_column=column), format=form or "jsonl")
        if not options and source.suffix not in (".csv", ".tsv"):
            lines = enumerate(source.iter_lines(), 1)
            return Reading([Row(number, line, None, {}) for number, line in lines if line.strip()])
        how = without(options, *OF_CELLS, "text_column")
        read = text_rows(source, Asked.by(text_columns=column, **how))
        named = (read.columns or {})["text"][0]
        read.rows = [row._replace(meta=without(row.meta, named)) for row in read.rows]
        return read


class TaggedSentences(Reader):
    """Tokens with their tags."""

    nested = False

    def options(self, table: Options, of_tool: Options) -> dict[str, Any]:
        names = {"text_columns": "token_column", "label_column": "tag_column"}
        return {names.get(name, name): value for name, value in table.items()}

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        return tagged_rows(source, options, labelled=labelled, nested=self.nested)

    def inputs(self, source: Source, options: Options, learned: Learned) -> Reading:
        if source.is_json:
            return self.read(source, {}, labelled=False)
        lines = source.text.split("\n")
        has_tags = "token_column" in options or is_tagged(source)
        if not has_tags and all("\t" not in line and len(line.split()) < 2 for line in lines):
            return Reading(_token_a_line(lines))
        if has_tags or holds_columns(lines, learned.tags):
            return tagged_rows(source, options, labelled=False)
        first = next(i for i, line in enumerate(lines, 1) if line.strip())
        problem = f"holds running text ({lines[first - 1]:.40}): write one token a line and "
        problem += "blank lines between sentences, or name the column of tokens (text_columns)"
        problem += "; running text is for a recognizer, which is trained on texts with entities"
        raise source.fault(first, problem)


def _token_a_line(lines: list[str]) -> list[Row]:
    """The sentences of lines of one token, with blank lines between them."""
    blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
    found = ([token for token in block.split("\n") if token] for block in blocks)
    return [Row("", tokens, None, {}) for tokens in found]


class Queried(TaggedSentences):
    """Tokens with spans, which may be nested, and perhaps a question for each type."""

    nested = True

    def read(self, source: Source, options: Options, labelled: bool = True) -> Reading:
        first = source.values[0][1] if source.is_json and source.values else None
        if isinstance(first, dict) and {"query", "entity_label"} & set(first):
            return query_rows(source)
        return super().read(source, options, labelled)


# By the names of the tasks of `skdice.tasks`.
READERS: dict[str, Reader] = {
    "tagging": TaggedSentences(),
    "classification": Labelled(),
    "qa": Questions(),
    "multi-span-qa": Questions(),
    "mrc-ner": Queried(),
    "entities": TextsWithEntities(),
}
