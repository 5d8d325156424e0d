"""Samplers with imbalanced-learn's interface for tagged sentences, and for entities in any text."""

from skdice.resampling.replacement import EntityReplacement
from skdice.resampling.tags import BackgroundUnderSampler, TagOverSampler

__all__ = [
    "BackgroundUnderSampler",
    "EntityReplacement",
    "TagOverSampler",
]
