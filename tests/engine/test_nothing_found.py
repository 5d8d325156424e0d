"""A fit whose last epoch named one class, or no span, says so."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from skdice import (
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
)
from skdice.exceptions import CollapseWarning

# The rest of the suite has fits too short to find anything, and hides the warning.
pytestmark = pytest.mark.filterwarnings("error::skdice.exceptions.CollapseWarning")
STILL = {"lr": 1e-12, "max_epochs": 1, "random_state": 0}
TEXTS = ["anna met bob", "the bus is late", "it was good", "sun and rain"] * 4
NUMBERS = np.random.default_rng(0).normal(size=(60, 4))
LABELS = (NUMBERS[:, 0] > 1).astype(int)
SEVERAL = np.array([[1, 0], [0, 1], [0, 0], [0, 0]] * 4)
ENTITIES = [[(0, 4, "PER")], [], [], []] * 4
QUESTIONS = [("who?", text) for text in TEXTS]
ANSWERS = [[(0, "anna")], [], [], []] * 4


def fits(backbone):
    text = {"backbone": backbone, "loss": "ce", **STILL}
    words = [row.split() for row in TEXTS]
    tags = [["B-PER" if word == "anna" else "O" for word in row] for row in words]
    plain = [["N" if word == "anna" else "V" for word in row] for row in words]
    return {
        "numbers": (DiceClassifier(loss="ce", **STILL), NUMBERS, LABELS, "predicts 0 only"),
        "text": (DiceSequenceClassifier(**text), TEXTS, ["a", "b", "b", "b"] * 4, "'b' only"),
        "labels": (DiceSequenceClassifier(**text), TEXTS, SEVERAL, "predicts no label at all"),
        "tags": (DiceTokenClassifier(**text), words, tags, "finds no span"),
        "plain": (DiceTokenClassifier(**text), words, plain, "predicts 'V' only"),
        "entities": (DiceEntityRecognizer(**text), TEXTS, ENTITIES, "finds no span"),
        "several answers": (DiceMultiSpanAnswerer(**text), QUESTIONS, ANSWERS, "finds no span"),
    }


@pytest.mark.parametrize(
    "kind", ["numbers", "text", "labels", "tags", "plain", "entities", "several answers"]
)
def test_a_fit_that_moved_nothing_says_what_it_predicts(kind, tiny_backbone):
    model, X, y, message = fits(tiny_backbone)[kind]
    with pytest.warns(CollapseWarning, match=message) as told:
        model.fit(X, y)
    assert len(told) == 1
    text = str(told[0].message)
    assert "1 updates at lr=1e-12" in text
    assert "BiasTunedClassifier" in text


@pytest.mark.parametrize("kind", [DiceQuestionAnswerer, DiceMRCTagger])
def test_readers_that_find_nothing(kind, tiny_backbone):
    """A rate that throws the head far away leaves one output for every position."""
    model = kind(backbone=tiny_backbone, **STILL)
    if kind is DiceMRCTagger:
        words = [row.split() for row in TEXTS]
        tags = [["B-PER" if word == "anna" else "O" for word in row] for row in words]
        X, y, message = words, tags, "finds no entity"
    else:
        X, y, message = QUESTIONS, ANSWERS, "finds no answer"
    seen = model.task.nothing_found(model, np.array([False]))
    assert seen == message
    assert model.task.nothing_found(model, np.array([True])) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        model.fit(X, y)
    found = dict(model.net_.callbacks_)["predicted"].seen_
    assert found.shape == (1,)
    if kind is DiceQuestionAnswerer:  # by a loop over the windows
        null = np.array([[2.0, 0.0], [1.0, 0.0]])
        answer = np.array([[0.0, 0.0], [1.0, 5.0], [0.5, 0.0]])
        for windows in ([null], [null, answer]):
            target = [[0, 0, i == 0] for row in windows for i in range(len(row))]
            update = SimpleNamespace(target=torch.tensor(target, dtype=torch.float32))
            named = model.task.named(model)(torch.from_numpy(np.concatenate(windows)), update)
            assert bool(named.any()) == any(row[:, 0].argmax() > 0 for row in windows)


def test_a_fit_that_finds_both_classes_is_silent():
    DiceClassifier(loss="ce", random_state=0, max_epochs=50).fit(NUMBERS, LABELS)


def test_what_padding_predicts_is_not_counted(tiny_backbone):
    """On a GPU rows of padding have outputs, too; here weights of 0 stand for them."""
    words = [["anna", "met", "bob"]] * 8
    tags = [["B-PER", "O", "O"]] * 8
    weight = np.array([1.0] * 4 + [0.0] * 4)
    model = DiceTokenClassifier(backbone=tiny_backbone, loss="ce", **STILL)
    with pytest.warns(CollapseWarning):
        model.fit(words, tags, sample_weight=weight)
