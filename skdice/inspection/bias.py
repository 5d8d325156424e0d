"""Precision, recall and F1 against a bias on one class's log-probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_has, checked, position, same_length
from skdice.inspection.axes import draw_scores, label_of
from skdice.metrics.classification import class_scores
from skdice.metrics.labels import known_labels
from skdice.metrics.span import span_precision_recall_fscore_support
from skdice.text.decoding import decode


@checked
class BiasDisplay:
    """Precision, recall and F1 against a bias of one class, with 0 and the best F1 marked.

    For a tuned estimator, 0 is the tuned decision. The best bias on these rows is optimistic: tune
    it on other rows, as `BiasTunedTagger` and `BiasTunedClassifier` do.

    Parameters
    ----------
    bias : array of shape (n_points,)
        Added to the log-probability of one class.
    precision, recall, f1 : arrays of shape (n_points,)
    label : str, default=""
        That class, for the axis.

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`
    """

    def __init__(self, bias: Any, precision: Any, recall: Any, f1: Any, label: str = "") -> None:
        names = ("bias", "precision", "recall", "f1")
        self.bias, self.precision, self.recall, self.f1 = same_length(
            names, (bias, precision, recall, f1)
        )
        self.label = label

    @classmethod
    @checked
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        label: Any = None,
        bias: Sequence[float] | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted tagger or classifier, with or without a tuned decision.

        Parameters
        ----------
        estimator : fitted tagger or classifier of skdice, tuned or not
        X, y : rows and their tags or labels
        label : label or None, default=None
            The class that gets the bias. None is ``O`` for a tagger, the positive class of two,
            and the first of three or more.
        bias : list of float or None, default=None
            None is 41 values from -4 to 4.
        ax : matplotlib axes or None, default=None

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If `label` is not one of its classes, or X and y do not match.

        Examples
        --------
        >>> from skdice import BiasTunedTagger, DiceTokenClassifier
        >>> from skdice.datasets import load_town_notes
        >>> from skdice.inspection import BiasDisplay
        >>> X, y = load_town_notes(subset="dev")
        >>> tagger = DiceTokenClassifier(max_epochs=1, frozen="encoder", random_state=0).fit(X, y)
        >>> tuned = BiasTunedTagger(tagger, cv="prefit").fit(X, y)
        >>> BiasDisplay.from_estimator(tuned, X, y, bias=[-1, 0, 1]).label
        'O'
        """
        check_has("estimator", estimator, "predict_proba")
        check_is_fitted(estimator)
        classes = np.asarray(estimator.classes_).tolist()
        if label is None and hasattr(estimator, "scheme_") and "O" in classes:
            label = "O"
        elif label is None:
            label = classes[int(getattr(estimator, "positive_", 0))]
        at = position("label", label, classes, "classes")
        values = np.linspace(-4, 4, 41) if bias is None else same_length(["bias"], [bias])[0]
        scores_of = (_of_tags if hasattr(estimator, "scheme_") else _of_labels)(estimator, X, y)
        of_class = (np.arange(len(classes)) == at) / getattr(estimator, "temperature_", 1.0)
        scores = [scores_of(value * of_class) for value in values]
        precision, recall, f1 = np.transpose(scores)
        return cls(values, precision, recall, f1, str(label)).plot(ax=ax)

    @property
    def best(self) -> float:
        """The bias with the highest F1; of several, the nearest to 0."""
        ties = np.flatnonzero(self.f1 == self.f1.max())
        return float(self.bias[ties[np.abs(self.bias[ties]).argmin()]])

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the three curves."""
        ax = draw_scores(self, ax, self.bias, usual=0, xlabel=f"bias of {label_of(self.label)}")
        self.figure_, self.ax_ = ax.figure, ax
        return self


def _of_tags(estimator: Any, X: Any, y: Any) -> Callable[[np.ndarray], Any]:
    """A function from the biases of all classes to precision, recall and F1 of spans."""
    with np.errstate(divide="ignore"):
        tables = [np.log(table) for table in estimator.predict_proba(X)]
    constrained = getattr(estimator, "estimator_", estimator).constrained
    scheme = estimator.scheme_

    def scores(bias: np.ndarray) -> Any:
        biased = [table + bias for table in tables]
        tags = decode(biased, estimator.classes_, scheme, constrained=constrained)
        return span_precision_recall_fscore_support(y, tags, average="micro", scheme=scheme)[:3]

    return scores


def _of_labels(estimator: Any, X: Any, y: Any) -> Callable[[np.ndarray], Any]:
    """The same for the positive class of two, or for the macro average of more."""
    classes = np.asarray(estimator.classes_)
    y = known_labels(y, classes)
    with np.errstate(divide="ignore"):
        log_p = np.log(estimator.predict_proba(X))
    positive = estimator.positive_ if len(classes) == 2 else None

    def scores(bias: np.ndarray) -> Any:
        labels = classes[(log_p + bias).argmax(axis=1)]
        return list(class_scores(y, labels, classes, positive).values())[:3]

    return scores
