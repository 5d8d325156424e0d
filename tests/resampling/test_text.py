"""Samplers of texts and pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler

from skdice.resampling import (
    EntityReplacement,
    TextOverSampler,
    TextUnderSampler,
    table8_training_sets,
)
from tests.resampling.corpus import TEXTS, Y

CONTAINERS = {
    "list": lambda rows: list(rows),
    "array": lambda rows: np.array(rows),
    "column": lambda rows: np.array(rows, dtype=object).reshape(len(rows), -1),
    "series": lambda rows: pd.Series(list(rows), index=range(7, 7 + len(rows)), name="text"),
    "frame": lambda rows: pd.DataFrame({"text": list(rows)}),
}


def rows_of(X):
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    return [row if isinstance(row, (str, tuple)) else row[0] for row in X]


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("cls", [TextOverSampler, TextUnderSampler])
def test_texts_in_every_container(kind, cls):
    X = CONTAINERS[kind](TEXTS)
    y = pd.Series(Y) if kind in ("series", "frame") else Y
    sampler = cls(random_state=3)
    X_new, y_new = sampler.fit_resample(X, y)
    assert type(X_new) is type(X)
    assert rows_of(X_new) == [TEXTS[i] for i in sampler.sample_indices_]
    np.testing.assert_array_equal(y_new, Y[sampler.sample_indices_])
    assert Counter(y_new) == ({0: 8, 1: 8} if cls is TextOverSampler else {0: 2, 1: 2})
    if kind == "series":
        assert X_new.index.equals(y_new.index)
        assert X_new.name == "text"
    # The very draw of imbalanced-learn's own sampler on a column.
    theirs = (RandomOverSampler if cls is TextOverSampler else RandomUnderSampler)(random_state=3)
    theirs.fit_resample(np.arange(10).reshape(-1, 1), Y)
    np.testing.assert_array_equal(sampler.sample_indices_, theirs.sample_indices_)


def test_pairs_and_exact_counts():
    pairs = [(text, text.upper()) for text in TEXTS]
    X, y = TextOverSampler(sampling_strategy={1: 5}, random_state=0).fit_resample(pairs, Y)
    assert Counter(y) == {0: 8, 1: 5}
    assert all(b == a.upper() for a, b in X)
    table = np.array(pairs)
    X, y = TextUnderSampler(sampling_strategy={0: 3}, random_state=0).fit_resample(table, Y)
    assert Counter(y) == {0: 3, 1: 2}
    assert X.shape == (5, 2)


def test_impossible_strategies_get_imbalanced_learns_words():
    with pytest.raises(ValueError, match=r"Originally, there is 2 samples and 5 .*are asked"):
        TextUnderSampler(sampling_strategy={1: 5}).fit_resample(TEXTS, Y)
    with pytest.raises(ValueError, match="should be greater or equal"):
        TextOverSampler(sampling_strategy={0: 5}).fit_resample(TEXTS, Y)
    with pytest.raises(ValueError, match="TagOverSampler"):
        TextOverSampler().fit_resample([["a"], ["b"]], [["O"], ["O"]])


@pytest.mark.parametrize("kind", ["series", "frame", "arrow"])
@pytest.mark.parametrize("sampler", [TextOverSampler, TextUnderSampler])
def test_polars_and_arrow_are_drawn_as_lists_are(sampler, kind):
    texts, labels = ["free prize", "see you", "at lunch", "later"], ["spam", "ham", "ham", "ham"]
    data = {
        "series": (pl.Series(texts), pl.Series(labels)),
        "frame": (pl.DataFrame({"text": texts}), pl.Series(labels)),
        "arrow": (pa.array(texts), pa.array(labels)),
    }[kind]
    drawn = sampler(random_state=0).fit_resample(*data)
    assert [type(part) for part in drawn] == [type(part) for part in data]
    rows, found = (part.to_pylist() if kind == "arrow" else part.to_numpy() for part in drawn)
    expected = sampler(random_state=0).fit_resample(texts, labels)
    assert (list(np.ravel(rows)), list(found)) == expected


def test_other_containers_grow_into_lists():
    gazetteer = {"PER": ["Ann", "Bo"]}
    X, y = ["Ann rests", "it rains", "it is late"], [1, 0, 0]
    expected = EntityReplacement(gazetteer=gazetteer, random_state=0).fit_resample(X, y)
    for kind in (pl.Series, pa.array):
        rows, labels = EntityReplacement(gazetteer=gazetteer, random_state=0).fit_resample(
            kind(X), kind(y)
        )
        assert rows == expected[0]
        assert np.array(labels).tolist() == expected[1]
    sets = table8_training_sets(pl.Series(X), pl.Series(y), random_state=0)
    assert {name: len(rows) for name, (rows, _) in sets.items()} == {
        name: len(rows) for name, (rows, _) in table8_training_sets(X, y, random_state=0).items()
    }


@pytest.mark.parametrize("odd", [memoryview(b"abc"), b"abc", "abc", {"a", "b", "c"}, iter("abc")])
@pytest.mark.parametrize("sampler", [TextOverSampler(), TextUnderSampler(), EntityReplacement()])
def test_rows_that_are_none_are_refused(sampler, odd):
    for X, y in ((odd, ["a", "b", "a"]), (["x", "y", "z"], odd)):
        with pytest.raises((TypeError, ValueError)):
            sampler.fit_resample(X, y)
