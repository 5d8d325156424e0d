"""DiceTokenClassifier: tag every token of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax

from skdice._compat import HasMethods, Interval, StrOptions
from skdice._warn import warn
from skdice.engine.arrays import blocks, empty_table
from skdice.engine.batching import UNKNOWN, EncodedDataset
from skdice.engine.net import FineTuningNet
from skdice.engine.plan import Examples, FitPlan, Mode
from skdice.estimators.checks import check_known, draw_seed
from skdice.estimators.partial_fit import PartialFit
from skdice.estimators.scores import TagScores
from skdice.estimators.storage import label_names
from skdice.estimators.transformer import TransformerEstimator
from skdice.metrics.schemes import (
    SCHEMES,
    check_prefixes,
    check_tags,
    infer_scheme,
    refuse_strays,
    split_tag,
)
from skdice.text.decoding import decode
from skdice.text.encoding import Ragged, Window, Windows, encode_sentences
from skdice.text.inputs import as_names, as_sentences, as_tags, check_weights, object_array
from skdice.text.posterior import SpanScales


@dataclass(kw_only=True, eq=False, repr=False)
class DiceTokenClassifier(TagScores, PartialFit, TransformerEstimator):
    """Tag tokens with a fine-tuned transformer and a loss made for rare tags.

    Named entity recognition (IOB1, IOB2, IOE1, IOE2, BIOES, BMES, BILOU tags) and part-of-speech
    tagging (plain tags). Words are split into subwords and predicted at the first; sentences longer
    than the encoder are windowed, so every token gets a tag.

    Parameters
    ----------
    loss : str or Loss, default="ce_dice"
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``. Tag ``O`` is the background.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    max_length : int or None, default=None
        Longest window in subwords; None is what the backbone allows, 512 at most.
    stride : int or None, default=None
        Overlap of the windows of a long sentence, in subwords; None is a quarter of a window.
    label_all_subwords : bool, default=False
        Train on every subword of a word, and average their probabilities, instead of the first.
    scheme : {"auto", "iob1", "iob2", "ioe1", "ioe2", "bioes", "bmes", "bilou", "plain"}, \
default="auto"
        How the tags mark spans. ``"auto"`` takes the scheme that the fewest tags of `y` break, and
        warns of those. A named scheme refuses them.
    constrained : bool, default=True
        Predict the best sequence that is well-formed in `scheme` (by Viterbi's algorithm), and not
        the best tag of each token alone. A pipeline of transformers does the latter.
    max_epochs : int or "auto", default="auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
    lr : float or "auto", default="auto"
        Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen` and
        `adapter`. `fit` warns if it was so high that it spoiled the encoder.
    batch_size : int, default=32
        Sentences in a batch.
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
        Stop when span F1 on validation sentences stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out by `early_stopping` if `fit` gets no validation data.
    n_iter_no_change : int or "auto", default="auto"
        Epochs without a better score before `early_stopping` ends the fit. ``"auto"``
        is a third of the epochs, but at least 3.
    sampler : imbalanced-learn sampler or None, default=None
        Resamples the sentences before each epoch of `fit`, after the validation sentences are set
        aside: `skdice.resampling.TagOverSampler` or `BackgroundUnderSampler`.
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
    classes_ : ndarray of str, shape (n_classes,)
        In sorted order. Tags that `partial_fit` or a warm start adds come after those before.
    scheme_ : str
    net_ : FineTuningNet
        The trained skorch net.
    tokenizer_ : transformers tokenizer
    history_ : list of dict
        An epoch's ``train_loss``, ``lr``, ``dur`` (seconds) and, with validation, ``valid_score``.
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
    >>> from skdice import DiceTokenClassifier
    >>> X = [["Ann", "lives", "in", "Rome"], ["it", "rains"]]
    >>> y = [["B-PER", "O", "O", "B-LOC"], ["O", "O"]]
    >>> tagger = DiceTokenClassifier(loss="dsc", max_epochs=1, random_state=0)
    >>> tagger.fit(X, y).predict([["Bob", "sleeps"]]).shape
    (1,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "sampler": [HasMethods("fit_resample"), None],
        "stride": [Interval(Integral, 0, None, closed="left"), None],
        "label_all_subwords": ["boolean"],
        "scheme": [StrOptions({"auto", *SCHEMES})],
        "constrained": ["boolean"],
    }

    stride: int | None = None
    label_all_subwords: bool = False
    scheme: str = "auto"
    constrained: bool = True
    sampler: Any = None

    classes_: np.ndarray = field(init=False)
    scheme_: str = field(init=False)

    _saved: ClassVar[tuple[str, ...]] = ("classes_", "scheme_")

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
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
        UserWarning
            If tags break the scheme that fits `y` best; it names their number and the first.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def _plan(
        self,
        data: Examples,
        held: Examples | None,
        mode: Mode,
        classes: Any = None,
        epochs: int | None = None,
    ) -> FitPlan:
        """Learn the tags, set sentences aside, load the backbone and encode."""
        self._learn_tags(data.targets, mode, classes)
        if held is not None:
            self._check_known(held.targets)
        seed, draws = draw_seed(self.random_state), None
        if epochs is None:
            data, held = self._hold_out(data, held, seed)
            draws = self._draw_epochs(data.targets, seed, mode)
        if held is not None and not any(t not in ("O", None) for row in held.targets for t in row):
            warn("the validation sentences hold no entity: their F1 is 0")
        if mode == "fresh":
            self._build(len(self._outputs), seed=seed)
        dataset = self._encode(data.inputs, data.targets, data.weights)
        rows = None if draws is None else [_windows_of(dataset, drawn) for drawn in draws]
        targets, weights = dataset.flat_targets(None if rows is None else rows[0])
        known = targets != UNKNOWN
        counts = np.bincount(targets[known], weights[known], minlength=len(self._outputs))
        background = self._outputs.tolist().index("O") if "O" in self._outputs else None
        criterion = self._prepared_loss(
            counts, counts.sum(), mode, background=background, classes=self._outputs
        )
        old, new = np.split(self._seen[:-1], [self._module.output_layer.out_features])
        return FitPlan(
            dataset=dataset,
            criterion=criterion,
            seed=seed,
            validation=held,
            rows=rows,
            new_odds=((new + 1) / (old.sum() + len(old))).tolist(),
        )

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        self.__dict__.pop("span_scales_", None)  # they are of other weights
        net = super()._net_for(plan)
        if plan.new_odds:
            net.grow(plan.new_odds)
        return net

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
        return self._predicted_by(self, X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the tags.

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each an array of shape (n_tokens, n_classes), in the order of `classes_`.
        """
        return object_array([np.exp(table) for table in self._log_tables(X)])

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
        known = {self._kind(tag) for tag in self._outputs}
        for i, row in enumerate(tags):
            for tag in row:
                if tag not in ("O", None) and self._kind(tag) not in known:
                    raise ValueError(
                        f"y[{i}] holds the tag {tag!r}, which fit did not see (classes_ = "
                        f"{self.classes_.tolist()}): leave such sentences out, or count them as "
                        "misses with span_f1_score(y, tagger.predict(X)) of skdice.metrics, in a "
                        "search over folds with scoring=span_f1_scorer"
                    )
        return super().score(sentences, tags)

    def frozen_vectors(self, X: Any) -> np.ndarray:
        """Vectors of every word before fine-tuning, without changing this tagger.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_words, hidden_size)
            The words of all sentences, one sentence after the other. Above 1 GiB it is a
            `numpy.memmap` in a temporary file.
        """
        self._check_params()
        sentences = self._inputs(X)
        blank = self._draft()
        blank._build(2, seed=0)
        first = np.cumsum([0, *blank._sizes(sentences)])
        table = empty_table(int(first[-1]), blank._module.encoder.config.hidden_size)
        for part in blocks(len(sentences)):
            # A word without a subword, such as a lone emoji modifier, has no vector of its own.
            table[first[part.start] : first[part.stop]] = 0
            windows = blank._windows(sentences[part])
            for window, rows in zip(windows, blank._frozen(windows), strict=True):
                table[first[part.start + window.row] + np.asarray(window.words)] = rows
        return table

    # ---- the steps

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        sentences = as_sentences(X)
        tags = as_tags(y, sentences)
        return Examples(sentences, tags, check_weights(sample_weight, len(sentences)))

    def _learn_tags(self, tags: list[list[Any]], mode: Mode, more: Any = None) -> None:
        """Set classes and scheme, or check `tags` against those of the last fit."""
        named = [] if more is None else as_names("classes", more)
        classes = sorted({tag for row in [*tags, named] for tag in row} - {None})
        if mode != "fresh":
            before = self._outputs.tolist()
            new = [tag for tag in classes if tag not in before]
            if self.scheme_ != "plain":
                refuse_strays(tags)
                check_prefixes(named, self.scheme_, "classes")
                check_prefixes(new, self.scheme_)
            if self.scheme != "auto":
                check_tags(tags, self.scheme_)
            self._set_outputs(np.array(before + new))
            return
        if len(classes) < 2:
            what = f"one class only ({classes[0]!r})" if classes else "no tag at all"
            raise ValueError(f"y holds {what}: a tagger needs tokens of 2 classes or more")
        auto = self.scheme == "auto"
        scheme = infer_scheme(tags, named) if auto else self.scheme
        check_tags(tags, scheme, refuse=not auto)
        self._set_outputs(np.array(classes))
        self.scheme_ = scheme

    def _set_outputs(self, tags: np.ndarray) -> None:
        self.classes_ = tags

    def _check_known(self, rows: list[list[Any]]) -> None:
        """Refuse validation tags if training holds none of their types."""
        if self.scheme_ != "plain":
            refuse_strays(rows, "y_val")
        known, held = (
            {self._kind(tag) for tag in tags if tag not in ("O", None)}
            for tags in (self._outputs.tolist(), chain(*rows))
        )
        check_known(known, held, "tags" if self.scheme_ == "plain" else "types")

    def _kind(self, tag: str) -> str:
        """The entity type of a tag; in the plain scheme the tag itself."""
        return tag if self.scheme_ == "plain" else split_tag(tag)[1]

    def _windows(self, sentences: list[Any]) -> Windows[Window]:
        return encode_sentences(
            self.tokenizer_,
            sentences,
            self._max_length(),
            stride=self.stride,
            all_subwords=self.label_all_subwords,
        )

    def _targets(self, windows: Windows[Any], tags: list[list[Any]]) -> Ragged:
        index = {tag: i for i, tag in enumerate(self._outputs.tolist())}
        index[None] = UNKNOWN
        words, kind = windows.columns["words"], np.min_scalar_type(-max(len(index), -UNKNOWN))
        rows = zip(windows.rows.tolist(), words, strict=True)
        targets = (index[tags[row][word]] for row, kept in rows for word in kept.tolist())
        return Ragged(np.fromiter(targets, kind, len(words.values)), words.sizes)

    def _decode(self, log_p: Iterable[np.ndarray]) -> list[list[str]]:
        classes = self._outputs.tolist()
        return decode(log_p, classes, self.scheme_, constrained=self.constrained)

    def _log_tables(self, X: Any) -> Iterator[np.ndarray]:
        self._check_fitted()
        return map(self._log_table, self._predicted(self._inputs(X)))

    def _inputs(self, X: Any) -> list[Any]:
        """The checked rows of X."""
        return as_sentences(X)

    def _sizes(self, inputs: list[Any]) -> Iterable[int]:
        """The number of words of each row."""
        return map(len, inputs)

    def _log_table(self, windows: Any) -> np.ndarray:
        """Log-probabilities of shape (n_tokens, n_classes)."""
        n_words = int(windows[-1][0].words[-1]) + 1 if windows else 0
        table = np.empty((n_words, len(self._outputs)))
        for window, logits in windows:
            rows = log_softmax(logits, axis=-1)
            if self.label_all_subwords:
                words, first = np.unique(window.words, return_index=True)
                sizes = np.diff([*first, len(window.words)])
                mean = np.add.reduceat(np.exp(rows), first, axis=0) / sizes[:, None]
                table[words] = np.log(mean)
            else:
                table[window.words] = rows
        return table

    def _fitted_state(self) -> dict[str, Any]:
        state = super()._fitted_state()
        if hasattr(self, "span_scales_"):  # of a tuned decision
            state["span_scales"] = vars(self.span_scales_)
        return state

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        super()._restore_fitted(state)
        if "span_scales" in state:
            self.span_scales_ = SpanScales([])
            vars(self.span_scales_).update(state["span_scales"])

    def _fitted_of(self, config: Any) -> dict[str, Any]:
        names = label_names(config)
        scheme = infer_scheme([], names) if self.scheme == "auto" else self.scheme
        return {"classes": sorted(names), "scheme": scheme, "order": np.argsort(names)}


def _windows_of(dataset: EncodedDataset, drawn: np.ndarray) -> np.ndarray:
    """The windows of the sentences that were drawn."""
    first, last = (np.searchsorted(dataset.windows.rows, drawn, side) for side in ("left", "right"))
    return np.concatenate([np.arange(*ends) for ends in zip(first, last, strict=True)])
