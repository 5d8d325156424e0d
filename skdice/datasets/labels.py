"""Labels of whole texts that an annotation tool wrote, and Prodigy's answers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skdice._checks import counted
from skdice.datasets.find import find
from skdice.datasets.multilabel import NamedRows
from skdice.datasets.record import formats
from skdice.datasets.source import ANSWERS, Source


def labelled(source: Source, texts: Sequence[str], labels: Sequence[str]) -> tuple[Any, ...] | None:
    """Names of columns, rows, the columns of labels, and all of each row, of a tool's file.

    None if no tool wrote the labels of the texts, or not those that are asked for.
    """
    found = find(source, "labels")
    if found.format is None or (source.with_entities and found.holds != "labels"):
        return None
    source.of_labels = found.holds == "labels"
    source.text_column = texts[0] if texts else None
    skipped = source.skipped.copy()
    records = list(formats()[found.format].read(source))
    names = tuple(dict.fromkeys(name for record in records for name in record.labels or ()))
    first = source.values[0][1] if source.is_json or source.holds_structures else {}
    if any(name not in names and name in first for name in labels) or not (
        names or not source.with_entities
    ):
        source.skipped = skipped
        return None
    rows: list[tuple[Any, list[Any]]] = []
    for record in records:
        if source.with_entities and record.labels is None:
            source.skipped["without a label"] += 1
            continue
        known = record.labels or {}
        rows.append((record.place, [record.texts[0], *(known.get(name, []) for name in names)]))
    columns = [texts[0] if texts else "text", *names]
    if source.with_entities and any(r.metadata.get("answer") in ANSWERS for r in records):
        columns.append("answer")
        given = [r for r in records if r.labels is not None]
        rows = [
            (place, [*cells, record.metadata.get("answer")])
            for (place, cells), record in zip(rows, given, strict=True)
        ]
    all_of = ({"text": record.texts[0], **record.metadata} for record in records)
    return columns, rows, names, None if source.with_entities else [*all_of]


def are_answers(values: Sequence[Any]) -> bool:
    """Return True if values are answers of Prodigy, which some rows may lack."""
    return all(v in (*ANSWERS, None, "") for v in values) and any(v in ANSWERS for v in values)


def obey(source: Source, y: list[Any], answers: Sequence[Any]) -> list[Any]:
    """Labels of rows that were not ignored; one that was rejected has none."""
    n_rejected = answers.count("reject")
    if not n_rejected:
        return y
    source.told.append(f"{counted(n_rejected, 'row')} kept without the labels that were rejected")
    lists = [row if isinstance(row, list) else [row] for row in y]
    rows = [[] if answer == "reject" else row for answer, row in zip(answers, lists, strict=True)]
    return NamedRows(y.columns, rows) if isinstance(y, NamedRows) else rows
