"""DiceSequenceClassifier: classify texts and pairs of texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from skdice._compat import HasMethods, StrOptions
from skdice.engine.arrays import BLOCK, empty_table
from skdice.engine.features import vectors_of_rows
from skdice.estimators.planning import frozen_vectors, unfitted_copy
from skdice.estimators.scores import ClassScores, decision_scores
from skdice.estimators.transformer import CHARACTERS, TransformerEstimator
from skdice.tasks.classification import Classification, decided
from skdice.text.inputs import check_width, object_array
from skdice.text.long_texts import Cuts
from skdice.text.subwords import text_blocks


@dataclass(kw_only=True, eq=False, repr=False)
class DiceSequenceClassifier(ClassScores, ClassifierMixin, TransformerEstimator):
    """Classify texts, or pairs of texts, with a fine-tuned transformer.

    Binary, multi-class and multi-label problems, with a loss made for rare positives.

    Parameters
    ----------
    loss : str or Loss, default="ce_dice"
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``.
    pos_label : label or None, default=None
        The positive class of a binary problem, whose F1 the overlap losses optimise. None is the
        label 1 of {0, 1} or {-1, 1}, and otherwise the rarer class. Inside a meta-estimator that
        numbers the labels (voting, stacking, bagging, one-vs-rest) give the number.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    pooling : {"mean", "cls", "max", "native"}, default="mean"
        How the encoder's hidden states become one vector. ``"native"`` is the architecture's own
        head in transformers, which can then load what `save_pretrained` writes.
    max_length : int or None, default=None
        Longest input, in subwords. None is what the backbone allows, 512 at most.
    long_texts : {"windows", "truncate"}, default="windows"
        What to do with texts and pairs above `max_length`. ``"windows"`` reads them in windows that
        overlap by a quarter; of a pair the second text, each with the first (at most half of a
        window). ``"truncate"`` leaves out the rest. Shorter texts are the same under both. On a
        fitted classifier it acts at once, as does `window_pooling`.
    window_pooling : {"max", "mean", "logsumexp"}, default="max"
        How the logits of windows become those of their text, in training too. Of two classes the
        log-odds of the positive one are pooled, so that one positive window makes a positive text;
        otherwise the logits of each class or label. ``"logsumexp"`` adds up the odds.
    max_epochs : int or "auto", default="auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
    lr : float or "auto", default="auto"
        Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen` and
        `adapter`. `fit` warns if it was so high that it spoiled the encoder.
    batch_size : int, default=32
    gradient_accumulation : int, default=1
        Batches per update: the same update as with one batch of all rows, in less memory.
    max_grad_norm : float or None, default=1.0
        The gradient is clipped to this norm; None does not clip.
    weight_decay : float, default=0.01
        Weight decay of the weight matrices. Biases and normalisation weights have none.
    schedule : {"linear", "constant", "cosine", "polynomial", "one_cycle"}, default="linear"
        How the learning rate changes after warm-up.
    warmup : float, default=0.1
        Share of the updates in which the learning rate rises.
    dropout : float, default=0.1
        Dropout before the head.
    frozen : {"none", "embeddings", "encoder"} or int, default="none"
        Parts not to train. An int freezes the embeddings and that many of the lowest layers.
    adapter : "lora", peft.PeftConfig or None, default=None
        Train only the head and small matrices beside the encoder's weights, which saves memory
        for large models. Needs the extra ``skdice[peft]``; see `merge_adapter`.
    gradient_checkpointing : bool, default=False
        Keep only each layer's input for the backward pass: half the memory for long texts.
    precision : {"auto", "fp32", "fp16", "bf16"}, default="auto"
        Number format of training and prediction. ``"auto"`` is bf16 on CUDA (fp16 on older GPUs).
        On a CPU it trains in bf16 if the processor is faster in it, and predicts in fp32. The last
        layer and the loss are always fp32. On a fitted estimator it acts at once, as do
        `device`, `batch_size` and `max_length`.
    device : str, default="auto"
        ``"auto"`` is CUDA, of several GPUs one for each process, else MPS, else the CPU.
    early_stopping : bool, default=False
        Stop when `score` on validation texts stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out by `early_stopping` if `fit` gets no validation data.
    n_iter_no_change : int or "auto", default="auto"
        Epochs without a better score before `early_stopping` ends the fit. ``"auto"``
        is a third of the epochs, but at least 3.
    sampler : imbalanced-learn sampler or None, default=None
        Resamples the texts before each epoch of `fit`, after the validation texts are set aside:
        `RandomOverSampler`, `RandomUnderSampler` or one of `skdice.resampling`.
    callbacks : list of skorch callbacks or None, default=None
        Callbacks for the skorch net. `LRScheduler` is refused: use `schedule`. Callbacks that score
        are refused: with ``X_val``, `fit` records ``valid_score``.
    net_params : dict or None, default=None
        Further settings of the skorch net, such as ``{"optimizer": torch.optim.NAdam}``. With
        ``{"optimizer__param_groups": [("head*", {"lr": 1e-3})]}`` the parameters of these names
        (the encoder's begin with ``encoder``) have their own settings; `schedule` scales the rate.
    warm_start : bool, default=False
        Start `fit` from the weights of the last fit. Rate and epochs are chosen as for a first fit.
    checkpoint_dir : str, Path or None, default=None
        Folder for checkpoints. A fit that was interrupted or killed resumes from the last one when
        `fit` is called again with the same data and parameters, and ends with the same weights.
        Each fit has its own subfolder. Needs an int `random_state`.
    checkpoint_every : int or str, default="60s"
        Updates, or seconds as in ``"60s"``, between checkpoints. The last two are kept.
    resume : {"auto", "never"}, default="auto"
        ``"never"`` deletes the checkpoints of this fit and starts over.
    random_state : int, RandomState or None, default=None
        Seeds the head, dropout and batches; the caller's generators are left alone.
    verbose : int, default=0
        Above 0, print rate and number of epochs, after the first updates how long the fit takes,
        and a line for each epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels. In a multi-label problem the names of the columns, or 0, 1, 2... without names.
    multilabel_ : bool
        Whether a text may have several labels, or none.
    n_features_in_ : int
        1 for texts, 2 for pairs.
    net_ : FineTuningNet
    tokenizer_ : transformers tokenizer
    history_ : list of dict
    n_iter_ : int
        Epochs trained.
    lr_ : float
        The peak learning rate of the last fit.
    max_epochs_ : int
        The number of epochs that it was to make.

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
        "window_pooling": [StrOptions({"max", "mean", "logsumexp"})],
    }

    pos_label: Any = None
    pooling: str = "mean"
    long_texts: str = "windows"
    window_pooling: str = "max"
    sampler: Any = None

    classes_: np.ndarray = field(init=False)
    multilabel_: bool = field(init=False)
    n_features_in_: int = field(init=False)
    positive_: int = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("classes_", "multilabel_", "n_features_in_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
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

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
        return decided(self, self._logits(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        return decision_scores(self, self._logits(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n, n_classes); rows sum to 1 unless multi-label."""
        logits = self._logits(X)
        return expit(logits) if self.multilabel_ else np.exp(log_softmax(logits, axis=1))

    def frozen_vectors(self, X: Any) -> np.ndarray:
        """Vectors of texts or pairs before fine-tuning, without changing this classifier.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, hidden_size)
            Of a text in several windows their mean, or with ``pooling="max"`` their maximum.
            Above 1 GiB it is a `numpy.memmap` in a temporary file.
        """
        self._check_params()
        texts, cuts, blank = self.task.inputs(X), Cuts(), unfitted_copy(self)
        pooling = "cls" if self.pooling == "native" else self.pooling
        table = empty_table(len(texts), blank.module_.encoder.config.hidden_size)
        for part in text_blocks(texts, BLOCK, CHARACTERS):
            windows = self.task.encode(blank, texts[part], cuts)
            vectors = frozen_vectors(blank, windows, pooling)
            table[part] = vectors_of_rows(vectors, windows.rows, pooling)
        blank._tell(cuts)
        return table

    def decisive_window(self, X: Any) -> np.ndarray:
        """The window of each text that decided, and where it stands.

        It is the one with the highest logit: of two classes for the positive one, whether or not
        that is predicted; of more classes for the predicted one; of several labels for each.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of object, shape (n,), or (n, n_labels) for several labels
            Named tuples (window, start, end, probability): the number of the window, its first and
            last character (end exclusive; of a pair in the second text), and the probability of the
            class by this window alone. A text that fits in `max_length` has one window.

        Examples
        --------
        >>> from skdice import DiceSequenceClassifier
        >>> X = ["win a free prize", "see you at lunch", "free money now", "the bus is late"]
        >>> clf = DiceSequenceClassifier(max_epochs=1, random_state=0).fit(X, [1, 0, 1, 0])
        >>> text = "it rains. " * 300 + "win a free prize"
        >>> (best,) = clf.decisive_window([text])
        >>> passage = text[best.start : best.end]
        """
        return self._decisive_windows(X)

    def _decisive_windows(self, X: Any, bias: Any = 0.0, temperature: float = 1.0) -> np.ndarray:
        """`decisive_window` of a decision that was tuned."""
        rows: list[Any] = []
        for _, windows in self._windows_with_logits(self._known_texts(X)):
            rows += self.task.decisive_windows(self, windows, bias, temperature)
        if self.multilabel_:
            return np.stack([object_array(row) for row in rows])
        return object_array([row[0] for row in rows])

    def _known_texts(self, X: Any) -> list[Any]:
        self._check_fitted()
        texts = self.task.inputs(X)
        check_width(texts, self.n_features_in_, self)
        return texts

    def _logits(self, X: Any) -> np.ndarray:
        """Logits of shape (n, n_classes)."""
        blocks = self._row_outputs(self._known_texts(X))
        return np.concatenate([np.stack(logits) for _, logits in blocks])
