"""Masked values are refused by their position, wherever data come in."""

from __future__ import annotations

import numpy as np
import pytest

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceClassifier,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TfidfClassifier,
    TransformerFeatures,
)
from skdice.inspection import next_to_label, suspect_labels
from skdice.model_selection import LossSearchCV, compare_losses, loss_space, out_of_fold
from skdice.resampling import (
    BackgroundUnderSampler,
    EntityReplacement,
    TagOverSampler,
)
from tests import data


def objects(rows):
    """Four rows in an array of objects."""
    return np.fromiter(rows, dtype=object, count=4)


TEXTS, TOKENS, TAGS = objects(data.JOINED), objects(data.SENTENCES), objects(data.TAGS)
ENTITIES, PAIRS, ANSWERS = map(objects, (data.ENTITIES, data.QUESTIONS, data.ANSWERS))
LABELS = np.array([0, 1, 0, 9])
NUMBERS = np.arange(8.0).reshape(4, 2)
MANY, OF_MANY = np.arange(60.0).reshape(30, 2), np.array([0, 1, 9] * 10)  # that can be held out


def masked(values, row=2):
    mask = np.zeros(values.shape, dtype=bool)
    mask[row] = True
    return np.ma.MaskedArray(values, mask)


def text_model(kind, **more):
    return lambda backbone: kind(backbone=backbone, max_epochs=1, **more)


MODELS = {
    "classifier": (lambda _: DiceClassifier(max_epochs=1), NUMBERS, LABELS),
    "texts": (text_model(DiceSequenceClassifier), TEXTS, LABELS),
    "tagger": (text_model(DiceTokenClassifier), TOKENS, TAGS),
    "recognizer": (text_model(DiceEntityRecognizer), TEXTS, ENTITIES),
    "asker": (text_model(DiceMRCTagger), TOKENS, TAGS),
    "reader": (text_model(DiceQuestionAnswerer), PAIRS, ANSWERS),
    "tfidf": (lambda _: TfidfClassifier(), TEXTS, LABELS),
    "crf": (lambda _: CRFTagger(), TOKENS, TAGS),
    "tuned": (lambda _: BiasTunedClassifier(DiceClassifier(max_epochs=1)), MANY, OF_MANY),
    "tuned tagger": (lambda b: BiasTunedTagger(text_model(DiceTokenClassifier)(b)), TOKENS, TAGS),
    "search": (
        lambda _: LossSearchCV(DiceClassifier(max_epochs=1), loss_space("dice"), n_trials=1),
        *(MANY, OF_MANY),
    ),
    "search of texts": (
        lambda b: LossSearchCV(
            text_model(DiceSequenceClassifier)(b), loss_space("dice"), n_trials=1
        ),
        *(TEXTS, LABELS),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_estimators_and_searches(name, tiny_backbone):
    make, X, y = MODELS[name]
    with pytest.raises(ValueError, match=r"X\[2(, 0)?\] is masked: drop such rows"):
        make(tiny_backbone).fit(masked(X), y)
    with pytest.raises(ValueError, match=r"y\[2\] is masked"):
        make(tiny_backbone).fit(X, masked(y))


SAMPLERS = {
    "tags over": (TagOverSampler(), TOKENS, TAGS),
    "background": (BackgroundUnderSampler(), TOKENS, TAGS),
    "replacement": (EntityReplacement(), TOKENS, TAGS),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    sampler, X, y = SAMPLERS[name]
    with pytest.raises(ValueError, match=r"X\[2\] is masked"):
        sampler.fit_resample(masked(X), y)
    with pytest.raises(ValueError, match=r"y\[2\] is masked"):
        sampler.fit_resample(X, masked(y))


def test_what_else_takes_data(tiny_backbone):
    model = DiceClassifier(max_epochs=1)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is masked"):
        model.fit(NUMBERS, LABELS, sample_weight=masked(np.ones(4), 1))
    with pytest.raises(ValueError, match=r"X\[2\] is masked"):
        TransformerFeatures(backbone=tiny_backbone).fit(masked(TEXTS))

    def compared(model, X, y):
        return compare_losses(model, X, y, X_test=MANY, y_test=OF_MANY, losses=["ce"], seeds=1)

    for run in (out_of_fold, compared, suspect_labels):
        for X, y, name in ((masked(MANY), OF_MANY, "X"), (MANY, masked(OF_MANY), "y")):
            with pytest.raises(ValueError, match=rf"{name}\[2(, 0)?\] is masked"):
                run(model, X, y)
    fitted = model.fit(NUMBERS, np.array([0, 1, 0, 1]))
    with pytest.raises(ValueError, match=r"X\[2, 0\] is masked"):
        fitted.predict(masked(NUMBERS))
    with pytest.raises(ValueError, match=r"(pool|X)\[2, 0\] is masked"):
        next_to_label(fitted, masked(NUMBERS), 1)
    whole = np.ma.MaskedArray(LABELS)  # nothing is masked
    assert DiceClassifier(max_epochs=1).fit(NUMBERS, whole).classes_.tolist() == [0, 1, 9]
