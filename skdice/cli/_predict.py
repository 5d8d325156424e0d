"""`skdice predict`: rows of a file with or without labels, and predictions as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skdice.cli import _common
from skdice.datasets import read_dataset, read_texts
from skdice.datasets.conll import read_lines
from skdice.datasets.records import is_json_lines


def inputs_of(
    estimator: Any,
    file: Path,
    text_columns: list[str] | None,
    label_column: str | None,
    header: bool | None,
) -> tuple[list[Any], list[str]]:
    """X of a file that may hold labels or not, and the ids of questions."""
    task = estimator.task
    if task == "classification":
        options = _common.table_options(text_columns, label_column, header)
        width, classes = estimator.n_features_in_, estimator.classes_
        return read_texts(file, n_texts=width, classes=classes, **options), []
    if task == "qa":
        questions = read_dataset(file, task="qa", with_answers=False)
        return questions.X, questions.ids or []
    lines = read_lines(file)
    if is_json_lines(file, lines):
        return _common.read(file, task).X, []
    if all("\t" not in line and len(line.split()) < 2 for line in lines):
        blocks = "\n".join(line.strip() for line in lines).strip("\n").split("\n\n")
        return [[token for token in block.split("\n") if token] for block in blocks], []
    return _common.read(file, "tagging", text_columns, label_column).X, []


def as_text(estimator: Any, X: list[Any], ids: list[str], predicted: Any) -> str:
    """Predictions in the format of their task."""
    task = estimator.task
    if task == "qa":
        answers = dict(zip(ids, predicted, strict=True))
        return json.dumps(answers, ensure_ascii=False, indent=1) + "\n"
    if task == "mrc-ner" and estimator.scheme_ is None:
        spans = [{"tokens": t, "spans": s} for t, s in zip(X, predicted, strict=True)]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in spans)
    if task in ("tagging", "mrc-ner"):
        return "\n".join(
            "".join(f"{token}\t{tag}\n" for token, tag in zip(tokens, tags, strict=True))
            for tokens, tags in zip(X, predicted, strict=True)
        )
    columns = [[x] if isinstance(x, str) else list(x) for x in X]
    cells = [[str(label), *row] for label, row in zip(predicted, columns, strict=True)]
    return "".join("\t".join(" ".join(c.split()) for c in row) + "\n" for row in cells)
