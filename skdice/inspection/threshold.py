"""Precision, recall and F1 of a two-class decision against its threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.metrics import precision_recall_curve
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_has, same_length
from skdice.inspection.axes import draw_scores
from skdice.metrics.decisions.positive import positive_class
from skdice.metrics.labels import known_labels


class ThresholdDisplay:
    """Precision, recall and F1 at every threshold, with 0.5 and the best F1 marked.

    The best threshold on these rows is optimistic: tune it on other rows, as `BiasTunedClassifier`
    does.

    Parameters
    ----------
    threshold, precision, recall : arrays of shape (n_thresholds,)

    Attributes
    ----------
    f1 : ndarray of shape (n_thresholds,)
    figure_, ax_ : matplotlib figure and axes, after `plot`
    """

    def __init__(self, threshold: Any, precision: Any, recall: Any) -> None:
        names = ("threshold", "precision", "recall")
        self.threshold, self.precision, self.recall = same_length(
            names, (threshold, precision, recall)
        )
        total = self.precision + self.recall
        self.f1 = np.divide(
            2 * self.precision * self.recall, total, out=np.zeros(len(total)), where=total > 0
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, ax: Any = None
    ) -> Self:
        """Draw a fitted classifier of two classes.

        Parameters
        ----------
        estimator : fitted classifier with ``predict_proba``
        X, y : rows and their labels
        pos_label : label or None, default=None
            None is the estimator's positive class, or else its second.
        ax : matplotlib axes or None, default=None

        Raises
        ------
        ValueError
            If the estimator does not have two classes, or `pos_label` is not one of them.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from skdice import DiceClassifier
        >>> from skdice.inspection import ThresholdDisplay
        >>> X, y = make_classification(weights=[0.9], random_state=0)
        >>> model = DiceClassifier(loss="ce", max_epochs=3, random_state=0).fit(X, y)
        >>> display = ThresholdDisplay.from_estimator(model, X, y)
        >>> bool(0 < display.best < 1)
        True
        """
        check_has("estimator", estimator, "predict_proba")
        check_is_fitted(estimator)
        classes = np.asarray(estimator.classes_)
        if len(classes) != 2:
            raise ValueError(f"the estimator has {len(classes)} classes: a threshold needs two")
        at = int(getattr(estimator, "positive_", 1))
        if pos_label is not None:
            at = positive_class(classes, np.zeros(2), pos_label)
        labels = known_labels(y, classes)
        proba = np.asarray(estimator.predict_proba(X))[:, at]
        return cls.from_predictions(labels == classes[at], proba, ax=ax)

    @classmethod
    def from_predictions(cls, y_true: Any, y_proba: Any, *, ax: Any = None) -> Self:
        """Draw probabilities of the positive class.

        Parameters
        ----------
        y_true : array of bool or of 0 and 1, shape (n,)
        y_proba : array of shape (n,)
        ax : matplotlib axes or None, default=None

        Raises
        ------
        ValueError
            If there is no positive row, or the lengths differ.
        """
        y_true, y_proba = same_length(("y_true", "y_proba"), (y_true, y_proba))
        if not np.isin(y_true, (0, 1)).all():
            raise ValueError("y_true must hold 0 and 1 only, 1 for the positive rows")
        if not y_true.any():
            raise ValueError("y_true holds no positive row: there is no recall to draw")
        precision, recall, threshold = precision_recall_curve(y_true, y_proba)
        return cls(threshold, precision[:-1], recall[:-1]).plot(ax=ax)

    @property
    def best(self) -> float:
        """The lowest threshold with the highest F1; rows at or above it are positive."""
        return float(self.threshold[np.argmax(self.f1)])

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the three curves."""
        ax = draw_scores(self, ax, self.threshold, usual=0.5, xlabel="threshold", xlim=(0, 1))
        self.figure_, self.ax_ = ax.figure, ax
        return self
