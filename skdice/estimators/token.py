"""DiceTokenClassifier: tag every token of a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from skdice._compat import Interval, StrOptions
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
from skdice.metrics import span_f1_score
from skdice.metrics.schemes import SCHEMES, check_tags, infer_scheme
from skdice.text.decoding import decode
from skdice.text.encoding import encode_sentences
from skdice.text.inputs import as_sentences, as_tags, check_weights, object_array

__all__ = ["DiceTokenClassifier"]


class DiceTokenClassifier(TransformerEstimator):
    """Tag tokens with a fine-tuned transformer and a loss made for rare tags.

    Named entity recognition (IOB1, IOB2, BIOES, BMES, BILOU tags) and part-of-speech tagging
    (plain tags). Words are split into subwords and predicted at the first; sentences longer than
    the encoder are windowed, so every token gets a tag.

    Parameters
    ----------
    loss : str or Loss, default="dsc"
        ``"ce"``, ``"weighted_ce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``. Tag ``O`` is the background.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    max_length : int or None, default=None
        Longest window in subwords; None is what the backbone allows, 512 at most.
    stride : int or None, default=None
        Overlap of the windows of a long sentence, in subwords; None is a quarter of a window.
    label_all_subwords : bool, default=False
        Train on every subword of a word, and average their probabilities, instead of the first.
    scheme : {"auto", "iob1", "iob2", "bioes", "bmes", "bilou", "plain"}, default="auto"
        How the tags mark spans; auto reads it off `y`. A named scheme is checked.
    constrained : bool, default=False
        Decode with Viterbi so that the output is never ill-formed in `scheme`.
    max_epochs : int, default=3
    lr : float, default=1e-4
        Peak learning rate of AdamW. `fit` warns where it was so high that the encoder is lost.
    batch_size : int, default=32
        Sentences in a batch.
    gradient_accumulation : int, default=1
        Batches in one update. The update equals that of one batch of all their sentences, for
        set-level losses too, in the memory of one.
    max_grad_norm : float or None, default=1.0
        Clip the gradient to this norm.
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
        Autocast; auto is bf16 (else fp16) on CUDA and fp32 elsewhere.
    device : str, default="auto"
        auto is CUDA, then MPS, then the CPU.
    early_stopping : bool, default=False
        Stop when span F1 on validation sentences stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
        Share of the sentences held out when `early_stopping` and no `X_val` is given.
    n_iter_no_change : int, default=3
        Epochs without a better score before stopping.
    sampler : imbalanced-learn sampler or None, default=None
        Draws the sentences of each epoch of `fit` anew, after validation sentences were set aside:
        `skdice.resampling.TagOverSampler` or `BackgroundUnderSampler`.
    callbacks : list of skorch callbacks or None, default=None
        Not `LRScheduler`, as `schedule` sets the rate, nor those that score, as ``X_val`` of `fit`
        makes it record ``valid_score``.
    net_params : dict or None, default=None
        Further settings of the skorch net, such as ``{"optimizer": torch.optim.SGD}`` or
        ``{"optimizer__param_groups": [("head*", {"lr": 1e-3})]}``: parameters so named (the
        encoder's begin with ``encoder``) have these settings of the optimiser, and `schedule`
        scales their own rate.
    warm_start : bool, default=False
        Let `fit` go on from the weights of the last fit.
    random_state : int, RandomState or None, default=None
        Seeds the head, dropout and batches; the caller's generators are left alone.
    verbose : int, default=0
        Above 0, print a line an epoch.

    Attributes
    ----------
    classes_ : ndarray of str, shape (n_classes,)
    scheme_ : str
    net_ : FineTuningNet
        The trained skorch net.
    tokenizer_ : transformers tokenizer
    history_ : list of dict
        An epoch's ``train_loss``, ``lr``, ``dur`` (seconds) and, with validation, ``valid_score``.
    n_iter_ : int
        Epochs trained.

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

    _parameter_constraints = {
        **TransformerEstimator._parameter_constraints,
        "stride": [Interval(Integral, 0, None, closed="left"), None],
        "label_all_subwords": ["boolean"],
        "scheme": [StrOptions({"auto", *SCHEMES})],
        "constrained": ["boolean"],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "dsc",
        backbone: str = DEFAULT_BACKBONE,
        max_length: int | None = None,
        stride: int | None = None,
        label_all_subwords: bool = False,
        scheme: str = "auto",
        constrained: bool = False,
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
        self.backbone = backbone
        self.max_length = max_length
        self.stride = stride
        self.label_all_subwords = label_all_subwords
        self.scheme = scheme
        self.constrained = constrained
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

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fine-tune on tagged sentences.

        Parameters
        ----------
        X : list of lists of str
            Tokens; a sentence may be empty.
        y : list of lists of str
            One tag for each token.
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
        warm = self.warm_start and hasattr(self, "net_")
        self._check_params(builds=not warm)
        check_validation(X_val, y_val)
        sentences = as_sentences(X)
        tags = as_tags(y, sentences)
        weights = check_weights(sample_weight, len(sentences))
        validation = None
        if X_val is not None:
            val_sentences = as_sentences(X_val)
            validation = (val_sentences, as_tags(y_val, val_sentences))
        classes, scheme = self._learn_tags(tags, warm)
        if validation is not None:
            plain, shown = scheme == "plain", [tag for row in validation[1] for tag in row]
            check_known(_types(classes, plain), _types(shown, plain), "tags" if plain else "types")
        seed = draw_seed(self.random_state)
        if validation is None and self.early_stopping:
            keys = [tuple(sentence) for sentence in sentences]
            kept, held = split_indices(len(sentences), self.validation_fraction, seed, keys=keys)
            validation = ([sentences[i] for i in held], [tags[i] for i in held])
            sentences, tags = [sentences[i] for i in kept], [tags[i] for i in kept]
            weights = None if weights is None else weights[kept]
        if validation is not None and not any(t != "O" for row in validation[1] for t in row):
            warnings.warn("the validation sentences hold no entity: their F1 is 0", stacklevel=2)

        drawing = self._draw_epochs(tags, seed)

        if not warm:
            self._build(len(classes), pooling=None, seed=seed)
        self.classes_, self.scheme_ = classes, scheme
        self._continues = warm
        self._train_tags(sentences, tags, weights, seed, validation=validation, drawing=drawing)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Train one more epoch on these sentences, at the constant rate `lr`.

        What a loss makes of class counts, it makes of those of all calls since the last `fit`; its
        memory of earlier batches (`ema_decay`) goes on. `sampler` is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : list of str, default=None
            All tags that will ever be seen; needed on the first call unless `y` holds them all.

        Returns
        -------
        self
        """
        fresh = not hasattr(self, "net_")
        self._check_params(builds=fresh)
        sentences = as_sentences(X)
        tags = as_tags(y, sentences)
        weights = check_weights(sample_weight, len(sentences))
        seed = draw_seed(self.random_state)
        if fresh:
            every = [*tags, [str(c) for c in classes]] if classes is not None else tags
            learnt = self._learn_tags(every, warm=False)
            self._build(len(learnt[0]), pooling=None, seed=seed)
            self.classes_, self.scheme_ = learnt
        else:
            self._learn_tags(tags, warm=True)
        self._train_tags(sentences, tags, weights, seed, epochs=1)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Tags of every token.

        Parameters
        ----------
        X : list of lists of str

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of str, as long as its sentence.
        """
        log_probabilities = self._predict_log(X)
        return object_array(
            decode(
                log_probabilities, list(self.classes_), self.scheme_, constrained=self.constrained
            )
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the tags.

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each an array of shape (n_tokens, n_classes), in the order of `classes_`.
        """
        return object_array([np.exp(rows) for rows in self._predict_log(X)])

    def score(self, X: Any, y: Any) -> float:
        """Micro span F1; token micro F1 for plain tags.

        Raises
        ------
        ValueError
            If `y` holds an entity type (a tag, in the plain scheme) that `fit` did not see.
        """
        sentences = as_sentences(X)
        tags = as_tags(y, sentences)
        self._check_fitted()
        plain = self.scheme_ == "plain"
        known = {_type(tag, plain) for tag in self.classes_}
        for i, row in enumerate(tags):
            for tag in row:
                if tag != "O" and _type(tag, plain) not in known:
                    raise ValueError(
                        f"y[{i}] holds the tag {tag!r}, which fit did not see (classes_ = "
                        f"{self.classes_.tolist()}): leave such sentences out, or count them as "
                        "misses with span_f1_score(y, tagger.predict(X)) of skdice.metrics, in a "
                        "search over folds with scoring=span_f1_scorer"
                    )
        return self._score(sentences, tags)

    def frozen_vectors(self, X: Any, y: Any) -> tuple[np.ndarray, str]:
        """Vectors of every word before fine-tuning, without changing this tagger.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        vectors : ndarray of shape (n_words, hidden_size)
            The words of all sentences, one sentence after the other. Past 1 GiB a `numpy.memmap`
            in a temporary file.
        scheme : str
            Of the tags.
        """
        self._check_params()
        sentences = as_sentences(X)
        blank = clone(self).set_params(frozen="none")  # or its net had nothing to optimise
        classes, scheme = blank._learn_tags(as_tags(y, sentences), warm=False)
        blank._build(len(classes), pooling=None, seed=0)
        first = np.cumsum([0, *map(len, sentences)])
        table = empty_table(int(first[-1]), blank._module.encoder.config.hidden_size)
        for part in blocks(len(sentences)):
            # A word without a subword, such as a lone emoji modifier, has no vector of its own.
            table[first[part.start] : first[part.stop]] = 0
            dataset = blank._encode(sentences[part])
            for window, rows in zip(dataset.windows, blank._vectors(dataset), strict=True):
                table[first[part.start + window.row] + np.asarray(window.words)] = rows
        return table, scheme

    # ---- the steps

    def _learn_tags(self, tags: list[list[str]], warm: bool) -> tuple[np.ndarray, str]:
        """The classes and the scheme of `tags`, checked against a fit that is to go on."""
        classes = sorted({tag for row in tags for tag in row})
        if warm:
            unseen = set(classes) - set(self.classes_)
            if unseen:
                raise ValueError(
                    f"y holds tags that the first fit did not see: {sorted(unseen)}. Name all "
                    "tags in the first partial_fit(classes=...), or fit with warm_start=False"
                )
            return self.classes_, self.scheme_
        if len(classes) < 2:
            what = f"one class only ({classes[0]!r})" if classes else "no tag at all"
            raise ValueError(f"y holds {what}: a tagger needs tokens of 2 classes or more")
        scheme = infer_scheme(tags) if self.scheme == "auto" else self.scheme
        if self.scheme != "auto":
            check_tags(tags, scheme)
        return np.array(classes), scheme

    def _encode(
        self,
        sentences: list[list[str]],
        tags: list[list[str]] | None = None,
        weights: np.ndarray | None = None,
    ) -> EncodedDataset:
        windows = encode_sentences(
            self.tokenizer_,
            sentences,
            self._max_length(),
            stride=self.stride,
            all_subwords=self.label_all_subwords,
        )
        targets = None
        if tags is not None:
            index = {tag: i for i, tag in enumerate(self.classes_)}
            rows = [np.array([index[tag] for tag in row], dtype=np.int64) for row in tags]
            targets = [rows[window.row][window.words] for window in windows]
        if weights is not None:
            weights = weights[[window.row for window in windows]]
        return EncodedDataset(windows, targets, weights)

    def _train_tags(
        self,
        sentences: list[list[str]],
        tags: list[list[str]],
        weights: np.ndarray | None,
        seed: int,
        *,
        validation: tuple[list[list[str]], list[list[str]]] | None = None,
        drawing: Callable[[int], np.ndarray] | None = None,
        epochs: int | None = None,
    ) -> None:
        dataset = self._encode(sentences, tags, weights)
        assert dataset.targets is not None
        window_rows = np.array([window.row for window in dataset.windows])

        def windows(epoch: int) -> np.ndarray:
            assert drawing is not None
            drawn = drawing(epoch)
            first = np.searchsorted(window_rows, drawn, "left")
            last = np.searchsorted(window_rows, drawn, "right")
            return np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])

        # Weight 2 is the sentence twice, and drawn twice is, too.
        seen = range(len(dataset)) if drawing is None else windows(0)
        counts = np.zeros(len(self.classes_))
        shares = dataset.shares
        for i in seen:
            counts += shares[i] * np.bincount(dataset.targets[i], minlength=len(counts))
        background = np.flatnonzero(self.classes_ == "O")
        self._train(
            dataset,
            counts,
            int(background[0]) if len(background) else None,
            seed,
            validation_score=None if validation is None else lambda: self._score(*validation),
            rows_of_epoch=None if drawing is None else windows,
            epochs=epochs,
        )

    def _predict_log(self, X: Any) -> list[np.ndarray]:
        """Log-probabilities of shape (n_tokens, n_classes) for each sentence."""
        self._check_fitted()
        sentences = as_sentences(X)
        dataset = self._encode(sentences)
        tables = [np.empty((len(s), len(self.classes_))) for s in sentences]
        for window, logits in zip(dataset.windows, self.net_.logits(dataset), strict=True):
            rows = self._log_probabilities(logits)
            if self.label_all_subwords:
                words, first = np.unique(window.words, return_index=True)
                sizes = np.diff([*first, len(window.words)])
                mean = np.add.reduceat(np.exp(rows), first, axis=0) / sizes[:, None]
                tables[window.row][words] = np.log(mean)
            else:
                tables[window.row][window.words] = rows
        return tables

    def _fitted_state(self) -> dict[str, Any]:
        classes = self.classes_
        return {
            "classes": classes,
            "scheme": self.scheme_,
            "seen": self._seen,
            "n_outputs": len(classes),
            "pooling": None,
        }

    def _restore_fitted(self, state: dict[str, Any]) -> dict[str, Any]:
        self.classes_, self.scheme_ = np.array(state["classes"]), state["scheme"]
        self._seen = state.get("seen")
        return state

    def _score(self, sentences: list[list[str]], tags: list[list[str]]) -> float:
        return float(span_f1_score(tags, self.predict(sentences), scheme=self.scheme_))


def _type(tag: str, plain: bool) -> str:
    return tag if plain else tag.partition("-")[2]


def _types(tags: Iterable[str], plain: bool) -> set[str]:
    return {_type(str(tag), plain) for tag in tags if tag != "O"}
