"""LossSearchCV: search the losses' own parameters with Optuna."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdice._compat import HasMethods, Interval, StrOptions, routing_enabled
from skdice._fitting import all_or_nothing, check_params
from skdice._types import Data
from skdice.engine.fit_plan import draw_seed
from skdice.engine.ranks import check_alone
from skdice.estimators import DiceTokenClassifier
from skdice.estimators.before_folds import check_rows
from skdice.inputs.sentences import holds_tags
from skdice.model_selection.checks import (
    check_classes,
    check_scores,
    check_tags,
    folds_of,
    scorers_of,
    weights_of,
)
from skdice.model_selection.full_fits import FullFits
from skdice.model_selection.heads.head_fits import HeadFits, why_no_heads
from skdice.model_selection.records import cv_results
from skdice.model_selection.spaces import as_spaces, check_space
from skdice.model_selection.study import described, open_study, quiet_optuna
from skdice.model_selection.trials import SearchRun

# With fewer trials, "auto" fits all in full: the comparison with heads costs as much as some.
WORTH_A_COMPARISON = 16


def _delegated(name: str) -> Any:
    def has(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", self.estimator), name)

    def method(self: Any, X: Any) -> Any:
        return getattr(self._check_refit(), name)(X)

    # The method gets its name before it is wrapped, since scikit-learn's scorers look at it.
    method.__name__ = name
    method.__doc__ = f"`{name}` of the best estimator."
    return available_if(has)(method)


@dataclass(eq=False, repr=False)
class LossSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search parameters with Optuna and cross-validation, in `GridSearchCV`'s manner.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator. With those of skdice, Optuna's pruners see each epoch.
    param_distributions : dict, list of dicts or None, default=None
        Maps each parameter to an Optuna distribution, a list of choices, or a function of the other
        parameters, such as ``lambda params: 1 - params["loss__alpha"]``. A list of dicts searches
        all of them. None is `loss_space` of the estimator's loss. ``{"lr": "auto"}`` searches from a third to three
        times the estimator's rate, which a text estimator chooses by its backbone.
    n_trials : int, default=32
        Number of trials. With a storage, the number in the whole study; several processes may run a
        few more.
    timeout : float or None, default=None
        Seconds after which no new trial starts and, once a finalist has a score, no other finalist
        is fitted.
    cv, scoring : as in `GridSearchCV`, default=None
        With several scores, `refit` names the one that is searched.
    refit : bool or str, default=True
        Fit the best parameters on all data.
    strategy : {"auto", "full", "shared"}, default="auto"
        ``"full"`` fits the estimator for each trial and fold. ``"shared"`` trains linear heads for
        `trials_at_once` trials together. For a `DiceClassifier` with a linear head and a search
        over ``loss``, its parameters, ``lr`` and ``weight_decay``, each head equals its own fit,
        and ``"auto"`` is shared.

        For `DiceSequenceClassifier` and `DiceTokenClassifier` and a search over ``loss`` and its
        parameters, ``"shared"`` trains heads on the frozen encoder, then fits `n_finalists` trials
        in full, and the best of those wins. On some data sets heads rank losses differently than
        full fits. So ``"auto"`` also fits 6 trials in full, and continues with full fits if the two
        rankings agree by less than 0.7 (Spearman). It is full from the start if `n_trials` is below
        16 or there is a `storage`.
    n_finalists : int, default=5
        Number of full fits after heads: half for the best heads, and half for trials that differ
        most, among those within one standard error of the best.
    trials_at_once : int, default=16
        Number of trials whose heads are trained together, if shared. None of them is pruned.
    pruner : optuna pruner, "median" or None, default="median"
        Stops bad trials early. ``"median"`` stops a trial below the median of the others at the
        same epoch of the same fold. A pruner sees the searched score on the fold's test rows after
        each epoch, and the mean so far after each fold. It sees folds only with ``early_stopping``,
        with scorers that cannot score during a fit, and with other than skdice's text estimators.
    sampler : optuna sampler or None, default=None
        None is Optuna's TPE, seeded with `random_state` and the trial's number.
    storage : str, Path, optuna storage or None, default=None
        An SQLite file or the URL of a database. It keeps the study, so that it can be continued, or
        shared by several processes that fit the same search. A trial of a killed process is tried
        again at once on the same host, and after two minutes on another.
    study_name : str or None, default=None
        Name of the study there. Its space, estimator, scoring and folds must be the same.
    n_jobs : int or None, default=None
        Number of full fits at a time, through joblib. Above 1 none of them is pruned.
    callbacks : list of callables or None, default=None
        Called with the study and the trial after each trial and each full fit of a finalist.
        ``study.stop()`` ends the trials; the finalists are still fitted.
    error_score : "raise" or float, default=nan
        Score of a trial whose fit or scorer fails. The error is kept in ``study_``.
    return_train_score : bool, default=False
    verbose : int, default=0
        1 tells the trials done, the best score so far and the time left: by a bar in a terminal or
        notebook, elsewhere by lines. 2 prints each trial, too.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float and int
        Also after an interrupt. If that came before a full fit, they are of the best head.
    best_estimator_, refit_time_ : estimator and float
        With `refit`.
    cv_results_ : dict of arrays
        As in `GridSearchCV`, one row for each finished, pruned or failed trial, with its number and
        state. Trials without a full fit after heads have the state ``SHARED``; scores of heads are
        in ``mean_shared_<score>``.
    study_ : optuna.Study
        Full fits after heads are in its ``user_attrs``, as ``full:<number>``.
    n_splits_ : int
    scorer_ : callable, or dict of callables with several scores
    strategy_ : {"full", "shared"}
        The strategy in the end. ``"auto"`` is also full for losses with a ``forward`` of their own.
    agreement_ : float
        Spearman's correlation between heads and full fits, if auto compared them.

    References
    ----------
    T. Akiba et al., "Optuna", KDD 2019.
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Table 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import DiceClassifier
    >>> from skdice.model_selection import LossSearchCV, loss_space
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> search = LossSearchCV(
    ...     DiceClassifier(max_epochs=5, random_state=0),
    ...     [loss_space("tversky"), loss_space("weighted_ce")],
    ...     n_trials=4, cv=2, scoring="f1", random_state=0)
    >>> search.fit(X, y).best_estimator_.predict(X).shape
    (100,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit"])],
        "param_distributions": [dict, list, tuple, None],
        "n_trials": [Interval(Integral, 1, None, closed="left")],
        "timeout": [Interval(Real, 0, 1e300, closed="neither"), None],
        "cv": ["cv_object"],
        "scoring": [str, callable, list, tuple, dict, None],
        "refit": ["boolean", str],
        "strategy": [StrOptions({"auto", "full", "shared"})],
        "n_finalists": [Interval(Integral, 1, None, closed="left")],
        "trials_at_once": [Interval(Integral, 1, None, closed="left")],
        "pruner": [StrOptions({"median"}), HasMethods("prune"), None],
        "sampler": [HasMethods("sample_independent"), None],
        "storage": [str, object, None],
        "study_name": [str, None],
        "n_jobs": [Interval(Integral, -(2**31), 2**31 - 1, closed="both"), None],
        "callbacks": [list, None],
        "error_score": [StrOptions({"raise"}), float, Interval(Real, -1e300, 1e300, closed="both")],
        "return_train_score": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    estimator: Any
    param_distributions: Any = None
    _: KW_ONLY
    n_trials: int = 32
    timeout: float | None = None
    cv: Any = None
    scoring: Any = None
    refit: bool | str = True
    strategy: str = "auto"
    n_finalists: int = 5
    trials_at_once: int = 16
    pruner: Any = "median"
    sampler: Any = None
    storage: Any = None
    study_name: str | None = None
    n_jobs: int | None = None
    callbacks: list[Callable[[Any, Any], None]] | None = None
    error_score: Any = np.nan
    return_train_score: bool = False
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)

    # ---- the search

    @partial(all_or_nothing, of=Exception)  # an interrupted search keeps its finished trials
    def fit(self, X: Data, y: Data | None = None, **params: Any) -> Self:
        """Run the trials, and fit the best parameters on all data.

        Parameters
        ----------
        X, y : as the estimator takes them
        **params : dict
            For the estimator's ``fit``, such as ``sample_weight``, and the splitter's ``groups``;
            if scikit-learn's metadata routing is on, for whatever asked for it, scorers included.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters, an empty or degenerate space, folds without a class, a storage
            that cannot be reached or a study of another search; before a trial runs.
        RuntimeError
            If torchrun or ``accelerate launch`` started this process to train with others.
        """
        check_params(self)
        if not all(map(callable, self.callbacks or [])):
            raise TypeError(f"callbacks={self.callbacks!r} must hold functions of study and trial")
        check_alone(type(self).__name__)
        scorers, key = scorers_of(self.estimator, self.scoring, self.refit)
        params, of_split, of_scores = self._routed(params, scorers)
        X, y, of_split["groups"] = indexable(X, y, of_split.get("groups"))
        check_rows(self.estimator, X, y)
        splits = self._check_data(X, y, of_split)
        spaces = as_spaces(self.param_distributions, self.estimator)
        losses = check_space(self.estimator, spaces)
        check_factors(self.estimator, losses, X, y)
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)  # results of an earlier fit
        ends = math.inf if self.timeout is None else time.monotonic() + self.timeout
        full = FullFits(self, X, y, params, splits, scorers, key, of_scores)
        searched = sorted({name for space in spaces for name in space})
        reason = None if self.strategy == "full" else why_no_heads(full, searched, losses)
        strategy = self._choose(full, reason)
        seed = draw_seed(self.random_state) if self.random_state is not None else None
        with quiet_optuna():
            study = open_study(self, described(self, spaces, splits))
            self.n_splits_ = len(splits)
            self.multimetric_ = isinstance(self.scoring, (list, tuple, dict))
            self.scorer_: Any = scorers if self.multimetric_ else scorers[key]
            run = SearchRun(self, study, spaces, full, strategy, seed, ends)
            try:
                with run.explained_interrupts():
                    run.to_the_end()
            finally:
                self._collect(run)  # also after an interrupt
        if not np.isfinite(self.cv_results_[f"mean_test_{key}"]).any():
            message = "no trial has a score: give n_trials, timeout or the pruner more room"
            if run.error is not None and type(run.error) is not ValueError:
                raise run.error
            if run.error is not None:
                given = ["X", "y", *params]
                message = f"every trial failed (fit got {given}), the last with: {run.error}"
            raise ValueError(message) from run.error
        if self.refit:
            started = time.perf_counter()
            data = [X] if y is None else [X, y]
            if self.verbose:
                print("a fit of the best parameters on all rows", flush=True)
            with run.explained_interrupts():
                self.best_estimator_ = full.model(self.best_params_).fit(*data, **params)
            self.refit_time_ = time.perf_counter() - started
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _check_data(self, X: Any, y: Any, of_split: dict[str, Any]) -> list[Any]:
        """The folds; refuses data and folds with which trials cannot be scored."""
        classifies = is_classifier(self.estimator)
        if y is None and get_tags(self.estimator).target_tags.required:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        splits = folds_of(self.cv, X, y, classifies, **of_split)
        if classifies:
            check_classes(y, splits)
        elif self.scoring is None and type(self.estimator) is DiceTokenClassifier:
            check_tags(y, splits)
        if y is not None and (classifies or holds_tags(y)):
            check_scores(self.scoring, y)
        return splits

    def _choose(self, full: FullFits, reason: str | None) -> FullFits | HeadFits:
        """The strategy to start with; `reason` says why heads are not possible, if so."""
        if self.strategy == "shared" and reason is not None:
            raise ValueError(f"strategy='shared' is not possible: {reason}; use 'full' or 'auto'")
        few = self.n_trials < WORTH_A_COMPARISON or self.storage is not None
        few = few and self.strategy == "auto" and hasattr(self.estimator, "backbone")
        if self.strategy == "full" or reason is not None or few:
            return full
        return HeadFits(full, self.trials_at_once)

    def _collect(self, run: SearchRun) -> None:
        """Set the attributes that hold the results of all trials."""
        self.study_ = run.study
        self.strategy_ = "shared" if isinstance(run.strategy, HeadFits) else "full"
        if run.agreement is not None:
            self.agreement_ = run.agreement
        self.cv_results_ = cv_results(
            run.study, list(run.full.scorers), self.n_splits_, run.spaces, self.return_train_score
        )
        means = self.cv_results_[f"mean_test_{run.full.key}"]
        heads = self.cv_results_.get(f"mean_shared_{run.full.key}")
        if heads is not None and not np.isfinite(means).any():
            means = np.where(self.cv_results_["state"] == "SHARED", heads, np.nan)
        if np.isfinite(means).any():
            self.best_index_ = int(np.nanargmax(means))
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            self.best_score_ = float(means[self.best_index_])

    # ---- metadata

    def get_metadata_routing(self) -> MetadataRouter:
        """The routes from ``fit`` and ``score`` to the estimator, the splitter and the scorers."""
        fits = MethodMapping().add(caller="fit", callee="fit")
        splits = MethodMapping().add(caller="fit", callee="split")
        scores = MethodMapping().add(caller="fit", callee="score")
        scores.add(caller="score", callee="score")
        splitter = check_cv(self.cv, classifier=is_classifier(self.estimator))
        router = MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=fits)
        router.add(splitter=splitter, method_mapping=splits)
        for name, scorer in scorers_of(self.estimator, self.scoring, self.refit)[0].items():
            router.add(**{f"scorer_{name}": scorer}, method_mapping=scores)
        return router

    def _routed(self, params: dict[str, Any], scorers: dict[str, Any]) -> tuple[Any, Any, Any]:
        """The parameters for the estimator's ``fit``, the splitter and each scorer."""
        if not routing_enabled():
            groups = params.pop("groups", None)
            weights = weights_of(scorers, params.get("sample_weight"))
            return params, {"groups": groups}, weights
        routed = process_routing(self, "fit", **params)
        of_scores = {name: dict(routed[f"scorer_{name}"].score) for name in scorers}
        return dict(routed.estimator.fit), dict(routed.splitter.split), of_scores

    # ---- the best estimator

    def _check_refit(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"no best estimator, as refit={self.refit!r}: use best_params_")
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    @property
    def classes_(self) -> Any:
        """Classes of the best estimator."""
        return self._check_refit().classes_

    def score(self, X: Data, y: Data | None = None, **params: Any) -> float:
        """The score by which the best parameters were chosen.

        Parameters
        ----------
        X, y : as the estimator takes them
        **params : dict
            For the scorer.
        """
        best = self._check_refit()
        key = str(self.refit) if self.multimetric_ else "score"
        scorer = self.scorer_[key] if self.multimetric_ else self.scorer_
        if routing_enabled():
            params = process_routing(self, "score", **params)[f"scorer_{key}"].score
        return float(scorer(best, X, y, **params))

    predict = _delegated("predict")
    predict_proba = _delegated("predict_proba")
    predict_log_proba = _delegated("predict_log_proba")
    decision_function = _delegated("decision_function")
    transform = _delegated("transform")
    predict_spans = _delegated("predict_spans")
