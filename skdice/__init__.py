"""skdice: scikit-learn estimators for text where the positive class is rare.

>>> import skdice
>>> "DiceTokenClassifier" in dir(skdice)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skdice.estimators import (
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

__version__ = "0.1.0"
__all__ = [
    "BiasTunedClassifier",
    "BiasTunedTagger",
    "CRFTagger",
    "DiceClassifier",
    "DiceEntityRecognizer",
    "DiceMRCTagger",
    "DiceQuestionAnswerer",
    "DiceSequenceClassifier",
    "DiceTokenClassifier",
    "TfidfClassifier",
    "TransformerFeatures",
    "__version__",
]

# Loaded on first use, so that `import skdice` stays quick and imports no transformers.
_LAZY = {name: "skdice.estimators" for name in __all__ if name != "__version__"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'skdice' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
