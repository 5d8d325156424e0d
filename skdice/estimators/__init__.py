"""scikit-learn estimators, one file for each task."""

from skdice.estimators.sequence import DiceSequenceClassifier
from skdice.estimators.token import DiceTokenClassifier

__all__ = ["DiceSequenceClassifier", "DiceTokenClassifier"]
