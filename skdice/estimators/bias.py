"""BiasTunedClassifier: a decision tuned for F1 on held-out data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import Tags, check_consistent_length, column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from skdice._compat import StrOptions
from skdice._fitting import all_or_nothing, check_params
from skdice.estimators._bias import BiasTuned, log, stack_rounds
from skdice.estimators.checks import check_known, check_validation
from skdice.estimators.scores import ClassScores
from skdice.metrics import positive_class
from skdice.metrics.decisions import tune_bias
from skdice.metrics.labels import as_labels
from skdice.metrics.positive import positive_of


@dataclass(eq=False, repr=False)
class BiasTunedClassifier(ClassScores, ClassifierMixin, BiasTuned):
    """A classifier whose decision is tuned for F1 on held-out data.

    The baseline that any loss has to beat: train with cross-entropy, then add a bias for each class
    to the log-probabilities. With two classes that is threshold tuning, as in scikit-learn's
    `TunedThresholdClassifierCV`; this one also takes more classes.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    scoring : {"auto", "f1", "f1_macro", "accuracy", "balanced_accuracy"} or callable, \
default="auto"
        What to maximise. ``"auto"`` is the F1 of the positive class for two classes and macro F1
        for more. A callable takes true and predicted labels.
    bias : {"per_class", "prior"}, default="per_class"
        ``"per_class"`` tunes one bias for each class. ``"prior"`` tunes one number, tau in b = -tau
        log(prior).
    pos_label : label or None, default=None
        The positive class of two. None is the estimator's own where it has one, and else chosen
        as in `DiceSequenceClassifier`.
    cv : int, float, splitter, "prefit" or None, default=None
        Where held-out data come from: a number of folds (None is 5), a share of the rows, or
        ``"prefit"``, which is all rows for an estimator that is fitted already. With folds or a
        share the estimator is fitted on all rows at the end. Ignored if `fit` gets ``X_val``.
    random_state : int, RandomState or None, default=None
        Seed of the split, if `cv` is a share.

    Attributes
    ----------
    estimator_ : fitted classifier
    bias_ : ndarray of shape (n_classes,)
        Added to the log-probabilities.
    classes_ : ndarray of shape (n_classes,)
    positive_ : int
        Index of the positive class of two.

    References
    ----------
    A. K. Menon et al., "Long-tail learning via logit adjustment", ICLR 2021.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import BiasTunedClassifier, DiceClassifier
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> tuned = BiasTunedClassifier(DiceClassifier(loss="ce", random_state=0)).fit(X, y)
    >>> tuned.bias_.shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BiasTuned._parameter_constraints,
        "scoring": [
            StrOptions({"auto", "f1", "f1_macro", "accuracy", "balanced_accuracy"}),
            callable,
        ],
        "pos_label": "no_validation",
    }

    _: KW_ONLY
    scoring: str | Callable[[Any, Any], float] = "auto"
    pos_label: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).classifier_tags
        if inner is not None and tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.multi_class
        return tags

    @all_or_nothing
    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None, **params: Any) -> Self:
        """Fit the estimator, and tune the biases on rows that it did not see.

        Parameters
        ----------
        X, y : as the estimator takes them
        X_val, y_val : as X and y, default=None
            Rows to tune on, also passed to the estimator's ``fit`` if that takes them.
        **params : dict
            For the estimator's ``fit``, such as ``sample_weight``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad parameters, if one of `X_val` and `y_val` is missing, or if they share no label
            with `y`.
        """
        check_params(self)
        params = self._routed(params)
        check_validation(X_val, y_val)
        if X is None:
            raise TypeError("X=None must hold a row for each label of y")
        labels = column_or_1d(as_labels(y))
        X, y = indexable(X, y)
        if self.cv == "prefit" and X_val is None:
            check_is_fitted(self.estimator)
            classes = self.estimator.classes_
        else:
            classes = np.unique(labels)
        self._check_classes(classes)
        splits: Any = ()
        if X_val is not None:
            y_val = column_or_1d(as_labels(y_val, name="y_val"))
            check_known(labels.tolist(), y_val.tolist(), "labels")
            check_consistent_length(X_val, y_val)
            if (width := _width(X_val)) != _width(X) and None not in (width, _width(X)):
                raise ValueError(f"X_val has {width} columns and X {_width(X)}: give the same")
        elif self.cv != "prefit":
            splits = list(self._splits(X, labels))
        rounds = self._fit_rounds(X, y, X_val, y_val, params, splits)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if len(self.classes_) == 2:
            self.positive_ = positive_of(self.estimator_, labels, self.pos_label)
        held = [(m, m.predict_proba(rows), column_or_1d(truth)) for m, rows, truth in rounds]
        log_p, known = stack_rounds(self.classes_, held)
        score = self._score_of(known, np.concatenate([truth for _, _, truth in held]))
        self.bias_ = tune_bias(log_p, known, score, per_class=self.bias == "per_class")
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of shape (n,)."""
        best = self.decide(X).argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of shape (n, n_classes) after the biases."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Log-probabilities of shape (n, n_classes) after the biases."""
        return log_softmax(self.decide(X), axis=1)

    def decide(self, X: Any) -> np.ndarray:
        """Log-probabilities plus biases, of shape (n, n_classes)."""
        check_is_fitted(self)
        return log(self.estimator_.predict_proba(X)) + self.bias_

    def _check_classes(self, classes: np.ndarray) -> None:
        """Refuse an objective and a positive class that these classes cannot have."""
        if self.scoring == "f1" and len(classes) != 2:
            raise ValueError(
                f"scoring='f1' is for two classes, and y has {len(classes)}: use 'f1_macro'"
            )
        if len(classes) == 2:
            positive_class(classes, np.zeros(2), self.pos_label)

    def _splits(self, X: Any, labels: np.ndarray) -> Any:
        """Train and held-out indices."""
        rows = np.zeros(len(labels))
        cv: Any = 5 if self.cv is None else self.cv
        if isinstance(cv, Real) and not isinstance(cv, Integral):
            splitter = StratifiedShuffleSplit(
                1, test_size=float(cv), random_state=self.random_state
            )
            return splitter.split(rows, labels)
        if not isinstance(cv, Integral):
            return cv.split(X, labels)
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        if smallest < 2:
            raise ValueError(
                "a class of y has 1 sample only, and held-out data needs 2 of each: leave the "
                "class out, or give X_val and y_val"
            )
        return StratifiedKFold(min(int(cv), smallest)).split(rows, labels)

    def _score_of(self, truth: np.ndarray, held: np.ndarray) -> Callable[[np.ndarray], float]:
        """The objective, from predicted class indices.

        `truth` holds the indices of the `held` labels, -1 for one that training did not hold.
        """
        kind, n_classes = self.scoring, len(self.classes_)
        if callable(kind):
            metric, names = kind, self.classes_
            return lambda predicted: float(metric(held, names[predicted]))
        if kind == "accuracy":
            return lambda predicted: float(accuracy_score(truth, predicted))
        if kind == "balanced_accuracy":
            return lambda predicted: float(balanced_accuracy_score(truth, predicted))
        positive = self.positive_ if kind != "f1_macro" and n_classes == 2 else None
        support = np.bincount(truth[truth >= 0], minlength=n_classes)

        def f1(predicted: np.ndarray) -> float:
            hits = np.bincount(predicted[predicted == truth], minlength=n_classes)
            total = support + np.bincount(predicted, minlength=n_classes)
            of_class = 2 * hits / np.maximum(total, 1)
            return float(of_class.mean() if positive is None else of_class[positive])

        return f1


def _width(X: Any) -> int | None:
    """The number of columns of a table, and None of what has none."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None
