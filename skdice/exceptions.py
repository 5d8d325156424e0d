"""Warnings of skdice: a class for each, so that one can be filtered and the others still seen.

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


# ---- data


class LayersWarning(SkdiceWarning):
    """Spans of several layers were read together."""


class MisalignedWarning(SkdiceWarning):
    """Entities or answers do not fit their texts."""


class MissingLabelWarning(SkdiceWarning):
    """Labels that no training row has."""


class SkippedRowsWarning(SkdiceWarning):
    """Rows, labels or spans of a file were left out."""


class SwappedPairWarning(SkdiceWarning):
    """A context is shorter than its question."""


class TagSchemeWarning(SkdiceWarning):
    """Tags break their scheme, or are spelt as no scheme spells them."""


class TruncationWarning(SkdiceWarning):
    """Inputs were longer than the model reads, and part of them was left out."""


class UnwrittenWarning(SkdiceWarning):
    """A file format has no place for something that was to be written."""


# ---- training


class BackgroundWarning(SkdiceWarning):
    """A loss in a Trainer was not told which class is the background."""


class CheckpointWarning(SkdiceWarning):
    """A checkpoint could not be written, or is damaged."""


class CollapseWarning(SkdiceWarning, ConvergenceWarning):
    """The outputs of a fit's last epoch named one class, or nothing, for every training row."""


class FewRowsWarning(SkdiceWarning):
    """Training has one or two rows, or one positive example."""


class LiteralLossWarning(SkdiceWarning):
    """A loss as its paper prints it, which often does not train."""


class ValidationWarning(SkdiceWarning):
    """Validation rows are poor to judge by: not stratified, or without a positive."""


# ---- decisions, searches


class PriorShiftWarning(SkdiceWarning):
    """New rows differ from the known ones in more than the frequencies of classes."""


class TrialWarning(SkdiceWarning, FitFailedWarning):
    """A trial of a search could not be fitted or scored."""


class UnkeptBoundWarning(SkdiceWarning):
    """A bound on a measure cannot be promised for new rows."""


class UnweightedScoreWarning(SkdiceWarning):
    """A scorer takes no weights of rows."""


# ---- saved models


class LostParameterWarning(SkdiceWarning):
    """A saved model lacks a parameter that JSON cannot hold."""


class ServingWarning(SkdiceWarning):
    """A saved model is no model of plain transformers, or predicts otherwise there."""


class UnnamedLabelsWarning(SkdiceWarning):
    """A model of transformers has no names for its labels."""
