"""Samplers with imbalanced-learn's interface for texts, pairs and tagged sentences."""

from typing import NoReturn

from skdice._names import refuse_old_name
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


def __getattr__(name: str) -> NoReturn:
    refuse_old_name(__name__, name)
