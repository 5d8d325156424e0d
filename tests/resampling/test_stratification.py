"""Folds that share out the rows of each label, against counts and against random folds."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier

from skdice import DiceClassifier
from skdice.model_selection import MultilabelStratifiedKFold, out_of_fold
from skdice.resampling.stratification import held_out_rows, share_out


def rare_labels(n=2000, n_labels=28, rarest=0.0018, seed=0):
    """Labels of which some are rare and some come together, as GoEmotions has them."""
    rng = np.random.default_rng(seed)
    shares = np.geomspace(rarest, 0.3, n_labels)
    return (rng.random((n, n_labels)) < shares * rng.uniform(0.4, 1.6, (n, 1))).astype(int)


def lacking(labels, folds, n_folds):
    """How many pairs of a fold and a label that has rows for each fold go without."""
    counts = np.array([labels[folds == k].sum(axis=0) for k in range(n_folds)])
    return int((counts[:, labels.sum(axis=0) >= n_folds] == 0).sum())


def test_no_fold_lacks_a_label_that_random_folds_lack():
    random = 0
    for seed in range(10):
        labels = rare_labels(seed=seed)
        assert labels.sum(axis=0).min() < 10
        folds = share_out(labels, [0.2] * 5)
        assert lacking(labels, folds, 5) == 0
        random += lacking(labels, np.random.default_rng(seed).permutation(2000) % 5, 5)
        assert np.ptp(np.bincount(folds)) <= 20
        counts = np.array([labels[folds == k].sum(axis=0) for k in range(5)])
        assert np.abs(counts - labels.sum(axis=0) / 5).max() <= 10
    assert random > 10


@given(
    arrays(np.int8, st.tuples(st.integers(4, 40), st.integers(1, 6)), elements=st.integers(0, 1)),
    st.integers(2, 4),
    st.none() | st.integers(0, 3),
)
def test_each_row_is_held_out_once_and_one_label_is_even(labels, n_splits, seed):
    folds = list(MultilabelStratifiedKFold(n_splits, random_state=seed).split(labels, labels))
    assert len(folds) == n_splits
    for train, test in folds:
        np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(len(labels)))
    held = np.concatenate([test for _, test in folds])
    np.testing.assert_array_equal(np.sort(held), np.arange(len(labels)))
    alone = share_out(labels[:, :1], [1 / n_splits] * n_splits)
    counts = np.bincount(alone[labels[:, 0] == 1], minlength=n_splits)
    assert np.ptp(counts) <= 1  # as StratifiedKFold


def test_the_rarer_value_of_a_column_is_shared_out():
    labels = np.ones((30, 2), dtype=int)
    labels[:3, 1] = 0
    for _, test in MultilabelStratifiedKFold(3).split(labels, labels):
        assert labels[test, 1].sum() == 9


def test_one_row_of_a_label_stays_in_training():
    labels = rare_labels(200)
    labels[:, 0] = 0
    labels[7, 0] = 1
    held = held_out_rows(200, 20, 0, labels)
    assert 15 <= len(held) <= 25
    assert 7 not in held
    # Where the parts could not be shared out, rows are drawn.
    assert len(held_out_rows(5, 1, 0, np.eye(5, dtype=int))) == 1


def test_containers_and_the_interface_of_scikit_learn():
    labels = rare_labels(60, 4, 0.1)
    names = [[f"l{j}" for j in np.flatnonzero(row)] for row in labels]
    splitter = MultilabelStratifiedKFold(3, random_state=1)
    expected = [test.tolist() for _, test in splitter.split(labels, labels)]
    for y in (sparse.csr_array(labels), pd.DataFrame(labels, columns=list("abcd")), names):
        assert [test.tolist() for _, test in splitter.split(labels, y)] == expected
    assert splitter.get_n_splits() == 3
    assert repr(splitter) == "MultilabelStratifiedKFold(n_splits=3, random_state=1)"
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = MultiOutputClassifier(LogisticRegression())
    assert cross_val_predict(clone(model), X, labels, cv=splitter).shape == (60, 4)
    GridSearchCV(model, {"estimator__C": [1.0]}, cv=splitter).fit(X, labels)


@pytest.mark.parametrize(
    ("n_splits", "y", "groups", "message"),
    [
        (3, [0, 1, 0, 1], None, "StratifiedKFold of scikit-learn"),
        (5, np.eye(4, dtype=int), None, "n_splits=5 must be a number from 2 to the 4 rows"),
        (2, np.eye(4, dtype=int), [0, 0, 1, 1], "GroupKFold"),
    ],
)
def test_what_is_refused(n_splits, y, groups, message):
    with pytest.raises(ValueError, match=message):
        next(MultilabelStratifiedKFold(n_splits).split(y, y, groups))


@pytest.mark.parametrize("n_splits", [1, 0, 2.5, None, True, Decimal("NaN"), "3"])
def test_a_number_of_folds_is_refused_where_it_is_given(n_splits):
    with pytest.raises(ValueError, match=r"n_splits=.* must be an int in the range"):
        MultilabelStratifiedKFold(n_splits)


def test_a_number_of_folds_shares_out_labels_in_out_of_fold_and_early_stopping():
    labels = np.zeros((60, 2), dtype=int)
    labels[:30, 0] = labels[:3, 1] = 1  # neighbours, which KFold leaves in one fold
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DiceClassifier(max_epochs=1, random_state=0)
    folds = out_of_fold(model, X, labels, cv=3).folds
    assert lacking(labels, folds, 3) == 0
    assert lacking(labels, np.arange(60) // 20, 3) > 0
    expected = [test for _, test in MultilabelStratifiedKFold(3).split(X, labels)]
    for k, (_, test) in enumerate(KFold(3).split(X)):
        assert folds[expected[k]].tolist() == [k] * 20
        assert folds[test].tolist() != [k] * 20
    early = DiceClassifier(
        max_epochs=1, random_state=0, early_stopping=True, validation_fraction=1 / 3
    )
    from skdice.engine.fit_plan import split_indices

    for seed in range(5):
        kept, held = split_indices(list(range(60)), 1 / 3, seed, labels)
        assert labels[held].sum(axis=0).tolist() == [10, 1]
        assert len(kept) + len(held) == 60
    assert early.fit(X, labels).predict(X).shape == (60, 2)
