"""DiceQuestionAnswerer: find the answer to a question in its context."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax

from skdice._checks import checked
from skdice._compat import Interval, StrOptions
from skdice.estimators.transformer import TransformerEstimator
from skdice.losses import Loss
from skdice.tasks.qa import Reading
from skdice.text.answers import read_answers
from skdice.text.inputs import object_array
from skdice.text.spans import Candidate


@dataclass(kw_only=True, eq=False, repr=False)
class DiceQuestionAnswerer(TransformerEstimator):
    """Extractive question answering with a fine-tuned transformer.

    The start and the end of an answer are each a problem of one token against all others of the
    context (56 to 1 in SQuAD 1.1, 82 to 1 in 2.0, by the paper's Table 1), which is what the
    overlap losses are for. A token's probability is a softmax over the positions of its window, as
    in BERT; ``loss="ce"`` is the usual cross-entropy of the true positions.

    Parameters
    ----------
    loss : str or Loss, default="dsc"
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    max_length : int or None, default=None
        Longest window, in subwords: question, part of the context, special tokens. None is 384, or
        what the backbone allows if that is less.
    stride : int, default=128
        Overlap of neighbouring windows, in subwords of the context. At most half of those that fit.
    max_question_length : int, default=64
        Longest question, in subwords. The rest is cut.
    max_answer_length : int, default=30
        Longest answer that is predicted, in subwords.
    null_threshold : "auto" or float, default="auto"
        "No answer" is predicted if its score is above the best answer's by more than this.
        ``"auto"`` tunes it for F1 on the validation questions if some of them have no answer, and
        is 0 otherwise. Without unanswerable training questions every question is answered.
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What to do with an answer that its context does not hold at its start: an error; leave
        answer and question out; or take the nearest place that holds it.
    language : {"en", "zh"}, default="en"
        How `score` compares answers: by words, or by Chinese characters.
    max_epochs : int or "auto", default="auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
    lr : float or "auto", default="auto"
        Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen` and
        `adapter`. `fit` warns if it was so high that it spoiled the encoder.
    batch_size : int, default=16
        Windows in a batch; the overlap losses count over their tokens.
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
        Stop when F1 on validation questions stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
        Share of the rows held out by `early_stopping` if `fit` gets no validation data.
    n_iter_no_change : int or "auto", default="auto"
        Epochs without a better score before `early_stopping` ends the fit. ``"auto"``
        is a third of the epochs, but at least 3.
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
    null_threshold_ : float
        Infinite if training had no unanswerable question.
    net_ : FineTuningNet
    tokenizer_ : transformers tokenizer
    history_ : list of dict
    n_iter_ : int
        Epochs trained.
    lr_ : float
        The peak learning rate of the last fit.
    max_epochs_ : int
        The number of epochs that it was to make.

    Notes
    -----
    If a training question has several answers, the most frequent one counts, or the first of a tie.
    A window that does not hold the whole answer counts as one without an answer. A
    token in several windows is decided in the one where it has most context.

    References
    ----------
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Section 4.3.
    J. Devlin et al., "BERT", NAACL 2019, Sections 4.2 and 4.3.

    Examples
    --------
    >>> from skdice import DiceQuestionAnswerer
    >>> X = [("Who sings?", "Every day Ann sings in Rome."), ("Who sleeps?", "In Oslo Bob sleeps.")]
    >>> y = [(10, "Ann"), (8, "Bob")]
    >>> reader = DiceQuestionAnswerer(max_epochs=1, random_state=0).fit(X, y)
    >>> reader.predict(X).shape
    (2,)
    """

    task: ClassVar[Reading] = Reading()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "stride": [Interval(Integral, 0, None, closed="left")],
        "max_question_length": [Interval(Integral, 1, None, closed="left")],
        "max_answer_length": [Interval(Integral, 1, None, closed="left")],
        "null_threshold": [StrOptions({"auto"}), Interval(Real, None, None, closed="both")],
        "on_misaligned": [StrOptions({"raise", "drop", "fix"})],
        "language": [StrOptions({"en", "zh"})],
    }

    loss: str | Loss = "dsc"
    stride: int = 128
    max_question_length: int = 64
    max_answer_length: int = 30
    null_threshold: str | float = "auto"
    on_misaligned: str = "raise"
    language: str = "en"
    batch_size: int = 16

    null_threshold_: float = field(init=False)

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fine-tune on questions with their contexts and answers.

        Parameters
        ----------
        X : list of (question, context), array or frame of shape (n, 2)
        y : list
            For each question ``(start, text)``, with the character at which it starts, a list of
            them, SQuAD's dicts, or None or [] for no answer.
        sample_weight : array of shape (n,), default=None
        X_val, y_val : as X and y, default=None
            Validation questions: scored after each epoch, used by `early_stopping`, and to tune
            `null_threshold`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is loaded; the message names the question.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> np.ndarray:
        """Answers of shape (n,), each a str, empty where the context holds none."""
        self._check_fitted()
        return object_array(self._predict(self.task.inputs(X)))

    @checked
    def predict_spans(self, X: Any, n_best: int = 1) -> np.ndarray:
        """The best places of the answer, and "no answer" where it can be one.

        Parameters
        ----------
        X : as in `fit`
        n_best : int, default=1

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of up to `n_best` dicts, best first: ``start`` and ``end`` (characters),
            ``text``, ``score``, and ``probability`` among those listed. "No answer" has start and
            end None, an empty text, and its score less `null_threshold_`.
        """
        if n_best < 1:
            raise ValueError(f"n_best={n_best} must be at least 1")
        self._check_fitted()
        rows = []
        for pairs, windows in self._windows_with_logits(self.task.inputs(X)):
            ranked = self.task.row_outputs(self, windows, n_best)
            for (_, context), (candidates, null) in zip(pairs, ranked, strict=True):
                rows.append(self._places(context, candidates, null, n_best))
        return object_array(rows)

    def _places(
        self, context: str, candidates: list[Candidate], null: float, n_best: int
    ) -> list[dict[str, Any]]:
        row: list[dict[str, Any]] = [
            {"start": c.start, "end": c.end, "text": context[c.start : c.end], "score": c.score}
            for c in candidates
        ]
        if np.isfinite(self.null_threshold_) or not row:
            score = null - self.null_threshold_ if row else 0.0
            row.append({"start": None, "end": None, "text": "", "score": score})
        row.sort(key=lambda entry: -entry["score"])
        row = row[:n_best]
        for entry, p in zip(row, softmax([e["score"] for e in row]), strict=True):
            entry["probability"] = float(p)
        return row

    def score(self, X: Any, y: Any) -> float:
        """F1 as in `evaluate`, from 0 to 1."""
        return self.evaluate(X, y)["f1"]

    def exact_match(self, X: Any, y: Any) -> float:
        """Share of exact matches as in SQuAD's evaluation, from 0 to 1."""
        return self.evaluate(X, y)["exact_match"]

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Exact match and F1 as in SQuAD's evaluation; F1 is of characters for Chinese.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``exact_match`` and ``f1``, each from 0 to 1.
        """
        self._check_fitted()
        pairs = self.task.inputs(X)
        answers = read_answers(y, len(pairs))
        return self.task.rate(self, answers, self._predict(pairs))

    # ---- files

    def _fitted_state(self) -> dict[str, Any]:
        threshold = self.null_threshold_
        return {"null_threshold": threshold if np.isfinite(threshold) else None}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        threshold = state["null_threshold"]
        self.null_threshold_ = float("inf") if threshold is None else threshold
