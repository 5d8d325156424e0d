"""Text in, predictions out: containers, subwords, words with their characters, and decoding."""

from skdice.inputs.entities import Entity
from skdice.text.words import pipeline_entities

__all__ = ["Entity", "pipeline_entities"]
