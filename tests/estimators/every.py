"""Every estimator that reads text: how to make a quick one, with X and y of twelve rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skdice import (
    BiasTunedClassifier,
    BiasTunedTagger,
    CRFTagger,
    DiceEntityRecognizer,
    DiceMRCTagger,
    DiceMultiSpanAnswerer,
    DiceQuestionAnswerer,
    DiceSequenceClassifier,
    DiceTokenClassifier,
    TfidfClassifier,
    TransformerFeatures,
)
from tests.data import (
    ANSWERS,
    ENTITIES,
    JOINED,
    LABELS,
    PAIRS,
    QUESTIONS,
    SENTENCES,
    SPANS,
    TAGS,
    TEXTS,
)


def tiny(cls: Any, **params: Any) -> Callable[[str], Any]:
    return lambda backbone: cls(backbone=backbone, max_epochs=1, random_state=0, **params)


# Name -> how to make it, X, y.
TEXT_ESTIMATORS: dict[str, tuple[Callable[[str], Any], Any, Any]] = {
    "sequence": (tiny(DiceSequenceClassifier, loss="dsc"), TEXTS, LABELS),
    "sequence pairs": (tiny(DiceSequenceClassifier), PAIRS, np.array([1, 0, 0] * 4)),
    "token": (tiny(DiceTokenClassifier, loss="dsc"), SENTENCES, TAGS),
    "reader": (tiny(DiceQuestionAnswerer, loss="dsc"), QUESTIONS, ANSWERS),
    "mrc tagger": (tiny(DiceMRCTagger, loss="dsc"), SENTENCES, TAGS),
    "mrc tagger spans": (tiny(DiceMRCTagger), SENTENCES, SPANS),
    "recognizer": (tiny(DiceEntityRecognizer), JOINED, ENTITIES),
    "multi-span reader": (tiny(DiceMultiSpanAnswerer), QUESTIONS, ANSWERS),
    "tfidf": (lambda backbone: TfidfClassifier(cv=2, random_state=0), TEXTS, LABELS),
    "crf": (lambda backbone: CRFTagger(), SENTENCES, TAGS),
    "features": (lambda backbone: TransformerFeatures(backbone=backbone), TEXTS, LABELS),
    "features pairs": (lambda backbone: TransformerFeatures(backbone=backbone), PAIRS, None),
    "tuned sequence": (
        lambda backbone: BiasTunedClassifier(tiny(DiceSequenceClassifier)(backbone), cv=2),
        TEXTS,
        LABELS,
    ),
    "tuned token": (
        lambda backbone: BiasTunedTagger(tiny(DiceTokenClassifier)(backbone), cv=2, random_state=0),
        SENTENCES,
        TAGS,
    ),
}
