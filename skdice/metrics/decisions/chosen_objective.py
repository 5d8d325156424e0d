"""From what a user asks for to an objective, or to a function of true and predicted labels."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from skdice._checks import shown
from skdice.metrics.decisions.objectives import Fbeta, Objective, Score

_MICRO, _MACRO = Fbeta(average="micro"), Fbeta(average="macro")
# By what is decided: one of two classes, one of more, several labels, or spans.
_NAMED: dict[str, dict[str, Score]] = {
    "auto": {"two": Fbeta(), "classes": _MACRO, "labels": _MICRO, "spans": _MICRO},
    "f1": {"two": Fbeta(), "labels": _MACRO, "spans": _MICRO},
    "f1_micro": dict.fromkeys(("two", "classes", "labels", "spans"), _MICRO),
    "f1_macro": dict.fromkeys(("two", "classes", "labels", "spans"), _MACRO),
    "accuracy": dict.fromkeys(("two", "classes"), _MICRO),
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
        if kind in _NAMED.get(scoring, ()):
            return _NAMED[scoring][kind]
        if scoring == "f1":
            n = len(classes)
            raise ValueError(f"scoring='f1' is for two classes, and y has {n}: use 'f1_macro'")
        names = (*(name for name, kinds in _NAMED.items() if kind in kinds), LOG_LOSS)
        raise ValueError(
            f"scoring={scoring!r} must be one of {names}, an objective such as Fbeta(2) of "
            "skdice.metrics, or a function of true and predicted labels"
        )
    if isinstance(scoring, Objective):
        return scoring._resolve(kind, classes, positive)
    if isinstance(scoring, type) or not callable(scoring):
        raise TypeError(
            f"scoring={shown(scoring)} must be a name, an objective such as Fbeta(2), or a function"
        )
    if not _takes(2, scoring):
        metric = ": a scorer takes an estimator, so give its metric" if _takes(3, scoring) else ""
        raise TypeError(
            f"scoring={shown(scoring)} must be a function of two arguments, the true and the "
            f"predicted labels{metric}"
        )
    _check_metric(scoring, kind, classes)
    return scoring


def in_full(scoring: Any, objective: Any) -> str:
    """Words for what a decision was tuned for; `objective` is what `scoring` stands for."""
    if objective == LOG_LOSS:
        return "calibrated probabilities"
    if isinstance(objective, Objective):
        return (scoring if isinstance(scoring, Objective) else objective)._in_full()
    return str(getattr(scoring, "__name__", "a function"))


def _check_metric(scoring: Any, kind: str, classes: Any) -> None:
    """Refuse a metric of scikit-learn that cannot score these classes; others are not called."""
    of = getattr(scoring, "func", scoring)  # of a partial
    if kind == "spans" or not str(getattr(of, "__module__", "")).startswith("sklearn.metrics"):
        return
    sample = np.eye(len(classes), dtype=int) if kind == "labels" else np.asarray(classes)
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


def _takes(n: int, function: Callable[..., Any]) -> bool:
    """Tell if a function can be called with `n` arguments, as far as it says."""
    try:
        inspect.signature(function).bind(*[None] * n)
    except TypeError:
        return False
    except ValueError:  # a builtin does not say
        return n == 2
    return True
