"""The decision of a fitted estimator, as displays and `adapt_prior` look at it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_has
from skdice.estimators.evaluation import outputs_of
from skdice.estimators.tuned.classifier import BiasTunedClassifier
from skdice.estimators.tuned.tagger import BiasTunedTagger
from skdice.inputs.labels import as_labels
from skdice.metrics.decisions.positive import positive_of


@dataclass
class Decision:
    """A fitted estimator's decision on some rows.

    Attributes
    ----------
    tuned : BiasTunedClassifier or BiasTunedTagger
    kind : {"two", "classes", "labels", "spans"}
        One of two classes, one of more, several labels, or spans.
    rows : BinaryRows, ClassRows or SpanRows
        Probabilities and truth.
    objective : objective, callable or str
        What the decision was tuned for.
    """

    tuned: Any
    kind: str
    rows: Any
    objective: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> Self:
        """Decision of an estimator; one that is not tuned has biases of 0 and ``"auto"``."""
        tuned = as_tuned(estimator)
        if tuned is not estimator and tuned._kind == "two":
            tuned.positive_ = positive_of(estimator, as_labels(y))
        return cls(tuned, tuned._kind, *tuned._judged(X, y)[:2])

    def in_rows(self, biases: np.ndarray) -> np.ndarray:
        """Biases of classes as the rows have them: of two classes the positive one's alone."""
        if self.kind != "two":
            return biases
        at = self.tuned.positive_
        return biases[..., [at]] - biases[..., [1 - at]]


def as_tuned(estimator: Any) -> Any:
    """Return a tuned estimator as it is, and any other with biases of 0."""
    check_has("estimator", estimator, "predict_proba")
    check_is_fitted(estimator)
    if isinstance(estimator, (BiasTunedClassifier, BiasTunedTagger)):
        return estimator
    tagger = hasattr(estimator, "scheme_")
    tuned = (BiasTunedTagger if tagger else BiasTunedClassifier)(estimator, cv="prefit")
    tuned.estimator_, tuned.classes_ = estimator, np.asarray(outputs_of(estimator))
    tuned.multilabel_ = bool(getattr(estimator, "multilabel_", False))
    tuned.scheme_, tuned.positive_ = (
        getattr(estimator, name, usual) for name, usual in (("scheme_", ""), ("positive_", 1))
    )
    tuned.bias_, tuned.reject_margin_ = np.zeros(len(tuned.classes_)), 0.0
    tuned.bias_draws_ = np.zeros((0, len(tuned.classes_)))
    return tuned


def check_folds(tuned: Any, X: Any, targets: Any) -> None:
    """Refuse data that `cv` of a tuned decision cannot divide into rows to train on and to tune on.

    `targets` are labels of shape (n,), 0/1 rows, or lists of tags.
    """
    try:
        for train, held in tuned._folds(X, targets, None):
            left: Any = [targets[i] for i in train]
            if isinstance(tuned, BiasTunedTagger):
                left = [*chain.from_iterable(left)]
            if not len(held) or (np.ndim(left) == 1 and len({*left} - {None}) < 2):
                raise ValueError("some rows must be held out to tune on, and too few are left")
    except ValueError as error:
        message = f"{error}. Give X_val and y_val to tune on, or more rows"
        raise ValueError(message) from error
