"""DiceSequenceClassifier: classify texts and pairs of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.metrics import f1_score
from sklearn.utils import Tags

from skdice._compat import StrOptions
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine.arrays import blocks, empty_table
from skdice.engine.batching import EncodedDataset
from skdice.estimators._base import (
    TransformerEstimator,
    check_known,
    check_validation,
    draw_seed,
    split_indices,
)
from skdice.losses import Loss
from skdice.metrics import positive_class
from skdice.text.encoding import encode_texts
from skdice.text.inputs import as_labels, as_texts, check_weights, check_width

__all__ = ["DiceSequenceClassifier"]


class DiceSequenceClassifier(ClassifierMixin, TransformerEstimator):
    """Classify texts, or pairs of texts, with a fine-tuned transformer.

    Binary, multi-class and multi-label problems, with a loss made for rare positives.

    Parameters
    ----------
    loss : str or Loss, default="dsc"
        ``"ce"``, ``"weighted_ce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``.
    pos_label : label or None, default=None
        The positive class of a binary problem, whose F1 the overlap losses optimise. None is the
        label 1 of {0, 1} or {-1, 1}, and otherwise the rarer class. Inside a meta-estimator that
        numbers the labels (voting, stacking, bagging, one-vs-rest) give the number.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    pooling : {"mean", "cls", "max"}, default="mean"
        How the encoder's hidden states become one vector.
    max_length : int or None, default=None
        Subwords kept of a text or pair; None is what the backbone allows, 512 at most.
    max_epochs : int, default=3
    lr : float, default=1e-4
        Peak learning rate of AdamW. `fit` warns where it was so high that the encoder is lost.
    batch_size : int, default=32
    gradient_accumulation : int, default=1
        Batches in one update. The update equals that of one batch of all their texts, for
        set-level losses too, in the memory of one.
    max_grad_norm : float or None, default=1.0
    weight_decay : float, default=0.01
        Of weight matrices; biases and normalisation weights are spared.
    schedule : {"linear", "constant", "cosine", "polynomial", "one_cycle"}, default="linear"
    warmup : float, default=0.1
        Share of the updates in which the learning rate rises.
    dropout : float, default=0.1
        Before the head.
    frozen : {"none", "embeddings", "encoder"} or int, default="none"
        What is not trained; an int is the embeddings and that many of the lowest layers.
    precision : {"auto", "fp32", "fp16", "bf16"}, default="auto"
    device : str, default="auto"
    early_stopping : bool, default=False
        Stop when F1 on validation texts (of the positive class; macro for more classes) stops
        rising, and restore the best epoch.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=3
    sampler : imbalanced-learn sampler or None, default=None
        Draws the texts of each epoch of `fit` anew, after validation texts were set aside:
        `RandomOverSampler`, `RandomUnderSampler` or one of `skdice.resampling`.
    callbacks : list of skorch callbacks or None, default=None
        Not `LRScheduler`, as `schedule` sets the rate, nor those that score, as ``X_val`` of `fit`
        makes it record ``valid_score``.
    net_params : dict or None, default=None
        Further settings of the skorch net, such as ``{"optimizer": torch.optim.SGD}`` or
        ``{"optimizer__param_groups": [("head*", {"lr": 1e-3})]}``: parameters so named (the
        encoder's begin with ``encoder``) have these settings of the optimiser, and `schedule`
        scales their own rate.
    warm_start : bool, default=False
    random_state : int, RandomState or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    multilabel_ : bool
    n_features_in_ : int
        1 for texts, 2 for pairs.
    net_ : FineTuningNet
    tokenizer_ : transformers tokenizer
    history_ : list of dict
    n_iter_ : int

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

    _parameter_constraints = {
        **TransformerEstimator._parameter_constraints,
        "pos_label": "no_validation",  # type: ignore[dict-item]
        "pooling": [StrOptions({"mean", "cls", "max"})],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "dsc",
        pos_label: Any = None,
        backbone: str = DEFAULT_BACKBONE,
        pooling: str = "mean",
        max_length: int | None = None,
        max_epochs: int = 3,
        lr: float = 1e-4,
        batch_size: int = 32,
        gradient_accumulation: int = 1,
        max_grad_norm: float | None = 1.0,
        weight_decay: float = 0.01,
        schedule: str = "linear",
        warmup: float = 0.1,
        dropout: float = 0.1,
        frozen: str | int = "none",
        precision: str = "auto",
        device: str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        sampler: Any = None,
        callbacks: list[Any] | None = None,
        net_params: dict[str, Any] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.pos_label = pos_label
        self.backbone = backbone
        self.pooling = pooling
        self.max_length = max_length
        self.max_epochs = max_epochs
        self.lr = lr
        self.batch_size = batch_size
        self.gradient_accumulation = gradient_accumulation
        self.max_grad_norm = max_grad_norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.dropout = dropout
        self.frozen = frozen
        self.precision = precision
        self.device = device
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.sampler = sampler
        self.callbacks = callbacks
        self.net_params = net_params
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

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
        y : array of shape (n,), array or sparse matrix of shape (n, n_labels)
            Labels, or 0/1 rows for a multi-label problem.
        sample_weight : array of shape (n,), default=None
        X_val, y_val : as X and y, default=None
            Validation texts: scored after each epoch, and used by `early_stopping`. Some of their
            labels may be missing from `y`, but not all.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is loaded or trained.
        """
        warm = self.warm_start and hasattr(self, "net_")
        self._check_params(builds=not warm)
        check_validation(X_val, y_val)
        texts = as_texts(X)
        labels = as_labels(y, len(texts))
        weights = check_weights(sample_weight, len(texts))
        width = check_width(texts, self.n_features_in_ if warm else None, self)
        classes, multilabel = self._learn_labels(labels, warm)
        validation: tuple[list[Any], np.ndarray] | None = None
        if X_val is not None:
            val_texts = as_texts(X_val)
            check_width(val_texts, width, self, "X_val")
            val_labels = as_labels(y_val, len(val_texts))
            if val_labels.shape[1:] != labels.shape[1:]:
                raise ValueError(
                    f"y_val has shape {val_labels.shape} and y {labels.shape}: give labels of the "
                    "same kind, with a column for each label of a multi-label problem"
                )
            if not multilabel:
                check_known(classes.tolist(), val_labels.tolist(), "labels")
            validation = (val_texts, val_labels)
        seed = draw_seed(self.random_state)
        if validation is None and self.early_stopping:
            strata = None if multilabel else labels
            kept, held = split_indices(len(texts), self.validation_fraction, seed, strata, texts)
            validation = ([texts[i] for i in held], labels[held])
            texts, labels = [texts[i] for i in kept], labels[kept]
            weights = None if weights is None else weights[kept]
        drawing = self._draw_epochs(labels, seed)

        if not warm:
            self._build(len(classes), pooling=self.pooling, seed=seed)
        self.classes_, self.multilabel_ = classes, multilabel
        self.n_features_in_: int = width
        self._continues = warm
        self._train_labels(texts, labels, weights, seed, validation=validation, drawing=drawing)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Train one more epoch on these texts, at the constant rate `lr`.

        What a loss makes of class counts, it makes of those of all calls since the last `fit`; its
        memory of earlier batches (`ema_decay`) goes on. `sampler` is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array of shape (n_classes,), default=None
            All classes that will ever be seen; needed on the first call unless `y` holds them all.

        Returns
        -------
        self
        """
        fresh = not hasattr(self, "net_")
        self._check_params(builds=fresh)
        texts = as_texts(X)
        labels = as_labels(y, len(texts))
        weights = check_weights(sample_weight, len(texts))
        seed = draw_seed(self.random_state)
        if fresh:
            every = labels
            if classes is not None and labels.ndim == 1:
                every = as_labels([*labels.tolist(), *classes], len(labels) + len(classes))
            learnt = self._learn_labels(every, warm=False)
            self._build(len(learnt[0]), pooling=self.pooling, seed=seed)
            self.classes_, self.multilabel_ = learnt
            self.n_features_in_ = check_width(texts, None, self)
        else:
            check_width(texts, self.n_features_in_, self)
            self._learn_labels(labels, warm=True)
        self._train_labels(texts, labels, weights, seed, epochs=1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,), or 0/1 rows of shape (n, n_labels)."""
        logits = self._logits(X)
        if self.multilabel_:
            return (logits > 0).astype(int)
        return self.classes_[logits.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n, n_classes); rows sum to 1 unless multi-label."""
        logits = self._logits(X)
        return (
            self._sigmoid(logits) if self.multilabel_ else np.exp(self._log_probabilities(logits))
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        logits = self._logits(X).astype(np.float64)
        if not self.multilabel_ and len(self.classes_) == 2:
            return logits[:, 1] - logits[:, 0]
        return logits

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, as for every scikit-learn classifier (all labels right, if multi-label).

        Raises
        ------
        ValueError
            If `y` holds a label that `fit` did not see.
        """
        labels = as_labels(y, len(as_texts(X)))
        self._check_fitted()
        if not self.multilabel_:
            unseen = sorted(set(labels.tolist()) - set(self.classes_.tolist()), key=str)
            if unseen:
                raise ValueError(
                    f"y holds labels that fit did not see: {unseen} (classes_ = "
                    f"{self.classes_.tolist()}): leave them out, score the predictions with "
                    "sklearn.metrics, or give a search over folds a scorer, as in "
                    "scoring='f1_macro'"
                )
        return super().score(X, labels, sample_weight)

    def frozen_vectors(self, X: Any) -> np.ndarray:
        """Vectors of texts or pairs before fine-tuning, without changing this classifier.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n, hidden_size)
            Past 1 GiB a `numpy.memmap` in a temporary file.
        """
        self._check_params()
        texts = as_texts(X)
        blank = clone(self).set_params(frozen="none")  # or its net had nothing to optimise
        blank._build(2, pooling=self.pooling, seed=0)
        table = empty_table(len(texts), blank._module.encoder.config.hidden_size)
        for part in blocks(len(texts)):
            table[part] = blank._vectors(blank._encode(texts[part]))
        return table

    # ---- the steps

    def _learn_labels(self, labels: np.ndarray, warm: bool) -> tuple[np.ndarray, bool]:
        """The classes of `labels` and whether they are 0/1 rows."""
        multilabel = labels.ndim == 2
        classes = np.arange(labels.shape[1]) if multilabel else np.unique(labels)
        if warm:
            unseen = set(classes.tolist()) - set(self.classes_.tolist())
            if unseen or multilabel != self.multilabel_:
                raise ValueError(
                    f"y holds labels that the first fit did not see: {sorted(unseen, key=str)}. "
                    "Name all in the first partial_fit(classes=...), or fit with warm_start=False"
                )
            return self.classes_, self.multilabel_
        if len(classes) < 2 and not multilabel:
            raise ValueError(
                f"y holds one class only ({classes[0]!r}): a classifier needs 2 classes or more"
            )
        if not multilabel and self.pos_label is not None and len(classes) == 2:
            positive_class(classes, np.zeros(2), self.pos_label)
        return classes, multilabel

    def _encode(
        self, texts: list[Any], targets: np.ndarray | None = None, weights: Any = None
    ) -> EncodedDataset:
        windows = encode_texts(self.tokenizer_, texts, self._max_length())
        return EncodedDataset(windows, None if targets is None else list(targets), weights)

    def _train_labels(
        self,
        texts: list[Any],
        labels: np.ndarray,
        weights: np.ndarray | None,
        seed: int,
        *,
        validation: tuple[list[Any], np.ndarray] | None = None,
        drawing: Callable[[int], np.ndarray] | None = None,
        epochs: int | None = None,
    ) -> None:
        background = None
        # Weight 2 is the text twice, and drawn twice is, too.
        share = np.ones(len(labels)) if weights is None else weights
        if self.multilabel_:
            targets: Any = labels.astype(np.float32)
            counts = share @ targets
        else:
            targets = np.searchsorted(self.classes_, labels)
            counts = np.bincount(targets, share, minlength=len(self.classes_))
            if len(self.classes_) == 2:
                # Kept over warm starts, where new data may turn the majority round.
                kept = epochs is not None or self._continues
                if self.pos_label is not None or not (kept and hasattr(self, "positive_")):
                    self.positive_ = positive_class(self.classes_, counts, self.pos_label)
                background = 1 - self.positive_
            if drawing is not None:
                seen = drawing(0)
                counts = np.bincount(targets[seen], share[seen], minlength=len(self.classes_))
        self._train(
            self._encode(texts, targets, weights),
            counts,
            background,
            seed,
            multilabel=self.multilabel_,
            validation_score=None if validation is None else lambda: self._f1(*validation),
            rows_of_epoch=drawing,
            epochs=epochs,
        )

    def _logits(self, X: Any) -> np.ndarray:
        self._check_fitted()
        texts = as_texts(X)
        check_width(texts, self.n_features_in_, self)
        return np.stack(self.net_.logits(self._encode(texts)))

    def _f1(self, texts: list[Any], labels: np.ndarray) -> float:
        """F1 of the positive class; macro over more classes or labels."""
        predicted = self.predict(texts)
        if not self.multilabel_ and len(self.classes_) == 2:
            positive = self.classes_[self.positive_]
            return float(f1_score(labels == positive, predicted == positive, zero_division=0))
        return float(f1_score(labels, predicted, average="macro", zero_division=0))

    def _fitted_state(self) -> dict[str, Any]:
        state = {
            "classes": self.classes_,
            "multilabel": self.multilabel_,
            "n_outputs": len(self.classes_),
            "n_features_in": self.n_features_in_,
            "seen": self._seen,
            "pooling": self._module.pooling,
        }
        if hasattr(self, "positive_"):
            state["positive"] = self.positive_
        return state

    def _restore_fitted(self, state: dict[str, Any]) -> dict[str, Any]:
        self.classes_ = np.array(state["classes"])
        self.multilabel_ = state["multilabel"]
        self.n_features_in_ = state["n_features_in"]
        self._seen = state.get("seen")
        if "positive" in state:
            self.positive_ = state["positive"]
        return state
