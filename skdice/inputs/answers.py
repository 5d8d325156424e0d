"""Questions with contexts, and their answers, in any accepted form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skdice._checks import check_choice, counted
from skdice._warn import warn
from skdice.exceptions import DataWarning
from skdice.inputs.rows import target_rows
from skdice.inputs.texts import as_texts, is_whole_number, nearest_place

Answer = tuple[int, str]
MISALIGNED = ("raise", "drop", "expand")


def as_questions(X: Any, *, may_be_empty: bool = False) -> list[tuple[str, str]]:
    """(question, context) pairs from any container of pairs."""
    pairs: list[Any] = as_texts(X, may_be_empty=may_be_empty)
    if pairs and isinstance(pairs[0], str):
        raise ValueError("X holds single texts: each row must be a pair (question, context)")
    short = []  # a question may be long, so most must be, and that is a warning
    for i, (question, context) in enumerate(pairs):
        if not context.strip():
            raise ValueError(f"X[{i}] has an empty context (question {question[:60]!r}): drop it")
        if not question.strip():
            raise ValueError(f"X[{i}] has an empty question: drop it")
        if len(context) < len(question):
            short.append(i)
    if 2 * len(short) > len(pairs):
        question, context = pairs[short[0]]
        warn(
            f"X[{short[0]}] has a context ({context[:40]!r}) shorter than its question "
            f"({question[:40]!r}), as {len(short)} of {counted(len(pairs), 'row')}: rows are "
            "(question, context), in that order",
            DataWarning,
        )
    return pairs


def as_answers(
    y: Any,
    contexts: Sequence[str],
    on_misaligned: str = "raise",
    names: Sequence[str] | None = None,
) -> list[list[Answer] | None]:
    """Answers of each question as (start, text); [] where there is none, None for a row to drop.

    Parameters
    ----------
    y : list
        A row is ``(start, text)``, a list of them, SQuAD's ``{"text": [...], "answer_start":
        [...]}`` or list of such dicts, or None or [] for a question without an answer. `start`
        counts characters from 0.
    contexts : list of str
    on_misaligned : {"raise", "drop", "expand"}, default="raise"
        What to do with an answer that the context does not hold at `start`: raise an error; leave
        the answer out; or move it to the nearest place that holds it. A row that loses all its
        answers is dropped.
    names : list of str or None, default=None
        What to call the rows in messages; None is ``y[i]``.
    """
    check_choice("on_misaligned", on_misaligned, MISALIGNED)
    names = names or [f"y[{i}]" for i in range(len(contexts))]
    rows = read_answers(y, len(contexts), names)
    found: list[list[Answer] | None] = []
    for answers, context, name in zip(rows, contexts, names, strict=True):
        aligned = []
        for start, text in answers:
            place = _align(context, start, text, on_misaligned, name)
            if place is not None:
                aligned.append((place, context[place : place + len(text)]))
        found.append(None if answers and not aligned else aligned)
    return found


def read_answers(y: Any, n_rows: int, names: Sequence[str] | None = None) -> list[list[Answer]]:
    """Answers of each question in one form, not compared with the contexts; see `as_answers`."""
    rows = target_rows(y, n_rows, "answers")
    names = names or [f"y[{i}]" for i in range(n_rows)]
    return [answers_in(row, name) for row, name in zip(rows, names, strict=True)]


def answers_in(row: Any, where: str, *, may_lack_start: bool = False) -> list[Answer]:
    """The answers of a row in any of its forms; answers without text are left out.

    Metrics compare texts alone, which `may_lack_start`: it is 0 then.
    """
    if row is None or (isinstance(row, float) and np.isnan(row)):
        return []
    if isinstance(row, dict):
        row = _pairs_of(row, where, may_lack_start)
    if may_lack_start and isinstance(row, str):
        row = [(0, row)]
    if isinstance(row, str) or not hasattr(row, "__iter__"):
        raise TypeError(
            f"{where} is {'the string ' * isinstance(row, str)}{row!r}: an answer is (start, "
            "text), with the character at which it starts in the context"
        )
    row = list(row)
    two_texts = may_lack_start and bool(row) and isinstance(row[0], str)
    if len(row) == 2 and isinstance(row[1], str) and not two_texts:
        row = [row]
    answers: list[Answer] = []
    for answer in row:
        if isinstance(answer, dict) or (may_lack_start and isinstance(answer, str)):
            answers += answers_in(answer, where, may_lack_start=may_lack_start)
        elif not _is_answer(answer):
            raise ValueError(f"{where} holds {answer!r}: an answer is (start, text)")
        elif answer[1].strip():
            answers.append((int(answer[0]), answer[1]))
    return answers


def _pairs_of(row: dict[str, Any], where: str, may_lack_start: bool) -> list[tuple[Any, Any]]:
    """The starts and texts of SQuAD's dict, or of one answer."""
    starts, texts = row.get("answer_start", row.get("start")), row.get("text")
    if may_lack_start:
        starts = 0 if isinstance(texts, str) else [0] * len(texts or ())
    if starts is None or texts is None:
        raise ValueError(f"{where} is {row!r}: a dict needs 'text' and 'answer_start'")
    if isinstance(texts, str):
        return [(starts, texts)]
    try:
        return list(zip(starts, texts, strict=True))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{where} is {row!r}: 'text' and 'answer_start' must be lists of one length"
        ) from error


def _is_answer(answer: Any) -> bool:
    is_pair = isinstance(answer, (tuple, list, np.ndarray)) and len(answer) == 2
    return is_pair and isinstance(answer[1], str) and is_whole_number(answer[0])


def _align(context: str, start: int, text: str, how: str, where: str) -> int | None:
    """Return the place of `text`: `start` if it is there, else as `how` says; None to drop."""
    if start >= 0 and context.startswith(text, start):
        return start
    if how == "drop":
        return None
    if how == "expand":
        return nearest_place(context, text, start)
    raise ValueError(
        f"{where}: the answer {text!r} is not in the context at character {start}, which holds "
        f"{context[max(start, 0) : max(start, 0) + len(text)]!r}: give the right start, or "
        "on_misaligned='expand' for the nearest place that holds it, or 'drop'"
    )
