"""Read a file of any of the formats that skdice knows."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skdice._checks import check_choice, checked
from skdice.datasets.annotations.api import find_format, read_annotations
from skdice.datasets.annotations.jsonl import read_tokens, token_fields
from skdice.datasets.annotations.records import Source
from skdice.datasets.conll import DOCUMENT, TAG, is_conllu, read_conll, read_conllu
from skdice.datasets.files import fault, first_line, is_json, read_lines, suffix_of
from skdice.datasets.records import read_table, token_table
from skdice.datasets.squad import read_mrc_ner, read_squad
from skdice.metrics.schemes import to_tags

# What a file may hold. Each is the name of a task of `skdice.tasks`.
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
    ids : list of str or None
        Of questions.
    queries : dict or None
        Maps each entity type to its question in a BERT-MRC file.
    columns : dict or None
        What was read from which column of a table or of CoNLL columns.

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
    ids: list[str] | None = None
    queries: dict[str, str] | None = None
    columns: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.task not in KINDS:
            raise ValueError(f"task={self.task!r} must be one of {list(KINDS)}")

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
    path = Path(path)
    if task == "auto":
        task = find_task(path, encoding)
    if task == "entities":
        _check(read_annotations, options)
        texts, entities, _ = read_annotations(path, encoding=encoding, **options)
        return Dataset(texts, entities, task, path)
    lines = read_lines(path, encoding)
    if task == "qa":
        if not is_json(path, lines):
            raise ValueError(f"{str(path)!r} is not a SQuAD file: questions are read from JSON")
        _check(read_squad, options)
        pairs, answers, ids = read_squad(path, encoding=encoding, return_ids=True, **options)
        return Dataset(pairs, answers, "qa", path, ids)
    if task == "mrc-ner" and suffix_of(path) == ".json":
        sentences, spans, queries = read_mrc_ner(path, encoding=encoding)
        return Dataset(sentences, spans, "mrc-ner", path, queries=queries)
    if task == "classification":
        try:
            return _from_columns(read_table, path, task, encoding=encoding, **options)
        except ValueError as error:
            if suffix_of(path) == ".conll" or _has_even_lines(lines):
                remedy = "for tagged sentences, give task='tagging' (--task tagging)"
                raise ValueError(f"{error}; or, {remedy}") from error
            raise
    if is_json(path, lines):
        return _from_tokens(path, lines, task, options.get("with_tags", True))
    table = token_table(path, lines, options.get("separator"), options.get("with_tags", True))
    if table is not None:
        _check(token_table, options)
        return Dataset(*table[:2], task, path, columns=table[2])
    reader = read_conllu if is_conllu(lines) else read_conll
    return _from_columns(reader, path, task, encoding=encoding, **options)


def _from_tokens(path: Path, lines: list[str], task: str, with_tags: bool) -> Dataset:
    """Lists of tokens with their tags, or with spans of tokens, from JSON."""
    source = Source(path)
    source.lines = lines
    if not any(token_fields(value) for _, value in source.values):
        remedy = "for texts with entities, give task='entities' (--task entities)"
        raise ValueError(f"{str(path)!r} holds no lists of tokens and tags: {remedy}")
    rows = list(read_tokens(source, with_tags))
    y: list[Any] = [row for _, _, row in rows]
    if task == "tagging":
        for i, (place, tokens, row) in enumerate(rows):
            if row and isinstance(row[0], tuple):
                try:
                    y[i] = to_tags(row, len(tokens))
                except ValueError as error:
                    remedy = "give task='mrc-ner' (--task mrc-ner)"
                    raise fault(path, place, f"{error}; for nested spans, {remedy}") from error
            elif not row:
                y[i] = ["O"] * len(tokens)
    return Dataset([tokens for _, tokens, _ in rows], y, task, path)


def _from_columns(reader: Any, path: Path, task: str, **options: Any) -> Dataset:
    _check(reader, options)
    X, y, columns = reader(path, return_columns=True, **options)
    return Dataset(X, y, task, path, columns=columns)


def _check(reader: Any, options: dict[str, Any]) -> None:
    for name in sorted(set(options) - set(inspect.signature(reader).parameters)):
        given = f"{name}={options[name]!r}"
        raise TypeError(f"{given} is no option of {reader.__name__}, which reads this file")


def find_task(path: str | Path, encoding: str = "utf-8") -> str:
    """The task that ``task="auto"`` finds for a file."""
    path = Path(path)
    if path.is_dir() or suffix_of(path) in (".ann", ".spacy"):
        return "entities"
    return _task_of(path, read_lines(path, encoding))


def _task_of(path: Path, lines: list[str]) -> str:
    if is_json(path, lines):
        source = Source(path)
        source.lines = lines
        _, first = next(iter(source.values), ("", None))
        record = first if isinstance(first, dict) else {}
        if {"query", "entity_label"} <= set(record):
            return "mrc-ner"
        if {"question", "context"} <= set(record) or isinstance(record.get("data"), list):
            return "qa"
        if any(token_fields(value) for _, value in source.values):
            return "tagging"
        return "classification" if find_format(source) is None else "entities"
    begins = first_line(lines).startswith(("#begin document", DOCUMENT))
    if begins or is_conllu(lines) or _in_blocks(lines):
        return "tagging"
    return "classification" if token_table(path, lines, with_tags=False) is None else "tagging"


def _in_blocks(lines: list[str]) -> bool:
    """Whether blank lines stand between blocks of lines of columns."""
    return _has_gaps(lines) and holds_columns(lines, set("OBIES"))


def holds_columns(lines: list[str], tags: Collection[str]) -> bool:
    """Whether lines are columns of single words: after tabs, or with a tag at one end of each."""
    filled = _filled(lines)
    single = [len(line.split()) == len(line.rstrip().split("\t")) for line in filled]
    if 10 * sum(single) >= 9 * len(filled) and any("\t" in line for line in filled):
        return True
    ends = ([line.split()[i] for line in filled] for i in (0, -1))
    return len({len(line.split()) for line in filled}) == 1 and any(
        all(word in tags or TAG.fullmatch(word) for word in words) for words in ends
    )


def _has_even_lines(lines: list[str]) -> bool:
    """Whether blank lines separate lines that all have the same number of words, two or more."""
    filled = _filled(lines)
    widths = {1 if "\t" in line else len(line.split()) for line in filled}
    return _has_gaps(lines) and len(widths) == 1 and widths != {1}


def _has_gaps(lines: list[str]) -> bool:
    return "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")


def _filled(lines: list[str]) -> list[str]:
    """The first lines of tokens or texts."""
    return [line for line in lines if line.strip() and not line.startswith(("#", DOCUMENT))][:200]
