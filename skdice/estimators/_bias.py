"""What the two estimators with a tuned decision share."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
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

__all__ = ["BiasTuned", "log", "with_bias"]


def log(probabilities: np.ndarray) -> np.ndarray:
    """Logarithms, finite also of 0."""
    return np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))


def with_bias(estimator: Any, bias: np.ndarray) -> Any:
    """A copy of a fitted text estimator whose head has `bias` added to its own."""
    if getattr(estimator, "label_all_subwords", False):
        raise ValueError(
            "label_all_subwords=True averages probabilities after the head, which therefore cannot "
            "hold the tuned biases: pickle the whole, or fit with label_all_subwords=False"
        )
    if estimator._module.output_layer.bias is None:
        raise ValueError(
            f"the head of {type(estimator._module.head).__name__} has no bias to add to: pickle "
            "the whole, or choose another pooling"
        )
    tuned = estimator._draft()
    tuned._module = copy.deepcopy(estimator._module)
    with torch.no_grad():
        own = tuned._module.output_layer.bias
        own += torch.as_tensor(bias, dtype=own.dtype, device=own.device)
    return tuned


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

    def save_pretrained(
        self, folder: str | Path, *, metrics: dict[str, float] | None = None
    ) -> Path:
        """Write the fitted estimator with the tuned decision in its head.

        A bias of log-probabilities is the same as one of the head, so that whatever reads the
        folder, such as ``pipeline`` of transformers, makes the tuned decision.

        Parameters
        ----------
        folder : str or Path
            Made if missing.
        metrics : dict or None, default=None
            Scores for the model card, such as ``{"test F1": 0.471}``.

        Returns
        -------
        Path
            The folder, which the *inner* estimator's ``from_pretrained`` reads.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the inner estimator cannot be saved.
        ValueError
            If its head cannot hold the biases.
        """
        return self._folded().save_pretrained(folder, metrics=metrics)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        metrics: dict[str, float] | None = None,
        token: str | None = None,
    ) -> str:
        """Upload what `save_pretrained` writes to the Hugging Face hub.

        Parameters
        ----------
        repo_id : str
            Such as ``"ann/town-notes-tagger"``; made if missing.
        private : bool or None, default=None
            Of a repository that is made; None is what the organisation's settings say.
        metrics : dict or None, default=None
            As in `save_pretrained`.
        token : str or None, default=None
            None is the one that ``hf auth login`` stored.

        Returns
        -------
        str
            The address of the commit.
        """
        return self._folded().push_to_hub(repo_id, private=private, metrics=metrics, token=token)

    def _folded(self) -> Any:
        """The inner estimator with the biases in its head."""
        check_is_fitted(self)
        if not hasattr(self.estimator_, "save_pretrained"):
            raise TypeError(
                f"{type(self.estimator_).__name__} has no save_pretrained: pickle the whole, or "
                "tune a text estimator of skdice"
            )
        return with_bias(self.estimator_, self.bias_)

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
