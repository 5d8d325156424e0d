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
from tests.data import LABELS, PAIRS, SENTENCES, TAGS, TEXTS
from tests.fits import ROWS_OF


def tiny(cls: Any, **params: Any) -> Callable[[str], Any]:
    return lambda backbone: cls(backbone=backbone, max_epochs=1, random_state=0, **params)


def tuned(cls: Any, inner: Any) -> Callable[[str], Any]:
    return lambda backbone: cls(tiny(inner)(backbone), cv=2, random_state=0)


# Name -> how to make it, X, y.
TEXT_ESTIMATORS: dict[str, tuple[Callable[[str], Any], Any, Any]] = {
    "sequence": (tiny(DiceSequenceClassifier, loss="dsc"), TEXTS, LABELS),
    "sequence pairs": (tiny(DiceSequenceClassifier), PAIRS, np.array([1, 0, 0] * 4)),
    "token": (tiny(DiceTokenClassifier, loss="dsc"), SENTENCES, TAGS),
    "reader": (tiny(DiceQuestionAnswerer, loss="dsc"), *ROWS_OF[DiceQuestionAnswerer]),
    "mrc tagger": (tiny(DiceMRCTagger, loss="dsc"), SENTENCES, TAGS),
    "mrc tagger spans": (tiny(DiceMRCTagger), *ROWS_OF[DiceMRCTagger]),
    "recognizer": (tiny(DiceEntityRecognizer), *ROWS_OF[DiceEntityRecognizer]),
    "multi-span reader": (tiny(DiceMultiSpanAnswerer), *ROWS_OF[DiceMultiSpanAnswerer]),
    "tfidf": (lambda backbone: TfidfClassifier(cv=2, random_state=0), TEXTS, LABELS),
    "crf": (lambda backbone: CRFTagger(), SENTENCES, TAGS),
    "features": (lambda backbone: TransformerFeatures(backbone=backbone), TEXTS, LABELS),
    "features pairs": (lambda backbone: TransformerFeatures(backbone=backbone), PAIRS, None),
    "tuned sequence": (tuned(BiasTunedClassifier, DiceSequenceClassifier), TEXTS, LABELS),
    "tuned token": (tuned(BiasTunedTagger, DiceTokenClassifier), SENTENCES, TAGS),
}
