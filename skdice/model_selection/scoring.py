"""The scorers of a search, and what they get beside the rows."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any

from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _check_multimetric_scoring

__all__ = ["scorers_of", "weights_of"]


def scorers_of(estimator: Any, scoring: Any, refit: Any) -> tuple[dict[str, Any], str]:
    """Scorers by name, and the name that counts.

    Raises
    ------
    ValueError
        If `refit` does not name one of several scores, or names one where there is one.
    """
    if isinstance(scoring, (list, tuple, dict)):
        scorers = _check_multimetric_scoring(estimator, scoring)
        if not isinstance(refit, str) or refit not in scorers:
            raise ValueError(
                f"refit={refit!r} must name one of the scores {list(scorers)}, by which the best "
                "parameters are chosen"
            )
        return scorers, refit
    if callable(scoring) and isinstance(refit, str):
        raise ValueError(
            f"refit={refit!r} names one of several scores, and scoring={scoring!r} is one: give a "
            "dict of scorers, or refit=True"
        )
    return {"score": check_scoring(estimator, scoring)}, "score"


def weights_of(scorers: dict[str, Any], sample_weight: Any) -> dict[str, dict[str, Any]]:
    """``sample_weight`` for scorers that take it, as in `GridSearchCV` without routing."""
    if sample_weight is None:
        return {}
    weights = {}
    for name, scorer in scorers.items():
        if hasattr(scorer, "_accept_sample_weight"):
            accepts = scorer._accept_sample_weight()
        else:
            accepts = "sample_weight" in signature(scorer).parameters
        if accepts:
            weights[name] = {"sample_weight": sample_weight}
        else:
            warnings.warn(f"{scorer!r} takes no sample_weight: rows weigh alike", stacklevel=4)
    return weights
