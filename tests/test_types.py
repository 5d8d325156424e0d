"""Types of what public functions return. mypy reads this file (`make lint`), and pytest runs it."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import pytest

from skdice import DiceTokenClassifier
from skdice.datasets import read_conll, read_squad, read_table, write_conll

Columns = list[list[str]]


def test_readers_return_rows_and_labels(tmp_path: Path) -> None:
    table, columns = tmp_path / "a.csv", tmp_path / "a.conll"
    table.write_text("text,label\nwin money,spam\nsee you,ham\n")
    columns.write_text("Ann\tB-PER\nsleeps\tO\n")
    X, y = read_table(table)
    assert_type(X, list[str] | list[tuple[str, str]])
    assert_type(y, list[str] | list[list[str]])
    assert (X, y) == (["win money", "see you"], ["spam", "ham"])
    assert assert_type(read_conll(columns), tuple[Columns, Columns])[1] == [["B-PER", "O"]]


def test_a_reader_of_questions_returns_pairs_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"question": "Who?", "context": "Ann sings.", "answers": []}\n')
    X, y = read_squad(path)
    assert_type(X, list[tuple[str, str]])
    assert_type(y, list[list[tuple[int, str]]])
    assert (X, y) == ([("Who?", "Ann sings.")], [[]])


def test_rows_are_any_container_with_an_order(tmp_path: Path) -> None:
    X, y = [["Ann"]], [["B-PER"]]
    for rows in (X, tuple(X), np.array(X, dtype=object)):
        assert read_conll(write_conll(tmp_path / "a", rows, y)) == (X, y)
    with pytest.raises(TypeError, match="X"):
        DiceTokenClassifier().fit(iter(X), y)  # type: ignore[arg-type]
