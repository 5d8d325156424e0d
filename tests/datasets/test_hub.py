"""The bridge from Hugging Face data sets."""

from __future__ import annotations

import datasets as hf
import numpy as np
import pytest

from skdice.datasets import from_hf


@pytest.mark.parametrize("kind", [None, "numpy", "torch", "pandas"])
def test_a_bridge_from_hugging_face(kind):
    tags = hf.ClassLabel(names=["O", "B-PER"])
    features = hf.Features({"tokens": hf.List(hf.Value("string")), "tags": hf.List(tags)})
    rows = hf.Dataset.from_dict(
        {"tokens": [["Ann", "x"], []], "tags": [[1, 0], []]}, features=features
    )
    found = from_hf(rows.with_format(kind), text_columns="tokens", label_column="tags")
    assert found == ([["Ann", "x"], []], [["B-PER", "O"], []])
    pairs = hf.Dataset.from_dict({"a": ["x"], "b": ["y"], "label": [3]}).with_format(kind)
    assert from_hf(pairs, text_columns=["a", "b"], label_column="label") == ([("x", "y")], [3])


def test_the_bridge_refuses_what_is_no_split_or_has_no_labels():
    pairs = hf.Dataset.from_dict({"a": ["x"], "b": ["y"], "label": [3]})
    with pytest.raises(ValueError, match="not in the dataset"):
        from_hf(pairs, text_columns="c", label_column="label")
    with pytest.raises(TypeError, match=r"splits \['train'\]"):
        from_hf(hf.DatasetDict(train=pairs), text_columns="a", label_column="label")
    hidden = hf.Dataset.from_dict(
        {"a": ["x"], "label": [-1]},
        features=hf.Features({"a": hf.Value("string"), "label": hf.ClassLabel(names=["n", "p"])}),
    )
    with pytest.raises(ValueError, match="hidden test"):
        from_hf(hidden, text_columns="a", label_column="label")


def test_the_bridge_makes_rows_of_several_labels():
    features = hf.Features(
        {"text": hf.Value("string"), "labels": hf.List(hf.ClassLabel(names=["joy", "fear", "awe"]))}
    )
    data = {"text": ["a", "b", "c"], "labels": [[2, 0], [], [1]]}
    rows = hf.Dataset.from_dict(data, features=features)
    X, y = from_hf(rows, text_columns="text", label_column="labels")
    assert X == ["a", "b", "c"]
    assert y.dtype.kind == "i"
    np.testing.assert_array_equal(y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
