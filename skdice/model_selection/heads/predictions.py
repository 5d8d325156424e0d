"""Predictions of heads, in the form of models for scikit-learn's scorers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from skdice.estimators.scores import ClassScores
from skdice.metrics import span_f1_score
from skdice.text.decoding import decode
from skdice.text.inputs import object_array


class OtherRowsError(Exception):
    """A scorer asked `Predictions` for other rows than those that were predicted."""


@dataclass(eq=False, repr=False)
class Predictions(BaseEstimator):
    """Predictions for certain rows, without a model that could predict others."""

    classes_: np.ndarray
    logits: np.ndarray
    # The rows that were predicted, if requests are to be checked.
    rows: Any = field(default=None, init=False)
    asked_for_more: bool = field(default=False, init=False)  # whether for more than `predict`

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _check_rows(self, X: Any, *, more: bool = False) -> None:
        self.asked_for_more |= more
        if self.rows is None or X is self.rows:
            return
        if type(X) is not type(self.rows) or joblib.hash(X) != joblib.hash(self.rows):
            raise OtherRowsError("the scorer asks for predictions of other rows than it was given")


@dataclass(eq=False, repr=False)
class ClassPredictions(ClassScores, ClassifierMixin, Predictions):
    """A head's predictions for rows, from its logits of shape (n_rows, n_classes)."""

    positive: int | None

    def __post_init__(self) -> None:
        if self.positive is not None:
            self.positive_ = self.positive

    def key(self) -> bytes:
        """Equal for heads that predict the same."""
        return self.logits.argmax(axis=1).tobytes()

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n_rows,)."""
        self._check_rows(X)
        return self.classes_[self.logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n_rows, n_classes)."""
        self._check_rows(X, more=True)
        return softmax(self.logits, axis=1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, or logits for more classes."""
        self._check_rows(X, more=True)
        z = self.logits
        return z[:, 1] - z[:, 0] if len(self.classes_) == 2 else z


@dataclass(eq=False, repr=False)
class TagPredictions(Predictions):
    """A head's predictions for the words of sentences."""

    lengths: list[int]  # words of each sentence
    scheme_: str
    constrained: bool

    def _log_rows(self) -> list[np.ndarray]:
        rows = log_softmax(self.logits.astype(np.float64), axis=1)
        return np.split(rows, np.cumsum(self.lengths)[:-1])

    @cached_property
    def _tags(self) -> list[list[str]]:
        tags = list(self.classes_)
        return decode(self._log_rows(), tags, self.scheme_, constrained=self.constrained)

    def key(self) -> bytes:
        """Equal for heads that predict the same."""
        return "\n".join(tag for row in self._tags for tag in row).encode()

    def predict(self, X: Any) -> np.ndarray:
        """Tags of every word, as a 1-D object array of lists."""
        self._check_rows(X)
        return object_array(self._tags)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, an array (n_words, n_classes) for each sentence."""
        self._check_rows(X, more=True)
        return object_array([np.exp(rows) for rows in self._log_rows()])

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags."""
        return float(span_f1_score(y, self.predict(X), scheme=self.scheme_))
