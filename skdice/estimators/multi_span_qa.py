"""DiceMultiSpanAnswerer: find all answers to a question in its context."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import Interval, StrOptions
from skdice._types import ArrayLike, Rows
from skdice.estimators._documented import documented
from skdice.estimators.token import DiceTokenClassifier
from skdice.inputs.answers import MISALIGNED
from skdice.losses import Loss
from skdice.tasks.multi_span_qa import MultiSpanReading


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class DiceMultiSpanAnswerer(DiceTokenClassifier):
    """Find every answer to a question in its context, where one question may have several.

    Question and context are read together, and the words of the context are tagged in IOB2, so the
    losses for rare tags apply. `DiceQuestionAnswerer` gives one answer at most.

    Parameters
    ----------
    loss : str or Loss
        One of `skdice.losses.LOSS_NAMES`, or a loss object. Words outside answers are the
        background.
    max_question_length : int
        Subwords after which a question is cut.
    on_misaligned : {"raise", "drop", "expand"}
        What becomes of an answer that is not in the context at its start: an error, no answer, or
        the nearest place that holds it.
    stride : int or None
        Overlap of the windows of a long context, in subwords; None is a quarter of a window.
    constrained : bool
        Predict the best sequence of tags in which no answer begins with a tag for its inside.
    batch_size : int
        Questions with a window of their context, in a batch.
    sampler : imbalanced-learn sampler or None
        Resamples the questions before each epoch of `fit`, by the tags of their contexts.

    Attributes
    ----------
    classes_ : ndarray of str, shape (3,)
        The tags.

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
        **DiceTokenClassifier._parameter_constraints,
        "max_question_length": [Interval(Integral, 1, None, closed="left")],
        "on_misaligned": [StrOptions(set(MISALIGNED))],
    }

    loss: str | Loss = "ce_dice"
    max_question_length: int = 64
    on_misaligned: str = "raise"
    scheme: ClassVar[str] = "iob2"  # type: ignore[misc]  # not a parameter

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

    def predict(self, X: Rows) -> np.ndarray:
        """Answers to each question.

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of str in the order of the context, empty where it holds no answer.
        """
        return super().predict(X)

    def predict_spans(self, X: Rows) -> np.ndarray:
        """Places of the answers in the contexts.

        Returns
        -------
        ndarray of object, shape (n,)
            Each a list of named tuples ``(type, start, end, score)`` by position, in characters.
        """
        return super().predict_spans(X)
