"""Samplers with imbalanced-learn's interface for texts, pairs and tagged sentences."""

from typing import Any

from skdice.resampling.paper import table8_training_sets
from skdice.resampling.replacement import EntityReplacement, build_gazetteer
from skdice.resampling.tags import BackgroundUnderSampler, TagOverSampler
from skdice.resampling.text import TextOverSampler, TextUnderSampler

__all__ = [
    "BackgroundUnderSampler",
    "EntityReplacement",
    "TagOverSampler",
    "TextOverSampler",
    "TextUnderSampler",
    "build_gazetteer",
    "table8_training_sets",
]

_GONE = {
    "BalancedBatchSampler": "give sampler= to an estimator, or torch's WeightedRandomSampler to a "
    "DataLoader",
    "Pipeline": "take imblearn.pipeline.Pipeline",
    "make_pipeline": "take imblearn.pipeline.make_pipeline",
}


def __getattr__(name: str) -> Any:
    """Tell the new way in place of an old name."""
    if name in _GONE:
        raise ImportError(f"skdice.resampling has no {name}: {_GONE[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
