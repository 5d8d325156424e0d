"""DiceTokenClassifier: tag every token of a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import HasMethods, Interval, StrOptions
from skdice._types import ArrayLike, Data, Rows, Sampler
from skdice.engine.vectors import blocks, frozen_vectors, unfitted_copy
from skdice.estimators._documented import documented
from skdice.estimators.evaluation import SpanScores
from skdice.estimators.transformer import TransformerEstimator
from skdice.inputs.rows import object_array
from skdice.losses import Loss
from skdice.metrics.calibration import SpanScales
from skdice.tags.schemes import SCHEMES
from skdice.tasks.tagging import Tagging


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceTokenClassifier(SpanScores, TransformerEstimator):
    """Tag tokens with a fine-tuned transformer and a loss made for rare tags.

    Named entity recognition (IOB1, IOB2, IOE1, IOE2, BIOES, BMES, BILOU tags) and part-of-speech
    tagging (plain tags). Words are split into subwords and predicted at the first; sentences longer
    than the encoder are windowed, so every token gets a tag.

    Parameters
    ----------
    loss : str or Loss
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``. Tag ``O`` is the background.
    stride : int or None
        Overlap of the windows of a long sentence, in subwords; None is a quarter of a window.
    scheme : {"auto", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bmes", "bilou", "plain"}
        How the tags mark spans. ``"auto"`` takes the scheme that the fewest tags of `y` break, and
        warns of those. A named scheme refuses them.
    constrained : bool
        Predict the best sequence that is well-formed in `scheme` (by Viterbi's algorithm), and not
        the best tag of each token alone. A pipeline of transformers does the latter.
    batch_size : int
        Sentences in a batch.
    early_stopping : bool
        Stop when span F1 on validation sentences stops rising, and restore the best epoch.
    sampler : imbalanced-learn sampler or None
        Resamples the sentences before each epoch of `fit`, after the validation sentences are set
        aside: `skdice.resampling.TagOverSampler` or `BackgroundUnderSampler`.

    Attributes
    ----------
    classes_ : ndarray of str, shape (n_classes,)
        In sorted order.
    scheme_ : str

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020.

    Examples
    --------
    >>> from skdice import DiceTokenClassifier
    >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
    >>> tagger = DiceTokenClassifier(loss="dsc", max_epochs=1, random_state=0)
    >>> tagger.fit(X, y).predict([["Bob", "sleeps"]]).shape
    (1,)
    """

    task: ClassVar[Tagging] = Tagging()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "sampler": [HasMethods("fit_resample"), None],
        "stride": [Interval(Integral, 0, None, closed="left"), None],
        "scheme": [StrOptions({"auto", *SCHEMES})],
        "constrained": ["boolean"],
    }

    loss: str | Loss = "ce"
    stride: int | None = None
    scheme: str = "auto"
    constrained: bool = True
    sampler: Sampler | None = None

    classes_: np.ndarray = field(init=False)
    scheme_: str = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("classes_", "scheme_")

    def fit(
        self,
        X: Rows,
        y: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Rows | None = None,
    ) -> Self:
        """Fine-tune on tagged sentences.

        Parameters
        ----------
        X : list of lists of str
            Tokens; a sentence may be empty.
        y : list of lists of str or None
            One tag for each token. A token whose tag is None was not annotated: it does not count
            in the loss, in counts of classes, or in scores.
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

        Warns
        -----
        TagSchemeWarning
            If tags break the scheme that fits `y` best; it names their number and the first.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Rows) -> np.ndarray:
        """Tags of every token.

        Parameters
        ----------
        X : list of lists of str

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of str, as long as its sentence.
        """
        return self._each(self.task.decide, X)

    def predict_proba(self, X: Rows) -> np.ndarray:
        """Probabilities of the tags.

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each an array of shape (n_tokens, n_classes), in the order of `classes_`.
        """
        blocks = self._row_outputs(self._known_inputs(X))
        return object_array([np.exp(table) for _, tables in blocks for table in tables])

    def predict_tagged(self, X: Rows) -> np.ndarray:
        """Tags and their spans at once, in half the time of `predict` and `predict_spans`.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of object, shape (n_rows,)
            Each a tuple: a list of str, one for each token, and a list of named tuples
            ``(type, start, end, score)``, in tokens.
        """
        return self._each(self.task.tagged, X)

    def _spans(self, X: Data) -> np.ndarray:
        return self._each(self.task.spans, X)

    def frozen_vectors(self, X: Rows) -> np.ndarray:
        """Vectors of every word before fine-tuning, without changing this tagger.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_words, hidden_size)
            The words of all sentences, one sentence after the other.
        """
        self._check_params()
        task, sentences = self.task, self.task.inputs(X)
        blank = unfitted_copy(self)
        sentences = task.sources(blank, sentences)
        first = np.cumsum([0, *task.n_words(sentences)])
        table = np.empty((int(first[-1]), blank.module_.encoder.config.hidden_size), np.float32)
        for part in blocks(len(sentences)):
            table[first[part.start] : first[part.stop]] = 0  # words that no window holds
            windows = task.encode(blank, sentences[part])
            for window, rows in zip(windows, frozen_vectors(blank, windows), strict=True):
                table[first[part.start + window.row] + np.asarray(window.words)] = rows
        return table

    # ---- files

    def _fitted_state(self) -> dict[str, Any]:
        state = super()._fitted_state()
        if hasattr(self, "span_scales_"):
            state["span_scales"] = vars(self.span_scales_)
        return state

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        super()._restore_fitted(state)
        if "span_scales" in state:
            self.span_scales_: SpanScales = SpanScales([])
            vars(self.span_scales_).update(state["span_scales"])
