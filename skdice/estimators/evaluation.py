"""Scores of predictions, once for all estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdice._types import ArrayLike, Data, Model, Rows
from skdice.inputs.rows import object_array
from skdice.tasks.classification import Classification, decided


def outputs_of(model: Model) -> np.ndarray:
    """The labels or tags that the columns of ``predict_proba`` stand for."""
    return model.outputs_ if hasattr(model, "outputs_") else model.classes_


class Scored:
    """`score` and `evaluate` of an estimator with a `task`, by what its `predict` gives."""

    task: ClassVar[Any]

    def score(self, X: Data, y: Data) -> float:
        """F1 as in `evaluate`, from 0 to 1.

        Of spans it is micro F1, and of plain tags that of tokens. A type (a tag, in the plain
        scheme) that `fit` did not see counts as missed.
        """
        return self._scores(X, y)["f1"]

    def evaluate(self, X: Data, y: Data) -> dict[str, float]:
        """Precision, recall and F1, or exact match and F1 of answers.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            Each from 0 to 1: ``precision``, ``recall`` and ``f1`` of spans, micro (for plain tags
            of tokens). Of answers ``exact_match`` and ``f1`` as in the evaluations of SQuAD and,
            for several answers to a question, Quoref. If a decision was tuned for a cost, also the
            ``cost`` of a row.
        """
        return self._scores(X, y)

    def _scores(self, X: Data, y: Data, **how: Any) -> dict[str, float]:
        if hasattr(self, "fit"):  # and not predictions alone
            check_is_fitted(self)
        judge = self._judge()
        true = self.task.truth(judge, X, y)
        found = getattr(self, self.task.judged_by)(X)
        return self._rated(judge, X, true, found, **how)

    def _rated(self, judge: Model, X: Data, true: Any, found: Any, **how: Any) -> dict[str, float]:
        """The scores of predictions, and what they cost."""
        scores = self.task.rate(judge, true, found, **how)
        return {**scores, **self.task.cost(judge, X, true, found)}

    def _judge(self) -> Any:
        """The model whose labels and parameters say how rows are read and rated."""
        return self


class ClassScores(Scored):
    """Scores of classes, for estimators with `classes_` and, of two, `positive_`."""

    task: ClassVar[Classification] = Classification()

    classes_: np.ndarray
    positive_: int
    predict: Callable[[Any], np.ndarray]

    def score(self, X: Data, y: Data, sample_weight: ArrayLike | None = None) -> float:
        """F1: of the positive class of two, macro for more classes, micro for several labels.

        Parameters
        ----------
        X, y : as in `fit`
        sample_weight : array of shape (n,), default=None

        Returns
        -------
        float
            From 0 to 1. A label that `fit` did not see counts as missed. `evaluate` gives the
            accuracy too.

        Raises
        ------
        ValueError, TypeError
            If `y` holds labels of another type than `fit` saw, such as "1" beside the class 1.
        """
        return self._scores(X, y, sample_weight=sample_weight)["f1"]

    def evaluate(self, X: Data, y: Data) -> dict[str, float]:
        """Precision, recall and F1 as in `score`, and accuracy.

        Parameters
        ----------
        X, y : as in `fit`

        Returns
        -------
        dict
            ``precision``, ``recall``, ``f1`` and ``accuracy``, each from 0 to 1. In a multi-label
            problem accuracy is the share of rows whose labels are all right, of those whose labels
            are all known (without any it is left out), and there are
            ``f1_macro`` and, for each label, ``f1 of <label>``. If the decision was tuned for a
            cost, there is the ``cost`` of a row.

        Raises
        ------
        ValueError, TypeError
            As in `score`.
        """
        return self._scores(X, y)

    def predict_labels(self, X: Data) -> np.ndarray:
        """Predictions by name.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n,)
            For each row of a multi-label problem a list of names, which may be empty; otherwise
            what `predict` gives.
        """
        predicted = self.predict(X)
        if not getattr(self, "multilabel_", False):
            return predicted
        return object_array([self._names(row) for row in predicted])

    def _names(self, row: np.ndarray) -> list[Any]:
        """The names of the labels of a row of 0 and 1."""
        names: list[Any] = self.classes_[row > 0].tolist()
        return names


class FromLogits(ClassScores, ClassifierMixin):
    """Predictions of a classifier by its ``_logits``, of shape (n_rows, n_classes).

    Parameters
    ----------
    pos_label : label or None
        The positive class of a binary problem, whose F1 the overlap losses optimise. None is the
        label 1 of {0, 1} or {-1, 1}; otherwise the rarer class, or the second where their counts
        differ by no more than chance. Inside a meta-estimator that numbers the labels (voting,
        stacking, bagging, one-vs-rest) give the number.
    """

    multilabel_: bool
    _logits: Callable[[Any], np.ndarray]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        assert tags.classifier_tags is not None
        tags.classifier_tags.multi_label = True
        return tags

    def predict(self, X: Data) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
        return decided(self, self._logits(X))

    def decision_function(self, X: Data) -> np.ndarray:
        """Log-odds of `classes_[1]`, of shape (n,); logits of shape (n, n_classes) otherwise."""
        return decision_scores(self, self._logits(X))

    def predict_proba(self, X: Data) -> np.ndarray:
        """Probabilities of shape (n, n_classes); rows sum to 1 unless multi-label."""
        logits = self._logits(X)
        return expit(logits) if self.multilabel_ else softmax(logits, axis=1)


class SpanScores(Scored):
    """Scores and spans of taggers, whose ``_spans`` gives the spans of each sentence."""

    _spans: Callable[[Any], Any]

    def predict_spans(self, X: Rows) -> np.ndarray:
        """The spans of the predicted tags, with their probabilities.

        Parameters
        ----------
        X : list of lists of str

        Returns
        -------
        ndarray of object, shape (n_sentences,)
            Each a list of named tuples ``(type, start, end, score)`` by position, ends exclusive.
            The score is the probability that just this span is there, with this type and both
            borders: see `skdice.inspection.span_probabilities`. For plain tags each token whose tag
            is not ``O`` is a span.
        """
        return object_array(self._spans(X))


def decision_scores(model: Model, logits: np.ndarray) -> np.ndarray:
    """Log-odds of ``classes_[1]`` of two classes, and logits of more classes or labels."""
    if len(model.classes_) > 2 or getattr(model, "multilabel_", False):
        return logits
    odds: np.ndarray = logits[:, 1] - logits[:, 0]
    return odds
