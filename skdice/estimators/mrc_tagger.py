"""DiceMRCTagger: named entity recognition as reading comprehension (BERT-MRC)."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from skdice._compat import Interval
from skdice._types import ArrayLike, Rows
from skdice.estimators._documented import documented
from skdice.estimators.transformer import TransformerEstimator
from skdice.losses import Loss
from skdice.metrics import span_f1_score
from skdice.tasks.mrc_ner import MRC

# Candidates of `tune_threshold`, nearest to 0.5 first; it takes the first of the best.
_THRESHOLDS = sorted(expit(np.linspace(-4, 4, 33)).tolist(), key=lambda p: abs(p - 0.5))


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceMRCTagger(TransformerEstimator):
    """Tag entities by asking for each type: a query and the sentence are read together.

    For every word, one head predicts whether an entity of that type starts there, and one whether
    it ends there. A third predicts for every pair of words whether they are the borders of one
    entity. Entities may be nested.

    Parameters
    ----------
    loss : str or Loss
        Loss of each head, a binary problem over all words (pairs of words) of a batch.
    queries : dict or None
        Maps each entity type to the text that asks for it. None makes one from the type's name.
    answerable_weight : float
        Weight of a head that predicts whether a sentence holds the type at all, where the others
        have 1. Above 0, entities are only predicted where it predicts that.
    threshold : float
        A span is predicted where start, end and match are each more probable than this;
        `tune_threshold` chooses it on held-out sentences.
    max_span_length : int or None
        Longest candidate, in words. None is the longest entity in training.
    stride : int
        Overlap of the windows of a long sentence, in subwords. Less than a tagger's quarter of a
        window, because each window is read once for each type.
    max_length : int or None
        Longest input, query and sentence together, in subwords. None is what the backbone allows,
        512 at most.
    batch_size : int
        Pairs of query and sentence.
    early_stopping : bool
        Stop when span F1 on validation sentences stops rising, and restore the best epoch.

    Attributes
    ----------
    queries_ : dict
        From type to query, in the order of the types.
    scheme_ : str or None
        The scheme of the tags in training; None if spans were given, which are then predicted.
    max_span_length_ : int
    threshold_ : float
        `threshold`, or what `tune_threshold` chose.

    Notes
    -----
    Losses count words of the sentence only, never the query, special tokens or padding. A span's
    score is the geometric mean of the probabilities of its start, its end and the match.

    References
    ----------
    X. Li, J. Feng, Y. Meng, Q. Han, F. Wu, J. Li, "A Unified MRC Framework for Named Entity
    Recognition", ACL 2020.
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Section 4.2.

    Examples
    --------
    >>> from skdice import DiceMRCTagger
    >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
    >>> tagger = DiceMRCTagger(max_epochs=1, random_state=0).fit(X, y)
    >>> tagger.queries_
    {'LOC': 'find every location', 'PER': 'find every person'}
    >>> tagger.predict(X).shape
    (2,)
    """

    task: ClassVar[MRC] = MRC()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "queries": [dict, None],
        "answerable_weight": [Interval(Real, 0, 1e6, closed="both")],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
        "max_span_length": [Interval(Integral, 1, None, closed="left"), None],
        "stride": [Interval(Integral, 0, None, closed="left")],
    }

    loss: str | Loss = "dsc"
    queries: dict[str, str] | None = None
    answerable_weight: float = 0.0
    threshold: float = 0.5
    max_span_length: int | None = None
    stride: int = 32

    queries_: dict[str, str] = field(init=False)
    scheme_: str | None = field(init=False)
    max_span_length_: int = field(init=False)
    threshold_: float = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("queries_", "scheme_", "max_span_length_", "threshold_")

    def fit(
        self,
        X: Rows,
        y: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Rows | None = None,
    ) -> Self:
        """Fine-tune on sentences with entities.

        Parameters
        ----------
        X : list of lists of str
            Tokens.
        y : list of lists of str, or list of lists of (type, start, end)
            Tags, or spans in tokens with the end exclusive; spans may be nested.
        sample_weight : array of shape (n_sentences,), default=None
        X_val, y_val : as X and y, default=None
            Validation sentences: scored after each epoch, and used by `early_stopping`. Some of
            their types may be missing from `y`, but not all.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is loaded; the message names the sentence.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Rows) -> np.ndarray:
        """Tags as in training, or spans if training had spans.

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of tags without overlaps, or a list of (type, start, end).
        """
        return self._each(self.task.decide, X)

    def predict_spans(self, X: Rows) -> np.ndarray:
        """Spans above `threshold_`, with their scores.

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of named tuples ``(type, start, end, score)`` by position, ends exclusive.
            Trained on tags, spans do not overlap: the higher score wins. Trained on spans, they may
            be nested. The score is the geometric mean of the probabilities of start, end and match.
        """
        return self._each(self.task.spans, X)

    def predict_tagged(self, X: Rows) -> np.ndarray:
        """Return what `predict` gives, and the spans with their scores, at once.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a tuple of a row of `predict` and one of `predict_spans`.
        """
        return self._each(self.task.tagged, X)

    def tune_threshold(self, X: Rows, y: Rows) -> Self:
        """Choose `threshold_` for the F1 of spans on held-out sentences.

        Parameters
        ----------
        X, y : as in `fit`
            Sentences that `fit` has not seen, with entities.

        Returns
        -------
        self
            Its `threshold_` is the best of 33 probabilities whose log-odds go from -4 to 4; of
            several, the one nearest to 0.5. The next `fit` resets it.

        Raises
        ------
        ValueError, TypeError
            For bad data, or data without an entity.

        Examples
        --------
        >>> from skdice import DiceMRCTagger
        >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
        >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
        >>> tagger = DiceMRCTagger(max_epochs=1, random_state=0).fit(X, y)
        >>> before = tagger.score(X, y)
        >>> tagger.tune_threshold(X, y).score(X, y) >= before
        True
        """
        self._check_fitted()
        sentences, spans = self.task.read(self, X, y)
        if not any(spans):
            raise ValueError("y holds no entity at all: no threshold is better than another")
        candidates: list[Any] = []
        for _, windows in self._windows_with_logits(sentences):
            candidates += self.task.row_outputs(self, windows, min(_THRESHOLDS))
        scores = []
        for threshold in _THRESHOLDS:
            above = [[scored for scored in row if scored[2] > threshold] for row in candidates]
            rows = self.task.spans(self, sentences, above)
            scores.append(span_f1_score(spans, [[span[:3] for span in row] for row in rows]))
        self.threshold_ = _THRESHOLDS[int(np.argmax(scores))]  # the first of the best
        return self
