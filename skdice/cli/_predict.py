"""`skdice predict`: rows of a file with or without labels, and predictions as text."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, repeat, tee
from pathlib import Path
from typing import Any

import typer

from skdice.cli import _entities
from skdice.cli._options import Columns
from skdice.datasets import read_dataset, read_texts
from skdice.datasets.annotations import without
from skdice.datasets.auto import find_task
from skdice.datasets.conll import Line, columns_of
from skdice.datasets.files import is_json, is_record, parse_json, read_lines, replacing
from skdice.datasets.tagged import holds_columns
from skdice.tasks import TASKS

BLOCK = 64  # rows of standard input that are predicted at a time


def rows_of(estimator: Any, file: Path, columns: Columns) -> Iterator[tuple[Any, str]]:
    """Inputs of a file with or without labels, and their ids, which questions have."""
    X, ids = _inputs_of(estimator, file, columns)
    return zip(X, ids or repeat(""), strict=False)


def _inputs_of(estimator: Any, file: Path, columns: Columns) -> tuple[list[Any], list[str]]:
    task, encoding = estimator.task.name, columns.encoding
    if task == "classification":
        # A model of transformers does not tell whether it takes texts or pairs.
        width = estimator.n_features_in_ or max(1, len(columns.text_column or ()))
        options = {"n_texts": width, "classes": estimator.classes_, **columns.of_table()}
        return read_texts(file, encoding=encoding, **options), []
    if task == "qa":
        questions = read_dataset(file, task="qa", encoding=encoding, with_answers=False)
        return questions.X, questions.ids or []
    lines = read_lines(file, encoding)
    if is_json(file, lines):
        return read_dataset(file, task=task, encoding=encoding, with_tags=False).X, []
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        return [[token for token in block.split("\n") if token] for block in blocks], []
    if not columns.text_column and find_task(file, encoding) != "tagging":
        _refuse_text(repr(str(file)), lines, estimator)
    return columns.read(file, "tagging", with_tags=False).X, []


def _refuse_text(where: str, lines: list[str], estimator: Any) -> None:
    """Refuse lines of running text, of which a tagger would read the first words alone."""
    if not holds_columns(lines, getattr(estimator, "classes_", ())):
        raise ValueError(
            f"{where} holds running text ({lines[0]:.40}): write one token a line and blank lines "
            "between sentences, or name the column of tokens (--text-column); running text is for "
            "a recognizer, which skdice train makes from texts with entities"
        )


# ---- formats


def format_of(estimator: Any, asked: str) -> str:
    """The format to write, if the task has it."""
    task = estimator.task.name
    known = TASKS[task].formats
    if task == "mrc-ner" and estimator.scheme_ is None:
        known = ("spans", "jsonl")  # nested entities have no tags
    if asked == "auto":
        return known[0]
    if asked not in known:
        raise typer.BadParameter(f"--format {asked} is not for {task}: give one of {known}")
    return asked


def lines_of(
    estimator: Any, how: str, rows: Iterable[tuple[Any, str]], block_size: int = 4096
) -> Iterator[str]:
    """A line for each row, which is an input with its id, without the lines' ends."""
    labelled = estimator.task.name == "classification" and how == "jsonl"
    method = "predict_proba" if labelled else "predict"
    if how == "tsv":
        method = "predict_labels"
    rows, ahead = tee(rows)
    inputs = (x for x, _ in ahead)
    if estimator.task.name in ("tagging", "mrc-ner") and how != "conll":
        predicted = estimator._by_blocks(inputs, estimator._tagged, block_size)
    else:
        predicted = estimator.iter_predict(inputs, method, block_size)
    for i, ((x, name), found) in enumerate(zip(rows, predicted, strict=True)):
        if how == "tsv":
            label = ",".join(map(str, found)) if isinstance(found, list) else str(found)
            cells = [label, *([x] if isinstance(x, str) else x)]
            yield "\t".join(" ".join(cell.split()) for cell in cells)
        elif how == "conll":
            lines = "\n".join(f"{token}\t{tag}" for token, tag in zip(x, found, strict=True))
            yield f"\n{lines}" if i else lines
        else:
            yield json.dumps(_record(estimator, how, x, name, found), ensure_ascii=False)


def _record(estimator: Any, how: str, x: Any, name: str, found: Any) -> dict[str, Any]:
    if estimator.task.name == "classification":  # `found` are probabilities
        classes = estimator.classes_.tolist()
        label: Any = [name for name, p in zip(classes, found, strict=True) if p > 0.5]
        if not estimator.multilabel_:
            label = classes[found.argmax()]
        texts = {"text": x} if isinstance(x, str) else {"text": x[0], "text_pair": x[1]}
        shown = dict(zip(map(str, classes), found.round(6).tolist(), strict=True))
        return {**texts, "label": label, "probabilities": shown}
    if estimator.task.name == "qa":
        return {"id": name, "question": x[0], "answer": found}
    tags, spans = found
    rounded = [(*span[:3], round(span.score, 6)) for span in spans]
    if how == "jsonl":
        known = {} if estimator.scheme_ is None else {"tags": tags}
        return {"tokens": x, **known, "spans": rounded}
    entries = [
        {"type": kind, "start": start, "end": end, "text": " ".join(x[start:end]), "score": score}
        for kind, start, end, score in rounded
    ]
    return {"tokens": x, "spans": entries}


def write(
    estimator: Any, how: str, rows: Iterable[tuple[Any, str]], out: Path | None, **options: Any
) -> int:
    """Predict rows as they come, and write or print them; returns their number.

    An output file appears when all are predicted.
    """
    done = 0
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        if how == "squad":
            rows = list(rows)
            found = estimator.predict([x for x, _ in rows])
            answers = dict(zip([name for _, name in rows], found, strict=True))
            file.write(json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
            return len(rows)
        for line in lines_of(estimator, how, rows, **options):
            file.write(f"{line}\n")
            file.flush()
            done += 1
        if not done:
            raise ValueError("the input is empty: give at least one example")
    return done


# ---- standard input


def stream(estimator: Any, how: str, out: Path | None) -> int:
    """Predict standard input block by block; returns the number of rows."""
    if estimator.task.name == "entities":
        return _entities.write(estimator, how, _texts(sys.stdin), out, block_size=BLOCK)
    rows = enumerate(_rows(estimator, sys.stdin))
    named = ((x, name or str(i)) for i, (x, name) in rows)
    return write(estimator, "jsonl" if how == "squad" else how, named, out, block_size=BLOCK)


def _texts(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Texts with the other fields of their records, which only JSON has."""
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        if is_record(line):
            record = parse_json(line, "standard input", number)
            yield _read_record("entities", number, line)[0], without(record, "text")
        elif line.strip():
            yield line, {}


def _rows(estimator: Any, lines: Iterable[str]) -> Iterator[tuple[Any, str]]:
    """Rows with their ids, which only JSON has."""
    task = estimator.task.name
    sentence: list[str] = []
    as_json: bool | None = None
    for number, line in enumerate(chain(lines, [""]), 1):
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        if not line.strip():
            if sentence:
                yield _tokens(estimator, number - len(sentence), sentence), ""
            sentence = []
            continue
        if as_json is None:  # the first row decides for all
            as_json = task == "qa" or is_record(line)
        if as_json:
            yield _read_record(task, number, line)
        elif task == "classification":
            texts = line.split("\t")
            yield (texts[0] if len(texts) == 1 else tuple(texts[:2])), ""
        else:
            sentence.append(line)


def _tokens(estimator: Any, number: int, lines: list[str]) -> list[str]:
    """The tokens of a sentence, which stand alone or in columns."""
    separator = "\t" if any("\t" in line for line in lines) else None
    rows = [Line(number + i, line, line.split(separator)) for i, line in enumerate(lines)]
    column = 0
    if any(len(row.cells) > 1 for row in rows):
        _refuse_text(f"standard input, line {number},", lines, estimator)
        rows, column, _ = columns_of("standard input", rows, None, None, with_tags=False)
    return [row.cells[column] for row in rows]


def _read_record(task: str, number: int, line: str) -> tuple[Any, str]:
    where = f"standard input, line {number}"
    if not is_record(line):
        raise ValueError(f"{where}: {line:.60} is not a JSON object, as each line must be")
    record = parse_json(line, "standard input", number)
    needed = TASKS[task].keys
    keys = [key for key in needed if key in record]
    if not keys or keys[0] != needed[0] or (task == "qa" and len(keys) < 2):
        raise ValueError(f"{where} has {sorted(record)}, and {task} needs {list(needed)}")
    values = [record[key] for key in keys]
    return values[0] if len(values) == 1 else tuple(values), str(record.get("id", ""))
