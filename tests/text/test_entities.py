"""Entities given as tags or as spans."""

from __future__ import annotations

import numpy as np
import pytest

from skdice.inputs.sentences import as_entities

X = [["Ann", "in", "Rome"], ["rain"]]


def test_tags_and_spans_give_the_same():
    spans = [[("PER", 0, 1), ("LOC", 2, 3)], []]
    assert as_entities([["S-PER", "O", "S-LOC"], ["O"]], X) == (spans, "bioes")
    given = [[["PER", np.int64(0), 1.0], ("LOC", 2, np.float32(3))], []]
    assert as_entities(given, X) == (spans, None)
    assert as_entities([[], []], X) == ([[], []], None)


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ([("PER", 0.5, 2)], TypeError, r"y\[0\] holds \('PER', 0.5, 2\)"),
        ([("PER", 0, float("inf"))], TypeError, r"y\[0\] holds"),
        ([("PER", 0, np.float64("nan"))], TypeError, r"y\[0\] holds"),
        ([("PER", 0, 4)], ValueError, "outside the 3 tokens"),
        ([("PER", 2, 2)], ValueError, "outside the 3 tokens"),
        ([("PER", -1, 2)], ValueError, "outside the 3 tokens"),
        ([("PER", 0, 1, 0.5)], TypeError, r"y\[0\] holds"),
        ({"O": 1, "B-PER": 2, "I-PER": 3}, TypeError, r"y\[0\] is"),
        ({"O", "B-PER", "I-PER"}, TypeError, r"y\[0\] is"),
        ("ONE", TypeError, r"y\[0\] is 'ONE'"),
        (["B-PER", "O", "0"], ValueError, r"y\[0\]\[2\] is '0'"),
        (["PER", "X", "LOC"], ValueError, "plain tags"),
    ],
)
def test_what_is_neither_tags_nor_spans_is_refused(row, error, message):
    with pytest.raises(error, match=message):
        as_entities([row, ["O"] if isinstance(row, list) and isinstance(row[0], str) else []], X)
