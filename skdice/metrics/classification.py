"""Scores of classes: F1 of the positive class of two, macro for more, micro for several labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import UNUSED

from skdice._checks import check_choice, check_lengths, shown
from skdice._types import ArrayLike, Data
from skdice.inputs.labels import UNKNOWN, as_labels, known_labels, labels_to_score
from skdice.inputs.rows import check_weights
from skdice.metrics.decisions.positive import positive_of

__all__ = ["class_f1_scorer", "class_precision_scorer", "class_recall_scorer"]

MEASURES = ("f1", "precision", "recall")
OF_LABEL = "f1 of "  # begins the name of the F1 of one of several labels


def class_scores(
    y_true: np.ndarray, y_pred: Any, classes: Any, positive: int | None, sample_weight: Any = None
) -> dict[str, float]:
    """Precision, recall, F1 and accuracy of labels, or of 0/1 rows.

    `positive` is the index of the positive class of two. A macro average is over all `classes`, so
    that it does not depend on which of them are predicted; a class that is neither true nor
    predicted counts as 0, and so does a true label that is not among `classes`. Of 0/1 rows the
    averages are micro, and macro F1 and the F1 of each of `classes` are added; further columns of
    `y_true` are labels that are not among them. The accuracy is that of the rows whose labels are
    all known, and left out without any.
    """
    if len(np.shape(y_pred)) != y_true.ndim:
        raise ValueError(f"y has shape {y_true.shape}, but the predictions {np.shape(y_pred)}")
    check_lengths(y=y_true, y_pred=y_pred)
    if not len(y_true):
        raise ValueError("y is empty (0 samples): at least 1 sample is required")
    names, several = np.asarray(classes), y_true.ndim == 2
    if several:
        # A label that is not known is in none of the counts of F1.
        found = known_labels(y_pred, names, True, "y_pred") == 1
        found = np.pad(found, [(0, 0), (0, y_true.shape[1] - len(names))])
        true, found = y_true == 1, found & (y_true != UNKNOWN)
    else:
        y_pred, every = as_labels(y_pred, name="y_pred"), [*names, *np.setdiff1d(y_true, names)]
        true, found = (labels[:, None] == np.array(every) for labels in (y_true, y_pred))
    weight = check_weights(sample_weight, len(true))
    weight = np.ones(len(true)) if weight is None else weight
    counts = np.stack([weight @ part for part in (true & found, found, true)])
    of_class = precision_recall_f1(counts)
    means = of_class.mean(axis=1) if positive is None else of_class[:, positive]
    if several:
        means = precision_recall_f1(counts.sum(axis=1, keepdims=True))[:, 0]
    scores = dict(zip(("precision", "recall", "f1"), means, strict=True))
    whole = weight * (y_true != UNKNOWN).all(axis=1) if several else weight
    if whole.any():
        scores["accuracy"] = whole @ (true == found).all(axis=1) / whole.sum()
    if several:
        scores["f1_macro"] = of_class[2].mean()
        scores |= {f"{OF_LABEL}{name}": f1 for name, f1 in zip(names, of_class[2], strict=False)}
    return {name: float(value) for name, value in scores.items()}


def precision_recall_f1(counts: np.ndarray) -> np.ndarray:
    """Scores from hits, predictions and true occurrences, of shape (..., 3, n_classes).

    A ratio whose denominator is 0 is 0.
    """
    hits, found, there = np.moveaxis(np.asarray(counts, dtype=float), -2, 0)
    parts = np.stack([hits, hits, 2 * hits], axis=-2)
    totals = np.stack([found, there, found + there], axis=-2)
    return np.divide(parts, totals, out=np.zeros(parts.shape), where=totals > 0)


class ClassScorer(BaseEstimator):
    """A scorer for any classifier, by which scikit-learn's searches choose for rare classes.

    F1, precision or recall: of the positive class of two, macro for more classes, micro for several
    labels. The positive class needs no name, unlike that of scikit-learn's ``"f1"``, which gives
    NaN for string labels. It is the classifier's own where it has one, also at the end of a
    pipeline; else the label 1 of {0, 1} and {-1, 1}; else the rarer class of the rows that are
    scored. Behind a sampler, which makes the classes of training alike, a classifier's own counts
    only if its `pos_label` was set.

    Parameters
    ----------
    measure : {"f1", "precision", "recall"}, default="f1"

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skdice.metrics import class_f1_scorer
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> labels = ["spam" if label else "ham" for label in y]
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, scoring=class_f1_scorer)
    >>> search.fit(X, labels).best_params_
    {'C': 1}
    """

    # With metadata routing a scorer asks for `sample_weight` by `set_score_request`.
    __metadata_request__score: ClassVar[dict[str, Any]] = {"estimator": UNUSED}

    def __init__(self, measure: str = "f1") -> None:
        check_choice("measure", measure, MEASURES)
        self.measure = measure

    def __call__(
        self, estimator: Any, X: Data, y: Data, sample_weight: ArrayLike | None = None
    ) -> float:
        """The score of a fitted classifier on some rows.

        Raises
        ------
        ValueError, TypeError
            If `measure` is unknown, `y` holds labels of another type than the classifier saw, or
            `estimator` is no fitted classifier.
        """
        check_choice("measure", self.measure, MEASURES)
        if not hasattr(estimator, "classes_"):
            raise TypeError(f"estimator={shown(estimator)} is no fitted classifier: fit one")
        classes = estimator.classes_
        labels = labels_to_score(y, classes).values
        positive = None
        if labels.ndim == 1 and len(classes) == 2:
            positive = positive_of(estimator, labels)
        scores = class_scores(labels, estimator.predict(X), classes, positive, sample_weight)
        return scores[self.measure]

    score = __call__


class_f1_scorer = ClassScorer()
class_precision_scorer = ClassScorer("precision")
class_recall_scorer = ClassScorer("recall")
