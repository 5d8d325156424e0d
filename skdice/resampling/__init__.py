"""Samplers with imbalanced-learn's interface for texts, pairs and tagged sentences."""

from skdice.resampling.drawing import BalancedBatchSampler
from skdice.resampling.paper import table8_training_sets
from skdice.resampling.pipeline import Pipeline, make_pipeline
from skdice.resampling.replacement import EntityReplacement, build_gazetteer
from skdice.resampling.tags import BackgroundUnderSampler, TagOverSampler
from skdice.resampling.text import TextOverSampler, TextUnderSampler

__all__ = [
    "BackgroundUnderSampler",
    "BalancedBatchSampler",
    "EntityReplacement",
    "Pipeline",
    "TagOverSampler",
    "TextOverSampler",
    "TextUnderSampler",
    "build_gazetteer",
    "make_pipeline",
    "table8_training_sets",
]
