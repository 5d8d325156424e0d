"""Reliability diagrams: the scores of spans against the share that is right."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_has, checked, same_length
from skdice.inspection.axes import axes_or_new
from skdice.metrics import expected_calibration_error
from skdice.text.entity import read_entities
from skdice.text.inputs import as_sentences, as_single_texts, as_tags
from skdice.text.posterior import judged
from skdice.text.queries import as_entities


@checked
class SpanReliabilityDisplay:
    """The share of predicted spans that are right, against their scores.

    Calibrated scores lie on the diagonal: of the spans with scores near 0.8, four in five are
    right. `BiasTunedTagger` calibrates its scores on held-out sentences.

    Parameters
    ----------
    right : array of bool, shape (n_spans,)
        Whether each predicted span is there, with its type and borders.
    scores : array of shape (n_spans,)
        From 0 to 1, as ``predict_spans`` gives them.
    n_bins : int, default=10
        Bins of equal width.

    Attributes
    ----------
    mean_score, share_right : ndarray of shape (n_filled_bins,)
    counts : ndarray of int, shape (n_filled_bins,)
        Spans in each bin that holds any.
    error : float
        The expected calibration error, as in `skdice.metrics.expected_calibration_error`.
    figure_, ax_ : matplotlib figure and axes, after `plot`

    Examples
    --------
    >>> from skdice.inspection import SpanReliabilityDisplay
    >>> display = SpanReliabilityDisplay([True, True, False], [0.9, 0.9, 0.2])
    >>> display.counts.tolist(), display.share_right.tolist()
    ([1, 2], [0.0, 1.0])

    References
    ----------
    C. Guo et al., "On Calibration of Modern Neural Networks", ICML 2017.
    """

    def __init__(self, right: Any, scores: Any, n_bins: int = 10) -> None:
        right, scores = same_length(("right", "scores"), (right, scores))
        self.error = expected_calibration_error(right, scores, n_bins=n_bins)
        bins = np.minimum((scores * n_bins).astype(int), n_bins - 1)
        filled, self.counts = np.unique(bins, return_counts=True)
        self.mean_score, self.share_right = (
            np.bincount(bins, values)[filled] / self.counts for values in (scores, right)
        )

    @classmethod
    @checked
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None
    ) -> Self:
        """Draw the spans that a fitted tagger predicts for rows that it has not seen.

        Parameters
        ----------
        estimator : fitted tagger or recognizer
            With ``predict_spans``, tuned or not.
        X, y : as in its `score`
            A span that reaches into what nobody annotated, such as a tag of None, does not count.
        n_bins : int, default=10
        ax : matplotlib axes or None, default=None

        Raises
        ------
        ValueError
            If X and y do not match, or no span is predicted.

        Examples
        --------
        >>> from skdice import DiceTokenClassifier
        >>> from skdice.inspection import SpanReliabilityDisplay
        >>> X, y = [["dogs", "bark"], ["cats", "purr"]], [["NOUN", "VERB"]] * 2
        >>> tagger = DiceTokenClassifier(max_epochs=1, random_state=0).fit(X, y)
        >>> SpanReliabilityDisplay.from_estimator(tagger, X, y).counts.sum()
        np.int64(4)
        """
        check_has("estimator", estimator, "predict_spans")
        check_is_fitted(estimator)
        inputs: Any
        true: list[Any] = []
        scheme = getattr(estimator, "scheme_", None)
        task = getattr(getattr(estimator, "estimator_", estimator), "task", None)
        if task is not None and not task.has_words:
            inputs, scheme = as_single_texts(X), None
            for row in read_entities(y, inputs):
                true.append([(e.label, e.start, e.end) for e in row])
        else:
            inputs = as_sentences(X)
            true = as_entities(y, inputs)[0] if scheme is None else as_tags(y, inputs)
        rows = zip(estimator.predict_spans(inputs), true, strict=True)
        pairs = [pair for spans, row in rows for pair in judged(spans, row, scheme)]
        if not pairs:
            raise ValueError("no span is predicted for X: there is no score to draw")
        spans, right = zip(*pairs, strict=True)
        return cls(right, [span.score for span in spans], n_bins).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the bins, larger where they hold more spans."""
        ax = axes_or_new(ax, 3.8, 3.8)
        ax.plot([0, 1], [0, 1], color="#999999", linewidth=1)
        sizes = 15 + 150 * self.counts / self.counts.max()
        ax.plot(self.mean_score, self.share_right, linewidth=1)
        ax.scatter(self.mean_score, self.share_right, sizes)
        title = f"Calibration error {self.error:.3f}, {self.counts.sum():,} spans"
        ax.set(
            xlim=(0, 1), ylim=(0, 1.03), xlabel="score", ylabel="share of right spans", title=title
        )
        ax.grid(alpha=0.25)
        self.figure_, self.ax_ = ax.figure, ax
        return self
