"""From what a user asks for to an objective, or to a function of true and predicted labels."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer, get_scorer_names

from skdice._checks import shown
from skdice._lock import PROCESS
from skdice.metrics.decisions.objectives import BalancedAccuracy, Fbeta, is_objective
from skdice.metrics.decisions.tuning import Score

_MICRO, _MACRO, _BALANCED = Fbeta(average="micro"), Fbeta(average="macro"), BalancedAccuracy()
# By what is decided: one of two classes, one of more, several labels, or spans.
_NAMED: dict[str, dict[str, Score]] = {
    "auto": {"two": Fbeta(), "classes": _MACRO, "labels": _MICRO, "spans": _MICRO},
    "f1": {"two": Fbeta(), "labels": _MACRO, "spans": _MICRO},
    "f1_micro": dict.fromkeys(("two", "classes", "labels", "spans"), _MICRO),
    "f1_macro": dict.fromkeys(("two", "classes", "labels", "spans"), _MACRO),
    "accuracy": dict.fromkeys(("two", "classes"), _MICRO),
    "balanced_accuracy": dict.fromkeys(("two", "classes"), _BALANCED),
}
LOG_LOSS = "neg_log_loss"


def resolve_scoring(scoring: Any, kind: str, classes: Any, positive: int | None = None) -> Any:
    """The objective that `scoring` stands for.

    Parameters
    ----------
    scoring : str, objective or callable
    kind : {"two", "classes", "labels", "spans"}
    classes : ndarray of shape (n_classes,)
    positive : int or None, default=None
        Of two classes.

    Returns
    -------
    objective, callable of true and predicted labels, or ``LOG_LOSS``

    Raises
    ------
    ValueError, TypeError
        If these classes or tags cannot have the objective.
    """
    if isinstance(scoring, str):
        if scoring == LOG_LOSS:
            return scoring
        if scoring in _NAMED and kind in _NAMED[scoring]:
            return _NAMED[scoring][kind]
        if scoring == "f1":
            n = len(classes)
            raise ValueError(f"scoring='f1' is for two classes, and y has {n}: use 'f1_macro'")
        if kind == "spans" or scoring not in get_scorer_names():
            names = [*_NAMED, LOG_LOSS][: 4 if kind == "spans" else None]
            more = "" if kind == "spans" else ", a scorer of scikit-learn"
            raise ValueError(
                f"scoring={scoring!r} must be one of {tuple(names)}{more}, an objective such as "
                "Fbeta(2) of skdice.metrics, or a function of true and predicted labels"
            )
        return _of_scorer(scoring, kind, classes, positive)
    if is_objective(scoring):
        return scoring.resolve(kind, len(classes))
    if isinstance(scoring, type) or not callable(scoring):
        raise TypeError(
            f"scoring={shown(scoring)} must be a name, an objective such as Fbeta(2), or a function"
        )
    if (n_arguments := _n_arguments(scoring)) != 2:
        if n_arguments != 3:
            raise TypeError(
                f"scoring={shown(scoring)} must be a function of two arguments, the true and the "
                f"predicted labels, and takes {n_arguments}"
            )
        return _of_scorer(scoring, kind, classes, None)
    _check_metric(scoring, kind, classes)
    return scoring


def _check_metric(scoring: Any, kind: str, classes: Any) -> None:
    """Refuse a metric of scikit-learn that cannot score these classes; others are not called."""
    of = getattr(scoring, "func", scoring)  # of a partial
    if kind == "spans" or not str(getattr(of, "__module__", "")).startswith("sklearn.metrics"):
        return
    sample = _sample(kind, classes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scoring(sample, sample)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"scoring={shown(scoring)} cannot score these labels ({error}): use a name such as "
            "'f1_macro', Fbeta of skdice.metrics, or a function that gives it its average and "
            "pos_label"
        ) from error


def _sample(kind: str, classes: Any) -> np.ndarray:
    """Labels in which each class occurs."""
    return np.eye(len(classes), dtype=int) if kind == "labels" else np.asarray(classes)


def _n_arguments(function: Callable[..., Any]) -> int:
    """Count its arguments, 2 if it can; a scorer takes an estimator, X and y."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a builtin
        return 2
    for n in (2, 3):
        try:
            signature.bind(*[None] * n)
        except TypeError:
            continue
        return n
    return len(signature.parameters)


class Decided(ClassifierMixin, BaseEstimator):
    """A stand-in that a scorer takes for a fitted classifier: its predictions are given."""

    def __init__(self, predicted: Any = None, classes: Any = None) -> None:
        self.predicted = predicted
        self.classes = classes

    @property
    def classes_(self) -> Any:
        """The classes."""
        return self.classes

    def predict(self, X: Any) -> Any:
        """Return the predictions that were given."""
        return self.predicted


def _of_scorer(
    scoring: Any, kind: str, classes: Any, positive: int | None
) -> Callable[[Any, Any], float]:
    """A function of true and predicted labels from a scorer; refuses one of probabilities."""
    scorer = get_scorer(scoring)

    def score(true: Any, predicted: Any) -> float:
        known = classes
        if positive is not None and np.isin(true, classes).all():
            # Scorers by name take 1 for the positive class, whatever it is called.
            true, predicted = true == classes[positive], predicted == classes[positive]
            true, predicted, known = true.astype(int), predicted.astype(int), np.array([0, 1])
        quick = config_context(assume_finite=True, skip_parameter_validation=True)
        with PROCESS, warnings.catch_warnings(), quick:
            # A search tries decisions without any positive too.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return float(scorer(Decided(predicted, known), np.zeros((len(true), 1)), true))

    if kind == "spans":
        return score
    sample = _sample(kind, classes)
    try:
        score(sample, sample)
    except (AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"scoring={scoring!r} does not score predicted labels, which is what biases change: "
            "use an F1, or 'neg_log_loss' for calibrated probabilities"
        ) from error
    return score
