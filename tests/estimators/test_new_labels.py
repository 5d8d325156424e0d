"""Labels that a fitted model has no output for: refused before any work, and the way out works."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    DiceEntityRecognizer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from tests.fits import before_training

TOKENS = [["anna", "was", "near", "rome"], ["the", "rain", "in", "oslo"]] * 3
TAGS = [["B-PER", "O", "O", "B-LOC"], ["O", "O", "O", "B-LOC"]] * 3
TEXTS, SPANS = ["anna saw rome", "rain in oslo"] * 3, [[(0, 4, "PER")], [(8, 12, "LOC")]] * 3
# Rows of three kinds of estimator, with labels of the first fit, and others.
CASES = {
    "tags": (DiceTokenClassifier, TOKENS, TAGS, [["B-FIRM", "O", "O", "B-LOC"], ["O"] * 4] * 3),
    "types": (DiceEntityRecognizer, TEXTS, SPANS, [[(0, 4, "FIRM")], []] * 3),
    "labels": (DiceSequenceClassifier, TEXTS, ["ham", "spam"] * 3, ["FIRM", "spam"] * 3),
    "numbers": (DiceSequenceClassifier, TEXTS, [3, 1] * 3, [2, 1] * 3),
    "sets": (DiceSequenceClassifier, TEXTS, [["ham"], ["spam"]] * 3, [["FIRM"], []] * 3),
}
MORE = {"tags": ["B-FIRM"], "types": ["FIRM"], "labels": ["FIRM"], "numbers": [2], "sets": ["FIRM"]}


def state_of(model):
    return pickle.dumps({k: v for k, v in vars(model).items() if k != "net_"})


@pytest.fixture(params=CASES)
def case(request, tiny_backbone):
    kind, X, y, other = CASES[request.param]
    model = kind(backbone=tiny_backbone, max_epochs=1, lr=1e-2, dropout=0.0, random_state=0)
    return model.fit(X, y), X, y, other, MORE[request.param]


@pytest.mark.parametrize("how", ["y", "classes", "warm_start"])
def test_new_labels_are_refused_and_nothing_changes(case, how):
    model, X, y, other, more = case
    model.set_params(warm_start=how == "warm_start")
    calls = {
        "y": lambda: model.partial_fit(X, other),
        "classes": lambda: model.partial_fit(X, y, classes=more),
        "warm_start": lambda: model.fit(X, other),
    }
    before = state_of(model)
    new = r"(labels \['(B-)?FIRM'\]|labels \[2\])"
    with pytest.raises(ValueError, match=rf"the {new} are new.*partial_fit\(classes=.*backbone="):
        calls[how]()
    assert state_of(model) == before


def test_labels_named_at_first_are_learned(case):
    model, X, y, other, more = case
    known = model.classes_.tolist()
    model = type(model)(**{**model.get_params(), "lr": 3e-2})
    model.partial_fit(X, y, classes=[*known, *more])
    assert model.classes_.tolist() == sorted([*known, *more])
    for _ in range(40):
        model.partial_fit(X[:2], other[:2])
    assert model.score(X[:2], other[:2]) > 0.66  # a mean over labels, of which one is not here
    assert model.partial_fit(X, y, classes=known).classes_.tolist() == sorted([*known, *more])


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_fewer_labels_in_another_order_keep_their_outputs(case, how):
    """Class counts, which follow y by name, have the places of the first fit."""
    model, X, y, _, _ = case
    names = getattr(model, model.task.outputs).tolist()
    first = model.class_counts_.tolist()
    model.set_params(warm_start=True)
    getattr(model, "fit" if how == "warm_start" else "partial_fit")(X[1::2], y[1::2])
    of_rest = model.class_counts_ - (first if how == "partial_fit" else 0)
    flat = [tag for row in y[1::2] for tag in row] if isinstance(y[1], list) else y[1::2]
    if not isinstance(flat[0], tuple):
        assert of_rest.tolist() == [flat.count(name) for name in names]
    assert getattr(model, model.task.outputs).tolist() == names


def test_columns_of_a_table_that_have_names_are_told_apart(tiny_backbone):
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    rows = np.array([[1, 0, 0], [0, 1, 0]])
    model.partial_fit(TEXTS[:2], rows, classes=["a", "b", "c"])
    model.partial_fit(TEXTS[:2], rows[:, ::-1], classes=["c", "b", "a"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.class_counts_.tolist() == [2, 2, 0]
    with pytest.raises(ValueError, match=r"labels \['d'\] are new"):
        model.partial_fit(TEXTS[:2], rows, classes=["a", "b", "d"])


@pytest.mark.parametrize("adapter", [None, "lora"])
@pytest.mark.parametrize("pooling", [None, "mean", "native"])
def test_a_new_model_starts_from_the_encoder_of_a_saved_one(
    tiny_backbone, tmp_path, adapter, pooling
):
    if adapter:
        pytest.importorskip("peft")
    kind, X, y, other = CASES["labels" if pooling else "tags"]
    params = {"max_epochs": 1, "lr": 1e-2, "random_state": 0}
    params |= {"pooling": pooling} if pooling else {}
    model = kind(backbone=tiny_backbone, adapter=adapter, **params).fit(X, y)
    if adapter:
        model.merge_adapter()
    model.save_pretrained(tmp_path / "m")
    trained = model.module_.encoder.state_dict()
    net, _ = before_training(kind(backbone=tmp_path / "m", **params), X, other)
    begun = net.module_.encoder.state_dict()
    assert begun.keys() == trained.keys()
    assert all(torch.equal(begun[name], trained[name]) for name in trained)
    assert net.module_.output_layer.out_features == 3 - bool(pooling)


def test_a_decision_of_other_columns_is_tuned_again(tiny_backbone):
    y = pd.DataFrame({"spam": [1, 0] * 3, "rare": [0, 1, 0] * 2})
    model = DiceSequenceClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    tuned = BiasTunedClassifier(model.fit(TEXTS, y), cv="prefit").fit(TEXTS, y)
    assert tuned.predict(TEXTS).shape == y.shape
    model.fit(TEXTS, y[["rare", "spam"]])
    with pytest.raises(ValueError, match="fit the BiasTunedClassifier again"):
        tuned.predict(TEXTS)


def test_a_decision_of_other_classes_is_tuned_again(tiny_backbone):
    tagger = DiceTokenClassifier(backbone=tiny_backbone, max_epochs=1, random_state=0)
    tuned = BiasTunedTagger(tagger.fit(TOKENS, TAGS), cv="prefit").fit(TOKENS, TAGS)
    tagger.fit(TOKENS, [["B-FIRM", *row[1:]] for row in TAGS])
    with pytest.raises(ValueError, match=r"B-FIRM.*fit the BiasTunedTagger again"):
        tuned.predict(TOKENS)
