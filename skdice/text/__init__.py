"""Text in, predictions out: containers, subwords, words with their characters, and decoding."""

from typing import Any

from skdice._names import refuse_old_name
from skdice.inputs.entities import Entity
from skdice.text.words import pipeline_entities

__all__ = ["Entity", "pipeline_entities"]


def __getattr__(name: str) -> Any:
    refuse_old_name(__name__, name)
