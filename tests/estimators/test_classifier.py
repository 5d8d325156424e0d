"""DiceClassifier on numbers; scikit-learn's checks of it are in test_common.py."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import EarlyStopping

from skdice import DiceClassifier
from skdice.engine.fit_plan import Examples, Held, encode
from skdice.exceptions import CollapseWarning, DataWarning
from skdice.losses import LOSSES, CrossEntropyLoss, DiceLoss, FocalLoss

X, Y = make_classification(300, weights=[0.9], class_sep=1.5, random_state=0)


@pytest.mark.parametrize("loss", LOSSES)
def test_rare_positives_are_found(loss):
    classifier = DiceClassifier(loss=loss, random_state=0).fit(X, Y)
    assert f1_score(Y, classifier.predict(X)) > 0.6
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1)


def test_input_kinds_give_equal_results():
    tables = [
        DiceClassifier(max_epochs=5, random_state=0).fit(kind, Y).predict_proba(kind)
        for kind in (X, sparse.csr_array(X), sparse.csc_matrix(X), pd.DataFrame(X), X.tolist())
    ]
    for table in tables[1:]:
        np.testing.assert_allclose(table, tables[0], rtol=1e-10)
    single = DiceClassifier(max_epochs=5, random_state=0).fit(X.astype(np.float32), Y)
    assert single.predict_proba(X).dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), tables[0], atol=1e-4)
    double = DiceClassifier(max_epochs=5, random_state=0).fit(X.astype(np.float64), Y)
    assert double.predict_proba(X).dtype == np.float64


@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_a_gpu_gets_float32(kind, monkeypatch):
    monkeypatch.setattr("skdice.tasks.numbers.check_device", lambda device: kind)
    clf = DiceClassifier(max_epochs=5, random_state=0).fit(X.astype(np.float64), Y)
    assert {p.dtype for p in clf.net_.module_.parameters()} == {torch.float32}
    assert clf.predict_proba(X).dtype == np.float32


def test_hidden_layers():
    rings = np.random.default_rng(0).normal(size=(400, 2))
    inside = (np.hypot(*rings.T) < 0.7).astype(int)
    linear = DiceClassifier(random_state=0).fit(rings, inside)
    deep = DiceClassifier(hidden_layer_sizes=(16,), random_state=0).fit(rings, inside)
    assert deep.score(rings, inside) > 0.95 > linear.score(rings, inside)


SEVERAL = np.column_stack([Y, X[:, 0] > 1.5])


@pytest.mark.parametrize("loss", ["ce", "focal", CrossEntropyLoss(class_weight=[1.0, 3.0])])
@pytest.mark.parametrize("y", [Y, np.minimum(Y + 2 * (X[:, 0] > 1.5), 2), SEVERAL])
@pytest.mark.parametrize("sizes", [(), (8,)])
def test_the_first_probabilities_are_the_shares(loss, y, sizes):
    if y.ndim == 1:
        weights = np.ones(y.max() + 1)
        shares = np.bincount(y) / len(y)
    else:
        weights, shares = np.ones(2), y.mean(axis=0)
    if isinstance(loss, CrossEntropyLoss):
        if len(weights) != 2 or y.ndim == 2:
            return  # the weights are of two classes
        shares = shares * [1.0, 3.0] / (shares @ [1.0, 3.0])
    how = {"max_epochs": 1, "lr": 1e-12, "hidden_layer_sizes": sizes, "random_state": 0}
    proba = DiceClassifier(loss=loss, **how).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(proba.mean(axis=0), shares, rtol=0.01)
    assert (proba.std(axis=0) < 0.02).all()


@pytest.mark.parametrize("loss", ["ce_dice", "dice", "dsc"])
def test_overlap_losses_begin_as_they_are(loss):
    how = {"max_epochs": 1, "lr": 1e-12, "random_state": 0}
    fitted = DiceClassifier(loss=loss, **how).fit(X, Y)
    assert 0.3 < fitted.predict_proba(X)[:, 1].mean() < 0.7


RARE = np.flatnonzero((Y == 0) | (np.cumsum(Y) % 3 == 0))  # about 4 % positives


def test_a_batch_holds_thirty_of_the_rarest_class():
    table = np.zeros((2000, 2), dtype=int)
    table[:40, 0], table[::2, 1] = 1, 1
    names = np.array(["a", "b"])
    for y, weight, size in (
        (np.arange(2000) % 50 == 7, None, 1500),  # 40 of 2,000
        (names[(np.arange(2000) % 50 != 7).astype(int)], None, 1500),  # the rarer is positive
        (np.arange(2000) % 50 != 7, None, 256),  # True is
        (np.arange(2000) % 4 == 0, None, 256),
        (np.arange(2000) % 500 == 0, None, 2000),  # four: all rows
        (np.arange(150) % 30 == 0, None, 150),
        (np.r_[np.zeros(1200), np.ones(750), np.full(50, 2)], None, 1200),  # of three classes
        (table, None, 1500),  # of two labels
        (np.arange(2000) % 50 == 7, np.where(np.arange(2000) % 50 == 7, 49 / 9, 1), 300),
    ):
        rows = np.random.default_rng(0).normal(size=(len(y), 3))
        model = DiceClassifier(max_epochs=1, random_state=0).fit(rows, y, sample_weight=weight)
        assert model.batch_size_ == model.net_.batch_size == size
        given = DiceClassifier(max_epochs=1, batch_size=size, random_state=0)
        want = given.fit(rows, y, sample_weight=weight).predict_proba(rows)
        np.testing.assert_array_equal(model.predict_proba(rows), want)
        assert clone(model).batch_size == "auto"
    flipped = DiceClassifier(max_epochs=1, pos_label=0, random_state=0)
    assert flipped.fit(rows[:2000], np.arange(2000) % 50 == 7).batch_size_ == 256


def test_the_size_of_a_batch_is_told(capsys):
    model = DiceClassifier(max_epochs=1, verbose=1, random_state=0).fit(X[RARE], Y[RARE])
    assert f"batches of {model.batch_size_}" in capsys.readouterr().out
    model.set_params(device="cpu", verbose=0).predict(X)
    model = pickle.loads(pickle.dumps(model))
    assert model.predict(X).shape == Y.shape
    for wrong in (0, 2.5, "all", None):
        with pytest.raises(ValueError, match="batch_size"):
            DiceClassifier(batch_size=wrong).fit(X, Y)


@pytest.mark.parametrize("loss", ["dice", "dsc", "tversky", "ce_dice"])
def test_a_batch_with_few_positives_is_warned_of_once(loss):
    y = np.arange(2000) % 100 == 0
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    how = {"loss": loss, "max_epochs": 2, "random_state": 0}
    with pytest.warns(DataWarning, match=r"holds 0\.64 rows .* give batch_size=2000") as told:
        DiceClassifier(batch_size=64, **how).fit(rows, y)
    assert sum(warning.category is DataWarning for warning in told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("ignore", CollapseWarning)  # columns that say nothing
        DiceClassifier(batch_size=300, **how).fit(rows, y)  # three
        DiceClassifier(**how).fit(rows, y)
        DiceClassifier(batch_size=10, **how).fit(rows[:10], np.arange(10) > 7)  # all rows


def test_other_losses_need_no_positives_in_a_batch():
    rows, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 100 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        warnings.simplefilter("ignore", CollapseWarning)
        for loss in ("ce", "focal", "weighted_ce", DiceLoss.literal()):
            DiceClassifier(loss=loss, batch_size=64, max_epochs=1, random_state=0).fit(rows, y)


def test_early_stopping_restores_the_best_epoch():
    classifier = DiceClassifier(
        loss=FocalLoss(), early_stopping=True, n_iter_no_change=3, lr=0.5, random_state=0
    ).fit(X, Y)
    scores = [epoch["valid_score"] for epoch in classifier.history_]
    assert len(scores) == int(np.argmax(scores)) + 4 or len(scores) == 100


def test_bad_input_is_named():
    for params, message in (
        ({"loss": "dise"}, "'dise'"),
        ({"pos_label": "x"}, "pos_label='x'"),
        ({"device": "foo"}, "device='foo' is not a torch device"),
        ({"device": "cuda"}, "device='cuda' asks for CUDA, and there is none"),
        ({"loss": CrossEntropyLoss(reduction="none")}, "reduction='none'"),
    ):
        with pytest.raises(ValueError, match=message):
            DiceClassifier(**params).fit(X, Y)
    with pytest.raises(ValueError, match="one class only"):
        DiceClassifier().fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="NaN"):
        DiceClassifier().fit(np.full((2, 2), np.nan), [0, 1])


def test_skorchs_callbacks_may_end_the_training():
    stop = EarlyStopping(monitor="train_loss", patience=2, threshold=10.0, sink=lambda _: None)
    classifier = DiceClassifier(loss="ce", callbacks=[stop], max_epochs=50, random_state=0)
    assert classifier.fit(X, Y).n_iter_ == 3  # the first, and two that are no better
    grid = GridSearchCV(classifier, {"lr": [1e-2, 1e-1]}, cv=2, error_score="raise").fit(X, Y)
    assert grid.best_estimator_.n_iter_ == 3


def test_early_stopping_counts_the_weights_of_held_out_rows():
    draw = np.random.default_rng(0)
    rows, weights = draw.normal(size=(100, 3)), draw.random(100)
    y = (rows[:, 0] + draw.normal(size=100) > 0.8).astype(int)
    model = DiceClassifier(max_epochs=5, random_state=0).fit(rows, y)
    held = Held(Examples(rows, y, weights), encode(model, rows))
    expected = f1_score(y, model.predict(rows), sample_weight=weights)
    assert model._score_of_held(held) == pytest.approx(expected)
    assert expected != pytest.approx(f1_score(y, model.predict(rows)))
