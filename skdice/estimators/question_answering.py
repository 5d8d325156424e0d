"""DiceQuestionAnswerer: find the answer to a question in its context."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import softmax

from skdice._checks import checked
from skdice._compat import Interval, StrOptions
from skdice._types import ArrayLike, Rows
from skdice.estimators._documented import documented
from skdice.estimators.transformer import TransformerEstimator
from skdice.inputs.answers import MISALIGNED
from skdice.inputs.rows import object_array
from skdice.losses import Loss
from skdice.tasks.qa import Reading
from skdice.text.best_answers import Candidate

N_WEIGHED = 20  # places among which probabilities sum to 1, as in BERT's evaluation of SQuAD


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceQuestionAnswerer(TransformerEstimator):
    """Extractive question answering with a fine-tuned transformer.

    The start and the end of an answer are each a problem of one token against all others of the
    context (56 to 1 in SQuAD 1.1, 82 to 1 in 2.0, by the paper's Table 1), which is what the
    overlap losses are for. A token's probability is a softmax over the positions of its window, as
    in BERT; ``loss="ce"`` is the usual cross-entropy of the true positions.

    Parameters
    ----------
    loss : str or Loss
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object.
    max_length : int or None
        Longest window, in subwords: question, part of the context, special tokens. None is 384, or
        what the backbone allows if that is less.
    stride : int
        Overlap of neighbouring windows, in subwords of the context, as BERT's on SQuAD. At most
        half of those that fit.
    max_question_length : int
        Longest question, in subwords. The rest is cut.
    max_answer_length : int
        Longest answer that is predicted, in subwords.
    null_threshold : "auto" or float
        "No answer" is predicted if its score is above the best answer's by more than this.
        ``"auto"`` tunes it for F1 on the validation questions if some of them have no answer, and
        is 0 otherwise. Without unanswerable training questions every question is answered.
    on_misaligned : {"raise", "drop", "expand"}
        What to do with an answer that its context does not hold at its start: an error; leave
        answer and question out; or take the nearest place that holds it.
    batch_size : int
        Windows in a batch; the overlap losses count over their tokens.
    early_stopping : bool
        Stop when F1 on validation questions stops rising, and restore the best epoch.

    Attributes
    ----------
    null_threshold_ : float
        Infinite if training had no unanswerable question.

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
        "on_misaligned": [StrOptions(set(MISALIGNED))],
    }

    loss: str | Loss = "dsc"
    stride: int = 128
    max_question_length: int = 64
    max_answer_length: int = 30
    null_threshold: str | float = "auto"
    on_misaligned: str = "raise"
    batch_size: int = 16

    null_threshold_: float = field(init=False)

    def fit(
        self,
        X: Rows,
        y: Rows,
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Rows | None = None,
        y_val: Rows | None = None,
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

    def predict(self, X: Rows) -> np.ndarray:
        """Answers of shape (n,), each a str, empty where the context holds none."""
        return self._each(self.task.decide, X)

    @checked
    def predict_spans(self, X: Rows, n_best: int = 1) -> np.ndarray:
        """The best places of the answer, and "no answer" where it can be one.

        Parameters
        ----------
        X : as in `fit`
        n_best : int, default=1

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of up to `n_best` dicts, best first: ``start`` and ``end`` (characters),
            ``text``, ``score``, and ``probability`` among the best 20, or `n_best` if more. "No
            answer" has start and end None, an empty text, and its score less `null_threshold_`.
        """
        if n_best < 1:
            raise ValueError(f"n_best={n_best} must be at least 1")
        inputs = self._known_inputs(X)
        n_weighed = max(n_best, N_WEIGHED)
        rows = []
        for pairs, windows in self._windows_with_logits(inputs):
            ranked = self.task.row_outputs(self, windows, n_weighed)
            for (_, context), (candidates, null) in zip(pairs, ranked, strict=True):
                rows.append(self._places(context, candidates, null, n_weighed)[:n_best])
        return object_array(rows)

    def _places(
        self, context: str, candidates: list[Candidate], null: float, n_weighed: int
    ) -> list[dict[str, Any]]:
        row: list[dict[str, Any]] = [
            {"start": c.start, "end": c.end, "text": context[c.start : c.end], "score": c.score}
            for c in candidates
        ]
        if np.isfinite(self.null_threshold_) or not row:
            score = null - self.null_threshold_ if row else 0.0
            row.append({"start": None, "end": None, "text": "", "score": score})
        row.sort(key=lambda entry: -entry["score"])
        row = row[:n_weighed]
        for entry, p in zip(row, softmax([e["score"] for e in row]), strict=True):
            entry["probability"] = float(p)
        return row

    # ---- files

    def _fitted_state(self) -> dict[str, Any]:
        threshold = self.null_threshold_
        kept = threshold if np.isfinite(threshold) else str(threshold)  # JSON has no infinity
        return {**super()._fitted_state(), "null_threshold": kept}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        super()._restore_fitted(state)
        threshold = state["null_threshold"]  # None in folders of before
        self.null_threshold_ = float("inf" if threshold is None else threshold)
