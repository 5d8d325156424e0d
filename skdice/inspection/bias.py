"""Precision, recall and F1 against a bias on one class's log-probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skdice._checks import checked, position, same_length
from skdice.estimators.tuned.decision import Decision
from skdice.inspection.axes import draw_scores, label_of
from skdice.metrics.classification import precision_recall_f1
from skdice.metrics.decisions.held_out_rows import ClassRows, SpanRows


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
        decision = Decision.of(estimator, X, y)
        tuned, kind, rows = decision.tuned, decision.kind, decision.rows
        classes = np.asarray(tuned.classes_).tolist()
        if label is None and kind == "spans" and "O" in classes:
            label = "O"
        elif label is None:
            label = classes[int(tuned.positive_) if kind == "two" else 0]
        at = position("label", label, classes, "classes")
        values = np.linspace(-4, 4, 41) if bias is None else same_length(["bias"], [bias])[0]
        scores = []
        for value in values:
            moved = tuned.bias_ + value * (np.arange(len(classes)) == at)
            decisions = decision.decide(decision.in_rows(moved))
            if isinstance(rows, SpanRows):
                counts = rows.counter.counts(decisions)
            else:
                counts = rows.counts(decisions, [*range(rows.n_biases)])
            parts = (counts.hits, counts.predicted, counts.true)
            of_each = isinstance(rows, ClassRows)
            table = np.stack(parts if of_each else [[part] for part in counts.pooled])
            scores.append(precision_recall_f1(table).mean(axis=1))
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
