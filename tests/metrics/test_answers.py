"""Exact match and F1 of answers, and F1 of spans."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skdice.metrics import (
    answer_exact_match_score,
    answer_f1_score,
    span_f1_score,
)


def plain_f1(gold, predicted):
    """SQuAD's evaluation, word by word."""

    def words(text):
        text = "".join(c for c in text.lower() if c not in string.punctuation)
        return [word for word in text.split() if word not in ("a", "an", "the")]

    a, b = words(gold), words(predicted)
    if not a or not b:
        return float(a == b), float(a == b)
    common = sum(min(a.count(w), b.count(w)) for w in set(a))
    if not common:
        return 0.0, 0.0
    precision, recall = common / len(b), common / len(a)
    return 2 * precision * recall / (precision + recall), float(a == b)


texts = st.lists(st.sampled_from(["the", "a", "Cat", "dog,", "dog", "(x)", "!"]), max_size=5).map(
    " ".join
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.lists(texts, max_size=3), texts), min_size=1, max_size=4))
def test_metrics_equal_a_plain_evaluation(rows):
    y_true = [[(0, text) for text in gold] for gold, _ in rows]
    predicted = [text for _, text in rows]
    f1, exact = [], []
    for gold, text in rows:
        golds = [g for g in gold if plain_f1(g, "")[0] == 0] or [""]
        f1.append(max(plain_f1(g, text)[0] for g in golds))
        exact.append(max(plain_f1(g, text)[1] for g in golds))
    assert answer_f1_score(y_true, predicted) == pytest.approx(np.mean(f1))
    assert answer_exact_match_score(y_true, predicted) == pytest.approx(np.mean(exact))


def test_metrics_by_hand():
    # Examples of the official script's behaviour.
    assert answer_exact_match_score([(0, "the Broncos")], ["Broncos."]) == 1
    assert answer_f1_score([(0, "Denver Broncos")], ["the Broncos"]) == pytest.approx(2 / 3)
    assert answer_f1_score([None, []], ["", "x"]) == 0.5
    assert answer_f1_score([{"text": ["a b", "b c"], "answer_start": [0, 2]}], ["b c"]) == 1
    with pytest.raises(ValueError, match="1 row and y_pred 2"):
        answer_f1_score([(0, "a")], ["a", "b"])
    for score in (answer_f1_score, answer_exact_match_score):
        with pytest.raises(ValueError, match="y_true holds no answers"):
            score([], [])


def test_spans_f1():
    true, found = [[("A", 0, 2), ("B", 1, 2)], []], [[("A", 0, 2)], [("A", 0, 1)]]
    assert span_f1_score(true, found) == pytest.approx(2 / 4)
    assert span_f1_score([[]], [[]]) == 0
