"""Labels in every form that users have: one a row, 0/1 rows, frames, lists of names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.preprocessing import MultiLabelBinarizer

from skdice.inputs.labels import (
    as_labels,
    holds_tags,
    is_indicator,
    known_labels,
    rarest_labels,
    read_labels,
    single_labels,
)
from skdice.inputs.rows import object_array
from skdice.metrics.classification import class_scores

NAMES = [["toxic", "threat"], [], ["toxic"], ["obscene", "toxic"]]
ROWS = MultiLabelBinarizer().fit_transform(NAMES)
COLUMNS = ["obscene", "threat", "toxic"]
FRAME = pd.DataFrame(ROWS, columns=COLUMNS)
nan = float("nan")


@pytest.mark.parametrize(
    "y",
    [
        NAMES,
        tuple(map(tuple, NAMES)),
        list(map(set, NAMES)),
        list(map(frozenset, NAMES)),
        [np.array(row, dtype=object) for row in NAMES],
        object_array(NAMES),
        pd.Series(NAMES),
        pd.DataFrame({"labels": NAMES}),
        pl.Series(NAMES),
        pa.array(NAMES),
    ],
    ids=lambda y: type(y).__name__,
)
def test_lists_of_names(y):
    labels = read_labels(y, 4)
    assert labels.multilabel
    assert labels.classes.tolist() == COLUMNS
    np.testing.assert_array_equal(labels.values, ROWS)
    np.testing.assert_array_equal(known_labels(y, ["toxic", "z", "obscene", "threat"], True), [
        [1, 0, 0, 1], [0] * 4, [1, 0, 0, 0], [1, 0, 1, 0],
    ])  # fmt: skip


@pytest.mark.parametrize(
    "y",
    [
        FRAME,
        FRAME == 1,
        FRAME.astype(float),
        FRAME.astype("Int64"),
        FRAME.astype(pd.SparseDtype(int)),
        pl.DataFrame(ROWS, schema=COLUMNS),
    ],
    ids=lambda y: type(y).__name__,
)
def test_a_frame_names_its_columns(y):
    labels = read_labels(y)
    assert labels.classes.tolist() == COLUMNS
    np.testing.assert_array_equal(labels.values, ROWS)
    np.testing.assert_array_equal(known_labels(y, COLUMNS[::-1]), ROWS[:, ::-1])
    with pytest.raises(ValueError, match=r"y has no columns \['hate'\]"):
        known_labels(y, [*COLUMNS, "hate"])


@pytest.mark.parametrize(
    "y",
    [
        ROWS,
        ROWS.tolist(),
        ROWS == 1,
        ROWS.astype(np.float32),
        ROWS.astype(object),
        sparse.csr_matrix(ROWS),
        sparse.coo_array(ROWS),
        torch.tensor(ROWS),
        pd.DataFrame(ROWS),  # without names
    ],
    ids=lambda y: type(y).__name__,
)
def test_a_table_without_names_has_numbers(y):
    labels = read_labels(y)
    assert labels.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(labels.values, ROWS)
    np.testing.assert_array_equal(known_labels(y, COLUMNS), ROWS)  # by position
    assert is_indicator(y)
    assert not holds_tags(y)


def test_one_label_a_row_stays_so():
    for y in (["a", "b"], np.array([["a"], ["b"]], dtype=object), pd.DataFrame({"y": ["a", "b"]})):
        assert not read_labels(y).multilabel
    assert as_labels([[0], [1]]).tolist() == [0, 1]
    # A list of names is one also where each row happens to have one name.
    assert read_labels([["a"], ["b"]]).multilabel


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, -1], [-1, 1]], r"y\[0\]\[1\] is -1: .* \(y > 0\)\.astype\(int\)"),
        ([[0.2, 0.7], [1.0, 0.0]], r"y\[0\]\[0\] is 0\.2: .* \(y > 0\.5\)\.astype\(int\)"),
        ([[1, 2], [3, 4]], r"y\[0\]\[1\] is 2: a multi-label problem needs 0/1 rows"),
        (sparse.csr_matrix(2 * ROWS), r"y\[0\]\[1\] is 2"),
        ([[1, nan], [0, 1]], r"y\[0\]\[1\] is missing"),
        ([[1, 0], [0, None]], r"y\[1\]\[1\] is missing"),
        (FRAME.astype(float).replace(1.0, nan), r"y\[0\]\['threat'\] is missing"),
        (FRAME.astype("Int64").replace(1, pd.NA), r"y\[0\]\[1\] is missing"),
        ([["a"], "b"], r"y\[1\] is 'b', and other rows are lists of names"),
        (["b", ["a"]], r"y\[0\] is 'b', and other rows are lists of names"),
        ([["a"], None], r"y\[1\] is missing .* give \[\] for a row without labels"),
        ([["a"], nan], r"y\[1\] is missing"),
        ([["a", 1]], r"y\[0\] holds the label 1: names of labels are strings"),
        ([["a"], ["b", None]], r"y\[1\] holds the label None"),
        ([["a", b"b"]], r"y\[0\] holds the label b'b'"),
        ([{1, 2}, {3}], "names of labels are strings"),
        ([["a", " "]], "a name must not be empty"),
        ([["a", "b\x00"]], "null character"),
        ([[], []], "y names no label in any row"),
        ([[1], [2, 3]], r"y\[0\] is \[1\]: .*list of names \(strings\)"),
        (FRAME.set_axis(["a", "b", "a"], axis=1), "column 2 of y has the name 'a' of another"),
        (FRAME.set_axis(["a", "b", 3], axis=1), "column 2 of y has the name 3: .*are strings"),
        (FRAME.set_axis([7, 8, 9], axis=1), r"y\.columns = y\.columns\.astype\(str\)"),
        (np.array([["a", "b"], ["c", "d"]]), r"y is a table of strings: .*y\.tolist\(\)"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        ([{"toxic": 1}], "Unknown label type: dict"),
    ],
)
def test_other_forms_are_refused_by_name(y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        read_labels(y)
    with pytest.raises((ValueError, TypeError), match=r"y_test\b"):
        read_labels(y, name="y_test")


def test_labels_that_fit_did_not_see_are_named():
    many = [f"c{i:02}" for i in range(26)]
    for y, classes, several, message in (
        ([["toxic", "spite"]], COLUMNS, True, r"y_val .* labels that fit did not see: \['spite'\]"),
        ([["a"]], [0, 1], True, r"did not see: \['a'\] \(classes_ = \[0, 1\]\)"),
        ([["a"]], many, True, r"'c19'\] and 6 more\): leave them out, or fit with a frame"),
        (["a", "c00"], many, False, r"'c19'\] and 6 more\): give labels of the type"),
        (ROWS, ["a", "b"], True, r"shape \(4, 3\), and fit saw 0/1 rows of 2 labels"),
        (["toxic", "threat"], COLUMNS, True, r"shape \(2,\), and fit saw 0/1 rows of 3 labels"),
        ([["toxic"]], COLUMNS, False, "holds lists of names, and fit saw one label a row"),
    ):
        with pytest.raises(ValueError, match=message):
            known_labels(y, classes, several, "y_val")
    assert known_labels([[], []], COLUMNS, True).tolist() == [[0] * 3] * 2  # rows without labels


def test_the_rarest_label_stands_for_a_row():
    assert single_labels(NAMES).tolist() == ["threat", "", "toxic", "obscene"]
    assert rarest_labels(ROWS, np.arange(3)).tolist() == [1, -1, 2, 0]
    assert single_labels(["b", "a"]).tolist() == ["b", "a"]


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_several_labels_are_those_of_scikit_learn(weighted):
    draw = np.random.default_rng(0)
    true, found = draw.random((2, 50, 4)) < 0.3
    true[:, 3] = found[:, 3] = False  # a label that nobody has counts as 0
    weight = draw.random(50) if weighted else None
    scores = class_scores(true.astype(int), found.astype(int), list("abcd"), None, weight)
    how = {"sample_weight": weight, "zero_division": 0}
    for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
        assert scores[name] == pytest.approx(score(true, found, average="micro", **how))
    of_label = f1_score(true, found, average=None, **how)
    assert [scores[f"f1 of {name}"] for name in "abcd"] == pytest.approx(of_label.tolist())
    assert scores["f1_macro"] == pytest.approx(of_label.mean())
    right = (true == found).all(axis=1)
    assert scores["accuracy"] == pytest.approx(np.average(right, weights=weight))
    one = class_scores(true[:, :1].astype(int), found[:, :1].astype(int), ["a"], None, weight)
    assert one["f1"] == pytest.approx(f1_score(true[:, 0], found[:, 0], **how))
