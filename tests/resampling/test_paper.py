"""The training sets of the paper's Table 8."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skdice.resampling import (
    table8_training_sets,
)


def test_table8_sets_at_the_papers_proportions():
    X = [f"text {i}" for i in range(1000)]
    y = np.array([1] * 370 + [0] * 630)
    sets = table8_training_sets(X, y, random_state=0)
    counts = {name: Counter(labels.tolist()) for name, (_, labels) in sets.items()}
    assert counts == {
        "original": {1: 370, 0: 630},
        "+ positive": {1: 630, 0: 630},
        "+ negative": {1: 370, 0: 1392},
        "- negative": {1: 370, 0: 370},
        "+ positive & negative": {1: 630, 0: 630},
    }
    # 458,477 / 363,871 = 1.26 and 269,165 / 363,871 = 0.74 of the original, and 21 % positives.
    assert len(sets["+ positive"][0]) / 1000 == pytest.approx(458_477 / 363_871, abs=0.002)
    assert len(sets["- negative"][0]) / 1000 == pytest.approx(269_165 / 363_871, abs=0.002)
    assert counts["+ negative"][1] / len(sets["+ negative"][0]) == pytest.approx(0.21, abs=1e-3)
    label = dict(zip(X, y, strict=True))
    for texts, labels in sets.values():
        assert [label[text] for text in texts] == list(labels)


def test_table8_sets_with_entities_and_containers():
    gazetteer = {"CITY": ["rome", "oslo", "paris"]}
    X = pd.DataFrame(
        {"a": [f"to rome {i}" for i in range(20)], "b": [f"rome {i}" for i in range(20)]}
    )
    y = pd.Series([1] * 6 + [0] * 14)
    sets = table8_training_sets(X, y, gazetteer=gazetteer, random_state=0)
    for table, labels in sets.values():
        assert isinstance(table, pd.DataFrame)
        assert len(table) == len(labels)
    both, labels = sets["+ positive & negative"]
    new = both[~both["a"].str.contains("rome")]
    assert set(labels[new.index]) == {0, 1}
    with pytest.raises(ValueError, match="give pos_label=0"):
        table8_training_sets(["a", "b", "c"], [1, 1, 0])
    with pytest.raises(ValueError, match="y holds 3 classes"):
        table8_training_sets(["a", "b", "c"], [1, 2, 0])
