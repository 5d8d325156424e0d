"""What the two estimators with a tuned decision share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from skdice._compat import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    check_method_params,
    routing_enabled,
)
from skdice.text.inputs import take

__all__ = ["CV", "fit_part", "log", "routed", "router", "with_validation"]


def log(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms, finite also of 0."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


CV: list[Any] = [
    Interval(RealNotInt, 0, 1, closed="neither"),
    Interval(Integral, 2, None, closed="left"),
    StrOptions({"prefit"}),
    HasMethods(["split", "get_n_splits"]),
    None,
]


def router(tuned: Any) -> MetadataRouter:
    """What ``fit`` of a tuned estimator hands on."""
    to_fit = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=tuned).add_self_request(tuned)
    return router.add(estimator=tuned.estimator, method_mapping=to_fit)


def routed(tuned: Any, params: dict[str, Any]) -> dict[str, Any]:
    """What of `params` the estimator's ``fit`` asked for, where scikit-learn routes metadata."""
    if not routing_enabled():
        return params
    return dict(process_routing(tuned, "fit", **params).estimator.fit)


def fit_part(estimator: Any, X: Any, y: Any, rows: np.ndarray, params: dict[str, Any]) -> Any:
    """A clone fitted on some of the rows."""
    chosen = check_method_params(X, params, rows)
    return clone(estimator).fit(take(X, rows), take(y, rows), **chosen)


def with_validation(estimator: Any, X_val: Any, y_val: Any, params: dict[str, Any]) -> Any:
    """Parameters of ``fit``, with validation data where it takes them."""
    if not has_fit_parameter(estimator, "X_val"):
        return params
    return {**params, "X_val": X_val, "y_val": y_val}
