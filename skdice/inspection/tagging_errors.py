"""Looking at what a tagger got wrong: a table of errors, and a confusion chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from skdice._checks import as_numbers, check_has, checked
from skdice._tables import frame_of
from skdice._types import Rows
from skdice.inputs.entities import read_entities
from skdice.inputs.sentences import as_sentences, read_tags, spans_of
from skdice.inputs.texts import as_single_texts, holds_texts
from skdice.inspection.axes import axes_or_new, label_of
from skdice.tags.pairing import Pair, kind_of, pairs_by_span
from skdice.tags.schemes import get_spans
from skdice.tags.spans import Span
from skdice.text.alignment import typed_spans

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("type", "start", "end")
# A terminal of 80 columns shows the first and the last: what is wrong, and not where.
COLUMNS = (
    *("row", "kind", "true_type", "sentence", "true_start", "true_end"),
    *("pred_start", "pred_end", "pred_type", "text"),
)
OF_X = ("sentence", "text")


@checked
def span_errors(
    y_true: Rows,
    y_pred: Rows,
    X: Rows | None = None,
    *,
    scheme: str = "auto",
) -> Any:
    """Every wrong or missing span, by the kind of its error.

    A predicted span is cut to its annotated tokens, those whose true tag is not None. Correct spans
    are removed first. Each other predicted span is then paired with at most one true
    span that it overlaps. Pairs with the same words come first, then pairs of the same type, then
    all others; within each group larger overlaps come first. Spans without a partner are missed or
    spurious.

    ========  =============================================
    kind      the predicted span
    ========  =============================================
    type      has the words of a true span, another type
    boundary  overlaps a true span of its type
    both      overlaps a true span of another type
    missed    is not there
    spurious  overlaps no true span that is left
    ========  =============================================

    Parameters
    ----------
    y_true, y_pred : lists of lists of str
        Tags of each sentence.
    X : list of lists of str or None, default=None
        Tokens, for the columns ``text`` and ``sentence``.
    scheme : str, default="auto"
        As in `skdice.metrics.span_f1_score`.

    Returns
    -------
    pandas.DataFrame or list of dict
        A row for each error: ``row`` (of the sentence), ``kind``, ``true_type``, ``true_start``,
        ``true_end``, ``pred_type``, ``pred_start``, ``pred_end`` (None where there is no span; ends
        are exclusive), and what `X` adds. A list where pandas is not installed.

    Raises
    ------
    ValueError, TypeError
        If the sentences do not match.

    References
    ----------
    I. Segura-Bedmar et al., "SemEval-2013 Task 9", SemEval 2013, for the kinds.

    Examples
    --------
    >>> from skdice.inspection import span_errors
    >>> errors = span_errors([["B-PER", "I-PER", "O"]], [["B-PER", "O", "B-LOC"]])
    >>> [(e.kind, e.pred_type) for e in errors.itertuples()]
    [('boundary', 'PER'), ('spurious', 'LOC')]
    """
    true, pred, scheme = read_tags(y_true, y_pred, scheme)
    sentences = None if X is None else as_sentences(X)
    if sentences is not None and [*map(len, sentences)] != [*map(len, true)]:
        raise ValueError(
            "X and y_true differ in sentences or in their lengths: give those of the same "
            "sentences, in the same order"
        )
    records = []
    for i, rows in enumerate(zip(true, pred, strict=True)):
        for pair in _errors(*(get_spans(row, scheme) for row in rows)):
            words = {} if sentences is None else _text(sentences[i], pair)
            records.append({**_record(i, *pair), **words})
    return frame_of(records, [c for c in COLUMNS if X is not None or c not in OF_X])


def _errors(true: list[Span], pred: list[Span]) -> list[Pair]:
    """The pairs of a sentence that are not right, by their place."""
    wrong = [pair for pair in pairs_by_span(true, pred) if pair[0] != pair[1]]
    return sorted(wrong, key=lambda pair: (pair[0] or pair[1] or ("", 0))[1])


def _record(row: int, right: Span | None, wrong: Span | None) -> dict[str, Any]:
    places = {
        f"{name}_{part}": value
        for name, span in (("true", right), ("pred", wrong))
        for part, value in zip(PARTS, span or (None, None, None), strict=True)
    }
    return {"row": row, "kind": kind_of(right, wrong), **places}


def _text(tokens: list[str], pair: Pair) -> dict[str, str]:
    """The words of the predicted span of an error, or of the missed one, and its sentence."""
    _, start, end = pair[1] or pair[0] or ("", 0, 0)
    return {"text": " ".join(tokens[start:end]), "sentence": " ".join(tokens)}


@checked
class SpanConfusionDisplay:
    """Confusion matrix of true and predicted types, with missed and spurious spans.

    Spans that overlap are paired as in `span_errors`, whether their borders agree or not.

    Parameters
    ----------
    counts : ndarray of int, shape (n_types + 1, n_types + 1)
        True types by predicted types; the last column is missed, the last row spurious.
    types : list of str

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`

    Examples
    --------
    >>> from skdice.inspection import SpanConfusionDisplay
    >>> display = SpanConfusionDisplay([[8, 2], [1, 0]], ["PER"])  # 2 missed, 1 spurious
    >>> int(display.counts.sum())
    11
    """

    def __init__(self, counts: Any, types: Sequence[str]) -> None:
        self.counts, self.types = as_numbers("counts", counts, 2).astype(np.int64), list(types)
        if self.counts.shape != (len(self.types) + 1,) * 2:
            raise ValueError(
                f"counts has shape {self.counts.shape} and types {len(self.types)} names: give one "
                "row and one column for each type, and one more"
            )

    @classmethod
    def from_estimator(cls, estimator: Any, X: Rows, y: Rows, *, ax: Axes | None = None) -> Self:
        """Draw what a fitted tagger or recognizer predicts for `X` against `y`."""
        check_has("estimator", estimator, "predict")
        if holds_texts(X):
            texts = as_single_texts(X)
            true, found = (spans_of_texts(texts, rows) for rows in (y, estimator.predict(texts)))
            return cls._of_spans(true, found).plot(ax=ax)
        return cls.from_predictions(y, estimator.predict(X), ax=ax)

    @classmethod
    @checked
    def from_predictions(
        cls, y_true: Rows, y_pred: Rows, *, scheme: str = "auto", ax: Axes | None = None
    ) -> Self:
        """Compare tags with tags, and draw.

        Parameters
        ----------
        y_true, y_pred : lists of lists of str
        scheme : str, default="auto"
        ax : matplotlib axes or None, default=None

        Examples
        --------
        >>> from skdice.inspection import SpanConfusionDisplay
        >>> display = SpanConfusionDisplay.from_predictions([["B-PER", "O"]], [["B-LOC", "B-PER"]])
        >>> display.counts.tolist()  # of LOC, PER and spurious
        [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
        """
        return cls._of_spans(*spans_of(y_true, y_pred, scheme)).plot(ax=ax)

    @classmethod
    def _of_spans(cls, true: list[list[Span]], pred: list[list[Span]]) -> Self:
        """The counts of spans against spans, not drawn yet."""
        types = sorted({span[0] for rows in (true, pred) for row in rows for span in row})
        index: dict[Any, int] = {name: i for i, name in enumerate(types)}
        counts = np.zeros((len(types) + 1, len(types) + 1), dtype=int)
        for there, found in zip(true, pred, strict=True):
            for right, wrong in pairs_by_span(there, found):
                at = [len(types) if span is None else index[span[0]] for span in (right, wrong)]
                counts[at[0], at[1]] += 1
        return cls(counts, types)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw shares of each true type, with the counts written in the cells."""
        size = 2.2 + 0.55 * len(self.types)
        ax = axes_or_new(ax, size + 1, size)
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for (i, j), count in np.ndenumerate(self.counts):
            if (i, j) != (len(self.types), len(self.types)):
                colour = "white" if shares[i, j] > 0.5 else "black"
                ax.text(j, i, str(count), ha="center", va="center", color=colour)
        places, names = range(len(self.types) + 1), [label_of(name) for name in self.types]
        ax.set_xticks(places, [*names, "missed"], rotation=45, ha="right")
        ax.set_yticks(places, [*names, "spurious"])
        ax.set(xlabel="predicted", ylabel="true", title="Spans")
        self.figure_, self.ax_ = ax.figure, ax
        return self


def spans_of_texts(texts: list[str], entities: Any) -> list[list[Span]]:
    """Entities as (type, start, end)."""
    return typed_spans(read_entities(entities, texts))
