"""scikit-learn estimators, one file for each task."""

from skdice.estimators.classifier import DiceClassifier
from skdice.estimators.sequence import DiceSequenceClassifier
from skdice.estimators.token import DiceTokenClassifier

__all__ = ["DiceClassifier", "DiceSequenceClassifier", "DiceTokenClassifier"]
