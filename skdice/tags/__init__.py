"""Tags of words and the spans that they mark: schemes, well-formed sequences, probabilities."""

from skdice.tags.conversion import convert_scheme

__all__ = ["convert_scheme"]
