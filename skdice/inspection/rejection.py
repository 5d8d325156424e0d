"""How many of the decided rows are wrong, against the share that is left to a person."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_range, checked, same_length, shown
from skdice._types import Data
from skdice.estimators.tuned.classifier import BiasTunedClassifier
from skdice.inputs.labels import UNKNOWN, known_labels
from skdice.inspection.axes import axes_or_new
from skdice.metrics.decisions.rejection import sureness


@checked
class RejectDisplay:
    """The error of the rows that are decided, against the share of the rows that are not.

    Rows are left to a person in the order of how near they are to another decision. The ring is the
    share that the fitted margin leaves out. Chow calls it the error-reject tradeoff.

    Parameters
    ----------
    rejected, error : arrays of shape (n_points,)
        Share of all rows that is left to a person, and share of the others that is decided wrong.
    chosen : float or None, default=None
        The share that the fitted decision leaves out.

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`

    Examples
    --------
    >>> from skdice.inspection import RejectDisplay
    >>> RejectDisplay([0.0, 0.5], [0.2, 0.1], chosen=0.5).error.tolist()
    [0.2, 0.1]
    """

    def __init__(self, rejected: Any, error: Any, *, chosen: float | None = None) -> None:
        names = ("rejected", "error")
        self.rejected, self.error = same_length(names, (rejected, error))
        if chosen is not None:
            check_range(0, 1, chosen=chosen)
        self.chosen = chosen

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, X: Data, y: Data, *, ax: Any = None) -> Self:
        """Draw a fitted `BiasTunedClassifier` on rows that it was not tuned on.

        Parameters
        ----------
        estimator : fitted `BiasTunedClassifier`
            Its biases are used whether or not it leaves rows out.
        X, y : rows and their labels
            Of several labels a row is right if all are. Rows whose labels are not all known are
            left out.
        ax : matplotlib axes or None, default=None

        Raises
        ------
        TypeError, NotFittedError
            If `estimator` is no fitted `BiasTunedClassifier`.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from skdice import BiasTunedClassifier, DiceClassifier
        >>> from skdice.inspection import RejectDisplay
        >>> X, y = make_classification(600, weights=[0.9], random_state=0)
        >>> inner = DiceClassifier(loss="ce", random_state=0)
        >>> tuned = BiasTunedClassifier(inner, reject=0.2, reject_label=-1).fit(X[:400], y[:400])
        >>> display = RejectDisplay.from_estimator(tuned, X[400:], y[400:])
        >>> bool(display.error[100] <= display.error[0])
        True
        """
        if not isinstance(estimator, BiasTunedClassifier):
            raise TypeError(f"estimator={shown(estimator)} must be a fitted BiasTunedClassifier")
        check_is_fitted(estimator)
        truth = known_labels(y, estimator.classes_, estimator.multilabel_, missing=True)
        check_consistent_length(X, truth)
        scores = estimator.decide(X) * estimator.temperature_
        if estimator.multilabel_:
            known = (truth != UNKNOWN).all(axis=1)
            if not known.any():
                raise ValueError("y has no row whose labels are all known: give such rows")
            truth, scores = truth[known], scores[known]
            right = ((scores > 0) == truth).all(axis=1)
        else:
            right = estimator.classes_[scores.argmax(axis=1)] == truth
        sure = sureness(scores, estimator.multilabel_)
        n, wrong = len(sure), ~right[np.argsort(sure, kind="stable")]
        left = np.arange(n)  # rows that are left to a person, all but one at most
        error = wrong[::-1].cumsum()[::-1] / (n - left)
        chosen = float((sure < estimator.reject_margin_).mean())
        return cls(left / n, error, chosen=chosen or None).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the curve."""
        ax = axes_or_new(ax, 4.4, 3.4)
        ax.plot(self.rejected, self.error)
        if self.chosen is not None:
            at = min(int(np.searchsorted(self.rejected, self.chosen)), len(self.error) - 1)
            point = self.rejected[at], self.error[at]
            ax.plot(*point, "o", color="black", fillstyle="none", markersize=9)
            ax.set_title("{:.0%} to a person, {:.1%} of the others wrong".format(*point))
        ax.set(xlabel="share left to a person", ylabel="share of the others decided wrong")
        ax.set(xlim=(0, 1), ylim=(0, None))
        ax.grid(alpha=0.25)
        self.figure_, self.ax_ = ax.figure, ax
        return self
