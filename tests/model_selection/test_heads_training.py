"""Heads end where the fits of their own models end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_score

from skdice import DiceClassifier
from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    DSCLoss,
    FocalLoss,
    TverskyLoss,
    WeightedCrossEntropyLoss,
)
from skdice.model_selection import LossSearchCV
from skdice.model_selection.heads.predictions import ClassHead
from skdice.model_selection.heads.training import fit_heads, groups_of_losses


def predictions(heads, rows):
    def head(logits):
        return ClassHead(heads.classes, lambda X: logits, heads.positive)

    return [head(logits) for logits in heads.logits(rows)]


LOSSES = [
    *(TverskyLoss(alpha=a, beta=1 - a) for a in (0.1, 0.5, 0.9)),
    CrossEntropyLoss(),
    CrossEntropyLoss(label_smoothing=0.1),
    CrossEntropyLoss(tau=0.5),
    FocalLoss(gamma=1.0),
    FocalLoss(gamma=3.0),
    WeightedCrossEntropyLoss(K=2.0),
    WeightedCrossEntropyLoss(K=7.0),
    DSCLoss(),
    DSCLoss(exponent=0.4),
    CompoundLoss(weight=0.2),
    CompoundLoss(second=DiceLoss(smooth=0.1), weight=0.7),
    DiceLoss(smooth=0.1, surrogate="none"),
    DiceLoss.literal(),
]


OF_TWO_CLASSES = [
    FocalLoss(alpha=0.8),
    CrossEntropyLoss(class_weight=[1.0, 3.0]),
    DSCLoss(smooth=0.01, surrogate="log", class_weight=[1.0, 3.0]),
    DiceLoss(average="macro"),
    DiceLoss(surrogate="log", smooth=0.1),
]


@pytest.mark.filterwarnings("ignore::skdice.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("n_classes", "losses"),
    [(2, [*LOSSES, *OF_TWO_CLASSES]), (3, LOSSES)],
)
def test_head_ends_where_its_own_fit_ends(n_classes, losses):
    made = dict(n_classes=n_classes, n_informative=6, weights=[0.7, 0.2][: n_classes - 1])
    rows, labels = make_classification(150, 12, random_state=0, **made)
    how = {"lr": 0.05, "weight_decay": 0.05, "max_epochs": 3, "batch_size": 32, "warmup": 0.2}
    models = [DiceClassifier(loss=loss, random_state=3, **how) for loss in losses]
    everything = np.arange(150)
    # Folds of other sizes: 5, 3 and 2 batches an epoch, of which two end in a part of one.
    folds = [(everything, everything), (everything[:96], everything[96:]), (everything[90:], [3])]
    trained = fit_heads(models, rows, labels, [train for train, _ in folds])
    for (train, asked), heads in zip(folds, trained, strict=True):
        for model, head in zip(models, predictions(heads, rows[asked]), strict=True):
            solo = model.fit(rows[train], labels[train])
            # Not the logits, as what is added to all classes says nothing.
            want = np.log(solo.predict_proba(rows[asked]))
            np.testing.assert_allclose(log_softmax(head._logits(None), axis=1), want, atol=1e-9)
            np.testing.assert_array_equal(head.predict(rows[asked]), solo.predict(rows[asked]))
            pair = (model.decision_function(rows[asked]) for model in (head, solo))
            np.testing.assert_allclose(*pair)


def test_heads_of_folds_with_other_backgrounds():
    rows, labels = make_classification(80, 5, random_state=0)
    order = np.argsort(labels, kind="stable")
    folds = [(order[:60], order[60:]), (order[20:], order[:20])]  # either class is the rarer one
    labels = np.array(["a", "b"])[labels]
    models = [DiceClassifier(loss=loss, max_epochs=2, random_state=0) for loss in ("dice", "dsc")]
    trained = fit_heads(models, rows, labels, [train for train, _ in folds])
    for (train, asked), heads in zip(folds, trained, strict=True):
        for model, head in zip(models, predictions(heads, rows[asked]), strict=True):
            solo = model.fit(rows[train], labels[train])
            want = np.log(solo.predict_proba(rows[asked]))
            np.testing.assert_allclose(log_softmax(head._logits(None), axis=1), want, atol=1e-9)


def test_heads_of_folds_have_batches_of_their_own_size():
    X, y = make_classification(1500, 6, weights=[0.96], flip_y=0, random_state=0)
    folds = [np.arange(1000), np.flatnonzero((y == 0) | (np.cumsum(y) % 2 == 0))]
    models = [DiceClassifier(loss=loss, max_epochs=3, random_state=0) for loss in ("ce", "dice")]
    sizes = set()
    for rows, heads in zip(folds, fit_heads(models, X, y, folds), strict=True):
        for model, found in zip(models, heads.logits(X), strict=True):
            alone = model.fit(X[rows], y[rows])
            sizes.add(alone.batch_size_)
            found = found[:, 1] - found[:, 0]
            np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-6)
    assert len(sizes) == 2


def test_losses_of_classes_with_one_name_are_apart():
    class Renamed(CrossEntropyLoss):
        pass

    Renamed.__name__ = "CrossEntropyLoss"
    three = [CrossEntropyLoss(), Renamed(), CrossEntropyLoss()]
    assert groups_of_losses(three) == [[0, 2], [1]]
    parts = [CompoundLoss(second=part) for part in (CrossEntropyLoss(), Renamed())]
    assert groups_of_losses([*parts, CompoundLoss(second=DiceLoss())]) == [[0], [1], [2]]
    words = [DiceLoss(smooth=2.0), DiceLoss(surrogate="none"), DiceLoss()]
    assert groups_of_losses(words) == [[0, 2], [1]]


def test_a_head_that_diverges_takes_no_update_from_others():
    X, y = make_classification(96, 5, weights=[0.8], random_state=0)
    # The last weight makes a loss of float32 infinite.
    space = {"loss": ["ce"], "loss__class_weight": [[1.0, 2.0], [2.0, 1.0], [1.0, 1e38]]}
    model = DiceClassifier(max_epochs=4, batch_size=64, lr=0.1, random_state=0)
    how = dict(n_trials=8, cv=3, random_state=0, scoring="neg_log_loss")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the last head predicts
        found = LossSearchCV(model, space, strategy="shared", refit=False, **how)
        results = found.fit(X.astype("float32"), y).cv_results_
    for params, score in zip(results["params"], results["mean_test_score"], strict=True):
        if params["loss__class_weight"][1] < 3:
            alone = clone(model).set_params(**params)
            scores = cross_val_score(alone, X.astype("float32"), y, cv=3, scoring="neg_log_loss")
            assert score == pytest.approx(scores.mean(), rel=1e-5)
    weights = [params["loss__class_weight"] for params in results["params"]]
    assert {weight[1] for weight in weights} == {1.0, 2.0, 1e38}


@pytest.mark.parametrize("n_classes", [2, 3])
def test_updates_of_heads_on_a_gpu_are_those_of_the_plain_loop(n_classes, gpu):
    """Without the GPU: a graph is its function on inputs that stay, and nothing in it waits."""
    X, y = make_classification(
        90, 6, n_classes=n_classes, n_informative=6, n_redundant=0, random_state=0
    )
    models = [
        DiceClassifier(loss=loss, lr=0.05, max_epochs=2, batch_size=16, random_state=0)
        for loss in (*LOSSES[::3], DiceLoss(), DSCLoss())
    ]
    folds = [np.arange(60), np.arange(20, 90)]
    gpu.on = False
    plain = fit_heads(models, X, y, folds)
    gpu.on = True
    found = fit_heads(models, X, y, folds)
    # Of each fold a full batch; what is left of an epoch comes too rarely here.
    assert [shapes["target"] for shapes in gpu] == [(16,), (16,)]
    for one, other in zip(plain, found, strict=True):
        # A rate of a graph is a tensor, which rounds in another place.
        torch.testing.assert_close(one.weight, other.weight, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(one.bias, other.bias, rtol=1e-12, atol=1e-12)
