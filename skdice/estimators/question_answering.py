"""DiceQuestionAnswerer: find the answer to a question in its context."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from skdice import backbones
from skdice._compat import Interval, StrOptions
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine.batching import EncodedDataset
from skdice.estimators._base import (
    TransformerEstimator,
    check_validation,
    draw_seed,
    split_indices,
)
from skdice.losses import Loss, SpanEndsLoss, resolve_loss
from skdice.metrics import answer_exact_match_score, answer_f1_score
from skdice.text.answers import Answer, as_answers, as_questions, read_answers
from skdice.text.inputs import check_weights, object_array
from skdice.text.qa import ReadingWindow, encode_questions, is_mark
from skdice.text.spans import Candidate, best_answers, tune_null_threshold

__all__ = ["DiceQuestionAnswerer"]


class DiceQuestionAnswerer(TransformerEstimator):
    """Extractive question answering with a fine-tuned transformer.

    The start and the end of an answer are each a problem of one token against all others of the
    context (56 to 1 in SQuAD 1.1, 82 to 1 in 2.0, by the paper's Table 1), which is what the
    overlap losses are for. A token's probability is a softmax over the positions of its window, as
    BERT reads SQuAD; ``loss="ce"`` is the usual cross-entropy of the right ones.

    Parameters
    ----------
    loss : str or Loss, default="dsc"
        ``"ce"``, ``"weighted_ce"``, ``"focal"``, ``"dice"``, ``"tversky"``, ``"dsc"``, or a loss
        object.
    backbone : str, default="sentence-transformers/all-MiniLM-L6-v2"
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    max_length : int or None, default=None
        Subwords of a window: question, part of the context, special tokens. None is 384, or what
        the backbone allows if that is less.
    stride : int, default=128
        Subwords of the context that neighbouring windows share; at most half of those that fit.
    max_question_length : int, default=64
        Subwords kept of a question.
    max_answer_length : int, default=30
        Subwords of the longest answer that is predicted.
    null_threshold : "auto" or float, default="auto"
        How far the score of "no answer" has to be above the best answer's to prevail. Auto tunes
        it for F1 on the validation questions if some of them have no answer, and is 0 without
        them; without unanswerable training questions every question is answered.
    on_misaligned : {"raise", "drop", "fix"}, default="raise"
        What to do with an answer that its context does not hold at its start: an error; leave
        answer and question out; or take the nearest place that holds it.
    language : {"en", "zh"}, default="en"
        How `score` compares answers: by words, or by Chinese characters.
    max_epochs : int, default=2
    lr : float, default=1e-4
    batch_size : int, default=16
        Windows in a batch; the overlap losses count over their tokens.
    gradient_accumulation : int, default=1
    max_grad_norm : float or None, default=1.0
    weight_decay : float, default=0.01
    schedule : {"linear", "constant", "cosine", "polynomial", "one_cycle"}, default="linear"
    warmup : float, default=0.1
    dropout : float, default=0.1
    frozen : {"none", "embeddings", "encoder"} or int, default="none"
    precision : {"auto", "fp32", "fp16", "bf16"}, default="auto"
    device : str, default="auto"
    early_stopping : bool, default=False
        Stop when F1 on validation questions stops rising, and restore the best epoch.
    validation_fraction : float, default=0.1
    n_iter_no_change : int, default=3
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
    null_threshold_ : float
        Infinite if training had no unanswerable question.
    net_ : FineTuningNet
    tokenizer_ : transformers tokenizer
    history_ : list of dict
    n_iter_ : int

    Notes
    -----
    Of several answers to a training question the most frequent counts, the first of equals. A
    window without the whole answer is a window without an answer. Of the windows that a token is
    in, the one where it has most context decides.

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

    _parameter_constraints = {
        **{k: v for k, v in TransformerEstimator._parameter_constraints.items() if k != "sampler"},
        "stride": [Interval(Integral, 0, None, closed="left")],
        "max_question_length": [Interval(Integral, 1, None, closed="left")],
        "max_answer_length": [Interval(Integral, 1, None, closed="left")],
        "null_threshold": [StrOptions({"auto"}), Interval(Real, None, None, closed="both")],
        "on_misaligned": [StrOptions({"raise", "drop", "fix"})],
        "language": [StrOptions({"en", "zh"})],
    }
    sampler = None

    def __init__(
        self,
        *,
        loss: str | Loss = "dsc",
        backbone: str = DEFAULT_BACKBONE,
        max_length: int | None = None,
        stride: int = 128,
        max_question_length: int = 64,
        max_answer_length: int = 30,
        null_threshold: str | float = "auto",
        on_misaligned: str = "raise",
        language: str = "en",
        max_epochs: int = 2,
        lr: float = 1e-4,
        batch_size: int = 16,
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
        self.max_question_length = max_question_length
        self.max_answer_length = max_answer_length
        self.null_threshold = null_threshold
        self.on_misaligned = on_misaligned
        self.language = language
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
        self.callbacks = callbacks
        self.net_params = net_params
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

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
        warm = self.warm_start and hasattr(self, "net_")
        self._check_params(builds=not warm)
        SpanEndsLoss(resolve_loss(self.loss))
        check_validation(X_val, y_val)
        pairs, answers, kept = self._check_data(X, y)
        weights = check_weights(sample_weight, len(kept))
        weights = None if weights is None else weights[kept]
        validation = None
        if X_val is not None:
            validation = self._check_data(X_val, y_val)[:2]
        seed = draw_seed(self.random_state)
        if validation is None and self.early_stopping:
            train, held = split_indices(
                len(pairs), self.validation_fraction, seed, [bool(a) for a in answers], pairs
            )
            validation = [pairs[i] for i in held], [answers[i] for i in held]
            pairs, answers = [pairs[i] for i in train], [answers[i] for i in train]
            weights = None if weights is None else weights[train]
        if not any(answers):
            raise ValueError("y holds no answer at all: a reader needs some to learn from")

        if not warm:
            self._build(2, pooling=None, seed=seed)
        self._continues = warm
        self.null_threshold_ = self._default_threshold(answers)
        windows = self._windows(pairs)
        targets = [self._target(window, answers[window.row]) for window in windows]
        dataset = EncodedDataset(
            windows,
            targets,
            None if weights is None else weights[[window.row for window in windows]],
        )
        # Weight 2 is the question twice.
        starts = np.concatenate([target[:, 0] for target in targets]).astype(int)
        counts = np.bincount(
            starts, np.repeat(dataset.shares, [len(t) for t in targets]), minlength=2
        )
        criterion = SpanEndsLoss(clone(resolve_loss(self.loss)).prepare(counts))
        score: Callable[[], float] | None = None
        if validation is not None:
            score = self._validation_score(*validation)
        self._train_with(criterion, dataset, seed, validation_score=score)
        if validation is not None:
            self._tune_null(*validation)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Answers of shape (n,), each a str, empty where the context holds none."""
        self._check_fitted()
        pairs = as_questions(X)
        texts = []
        for (_, context), (found, null) in zip(pairs, self._rank(pairs, 1), strict=True):
            answered = found and null - found[0].score <= self.null_threshold_
            texts.append(context[found[0].start : found[0].end] if answered else "")
        return object_array(texts)

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
        pairs = as_questions(X)
        rows = []
        for (_, context), (found, null) in zip(pairs, self._rank(pairs, n_best), strict=True):
            row: list[dict[str, Any]] = [
                {"start": c.start, "end": c.end, "text": context[c.start : c.end], "score": c.score}
                for c in found
            ]
            if np.isfinite(self.null_threshold_) or not row:
                score = null - self.null_threshold_ if row else 0.0
                row.append({"start": None, "end": None, "text": "", "score": score})
            row.sort(key=lambda entry: -entry["score"])
            row = row[:n_best]
            for entry, p in zip(row, softmax([e["score"] for e in row]), strict=True):
                entry["probability"] = float(p)
            rows.append(row)
        return object_array(rows)

    def score(self, X: Any, y: Any) -> float:
        """F1 as in SQuAD's evaluation (of characters for Chinese), from 0 to 1."""
        return self._measure(X, y, answer_f1_score)

    def exact_match(self, X: Any, y: Any) -> float:
        """Share of exact matches as in SQuAD's evaluation, from 0 to 1."""
        return self._measure(X, y, answer_exact_match_score)

    # ---- the steps

    def _measure(self, X: Any, y: Any, metric: Callable[..., float]) -> float:
        pairs = as_questions(X)
        # Only texts are compared, so that an answer at a wrong place does no harm here.
        return metric(read_answers(y, len(pairs)), self.predict(pairs), language=self.language)

    def _check_data(
        self, X: Any, y: Any
    ) -> tuple[list[tuple[str, str]], list[list[Answer]], np.ndarray]:
        """Questions and answers to learn from, and for each row whether it is among them."""
        pairs = as_questions(X)
        rows = as_answers(y, [context for _, context in pairs], self.on_misaligned)
        kept = np.array([row is not None for row in rows])
        if not kept.all():
            warnings.warn(
                f"{len(rows) - kept.sum()} of {len(rows)} questions are left out, as their answers "
                f"are not in their contexts (on_misaligned={self.on_misaligned!r})",
                stacklevel=3,
            )
        if not kept.any():
            raise ValueError("no question is left: every answer is missing from its context")
        chosen = np.flatnonzero(kept)
        return [pairs[i] for i in chosen], [rows[i] or [] for i in chosen], kept

    def _windows(self, pairs: list[tuple[str, str]]) -> list[ReadingWindow]:
        return encode_questions(
            self.tokenizer_,
            pairs,
            self._max_length(),
            stride=self.stride,
            max_question_length=self.max_question_length,
        )

    def _max_length(self) -> int:
        return backbones.input_length(
            self.max_length, self._module.encoder, self.tokenizer_, default=384
        )

    def _target(self, window: ReadingWindow, answers: list[Answer]) -> np.ndarray:
        """0/1 for start and end of each position, and a mark at the window's first."""
        target = np.zeros((len(window.positions), 3), dtype=np.float32)
        target[0, 2] = 1
        start = end = 0  # the summary token: no answer here
        if answers:
            first, text = max(answers, key=answers.count)
            # No token begins with a space or a mark, and none ends with a space.
            last = first + len(text.rstrip())
            first += next((i for i, c in enumerate(text) if not (c.isspace() or is_mark(c))), 0)
            inside = np.flatnonzero(
                (window.offsets[:, 1] > first) & (window.offsets[:, 0] < last) & (window.words >= 0)
            )
            whole = (
                len(inside)
                and window.offsets[inside[0], 0] <= first
                and window.offsets[inside[-1], 1] >= last
            )
            if whole:
                start, end = int(inside[0]), int(inside[-1])
        target[start, 0] = target[end, 1] = 1
        return target

    def _rank(
        self, pairs: list[tuple[str, str]], n_best: int
    ) -> list[tuple[list[Candidate], float]]:
        """Candidates and the score of no answer, for every question."""
        windows = self._windows(pairs)
        groups: list[list[Any]] = [[] for _ in pairs]
        for window, logits in zip(windows, self.net_.logits(EncodedDataset(windows)), strict=True):
            scores = logits.astype(np.float64)
            groups[window.row].append((scores, window.words, window.offsets, window.context_score))
        return [best_answers(group, n_best, self.max_answer_length) for group in groups]

    def _default_threshold(self, answers: list[list[Answer]]) -> float:
        if self.null_threshold != "auto":
            return float(self.null_threshold)
        return float("inf") if all(answers) else 0.0

    def _tune_null(self, pairs: list[tuple[str, str]], answers: list[list[Answer]]) -> None:
        tunable = self.null_threshold == "auto" and np.isfinite(self.null_threshold_)
        if tunable and 0 < sum(map(bool, answers)) < len(answers):
            self.null_threshold_ = self._best_threshold(pairs, answers)[0]

    def _best_threshold(
        self, pairs: list[tuple[str, str]], answers: list[list[Answer]]
    ) -> tuple[float, float]:
        """The threshold with the best F1, and that F1."""
        gaps, values, nulls = [], [], []
        for (_, context), row, (found, null) in zip(
            pairs, answers, self._rank(pairs, 1), strict=True
        ):
            text = context[found[0].start : found[0].end] if found else ""
            gaps.append(null - found[0].score if found else 0.0)
            values.append(answer_f1_score([row], [text], language=self.language))
            nulls.append(float(not row))
        threshold = tune_null_threshold(np.array(gaps), np.array(values), np.array(nulls))
        answered = np.array(gaps) <= threshold
        return threshold, float(np.mean(np.where(answered, values, nulls)))

    def _validation_score(
        self, pairs: list[tuple[str, str]], answers: list[list[Answer]]
    ) -> Callable[[], float]:
        """F1 on validation questions, with the best threshold where there is one to tune."""
        if np.isfinite(self.null_threshold_) and self.null_threshold == "auto":
            return lambda: self._best_threshold(pairs, answers)[1]
        return lambda: self.score(pairs, answers)

    def _fitted_state(self) -> dict[str, Any]:
        threshold = self.null_threshold_
        return {
            "null_threshold": threshold if np.isfinite(threshold) else None,
            "n_outputs": 2,
            "pooling": None,
        }

    def _restore_fitted(self, state: dict[str, Any]) -> dict[str, Any]:
        threshold = state["null_threshold"]
        self.null_threshold_ = float("inf") if threshold is None else threshold
        return state
