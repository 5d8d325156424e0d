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
from sklearn.utils import Tags, column_or_1d, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skdice._compat import StrOptions
from skdice.estimators._bias import BiasTuned, log, stack_rounds
from skdice.estimators._scores import ClassScores
from skdice.estimators.checks import check_known, check_validation
from skdice.metrics import positive_class
from skdice.metrics.decisions import tune_bias


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
        self._validate_params()
        params = self._routed(params)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        check_validation(X_val, y_val)
        X, y = indexable(X, y)
        check_classification_targets(y)
        labels = column_or_1d(y)
        splits: Any = ()
        if X_val is not None:
            check_known(labels.tolist(), column_or_1d(y_val).tolist(), "labels")
        elif self.cv != "prefit":
            splits = list(self._splits(X, labels))
        rounds = self._fit_rounds(X, y, X_val, y_val, params, splits)
        self.classes_ = self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if len(self.classes_) == 2:
            self.positive_ = self._positive(labels)
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
        if kind == "f1" and n_classes != 2:
            raise ValueError(
                f"scoring='f1' is for two classes, and y has {n_classes}: use 'f1_macro'"
            )
        positive = self.positive_ if kind != "f1_macro" and n_classes == 2 else None
        support = np.bincount(truth[truth >= 0], minlength=n_classes)

        def f1(predicted: np.ndarray) -> float:
            hits = np.bincount(predicted[predicted == truth], minlength=n_classes)
            total = support + np.bincount(predicted, minlength=n_classes)
            of_class = 2 * hits / np.maximum(total, 1)
            return float(of_class[total > 0].mean() if positive is None else of_class[positive])

        return f1

    def _positive(self, labels: np.ndarray) -> int:
        """Index of the positive class: of `pos_label`, of the estimator, or of the rarer label."""
        inner = self.estimator_
        while hasattr(inner, "steps"):  # a pipeline's last step decides
            inner = inner.steps[-1][1]
        if self.pos_label is None and hasattr(inner, "positive_"):
            return int(inner.positive_)
        counts = np.array([np.sum(labels == name) for name in self.classes_])
        return positive_class(self.classes_, counts, self.pos_label)
