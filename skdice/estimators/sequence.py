"""DiceSequenceClassifier: classify texts and pairs of texts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from skdice._checks import shown
from skdice._compat import HasMethods, StrOptions
from skdice.engine.arrays import BLOCK, empty_table
from skdice.engine.features import vectors_of_rows
from skdice.engine.module import EncoderWithHead, TaskModel
from skdice.engine.net import FineTuningNet
from skdice.engine.plan import Examples, FitPlan, Mode
from skdice.estimators.checks import check_known, check_occurring, draw_seed
from skdice.estimators.partial_fit import PartialFit
from skdice.estimators.scores import LogitScores
from skdice.estimators.storage import label_names
from skdice.estimators.transformer import CHARACTERS, TransformerEstimator
from skdice.estimators.windowed import WindowedTexts
from skdice.metrics import positive_class
from skdice.metrics.classification import class_scores
from skdice.metrics.labels import Labels, rarest_labels, read_labels
from skdice.text.inputs import as_texts, check_weights, check_width
from skdice.text.long_texts import Cuts
from skdice.text.subwords import text_blocks


@dataclass(kw_only=True, eq=False, repr=False)
class DiceSequenceClassifier(
    WindowedTexts, LogitScores, ClassifierMixin, PartialFit, TransformerEstimator
):
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

    def _plan(
        self,
        data: Examples,
        held: Examples | None,
        mode: Mode,
        classes: Any = None,
        epochs: int | None = None,
    ) -> FitPlan:
        """Learn the labels, set texts aside, load the backbone and encode."""
        known = None if mode == "fresh" else self.n_features_in_
        self.n_features_in_ = check_width(data.inputs, known, self)
        given = data.targets
        data = replace(data, targets=self._learn_labels(given, mode, classes))
        if held is not None:
            held = replace(held, targets=self._held_out_labels(held, given))
        seed, draws = draw_seed(self.random_state), None
        if epochs is None:
            strata = None if self.multilabel_ else data.targets
            data, held = self._hold_out(data, held, seed, strata)
            labels = data.targets
            if self.multilabel_:
                labels = rarest_labels(labels, self.classes_)
            draws = self._draw_epochs(labels, seed, mode)
        if mode == "fresh":
            self._build(len(self.classes_), seed=seed)
        targets, counts, n, background = self._count(
            data, None if draws is None else draws[0], mode
        )
        dataset = self._encode(data.inputs, targets, data.weights, cuts := Cuts())
        if held is not None:  # whose texts are scored after each epoch, without a warning
            self._windows(held.inputs, cuts)
        self._tell(cuts)
        criterion = self._prepared_loss(
            counts,
            n,
            mode,
            background=background,
            multilabel=self.multilabel_,
            classes=self.classes_,
        )
        return FitPlan(dataset=dataset, criterion=criterion, seed=seed, validation=held, rows=draws)

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
        texts, cuts = as_texts(X), Cuts()
        blank = self._draft()
        blank._build(2, seed=0)
        pooling = "cls" if self.pooling == "native" else self.pooling
        table = empty_table(len(texts), blank._module.encoder.config.hidden_size)
        for part in text_blocks(texts, BLOCK, CHARACTERS):
            windows = blank._windows(texts[part], cuts)
            table[part] = vectors_of_rows(blank._frozen(windows, pooling), windows.rows, pooling)
        blank._tell(cuts)
        return table

    def _needs_windows(self, texts: list[Any]) -> bool:
        """Whether a fit on these texts would read one of them in several windows."""
        blank = self._draft()
        blank._build(2, seed=0)
        return len(blank._windows(texts)) > len(texts)

    # ---- the steps

    def _check_params(self, mode: Mode = "fresh") -> None:
        super()._check_params(mode)
        if mode != "fresh" and self._has_task_model() != isinstance(self._module, TaskModel):
            raise ValueError(
                f"pooling={self.pooling!r} needs another head than the one that was fitted: fit "
                "with warm_start=False, or set pooling back"
            )

    def _has_task_model(self) -> bool:
        return self.pooling == "native"

    def _has_two_classes(self) -> bool:
        if not hasattr(self, "classes_"):  # a search asks before it fits
            return True
        return not self.multilabel_ and len(self.classes_) == 2

    def _assemble(self, encoder: Any, n_outputs: int) -> EncoderWithHead:
        last = encoder.config.model_type == "xlnet"
        return EncoderWithHead(encoder, n_outputs, self.dropout, self.pooling, cls_last=last)

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        net = super()._net_for(plan)
        if plan.mode == "warm" and isinstance(self._module, EncoderWithHead):
            self._module.pooling = self.pooling
        return net

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        texts = as_texts(X)
        labels = read_labels(y, len(texts))
        return Examples(texts, labels, check_weights(sample_weight, len(texts)))

    def _learn_labels(self, labels: Labels, mode: Mode, more: Any = None) -> np.ndarray:
        """Labels, or 0/1 rows in the order of `classes_`, which a new fit sets."""
        if mode != "fresh":
            return self._known_labels(labels)
        if more is not None:
            labels = labels.joined(more)
        classes, multilabel = labels.classes, labels.multilabel
        if len(classes) < 2 and not multilabel:
            raise ValueError(
                f"y holds one class only ({shown(classes[0])}): a classifier needs two or more"
            )
        if not multilabel and self.pos_label is not None and len(classes) == 2:
            positive_class(classes, np.zeros(2), self.pos_label)
        self.classes_, self.multilabel_ = classes, multilabel
        if multilabel and more is None:
            check_occurring(labels)
        return labels.values

    def _known_labels(self, labels: Labels) -> np.ndarray:
        """The labels of further training, all of them known from the first."""
        of_table = self.multilabel_ and labels.given == "table"  # without names
        unseen = set() if of_table else {*labels.classes.tolist()} - {*self.classes_.tolist()}
        if unseen or labels.multilabel != self.multilabel_:
            raise ValueError(
                f"y holds labels that the first fit did not see: {sorted(unseen, key=str)}. "
                "Name all in the first partial_fit(classes=...), or fit with warm_start=False"
            )
        return labels.among(self.classes_) if self.multilabel_ else labels.values

    def _held_out_labels(self, held: Examples, given: Labels) -> np.ndarray:
        """The labels of validation texts; refuses texts and labels of another kind than `given`."""
        check_width(held.inputs, self.n_features_in_, self, "X_val")
        labels: Labels = held.targets
        unlike = labels.multilabel != self.multilabel_
        if unlike or (labels.given == "table" and labels.values.shape[1] != len(self.classes_)):
            raise ValueError(
                f"y_val has shape {labels.values.shape} and y {given.values.shape}: give labels of "
                "the same kind, with a column for each label of a multi-label problem"
            )
        if self.multilabel_:
            return labels.among(self.classes_, "y_val")
        check_known(self.classes_.tolist(), labels.classes.tolist(), "labels")
        return labels.values

    def _count(
        self, data: Examples, drawn: np.ndarray | None, mode: Mode
    ) -> tuple[np.ndarray, np.ndarray, float, int | None]:
        """Targets, their number in each class and in all, and the background class of two."""
        # A text of weight 2 counts twice, as does a text that is drawn twice.
        share = np.ones(len(data)) if data.weights is None else data.weights
        rows = np.arange(len(data)) if drawn is None else drawn
        n = float(share[rows].sum())
        if self.multilabel_:
            targets: np.ndarray = data.targets.astype(np.float32)
            return targets, share[rows] @ targets[rows], n, None
        background, n_classes = None, len(self.classes_)
        targets = np.searchsorted(self.classes_, data.targets)
        counts = np.bincount(targets, share, minlength=n_classes)
        if n_classes == 2:
            # A warm start keeps the positive class, even if its data have another majority.
            if mode == "fresh" or self.pos_label is not None or not hasattr(self, "positive_"):
                self.positive_ = positive_class(self.classes_, counts, self.pos_label)
            background = 1 - self.positive_
        counts = np.bincount(targets[rows], share[rows], minlength=n_classes)
        return targets, counts, n, background

    def _validation_score(self, held: Examples) -> float:
        # Not `score`: some labels may be missing from those of training.
        predicted = self._decided(self._logits(held.inputs, tell=False))
        positive = self._positive_index()
        return class_scores(held.targets, predicted, self.classes_, positive)["f1"]

    def _fitted_of(self, config: Any) -> dict[str, Any]:
        names = label_names(config)
        state: dict[str, Any] = {"multilabel": False, "n_features_in": None}
        if config.problem_type == "multi_label_classification":
            numbered = names == [str(i) for i in range(len(names))]  # of 0/1 rows without names
            classes = list(range(len(names))) if numbered else names
            return {**state, "multilabel": True, "classes": classes}
        if len(names) == 2:
            positive = names[1] if self.pos_label is None else str(self.pos_label)
            state["positive"] = positive_class(np.array(sorted(names)), np.zeros(2), positive)
        return {**state, "classes": sorted(names), "order": np.argsort(names)}
