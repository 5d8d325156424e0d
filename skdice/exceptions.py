"""Warnings of skdice: one for each kind that is filtered apart from the others.

The page ``docs/warnings.md`` has the meaning and the remedy of each.

>>> import warnings
>>> from skdice.exceptions import SkdiceWarning, TruncationWarning
>>> with warnings.catch_warnings():
...     warnings.simplefilter("error", TruncationWarning)  # refuse texts that would be cut
...     issubclass(TruncationWarning, SkdiceWarning)
True
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning, FitFailedWarning


class SkdiceWarning(UserWarning):
    """Base of all warnings of skdice."""


class CollapseWarning(SkdiceWarning, ConvergenceWarning):
    """A fit found one class only, or nothing; or its loss is one that often does."""


class DataWarning(SkdiceWarning):
    """Rows look wrong, or are too few or of too few kinds to learn from or to judge by."""


class DecisionWarning(SkdiceWarning):
    """A decision or a score does not keep what it was asked for."""


class MisalignedWarning(SkdiceWarning):
    """Entities or answers do not fit their texts."""


class ServingWarning(SkdiceWarning):
    """What is written or read lacks something: a saved model, its parameters, a checkpoint."""


class SkippedRowsWarning(SkdiceWarning):
    """Something of a file was not read, or was not written."""


class TagSchemeWarning(SkdiceWarning):
    """Tags break their scheme, or are spelt as no scheme spells them."""


class TrialWarning(SkdiceWarning, FitFailedWarning):
    """A trial of a search could not be fitted or scored."""


class TruncationWarning(SkdiceWarning):
    """Inputs were longer than the model reads, and part of them was left out."""
