"""DiceMultiSpanAnswerer: find all answers to a question in its context."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import Interval, StrOptions
from skdice.estimators.token import DiceTokenClassifier
from skdice.tasks.multi_span_qa import MultiSpanReading


@dataclass(kw_only=True, eq=False, repr=False)
class DiceMultiSpanAnswerer(DiceTokenClassifier):
    """Find every answer to a question in its context, where one question may have several.

    Question and context are read together, and the words of the context are tagged in IOB2, so the
    losses for rare tags apply. `DiceQuestionAnswerer` gives one answer at most.

    Parameters
    ----------
    loss : str or Loss, default="ce_dice"
        One of `skdice.losses.LOSS_NAMES`, or a loss object. Words outside answers are the
        background.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    max_length : int or None, default=None
        Longest window in subwords; None is what the backbone allows, 512 at most.
    max_question_length : int, default=64
        Subwords after which a question is cut.
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What becomes of an answer that is not in the context at its start: an error, no answer, or
        the nearest place that holds it.
    stride : int or None, default=None
        Overlap of the windows of a long context, in subwords; None is a quarter of a window.
    label_all_subwords : bool, default=False
        Train on every subword of a word, and average their probabilities, instead of the first.
    constrained : bool, default=True
        Predict the best sequence of tags in which no answer begins with a tag for its inside.
    max_epochs : int or "auto", default="auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
    lr : float or "auto", default="auto"
        Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen` and
        `adapter`. `fit` warns if it was so high that it spoiled the encoder.
    batch_size : int, default=32
        Questions with a window of their context, in a batch.
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
        Resamples the questions before each epoch of `fit`, by the tags of their contexts.
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
    classes_ : ndarray of str, shape (3,)
        The tags.
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
    E. Segal, A. Efrat, M. Shoham, A. Globerson, J. Berant, "A Simple and Effective Model for
    Answering Multi-span Questions", EMNLP 2020.
    P. Dasigi, N. F. Liu, A. Marasovic, N. A. Smith, M. Gardner, "Quoref: A Reading Comprehension
    Dataset with Questions Requiring Coreferential Reasoning", EMNLP 2019.

    Examples
    --------
    >>> from skdice import DiceMultiSpanAnswerer
    >>> X = [("Who sings?", "Ann and Bob sing in Rome."), ("Where?", "Ann sings in Rome.")]
    >>> y = [[(0, "Ann"), (8, "Bob")], [(13, "Rome")]]
    >>> reader = DiceMultiSpanAnswerer(max_epochs=1, random_state=0).fit(X, y)
    >>> reader.predict(X).shape
    (2,)
    """

    task: ClassVar[MultiSpanReading] = MultiSpanReading()

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in DiceTokenClassifier._parameter_constraints.items() if k != "scheme"},
        "max_question_length": [Interval(Integral, 1, None, closed="left")],
        "on_misaligned": [StrOptions({"raise", "drop", "fix"})],
    }

    max_question_length: int = 64
    on_misaligned: str = "raise"
    scheme: ClassVar[str] = "iob2"  # type: ignore[misc]  # not a parameter

    def fit(
        self, X: Any, y: Any, *, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fine-tune on questions with their contexts and answers.

        Parameters
        ----------
        X : list of (question, context), array or frame of shape (n, 2)
        y : list
            For each question its answers: a list of ``(start, text)``, with the character at which
            each starts, SQuAD's dicts, or None or [] for no answer.
        sample_weight : array of shape (n,), default=None
        X_val, y_val : as X and y, default=None
            Validation questions: scored after each epoch, and used by `early_stopping`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters or data, before anything is trained; the message names the question.
        """
        return self._fit(X, y, sample_weight, X_val, y_val)

    def predict(self, X: Any) -> np.ndarray:
        """Answers to each question.

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of str in the order of the context, empty where it holds no answer.
        """
        return super().predict(X)

    def predict_spans(self, X: Any) -> np.ndarray:
        """Places of the answers in the contexts.

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of named tuples ``(type, start, end, score)`` by position, in characters.
        """
        return super().predict_spans(X)

    def evaluate(self, X: Any, y: Any) -> dict[str, float]:
        """Exact match and F1 of the best matching of answers, as in Quoref's evaluation.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``exact_match`` and ``f1``, each from 0 to 1.
        """
        return super().evaluate(X, y)

    def score(self, X: Any, y: Any) -> float:
        """F1 as in `evaluate`."""
        return self.evaluate(X, y)["f1"]
