"""What a person answered in Prodigy, in JSON and in tables: the one place that obeys it."""

from __future__ import annotations

from typing import Any

from skdice._checks import counted
from skdice.datasets.row import Note
from skdice.datasets.source import Placed

ANSWERS = ("accept", "reject", "ignore")
REFUSED = ANSWERS[1:]


def answer_of(value: Any) -> Any:
    """The answer about a record or a span; None if there is none."""
    return value.get("answer") if isinstance(value, dict) else None


def are_answers(values: list[Any]) -> bool:
    """Return True if values are answers, or missing."""
    return all(value in (*ANSWERS, None, "") for value in values)


def accepted(values: list[Placed], keep_rejected: bool = False) -> tuple[list[Placed], list[Note]]:
    """The JSON values but those that were ignored or rejected.

    A text of which a label was rejected may be kept.
    """
    answers = [answer_of(value) for _, value in values]
    if not any(answers) or not are_answers(answers):
        return values, []
    refused = ANSWERS[2:] if keep_rejected else REFUSED
    kept = [placed for placed, a in zip(values, answers, strict=True) if a not in refused]
    return kept, [Note(f"whose answer is {each}", answers.count(each)) for each in refused]


def without_rejected(labels: list[Any], answers: list[Any]) -> tuple[list[Any], list[Note]]:
    """The labels of rows, of which those that were rejected are no labels."""
    if not (n := answers.count("reject")):
        return labels, []
    lists = [row if isinstance(row, list) else [row] for row in labels]
    kept = [[] if answer == "reject" else row for answer, row in zip(answers, lists, strict=True)]
    return kept, [rejected(n)]


def rejected(n: int) -> Note:
    """The note about rows that are kept."""
    return Note(f"{counted(n, 'row')} kept without the labels that were rejected")
