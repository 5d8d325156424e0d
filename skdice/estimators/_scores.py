"""How classifiers and taggers are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from skdice.metrics import span_precision_recall_fscore_support

NAMES = ("precision", "recall", "f1")


class ClassScores:
    """Scores of classes, for estimators with `classes_` and, of two, `positive_`."""

    task: ClassVar[str] = "classification"

    classes_: np.ndarray
    positive_: int
    predict: Callable[[Any], np.ndarray]

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1 of the positive class of two; macro for more, or multi-label.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall`` and ``f1``, each from 0 to 1; with three classes or more also
            ``accuracy``, unless the problem is multi-label.
        """
        predicted, positive = self.predict(X), self._positive_label()
        y = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        average = "macro"
        if positive is not None:
            y, predicted, average = y == positive, predicted == positive, "binary"
        values = precision_recall_fscore_support(y, predicted, average=average, zero_division=0)
        scores = dict(zip(NAMES, map(float, values[:3]), strict=True))
        if positive is None and y.ndim == 1:
            scores["accuracy"] = float(accuracy_score(y, predicted))
        return scores

    @property
    def measure_(self) -> str:
        """What `evaluate` counts."""
        positive = self._positive_label()
        return "classes, macro" if positive is None else f"class {positive!s}"

    def _positive_label(self) -> Any:
        """The positive class of two; None for more classes and multi-label problems."""
        if len(self.classes_) != 2 or getattr(self, "multilabel_", False):
            return None
        return self.classes_.tolist()[self.positive_]


class LogitScores(ClassScores):
    """Decisions of classifiers that compute logits, by `_logits`."""

    _logits: Callable[[Any], np.ndarray]

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
        logits = self._logits(X)
        if getattr(self, "multilabel_", False):
            return (logits > 0).astype(int)
        return self.classes_[logits.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        logits = self._logits(X)
        if len(self.classes_) > 2 or getattr(self, "multilabel_", False):
            return logits
        return logits[:, 1] - logits[:, 0]


class TagScores:
    """Scores of spans, for estimators with `scheme_`."""

    task: ClassVar[str] = "tagging"

    scheme_: str
    predict: Callable[[Any], np.ndarray]

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1 of spans, micro; of tokens for plain tags.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall`` and ``f1``, each from 0 to 1.
        """
        values = span_precision_recall_fscore_support(
            y, self.predict(X), average="micro", scheme=self.scheme_
        )
        return dict(zip(NAMES, map(float, values[:3]), strict=True))

    @property
    def measure_(self) -> str:
        """What `evaluate` counts."""
        return "tokens, micro" if self.scheme_ == "plain" else "spans, micro"
