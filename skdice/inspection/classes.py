"""Class by class: how often each occurs, and how well it is found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

from skdice._checks import as_numbers, check_has, check_lengths, checked
from skdice._types import Data, Rows
from skdice.inputs.labels import is_indicator, known_labels, paired_labels, read_labels
from skdice.inputs.sentences import holds_tags, spans_of
from skdice.inspection.axes import axes_or_new, label_of
from skdice.inspection.class_balance import Imbalance, imbalance
from skdice.metrics.classification import precision_recall_f1

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Items = list[list[tuple[Any, ...]]]


def items_of(y_true: Any, y_pred: Any, scheme: str = "auto") -> tuple[Items, Items]:
    """The classes to count in each row: its label, the spans of its tags, or its spans.

    Takes labels, 0/1 rows, tags, or lists of (type, start, end). The class comes first in each
    item.
    """
    if is_indicator(y_true):
        names = read_labels(y_true, name="y_true").classes
        return items_of_several(y_true, y_pred, names, "y_true")
    if not holds_tags(y_true):
        labels = paired_labels(y_true, y_pred)
        true, pred = ([[(str(label),)] for label in part] for part in labels)
        check_lengths(y_true=true, y_pred=pred)
        return true, pred
    return spans_of(y_true, y_pred, scheme)


def items_of_several(
    y_true: Any, y_pred: Any, classes: np.ndarray, name: str = "y"
) -> tuple[Items, Items]:
    """The labels of each row, which may have several of `classes`."""
    names = [str(label) for label in classes.tolist()]
    given = {name: y_true, "y_pred": y_pred}
    rows = {what: known_labels(y, classes, True, what) for what, y in given.items()}
    check_lengths(**rows)
    true, pred = ([[(names[j],) for j in np.flatnonzero(r)] for r in t] for t in rows.values())
    return true, pred


def row_counts(true: Items, pred: Items) -> tuple[list[str], Any]:
    """The classes, and their counts in each row of `items_of`.

    The counts are a sparse matrix of shape (n_rows, 3 * n_classes): hits of all classes, then
    predictions, then true occurrences.
    """
    hits = [(Counter(t) & Counter(p)).elements() for t, p in zip(true, pred, strict=True)]
    counts = [[Counter(item[0] for item in row) for row in part] for part in (hits, pred, true)]
    vectorizer = DictVectorizer(dtype=np.int64).fit([row for part in counts for row in part])
    blocks = [vectorizer.transform(part) for part in counts]
    return vectorizer.feature_names_, sparse.hstack(blocks, format="csr")


def summed(counts: Any) -> np.ndarray:
    """Counts of `row_counts` over all rows, of shape (3, n_classes)."""
    return np.asarray(counts.sum(axis=0)).reshape(3, -1)


@checked
class ImbalanceDisplay:
    """Counts of each class on a logarithmic axis, with the background in grey.

    Parameters
    ----------
    imbalance : Imbalance

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`
    """

    def __init__(self, imbalance: Imbalance) -> None:
        check_has("imbalance", imbalance, "counts", "background")
        self.imbalance = imbalance

    @classmethod
    def from_labels(
        cls, y: Data, *, background: Any = "auto", multilabel: bool = False, ax: Axes | None = None
    ) -> Self:
        """Draw the labels or tags of a data set.

        Parameters
        ----------
        y, background, multilabel
            As in `skdice.inspection.imbalance`.
        ax : matplotlib axes or None, default=None

        Raises
        ------
        ValueError
            If `y` is empty or `background` is not in it.

        Examples
        --------
        >>> from skdice.inspection import ImbalanceDisplay
        >>> ImbalanceDisplay.from_labels(["ham"] * 9 + ["spam"]).imbalance.ratio
        9.0
        """
        return cls(imbalance(y, background=background, multilabel=multilabel)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw a bar for each class, the count beside it."""
        counts, background = self.imbalance.counts, self.imbalance.background
        ax = axes_or_new(ax, 6, 0.9 + 0.3 * len(counts))
        colours = ["#999999" if name == background else "#d55e00" for name in counts]
        bars = ax.barh(list(map(label_of, counts)), list(counts.values()), color=colours)
        ax.bar_label(bars, [f"{n:,}" for n in counts.values()], padding=3, fontsize=8)
        title = f"{self.imbalance.ratio:.1f} negatives for each positive"
        if background is None:
            title = "No background class"
        ax.set(xscale="log", xlabel=self.imbalance.unit, title=title)
        ax.margins(x=0.15)
        ax.invert_yaxis()
        self.figure_, self.ax_ = ax.figure, ax
        return self


@checked
class ClassFrequencyDisplay:
    """Precision and recall of each class against how often it occurs.

    A loss for rare classes shows its worth at the left edge.

    Parameters
    ----------
    classes : list of str
    counts : ndarray of int, shape (3, n_classes)
        Hits, predictions and true occurrences.

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`
    """

    def __init__(self, classes: Sequence[str], counts: Any) -> None:
        self.classes, self.counts = list(classes), as_numbers("counts", counts, 2).astype(np.int64)
        if self.counts.shape != (3, len(self.classes)):
            raise ValueError(
                f"counts has shape {self.counts.shape} and classes {len(self.classes)} names: give "
                "three rows of counts, with one for each class"
            )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Data, y: Data, *, ax: Axes | None = None) -> Self:
        """Draw what a fitted classifier or tagger predicts for `X` against `y`."""
        check_has("estimator", estimator, "predict")
        if getattr(estimator, "multilabel_", False):
            items = items_of_several(y, estimator.predict(X), estimator.classes_)
            classes, counts = row_counts(*items)
            return cls(classes, summed(counts)).plot(ax=ax)
        return cls.from_predictions(y, estimator.predict(X), ax=ax)

    @classmethod
    @checked
    def from_predictions(
        cls, y_true: Data, y_pred: Rows, *, scheme: str = "auto", ax: Axes | None = None
    ) -> Self:
        """Compare labels with labels, or the spans of tags with the spans of tags, and draw.

        Parameters
        ----------
        y_true, y_pred : labels of shape (n,), 0/1 rows of several, or lists of lists of str
        scheme : str, default="auto"
            Of tags, as in `skdice.metrics.span_f1_score`.
        ax : matplotlib axes or None, default=None

        Raises
        ------
        ValueError
            If they differ in the number of rows, or a sentence in the number of tags.

        Examples
        --------
        >>> from skdice.inspection import ClassFrequencyDisplay
        >>> display = ClassFrequencyDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
        >>> display.classes, display.counts.tolist()  # hits, predictions, true occurrences
        (['a', 'b'], [[1, 1], [2, 1], [1, 2]])
        """
        classes, counts = row_counts(*items_of(y_true, y_pred, scheme))
        return cls(classes, summed(counts)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw recall as dots, precision as triangles, and a line between the two of a class."""
        ax = axes_or_new(ax, 5.5, 3.6)
        shown = self.counts[2] > 0  # a class that never occurs has no place on the axis
        precision, recall, _ = precision_recall_f1(self.counts)[:, shown]
        frequency = self.counts[2][shown]
        ax.vlines(frequency, precision, recall, color="#bbbbbb", zorder=1)
        ax.plot(frequency, recall, "o", color="#0072b2", label="recall")
        ax.plot(frequency, precision, "^", color="#d55e00", label="precision")
        names = [name for name, kept in zip(self.classes, shown, strict=True) if kept]
        if len(names) <= 20:
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
            for place, i in enumerate(np.argsort(frequency, kind="stable")):
                # Alternately above and below: classes of like frequency stand side by side.
                end, away = (max, 9) if place % 2 == 0 else (min, -9)
                at = (frequency[i], end(precision[i], recall[i]))
                ax.annotate(label_of(names[i]), at, xytext=(0, away), fontsize=8, **look)
        ax.set(xscale="log", xlabel="true occurrences")
        ax.set(ylim=(-0.12, 1.15), title="By class frequency")
        if len(frequency):
            low, high = frequency.min() / 1.3, frequency.max() * 1.3
            steps = (1, 2, 5) if high < 1000 * low else (1,)
            ticks = [m * 10**k for k in range(12) for m in steps if low <= m * 10**k <= high]
            ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            ax.set_xticks([], minor=True)
            ax.set_xlim(low, high)
        ax.grid(alpha=0.25)
        ax.legend(fontsize=8, loc="lower right")
        self.figure_, self.ax_ = ax.figure, ax
        return self
