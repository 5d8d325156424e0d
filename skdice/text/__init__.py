"""Text in, predictions out: containers, subwords, words with their characters, and decoding."""

from skdice.text.words import Entity, pipeline_entities, plain_words

__all__ = ["Entity", "pipeline_entities", "plain_words"]
