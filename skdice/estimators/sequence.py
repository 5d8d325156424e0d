"""DiceSequenceClassifier: classify texts and pairs of texts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import HasMethods, StrOptions
from skdice._types import ArrayLike, Data, Rows, Sampler
from skdice.engine.vectors import BLOCK, frozen_vectors, unfitted_copy, vectors_of_rows
from skdice.estimators._documented import documented
from skdice.estimators.evaluation import FromLogits
from skdice.estimators.transformer import CHARACTERS, TransformerEstimator
from skdice.inputs.texts import check_width
from skdice.tasks.classification import Classification
from skdice.text.encoding import text_blocks
from skdice.text.long_texts import Cuts


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceSequenceClassifier(FromLogits, TransformerEstimator):
    """Classify texts, or pairs of texts, with a fine-tuned transformer.

    Binary, multi-class and multi-label problems, with a loss made for rare positives.

    Parameters
    ----------
    pooling : {"mean", "cls", "max", "native"}
        How the encoder's hidden states become one vector. ``"native"`` is the architecture's own
        head in transformers, which can then load what `save_pretrained` writes.
    max_length : int or None
        Longest input, in subwords. None is what the backbone allows, 512 at most.
    long_texts : {"windows", "truncate"}
        What to do with texts and pairs above `max_length`. ``"windows"`` reads them in windows that
        overlap by a quarter; of a pair the second text, each with the first (at most half of a
        window). ``"truncate"`` leaves out the rest. Shorter texts are the same under both. On a
        fitted classifier it acts at once, as does `window_pooling`.
    window_pooling : {"max", "mean"}
        How the logits of windows become those of their text, in training too. Of two classes the
        log-odds of the positive one are pooled, so that one positive window makes a positive text;
        otherwise the logits of each class or label.
    max_epochs : int or "auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. Of two classes it takes fewer, until the
        rarer one was seen some 100 times. See :doc:`/guide/recipe`.
    sampler : imbalanced-learn sampler or None
        Resamples the texts before each epoch of `fit`, after the validation texts are set aside:
        `RandomOverSampler`, `RandomUnderSampler` or one of `skdice.resampling`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels. In a multi-label problem the names of the columns, or 0, 1, 2... without names.
    multilabel_ : bool
        Whether a text may have several labels, or none.
    n_features_in_ : int
        1 for texts, 2 for pairs.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020.

    Examples
    --------
    >>> from skdice import DiceSequenceClassifier
    >>> X = ["win a free prize", "see you at lunch", "free money now", "the bus is late"]
    >>> clf = DiceSequenceClassifier(loss="dsc", max_epochs=1, random_state=0)
    >>> clf.fit(X, ["spam", "ham", "spam", "ham"]).predict_proba(X).shape
    (4, 2)
    """

    task: ClassVar[Classification] = Classification()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "sampler": [HasMethods("fit_resample"), None],
        "pos_label": "no_validation",
        "pooling": [StrOptions({"mean", "cls", "max", "native"})],
        "long_texts": [StrOptions({"windows", "truncate"})],
        "window_pooling": [StrOptions({"max", "mean"})],
    }

    pos_label: Hashable | None = None
    pooling: str = "mean"
    long_texts: str = "windows"
    window_pooling: str = "max"
    sampler: Sampler | None = None

    classes_: np.ndarray = field(init=False)
    multilabel_: bool = field(init=False)
    n_features_in_: int = field(init=False)
    positive_: int = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("classes_", "multilabel_", "n_features_in_")

    def fit(
        self,
        X: Rows,
        y: Data,
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Data | None = None,
    ) -> Self:
        """Fine-tune on labelled texts.

        Parameters
        ----------
        X : list of str or of pairs, array of shape (n,), (n, 1) or (n, 2), Series or frame
        y : array of shape (n,), or array, sparse matrix or frame of shape (n, n_labels), or lists
            Labels; or for a multi-label problem 0/1 rows, or a list, tuple or set of names for each
            text. `predict` then gives 0/1 rows in the order of ``classes_``, and `predict_labels`
            the names.
        sample_weight : array of shape (n,), default=None
        X_val, y_val : as X and y, default=None
            Validation texts: scored after each epoch, and used by `early_stopping`. Some of their
            labels may be missing from `y`, but not all; of a multi-label problem none.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is loaded or trained.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def frozen_vectors(self, X: Rows) -> np.ndarray:
        """Vectors of texts or pairs before fine-tuning, without changing this classifier.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, hidden_size)
            Of a text in several windows their mean, or with ``pooling="max"`` their maximum.
        """
        self._check_params()
        texts, cuts, blank = self.task.inputs(X), Cuts(), unfitted_copy(self)
        pooling = "cls" if self.pooling == "native" else self.pooling
        table = np.empty((len(texts), blank.module_.encoder.config.hidden_size), np.float32)
        for part in text_blocks(texts, BLOCK, CHARACTERS):
            windows = self.task.encode(blank, texts[part], cuts)
            vectors = frozen_vectors(blank, windows, pooling)
            table[part] = vectors_of_rows(vectors, windows.rows, pooling)
        blank._tell(cuts)
        return table

    def _logits(self, X: Data) -> np.ndarray:
        """Logits of shape (n, n_classes)."""
        texts = self._known_inputs(X)
        check_width(texts, self.n_features_in_, self)
        blocks = self._row_outputs(texts)
        none = np.empty((0, len(self.classes_)))  # there may be no text
        return np.concatenate([none, *(np.stack(logits) for _, logits in blocks)])
