"""Heads in the form of models for scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator

from skdice.estimators.evaluation import FromLogits
from skdice.inputs.rows import object_array
from skdice.inputs.sentences import as_sentences
from skdice.metrics import span_f1_score
from skdice.tags.decoding import decode


@dataclass(eq=False, repr=False)
class ClassHead(FromLogits, BaseEstimator):
    """A head that classifies rows or texts, by its logits of shape (n_rows, n_classes)."""

    classes_: np.ndarray
    _logits: Callable[[Any], np.ndarray]
    positive_: Any  # of two classes

    multilabel_ = False


@dataclass(eq=False, repr=False)
class TagHead(BaseEstimator):
    """A head that tags the words of sentences, by its logits of shape (n_words, n_classes)."""

    classes_: np.ndarray
    logits_of: Callable[[Any], np.ndarray]
    scheme_: str
    constrained: bool

    def _tables(self, X: Any) -> list[np.ndarray]:
        """Log-probabilities of the words of each sentence."""
        ends = np.cumsum([len(words) for words in as_sentences(X)])
        return np.split(log_softmax(self.logits_of(X).astype(np.float64), axis=1), ends[:-1])

    def predict(self, X: Any) -> np.ndarray:
        """The tags of every word, an object array of lists."""
        tags = list(self.classes_)
        return object_array(
            decode(self._tables(X), tags, self.scheme_, constrained=self.constrained)
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, an array (n_words, n_classes) for each sentence."""
        return object_array([np.exp(table) for table in self._tables(X)])

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags."""
        return float(span_f1_score(y, self.predict(X), scheme=self.scheme_))
