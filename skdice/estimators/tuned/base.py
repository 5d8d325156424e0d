"""The base of the two estimators with a tuned decision."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skdice._checks import checked, shown
from skdice._compat import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    routing_enabled,
)
from skdice._fitting import draft_of
from skdice.estimators.evaluation import outputs_of
from skdice.estimators.fold_fits import aligned, fitted_on, probabilities_of
from skdice.estimators.hub import Pushed
from skdice.inputs.rows import check_groups, row_keys, take
from skdice.metrics.calibration import calibrate, log
from skdice.metrics.decisions.bounds import Bound
from skdice.metrics.decisions.chosen_objective import LOG_LOSS, in_full
from skdice.metrics.decisions.held_out_rows import HeldOutRows
from skdice.metrics.decisions.objectives import Cost
from skdice.metrics.decisions.tuning import tune


class HeldOut(NamedTuple):
    """Rows that a model did not see, with its probabilities.

    Attributes
    ----------
    X, y : rows and their truth
    classes : ndarray
        The labels of the columns of `table`: perhaps not all, if the rows to train on lack some.
    table : ndarray of shape (n, n_classes), or one of object, with such a table for each sentence
    """

    X: Any
    y: Any
    classes: np.ndarray
    table: Any


def _first_of_equals(keys: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of each key, and for each row the number of its key."""
    numbers: dict[Any, int] = {}
    same = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
    return np.unique(same, return_index=True)[1], same


@dataclass(eq=False, repr=False)
class BiasTuned(Pushed, MetaEstimatorMixin, BaseEstimator):
    """Base of the estimators whose decision is tuned on held-out data."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict_proba"])],
        "scoring": "no_validation",  # `resolve_scoring` checks it
        "n_bootstraps": [Interval(Integral, 0, 1_000_000, closed="both")],  # more take days
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
    scoring: Any = "auto"
    n_bootstraps: int = 20
    cv: Any = None
    random_state: int | np.random.RandomState | None = None

    classes_: np.ndarray = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.required = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``scoring__beta`` works while `scoring` is an objective."""
        scoring = params.get("scoring", self.scoring)
        of_scoring = [name for name in params if name.startswith("scoring__")]
        if of_scoring and not hasattr(scoring, "set_params"):
            raise ValueError(
                f"{of_scoring[0]} is of an objective, and scoring is {shown(scoring)}: set "
                "scoring=Fbeta(2), or another of skdice.metrics"
            )
        return super().set_params(**params)

    def get_metadata_routing(self) -> MetadataRouter:
        """Parameters that ``fit`` passes to the estimator's ``fit``.

        Returns
        -------
        MetadataRouter
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    def _routed(self, params: dict[str, Any], X_val: Any) -> tuple[dict[str, Any], Any]:
        """The `params` of the estimator's ``fit``, and the groups that folds keep together."""
        groups = params.get("groups")
        if groups is not None:
            self._check_makes_folds(X_val)
        if groups is None or not self._passes_groups():
            params = {name: value for name, value in params.items() if name != "groups"}
        if routing_enabled():
            params = dict(process_routing(self, "fit", **params).estimator.fit)
        return params, groups

    def _check_makes_folds(self, X_val: Any) -> None:
        """Refuse groups where nothing is divided into folds."""
        splits = hasattr(self.cv, "get_n_splits")  # as a splitter has
        folds = self.cv is None or isinstance(self.cv, Integral) or splits
        if X_val is not None or not folds:
            where = "X_val" if X_val is not None else f"cv={self.cv!r}"
            raise ValueError(
                f"groups are for folds, and {where} makes none: give cv as a number of folds or a "
                "splitter, or leave groups out"
            )

    def _passes_groups(self) -> bool:
        """Tell if the estimator, or with routing the splitter, takes the groups too."""
        if routing_enabled():
            return hasattr(self.cv, "split")  # a number of folds requests nothing
        # A search inside splits by them too.
        return has_fit_parameter(self.estimator, "groups") or hasattr(self.estimator, "cv")

    def _folds(self, X: Any, y: Any, groups: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Train and held-out indices; for a bound equal rows are on one side."""
        if groups is not None:
            check_groups(groups, len(y))
        keys = row_keys(X) if isinstance(self.scoring, Bound) else range(len(y))
        first, same = _first_of_equals(keys)
        if groups is not None or hasattr(self.cv, "split") or len(first) == len(y):
            return list(self._splits(X, y, groups))
        splits = self._splits(take(X, first), take(y, first), None)
        return [
            (np.flatnonzero(np.isin(same, train)), np.flatnonzero(np.isin(same, held)))
            for train, held in splits
        ]

    @checked
    def save_pretrained(
        self,
        folder: str | Path,
        *,
        metrics: dict[str, float] | None = None,
        card: dict[str, Any] | None = None,
    ) -> Path:
        """Write the fitted estimator with the tuned decision in its head.

        A bias on log-probabilities is the same as a bias of the head, and a temperature the same
        as smaller weights. So every reader of the folder, such as ``pipeline`` of transformers,
        makes the tuned decision and shows the same probabilities. The scales of a tagger's span
        scores are in ``skdice.json``.

        Parameters
        ----------
        folder : str or Path
            Made if missing.
        metrics : dict or None, default=None
            Scores for the model card, such as ``tuned.evaluate(X_test, y_test)``.
        card : dict or None, default=None
            More of the card's metadata, as in the inner estimator's ``save_pretrained``.

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
        return self._with_bias_in_head().save_pretrained(folder, metrics=metrics, card=card)

    def _inner(self) -> Any:
        """The estimator whose decision was tuned, with the same classes as then."""
        check_is_fitted(self)
        now = outputs_of(self.estimator_)
        # The columns of several labels a row may have no names.
        named = not getattr(self, "multilabel_", False) or isinstance(now[0], str)
        if len(now) != len(self.classes_) or (named and not np.array_equal(now, self.classes_)):
            raise ValueError(
                "the estimator has other classes than when fit tuned its decision "
                f"({self.classes_} then, {now} now): fit the {type(self).__name__} again"
            )
        return self.estimator_

    def _with_bias_in_head(self) -> Any:
        """A copy of the inner estimator whose head has the biases and the temperature."""
        inner = self._inner()
        if not hasattr(inner, "save_pretrained"):
            raise TypeError(
                f"{type(inner).__name__} has no save_pretrained: pickle the whole, or tune a text "
                "estimator of skdice"
            )
        if inner.module_.output_layer.bias is None:
            raise ValueError(
                f"the head of {type(inner.module_.head).__name__} has no bias to add to: pickle "
                "the whole, or choose another pooling"
            )
        tuned = draft_of(inner)
        tuned.module_ = copy.deepcopy(inner.module_)
        for name in ("span_scales_", "tuned_for_"):
            if hasattr(self, name):
                setattr(tuned, name, getattr(self, name))
        with torch.no_grad():
            layer = tuned.module_.output_layer
            layer.bias += torch.as_tensor(self.bias_).to(layer.bias)
            for values in (layer.weight, layer.bias):
                values /= self.temperature_
        return tuned

    def _search(self, rows: Any, objective: Any) -> Any:
        """The biases of `rows` that come nearest to the objective."""
        return tune(rows, objective, n_draws=int(self.n_bootstraps))

    def _tune(
        self, rows: HeldOutRows, objective: Any, logits: np.ndarray, truth: np.ndarray, parts: Any
    ) -> None:
        """Set the biases and the temperature; `logits` and `truth` are those of `rows`.

        A row of X and y that the `parts` hold several times is one piece of evidence for a bound.
        """
        self.bias_draws_: np.ndarray = np.zeros((0, len(self.classes_)))
        self.bound_ = None
        self.tuned_for_: dict[str, Any] = {"objective": in_full(self.scoring, objective)}
        if isinstance(objective, Cost):
            table = self._in_class_order(np.array(objective.matrix))
            self.tuned_for_["cost"] = table.tolist()
        if np.isnan(logits).any():
            row = int(np.isnan(logits).any(axis=1).argmax())
            what = f"{type(self.estimator_).__name__} gives NaN as a probability"
            raise ValueError(f"{what}, for held-out row or token {row}: look at its X, or its fit")
        if objective == LOG_LOSS:
            self.temperature_, self.bias_ = calibrate(logits, truth, biases=True)
            return
        if isinstance(objective, Bound):
            held = [zip(row_keys(part.X), row_keys(part.y), strict=True) for part in parts]
            rows = rows.take(_first_of_equals(chain.from_iterable(held))[0])
        tuning = self._search(rows, objective)
        self.bias_ = self._class_biases(tuning.bias)
        self.bound_ = tuning.promise
        if len(tuning.biases):
            self.bias_draws_ = np.array([self._class_biases(bias) for bias in tuning.biases])
        self.temperature_, _ = calibrate(logits + self.bias_, truth, biases=False)

    def _class_biases(self, bias: np.ndarray) -> np.ndarray:
        """A bias for each class."""
        return bias

    def _in_class_order(self, table: np.ndarray) -> np.ndarray:
        """Costs in the order in which they are told."""
        return table

    def _fit_and_hold_out(
        self,
        X: Any,
        y: Any,
        X_val: Any,
        y_val: Any,
        params: dict[str, Any],
        splits: Iterable[tuple[np.ndarray, np.ndarray]],
    ) -> list[HeldOut]:
        """Fit `estimator_`; give rows that it, or the model of their fold, has not seen."""
        if X_val is not None:
            if has_fit_parameter(self.estimator, "X_val"):
                params = {**params, "X_val": X_val, "y_val": y_val}
            self.estimator_: Any = clone(self.estimator).fit(X, y, **params)
            return [HeldOut(X_val, y_val, *probabilities_of(self.estimator_, X_val))]
        if self.cv == "prefit":
            if params:
                raise ValueError(f"cv='prefit' fits nothing: leave out {', '.join(params)}")
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            return [HeldOut(X, y, *probabilities_of(self.estimator_, X))]
        found = []
        for train, held in splits:
            model, rows = fitted_on(self.estimator, X, y, train, params), take(X, held)
            found.append(HeldOut(rows, take(y, held), *probabilities_of(model, rows)))
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return found

    def _stacked(self, parts: list[HeldOut]) -> np.ndarray:
        """Log-probabilities of all held-out rows, a column for each of `classes_`."""
        tables = aligned([p.table for p in parts], [p.classes for p in parts], self.classes_)
        if tables[0].dtype == object:
            tables = [np.concatenate(list(sentences)) for sentences in tables]
        return log(np.concatenate(tables))

    def _indices(self, truth: Iterable[Any], known: Iterable[Any]) -> np.ndarray:
        """Indices of the true classes; -1 of those that are not among `classes_` and `known`."""
        known = {*known}
        index = {label: i for i, label in enumerate(self.classes_.tolist()) if label in known}
        return np.array([index.get(label, -1) for label in truth])

    def _told(self, parts: list[HeldOut], truths: Iterable[Iterable[Any]]) -> np.ndarray:
        """The same, -1 also where the model of the fold never saw the class.

        It has a probability of 0 there, which tells nothing of the model of all rows.
        """
        pairs = zip(truths, parts, strict=True)
        return np.concatenate([self._indices(true, part.classes.tolist()) for true, part in pairs])
