"""Read a file of any of the formats that skdice knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skdice.datasets.conll import (
    _DOCUMENT,
    CONLLU_COLUMNS,
    read_conll,
    read_conllu,
    read_lines,
    suffix_of,
)
from skdice.datasets.records import is_json_lines, is_record, read_table
from skdice.datasets.squad import read_mrc_ner, read_squad
from skdice.metrics.schemes import has_prefixes
from skdice.tasks import TASKS

__all__ = ["Dataset", "find_task", "read_dataset"]


@dataclass(frozen=True)
class Dataset:
    """Examples of one task.

    Attributes
    ----------
    X, y : list
    task : {"tagging", "classification", "qa", "mrc-ner"}
    path : Path or None
    ids : list of str or None
        Of questions.
    queries : dict or None
        Maps each entity type to its question in a BERT-MRC file.
    """

    X: list[Any]
    y: list[Any]
    task: str
    path: Path | None = None
    ids: list[str] | None = None
    queries: dict[str, str] | None = None

    def __len__(self) -> int:
        return len(self.X)


def read_dataset(
    path: str | Path, *, task: str = "auto", encoding: str = "utf-8", **options: Any
) -> Dataset:
    """Read tagged sentences, labelled texts, or questions with answers.

    Parameters
    ----------
    path : str or Path
    task : {"auto", "tagging", "classification", "qa", "mrc-ner"}, default="auto"
        ``"auto"`` looks at the file. CoNLL-U, or columns in blocks between blank lines, is tagging
        (columns are separated by tabs, or by spaces with tags such as ``O`` and ``B-PER`` in the
        last). A ``.json`` file is SQuAD's, or BERT-MRC's if it is a list. JSON lines and other
        tables are texts with labels. Tagged sentences can also be read for ``task="mrc-ner"``.
    encoding : str, default="utf-8"
    **options
        Of `read_table`, `read_conll`, `read_conllu` or `read_squad`, whichever reads the file.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError, ValueError
        As the reader does, and for an unknown `task`.
    """
    if task not in ("auto", *TASKS):
        raise ValueError(f"task={task!r} must be one of {('auto', *TASKS)}")
    path = Path(path)
    lines = read_lines(path, encoding)
    if task == "auto":
        task = _task_of(path, lines)
    if task == "qa":
        if suffix_of(path) != ".json":
            raise ValueError(f"{str(path)!r} is not a SQuAD file: questions are read from JSON")
        pairs, answers, ids = read_squad(path, return_ids=True, **options)
        return Dataset(pairs, answers, "qa", path, ids)
    if task == "mrc-ner" and suffix_of(path) == ".json":
        sentences, spans, queries = read_mrc_ner(path)
        return Dataset(sentences, spans, "mrc-ner", path, queries=queries)
    if task == "classification":
        try:
            X, y = read_table(path, encoding=encoding, **options)
        except ValueError as error:
            if suffix_of(path) == ".conll" or _has_even_lines(lines):
                raise ValueError(
                    f"{error}; or, for tagged sentences, give task='tagging' (--task tagging)"
                ) from error
            raise
        return Dataset(X, y, task, path)
    if is_json_lines(path, lines):
        raise ValueError(
            f"{str(path)!r} is JSON: tagged sentences are read from CoNLL columns (see write_conll)"
        )
    reader: Any = read_conllu if _is_conllu(lines) else read_conll
    X, y = reader(path, encoding=encoding, **options)
    return Dataset(X, y, task, path)


def find_task(path: str | Path, encoding: str = "utf-8") -> str:
    """The task that ``task="auto"`` finds for a file."""
    return _task_of(Path(path), read_lines(path, encoding))


def _task_of(path: Path, lines: list[str]) -> str:
    if suffix_of(path) == ".json":
        # JSON lines go by this name, too; SQuAD's is one object, on one line or on many.
        filled = [line for line in lines if line.strip()]
        if not (len(filled) > 1 and is_record(filled[0])):
            return "mrc-ner" if filled[0].lstrip().startswith("[") else "qa"
    if is_json_lines(path, lines):
        return "classification"
    return "tagging" if _in_blocks(lines) else "classification"


def _in_blocks(lines: list[str]) -> bool:
    """Whether blank lines stand between blocks of lines whose first column is one word.

    Words of a text without tabs are not columns: the last word of each line must be a tag.
    """
    if not _has_gaps(lines):
        return _is_conllu(lines)
    filled = _filled(lines)
    if all(len(line.split()[0]) == len(line.split("\t")[0]) for line in filled):
        return True
    tags = [line.split()[-1] for line in filled]
    return _has_even_lines(lines) and has_prefixes(tags)


def _has_even_lines(lines: list[str]) -> bool:
    """Whether blank lines separate lines that all have the same number of words, two or more."""
    filled = _filled(lines)
    widths = {1 if "\t" in line else len(line.split()) for line in filled}
    return _has_gaps(lines) and len(widths) == 1 and widths != {1}


def _has_gaps(lines: list[str]) -> bool:
    return "\n\n" in "\n".join(map(str.strip, lines)).strip("\n")


def _filled(lines: list[str]) -> list[str]:
    """The first lines of tokens or texts."""
    return [line for line in lines if line.strip() and not line.startswith(("#", _DOCUMENT))][:200]


def _is_conllu(lines: list[str]) -> bool:
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    columns = first.split("\t")
    return len(columns) == len(CONLLU_COLUMNS) and columns[0].split("-")[0].isdigit()
