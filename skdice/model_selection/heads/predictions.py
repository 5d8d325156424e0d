"""Heads in the form of models for scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from skdice.estimators.evaluation import ClassScores, decision_scores
from skdice.inputs.rows import object_array
from skdice.inputs.sentences import as_sentences
from skdice.metrics import span_f1_score
from skdice.tags.decoding import decode


@dataclass(eq=False, repr=False)
class HeadModel(BaseEstimator):
    """A head, by its logits of shape (n_vectors, n_classes) for rows."""

    classes_: np.ndarray
    logits_of: Callable[[Any], np.ndarray]

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(eq=False, repr=False)
class ClassHead(ClassScores, ClassifierMixin, HeadModel):
    """A head that classifies rows or texts."""

    positive_: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.positive_ is None:
            del self.positive_

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n_rows,)."""
        return self.classes_[self.logits_of(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n_rows, n_classes)."""
        return softmax(self.logits_of(X), axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, or logits for more classes."""
        return decision_scores(self, self.logits_of(X))


@dataclass(eq=False, repr=False)
class TagHead(HeadModel):
    """A head that tags the words of sentences."""

    scheme_: str = field(kw_only=True)
    constrained: bool = field(kw_only=True)

    def predict(self, X: Any) -> np.ndarray:
        """The tags of every word, an object array of lists."""
        rows, tags = _of_sentences(self.logits_of(X), X), list(self.classes_)
        return object_array(decode(rows, tags, self.scheme_, constrained=self.constrained))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, an array (n_words, n_classes) for each sentence."""
        return object_array([np.exp(rows) for rows in _of_sentences(self.logits_of(X), X)])

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags."""
        return float(span_f1_score(y, self.predict(X), scheme=self.scheme_))


def _of_sentences(logits: np.ndarray, X: Any) -> list[np.ndarray]:
    """Log-probabilities of the words of each sentence."""
    ends = np.cumsum([len(words) for words in as_sentences(X)])
    return np.split(log_softmax(logits.astype(np.float64), axis=1), ends[:-1])
