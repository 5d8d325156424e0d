"""`skdice predict`: rows of a file with or without labels, and predictions as text."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import typer

from skdice.cli._options import Columns
from skdice.datasets import read_dataset, read_texts
from skdice.datasets.conll import read_lines, replacing, write_text
from skdice.datasets.records import is_json_lines, is_record
from skdice.metrics.schemes import get_spans

BLOCK = 64  # rows of standard input that are predicted at a time


def inputs_of(estimator: Any, file: Path, columns: Columns) -> tuple[list[Any], list[str]]:
    """X of a file with or without labels, and the ids of questions."""
    task, encoding = estimator.task, columns.encoding
    if task == "classification":
        # A model of transformers does not tell whether it takes texts or pairs.
        width = estimator.n_features_in_ or max(1, len(columns.text_column or ()))
        options = {"n_texts": width, "classes": estimator.classes_, **columns.of_table()}
        return read_texts(file, encoding=encoding, **options), []
    if task == "qa":
        questions = read_dataset(file, task="qa", with_answers=False)
        return questions.X, questions.ids or []
    lines = read_lines(file, encoding)
    if is_json_lines(file, lines):
        return read_dataset(file, task=task, encoding=encoding).X, []
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        return [[token for token in block.split("\n") if token] for block in blocks], []
    return columns.read(file, "tagging").X, []


# ---- formats

# Formats of each task; auto is the first.
_FORMATS = {
    "tagging": ("conll", "jsonl", "spans"),
    "classification": ("tsv", "jsonl"),
    "qa": ("squad", "jsonl"),
    "mrc-ner": ("conll", "jsonl", "spans"),
}


def format_of(estimator: Any, asked: str) -> str:
    """The format to write, if the task has it."""
    known = _FORMATS[estimator.task]
    if estimator.task == "mrc-ner" and estimator.scheme_ is None:
        known = ("spans", "jsonl")  # nested entities have no tags
    if asked == "auto":
        return known[0]
    if asked not in known:
        raise typer.BadParameter(
            f"--format {asked} is not for {estimator.task}: give one of {known}"
        )
    return asked


def lines_of(estimator: Any, how: str, X: list[Any], ids: list[str]) -> Iterator[str]:
    """Lines to write, without their ends."""
    if how in ("jsonl", "spans"):
        for record in _records(estimator, how, X, ids):
            yield json.dumps(record, ensure_ascii=False)
        return
    for i, (x, found) in enumerate(zip(X, estimator.predict(X), strict=True)):
        if how == "tsv":
            cells = [str(found), *([x] if isinstance(x, str) else x)]
            yield "\t".join(" ".join(cell.split()) for cell in cells)
        else:
            rows = "\n".join(f"{token}\t{tag}" for token, tag in zip(x, found, strict=True))
            yield f"\n{rows}" if i else rows


def _records(estimator: Any, how: str, X: list[Any], ids: list[str]) -> Iterator[dict[str, Any]]:
    if estimator.task == "classification":
        yield from _labelled(estimator, X)
        return
    predicted = estimator.predict(X)
    if estimator.task == "qa":
        for (question, _), name, answer in zip(X, ids, predicted, strict=True):
            yield {"id": name, "question": question, "answer": answer}
    elif how == "spans":
        scheme = estimator.scheme_
        for tokens, found in zip(X, predicted, strict=True):
            spans = found if scheme is None else get_spans(found, scheme)
            yield {
                "tokens": tokens,
                "spans": [
                    {"type": kind, "start": start, "end": end, "text": " ".join(tokens[start:end])}
                    for kind, start, end in spans
                ],
            }
    else:
        key = "spans" if estimator.scheme_ is None else "tags"
        for tokens, found in zip(X, predicted, strict=True):
            yield {"tokens": tokens, key: found}


def _labelled(estimator: Any, X: list[Any]) -> Iterator[dict[str, Any]]:
    """Labels and probabilities, from one run of the encoder."""
    table = estimator.predict_proba(X)
    if estimator.multilabel_:
        labels = (table > 0.5).astype(int)
    else:
        labels = estimator.classes_[table.argmax(axis=1)]
    names = list(map(str, estimator.classes_))
    for x, label, row in zip(X, labels.tolist(), table.round(6).tolist(), strict=True):
        texts = {"text": x} if isinstance(x, str) else {"text": x[0], "text_pair": x[1]}
        yield {**texts, "label": label, "probabilities": dict(zip(names, row, strict=True))}


def write(estimator: Any, how: str, X: list[Any], ids: list[str], out: Path | None) -> int:
    """Predict all rows, and write or print them; returns their number."""
    if how == "squad":
        answers = dict(zip(ids, estimator.predict(X), strict=True))
        text = json.dumps(answers, ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(f"{line}\n" for line in lines_of(estimator, how, X, ids))
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_text(out, text)
    return len(X)


# ---- standard input


def stream(estimator: Any, how: str, out: Path | None) -> int:
    """Predict standard input block by block; returns the number of rows.

    An output file appears when the input has ended.
    """
    how = "jsonl" if how == "squad" else how
    rows, done = _rows(estimator.task, sys.stdin), 0
    with contextlib.nullcontext(sys.stdout) if out is None else replacing(out) as file:
        while block := list(islice(rows, BLOCK)):
            X = [x for x, _ in block]
            ids = [name or str(i) for i, (_, name) in enumerate(block, done)]
            if how == "conll" and done:
                file.write("\n")
            for line in lines_of(estimator, how, X, ids):
                file.write(f"{line}\n")
            file.flush()
            done += len(block)
        if not done:
            raise ValueError("standard input is empty: give at least one example")
    return done


_KEYS = {
    "tagging": ("tokens",),
    "mrc-ner": ("tokens",),
    "classification": ("text", "text_pair"),
    "qa": ("question", "context"),
}


def _rows(task: str, lines: Iterable[str]) -> Iterator[tuple[Any, str]]:
    """Rows with their ids, which only JSON has."""
    tokens: list[str] = []
    as_json: bool | None = None
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r\n").removeprefix("\ufeff")
        if not line.strip():
            if tokens:
                yield tokens, ""
            tokens = []
            continue
        if as_json is None:  # the first row decides for all
            as_json = task == "qa" or is_record(line)
        if as_json:
            yield _read_record(task, number, line)
        elif task == "classification":
            texts = line.split("\t")
            yield (texts[0] if len(texts) == 1 else tuple(texts[:2])), ""
        else:
            tokens.append(line.split("\t")[0] if "\t" in line else line.split()[0])
    if tokens:
        yield tokens, ""


def _read_record(task: str, number: int, line: str) -> tuple[Any, str]:
    where = f"standard input, line {number}"
    if not is_record(line):
        raise ValueError(f"{where}: {line:.60} is not a JSON object, as each line must be")
    record = json.loads(line)
    keys = [key for key in _KEYS[task] if key in record]
    if not keys or keys[0] != _KEYS[task][0] or (task == "qa" and len(keys) < 2):
        raise ValueError(f"{where} has {sorted(record)}, and {task} needs {list(_KEYS[task])}")
    values = [record[key] for key in keys]
    return values[0] if len(values) == 1 else tuple(values), str(record.get("id", ""))
