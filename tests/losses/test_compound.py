"""CompoundLoss: the sum that it says it is, and parameters that reach its parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdice import DiceClassifier, DiceSequenceClassifier
from skdice.losses import LOSSES, CompoundLoss, CrossEntropyLoss, DiceLoss, TverskyLoss
from skdice.losses.base import resolve_loss

torch.manual_seed(0)
PROBLEMS = {
    "binary": (torch.randn(12), torch.randint(0, 2, (12,)), {}),
    "multiclass": (torch.randn(12, 4), torch.randint(0, 4, (12,)), {}),
    "tagging": (torch.randn(3, 4, 5), torch.randint(0, 5, (3, 4)), {}),
    "multilabel": (torch.randn(12, 3), torch.randint(0, 2, (12, 3)).float(), {"multilabel": True}),
}


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("second", [name for name in LOSSES if name != "ce"])
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_it_is_the_weighted_mean(kind, second, weight):
    logits, target, options = PROBLEMS[kind]
    counts = [9, 3] if kind == "binary" else [5, 4, 2, 1, 1][: logits.shape[-1]]
    parts = [resolve_loss(name).set_params(**options) for name in ("ce", second)]
    loss = CompoundLoss("ce", second, weight, **options)
    for module in (loss, *parts):
        module.prepare(counts, multilabel=kind == "multilabel", n_samples=12)
    weights = torch.rand(logits.shape[0])
    first, other = (part(logits, target, sample_weight=weights) for part in parts)
    expected = (1 - weight) * first + weight * other
    torch.testing.assert_close(loss(logits, target, sample_weight=weights), expected)


@pytest.mark.parametrize("second", ["dice", "tversky", "dsc"])
@pytest.mark.parametrize("background", [None, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_both_parts_in_one_pass(second, background, weighted):
    logits = torch.randn(30, 5, dtype=torch.float64, requires_grad=True)
    target = torch.randint(5, (30,))
    weights = torch.rand(30, dtype=torch.float64) if weighted else None
    loss = CompoundLoss("ce", second, 0.7)
    for module in (loss, *loss.parts.values()):
        module.prepare(torch.bincount(target, minlength=5).numpy(), background=background)
    first, other = (part(logits, target, sample_weight=weights) for part in loss.parts.values())
    expected = 0.3 * first + 0.7 * other
    found = loss(logits, target, sample_weight=weights)
    values = [(value, *torch.autograd.grad(value, logits)) for value in (found, expected)]
    torch.testing.assert_close(*values, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", LOSSES)
def test_a_name_is_the_class_without_arguments(name):
    loss = resolve_loss(name)
    assert loss == LOSSES[name]()
    assert CompoundLoss("ce", name).second == loss
    assert CompoundLoss("ce", loss).second is loss


@pytest.mark.parametrize("name", ["dice", "tversky", "dsc"])
def test_by_default_an_overlap_loss_has_the_surrogate(name):
    loss = LOSSES[name]()
    assert (loss.surrogate, loss.smooth) == ("log", 0.01)
    compound = resolve_loss("ce_dice")
    assert (compound.weight, compound.second) == (0.9, DiceLoss())


def test_parameters_reach_the_parts():
    loss = CompoundLoss("ce", TverskyLoss(alpha=0.2, beta=0.8), weight=0.7)
    assert loss.get_params()["second__alpha"] == 0.2
    assert "second=TverskyLoss(alpha=0.2, beta=0.8), weight=0.7" in repr(loss)
    copy = clone(loss).set_params(second__alpha=0.4, weight=0.1, first__label_smoothing=0.2)
    assert (loss.second.alpha, loss.weight, loss.first.label_smoothing) == (0.2, 0.7, 0.0)
    assert (copy.second.alpha, copy.weight, copy.first.label_smoothing) == (0.4, 0.1, 0.2)
    read = pickle.loads(pickle.dumps(copy))
    logits, target, _ = PROBLEMS["multiclass"]
    torch.testing.assert_close(read(logits, target), copy(logits, target))
    assert loss.is_set_level
    assert not CompoundLoss("ce", "focal").is_set_level


def test_a_part_is_set_by_name_and_all_or_nothing():
    loss = CompoundLoss("ce", DiceLoss(smooth=0.5, surrogate="none"))
    before = repr(loss)
    for params, message in (
        ({"weight": 0.2, "second__bogus": 1}, "bogus"),
        ({"weight": 0.2, "second": "dise"}, "dise"),
        ({"weight": 0.2, "second__reduction": "sum"}, "reduction='mean'"),
        ({"second__smooth": 0.1, "first__label_smoothing": 2}, "label_smoothing=2"),
    ):
        with pytest.raises(ValueError, match=message):
            loss.set_params(**params)
        assert repr(loss) == before
    loss.set_params(second="tversky", second__alpha=0.1)
    assert repr(loss.second) == "TverskyLoss(alpha=0.1)"


def test_inside_estimators(tiny_backbone, tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = (X[:, 0] > 1).astype(int)
    model = DiceClassifier(loss="ce_dice", max_epochs=5, random_state=0)
    params = {"weight": [0.1, 0.9], "second": ["tversky"], "second__smooth": [0.5]}
    params = {f"loss__{name}": values for name, values in params.items()}
    grid = GridSearchCV(model, params, cv=2, error_score="raise").fit(X, y)
    assert grid.best_estimator_.loss.second == TverskyLoss(smooth=0.5)
    assert grid.best_estimator_.loss.weight == grid.best_params_["loss__weight"]
    texts, labels = ["win free money", "lunch today", "old road"] * 4, [1, 0, 0] * 4
    loss = CompoundLoss(second=DiceLoss(smooth=0.5), weight=0.2)
    settings = dict(backbone=tiny_backbone, max_epochs=1, random_state=0)
    model = DiceSequenceClassifier(loss=loss, **settings).fit(texts, labels)
    read = DiceSequenceClassifier.from_pretrained(model.save_pretrained(tmp_path / "m"))
    assert (read.loss.weight, read.loss.second.smooth) == (0.2, 0.5)
    assert isinstance(read.loss.first, CrossEntropyLoss)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weight": 1.5}, r"weight=1.5 must be .* in the range \[0.0, 1.0\]"),
        ({"first": "dise"}, "'dise' is unknown"),
        ({"second": DiceLoss(reduction="none", surrogate="none")}, "reduction='mean'"),
        ({"reduction": "sum"}, "reduction='mean'"),
        ({"third__smooth": 1}, "'third__smooth'"),
        ({"second__nope": 1}, "'nope'"),
        ({"first__ignore_index": 0}, "ignore_index=0 to the CompoundLoss"),
        ({"second__multilabel": True}, "multilabel=True to the CompoundLoss"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        CompoundLoss().set_params(**params)
