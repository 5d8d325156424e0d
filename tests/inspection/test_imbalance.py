"""Counts of negatives and positives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from skdice import DiceClassifier
from skdice.inspection import imbalance


def test_imbalance():
    found = imbalance([["O", "O", "B-A"], [], ["O"]])
    assert (found.unit, found.n_negative, found.n_positive, found.ratio) == ("tokens", 3, 1, 3)
    assert imbalance(np.array([0, 1, 1, 1])).background == 0
    assert imbalance(["1", "1", "0"]).background == "0"
    assert imbalance(["ham", "ham", "spam"]).ratio == 2
    assert imbalance(["a", "b", "c"]).background is None
    assert imbalance(["a", "b", "c", "a"], background="a").counts == {"a": 2, "b": 1, "c": 1}
    assert imbalance([["NOUN", "VERB"]]).background is None
    for bad in ([], [[]]):
        with pytest.raises(ValueError, match="y"):
            imbalance(bad)
    with pytest.raises(ValueError, match="background='z'"):
        imbalance(["a", "b"], background="z")
    for value in (None, 0.5, "auto", [True]):
        with pytest.raises(TypeError, match=r"multilabel=.*True or False"):
            imbalance([["a"], []], multilabel=value)


@pytest.mark.parametrize("form", [list, np.array, pd.DataFrame])
def test_labels_that_are_not_known_are_not_counted(form):
    found = imbalance(form([[1, None, 0], [0, 0, 0], [None, 0, 0], [1, 0, 1]]))
    assert found.counts == {0: 2, "(no label)": 1, 2: 1, 1: 0}
    assert (found.n_positive, found.n_negative) == (2, 1)


def test_tensors_are_counted_as_numbers():
    found = imbalance(torch.tensor([0, 0, 0, 1]))
    assert (found.counts, found.background, found.ratio) == ({0: 3, 1: 1}, 0, 3.0)


def test_the_positive_number_of_two_is_that_of_a_fit():
    y = [2] * 14 + [10] * 12
    model = DiceClassifier(max_epochs=1, random_state=0).fit([[float(label)] for label in y], y)
    assert model.classes_[model.positive_] == 10
    assert imbalance(y).background == 2


@pytest.mark.parametrize("y", [pd.DataFrame({"y": [0, 0, 1]}), np.array([["a"], ["a"], ["b"]])])
def test_a_column_of_labels_is_none_of_tags(y):
    found = imbalance(y)
    assert (found.n_negative, found.n_positive) == (2, 1)
