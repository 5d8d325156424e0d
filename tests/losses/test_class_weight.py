"""Weights of classes by name, and balanced ones: the numbers are scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight

from skdice import DiceClassifier, DiceSequenceClassifier, DiceTokenClassifier
from skdice.losses import (
    CompoundLoss,
    CrossEntropyLoss,
    DiceLoss,
    WeightedCrossEntropyLoss,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.array(["ham"] * 45 + ["spam"] * 5 + ["eggs"] * 10)


@pytest.mark.parametrize("cls", [CrossEntropyLoss, WeightedCrossEntropyLoss, DiceLoss])
@pytest.mark.parametrize("kind", ["balanced", "dict"])
def test_they_are_the_numbers_that_they_stand_for(cls, kind):
    counts, classes = np.array([10, 45, 5]), np.array(["eggs", "ham", "spam"])
    labels = np.repeat(classes, counts)
    if kind == "balanced":
        given, numbers = "balanced", compute_class_weight("balanced", classes=classes, y=labels)
    else:
        given, numbers = {"spam": 7.5, "eggs": 0.5}, np.array([0.5, 1.0, 7.5])
    logits = torch.tensor(RNG.normal(size=(12, 3)))
    target = torch.tensor(RNG.integers(3, size=12))
    ours, plain = cls(class_weight=given), cls(class_weight=numbers.tolist())
    for loss in (ours, plain):
        loss.prepare(counts, classes=classes)
    assert ours(logits, target) == plain(logits, target)
    if ours.start_bias() is not None:
        torch.testing.assert_close(ours.start_bias(), plain.start_bias())
    assert clone(ours) == ours
    assert eval(repr(ours)) == ours
    fresh = cls(class_weight=given)
    with pytest.raises(ValueError, match=r"class_weight=.*call prepare\(class_counts"):
        fresh(logits, target)


def test_of_several_labels_the_positives_weigh_as_the_negatives():
    counts, n = np.array([2.0, 10.0, 20.0]), 20.0
    loss = CrossEntropyLoss(class_weight="balanced").prepare(counts, None, True, n)
    expected = CrossEntropyLoss(class_weight=[9.0, 1.0, 0.0]).prepare(counts, None, True, n)
    logits = torch.tensor(RNG.normal(size=(5, 3)))
    target = torch.tensor(RNG.integers(2, size=(5, 3)))
    assert loss(logits, target) == expected(logits, target)
    absent = CrossEntropyLoss(class_weight="balanced").prepare([8, 0, 2])
    weights = absent.get_buffer("class_weight_")
    assert weights[[0, 2]].tolist() == [10 / (2 * 8), 10 / (2 * 2)]
    assert torch.isfinite(weights).all()


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("balance", r"class_weight='balance'.*'balanced', a dict"),
        ({"spam": -1}, r"class_weight=.* at least 0"),
        ({"spam": float("nan")}, r"class_weight=.*finite"),
        ({"spam": "much"}, r"class_weight=.*"),
        (3, "class_weight=3"),
    ],
)
def test_others_are_refused(value, error):
    with pytest.raises((ValueError, TypeError), match=error):
        CrossEntropyLoss(class_weight=value)


def test_estimators_take_labels_by_name(tiny_backbone, sentences):
    def fitted(weights):
        loss = CrossEntropyLoss(class_weight=weights)
        return DiceClassifier(loss=loss, max_epochs=5, random_state=0).fit(X, Y)

    want = compute_class_weight("balanced", classes=np.unique(Y), y=Y).tolist()
    for named, numbers in (("balanced", want), ({"spam": 3.0}, [1.0, 1.0, 3.0])):
        ours, plain = fitted(named).predict_proba(X), fitted(numbers).predict_proba(X)
        np.testing.assert_array_equal(ours, plain)
    with pytest.raises(ValueError, match=r"class_weight names \['spma'\].*'eggs', 'ham', 'spam'"):
        fitted({"spma": 3.0})
    parts = CompoundLoss("dice", CrossEntropyLoss(class_weight={"spam": 3.0}))
    DiceClassifier(loss=parts, max_epochs=1).fit(X, Y)
    grid = {"loss__class_weight": ["balanced", None, {"spam": 2.0}]}
    search = GridSearchCV(DiceClassifier(loss=WeightedCrossEntropyLoss(), max_epochs=1), grid, cv=2)
    assert len(search.fit(X, Y).cv_results_["params"]) == 3

    texts, tags = sentences
    how = {"backbone": tiny_backbone, "max_epochs": 1, "random_state": 0}
    tagger = DiceTokenClassifier(loss=CrossEntropyLoss(class_weight={"B-PER": 2.0}), **how)
    tagger.fit(texts, tags)
    weights = tagger.net_.criterion_.get_buffer("class_weight_").tolist()
    assert dict(zip(tagger.classes_.tolist(), weights, strict=True)) == {
        **dict.fromkeys(tagger.classes_.tolist(), 1.0),
        "B-PER": 2.0,
    }
    with pytest.raises(ValueError, match=r"class_weight names \['PER'\].*'B-PER'"):
        clone(tagger).set_params(loss__class_weight={"PER": 2.0}).fit(texts, tags)
    several = [["a", "b"], ["b"], [], ["a"]]
    loss = CrossEntropyLoss(class_weight={"b": 2.0})
    model = DiceSequenceClassifier(loss=loss, **how).fit(["one", "two", "three", "four"], several)
    assert model.net_.criterion_.get_buffer("class_weight_").tolist() == [1.0, 2.0]


@pytest.mark.parametrize("weight", ["balanced", {0: 2.0}, [2.0], [3.0, 2.0]])
def test_one_label_of_several_has_one_weight(weight):
    loss = CrossEntropyLoss(class_weight=weight)
    loss.prepare([2], multilabel=True, n_samples=8)
    logits, target = torch.tensor([[0.5], [-1.0]]), torch.tensor([[1.0], [0.0]])
    plain = torch.nn.functional.binary_cross_entropy_with_logits
    factor = float(loss.class_weight_[0]) if weight == "balanced" else 2.0
    of_negatives = 3.0 if weight == [3.0, 2.0] else 1.0
    sides = factor * plain(logits[0], target[0]), of_negatives * plain(logits[1], target[1])
    expected = sum(sides) / 2
    torch.testing.assert_close(loss(logits, target), expected)
