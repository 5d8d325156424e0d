"""Scores of classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skdice._fitting import of_one_fit
from skdice.metrics.classification import class_scores
from skdice.metrics.labels import known_labels
from skdice.tasks.classification import Classification, positive_index
from skdice.text.inputs import check_weights, object_array


def outputs_of(model: Any) -> np.ndarray:
    """The labels or tags that the columns of ``predict_proba`` stand for."""
    return model.outputs_ if hasattr(model, "outputs_") else model.classes_


class ClassScores:
    """Scores of classes, for estimators with `classes_` and, of two, `positive_`."""

    task: ClassVar[Classification] = Classification()

    classes_: np.ndarray
    positive_: int
    predict: Callable[[Any], np.ndarray]

    @of_one_fit
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """F1: of the positive class of two, macro for more classes, micro for several labels.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        float
            From 0 to 1. `evaluate` gives the accuracy too.

        Raises
        ------
        ValueError, TypeError
            If `y` holds a label that `fit` did not see, such as the string "1" beside the class 1.
        """
        return self._scores(X, y, sample_weight)["f1"]

    @of_one_fit
    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Precision, recall and F1 as in `score`, and accuracy.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall``, ``f1`` and ``accuracy``, each from 0 to 1. In a multi-label
            problem accuracy is the share of rows whose labels are all right, and there are
            ``f1_macro`` and, for each label, ``f1 of <label>``. If the decision was tuned for a
            cost, there is the ``cost`` of a row.

        Raises
        ------
        ValueError, TypeError
            As in `score`.
        """
        return self._scores(X, y)

    def _scores(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, float]:
        if not hasattr(self, "classes_"):
            check_is_fitted(self)
        labels = known_labels(y, self.classes_, getattr(self, "multilabel_", False))
        check_consistent_length(X, labels)
        weights, found = check_weights(sample_weight, len(labels)), self.predict(X)
        scores = class_scores(labels, found, self.classes_, positive_index(self), weights)
        return {**scores, **self.task.cost(self, X, labels, found)}

    @of_one_fit
    def predict_labels(self, X: Any) -> np.ndarray:
        """Predictions by name.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
            For each row of a multi-label problem a list of names, which may be empty; otherwise
            what `predict` gives.
        """
        predicted = self.predict(X)
        if not getattr(self, "multilabel_", False):
            return predicted
        return object_array([self.classes_[row > 0].tolist() for row in predicted])

    @property
    def measure_(self) -> str:
        """The words for what `evaluate` counts."""
        return self.task.measure(self)


def decision_scores(model: Any, logits: np.ndarray) -> np.ndarray:
    """Log-odds of ``classes_[1]`` of two classes, and logits of more classes or labels."""
    if len(model.classes_) > 2 or getattr(model, "multilabel_", False):
        return logits
    odds: np.ndarray = logits[:, 1] - logits[:, 0]
    return odds
