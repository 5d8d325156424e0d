"""How classifiers and taggers are evaluated."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from skdice.metrics import span_precision_recall_fscore_support

__all__ = ["ClassScores", "TagScores"]

NAMES = ("precision", "recall", "f1")


class ClassScores:
    """Scores of classes, for estimators with `classes_` and, of two, `positive_`."""

    task: ClassVar[str] = "classification"

    classes_: np.ndarray
    positive_: int

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1: of the positive class of two, else macro, with the accuracy.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall`` and ``f1``, each from 0 to 1; of three classes or more, where
            each row has one, also ``accuracy``.
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

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the rows of `X`."""
        raise NotImplementedError

    def _positive_label(self) -> Any:
        """The positive class of two, and None of more and of a multi-label problem."""
        if len(self.classes_) != 2 or getattr(self, "multilabel_", False):
            return None
        return self.classes_.tolist()[self.positive_]


class TagScores:
    """Scores of spans, for estimators with `scheme_`."""

    task: ClassVar[str] = "tagging"

    scheme_: str

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

    def predict(self, X: Any) -> np.ndarray:
        """Tags of every token."""
        raise NotImplementedError
