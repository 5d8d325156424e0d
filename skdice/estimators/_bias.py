"""What the two estimators with a tuned decision share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdice._compat import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    check_method_params,
    routing_enabled,
)
from skdice.text.inputs import take

__all__ = ["BiasTuned", "log"]


def log(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms, finite also of 0."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


@dataclass(eq=False, repr=False)
class BiasTuned(MetaEstimatorMixin, BaseEstimator):
    """Base of the estimators whose decision is tuned on held-out data."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "bias": [StrOptions({"per_class", "prior"})],
        "cv": [
            Interval(RealNotInt, 0, 1, closed="neither"),
            Interval(Integral, 2, None, closed="left"),
            StrOptions({"prefit"}),
            HasMethods(["split", "get_n_splits"]),
            None,
        ],
        "random_state": ["random_state"],
    }

    estimator: Any
    _: KW_ONLY
    bias: str = "per_class"
    cv: Any = None
    random_state: int | np.random.RandomState | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Parameters that ``fit`` hands on to the estimator's ``fit``.

        Returns
        -------
        MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=to_fit)

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """Those of `params` that the estimator asked for, where scikit-learn routes metadata."""
        if not routing_enabled():
            return params
        return dict(process_routing(self, "fit", **params).estimator.fit)

    def _fit_rounds(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        params: dict[str, Any],
        splits: Iterable[tuple[np.ndarray, np.ndarray]],
    ) -> list[tuple[Any, Any, Any]]:
        """Fit `estimator_`, and give models with rows that they have not seen and their truth."""
        if X_val is not None:
            if has_fit_parameter(self.estimator, "X_val"):
                params = {**params, "X_val": X_val, "y_val": y_val}
            self.estimator_ = clone(self.estimator).fit(X, y, **params)
            return [(self.estimator_, X_val, y_val)]
        if self.cv == "prefit":
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            return [(self.estimator_, X, y)]
        rounds = []
        for train, held in splits:
            chosen = check_method_params(X, params, train)
            model = clone(self.estimator).fit(take(X, train), take(y, train), **chosen)
            rounds.append((model, take(X, held), take(y, held)))
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return rounds
