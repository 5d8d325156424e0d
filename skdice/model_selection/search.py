"""LossSearchCV: search the losses' own parameters with Optuna."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Tags, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skdice._compat import HasMethods, Interval, StrOptions, routing_enabled
from skdice.estimators._checks import draw_seed
from skdice.model_selection import lanes, layers, screening
from skdice.model_selection.folds import check_classes, check_tags
from skdice.model_selection.results import cv_results
from skdice.model_selection.running import WORTH_A_PROBE, Run
from skdice.model_selection.scoring import scorers_of, weights_of
from skdice.model_selection.spaces import as_spaces, check_space, cloned
from skdice.model_selection.study import (
    described,
    open_study,
    quiet_optuna,
    sampler_of,
)
from skdice.model_selection.trials import Job

__all__ = ["LossSearchCV"]


class LossSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search parameters with Optuna and cross-validation, in `GridSearchCV`'s manner.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator; made for those of skdice, whose epochs Optuna's pruners see.
    param_distributions : dict, list of dicts or None, default=None
        From parameter to an Optuna distribution, a list of choices, or a function of the other
        parameters, such as ``OneMinus("loss__alpha")``. A list of dicts searches all of them. None
        is `loss_space` of the estimator's loss.
    n_trials : int, default=32
        With a storage, trials that the study then has in all.
    timeout : float or None, default=None
        Seconds after which no trial is begun, and no full fit of one that its head has judged
        once such a fit has a score.
    cv : int, splitter, iterable or None, default=None
        As in `GridSearchCV`.
    scoring : str, callable, list, dict or None, default=None
        As in `GridSearchCV`; several are possible, as a list or dict, with `refit` naming the one
        that counts.
    refit : bool or str, default=True
        Fit the best parameters on all data.
    strategy : {"auto", "full", "shared"}, default="auto"
        Full fits the estimator for each trial and fold. Shared trains `n_lanes` trials at once,
        as lanes over the same batches.

        For a `DiceClassifier` with a linear head and a search over ``loss``, its parameters, ``lr``
        and ``weight_decay``, each lane ends where its own fit would end, and auto is shared.

        For `DiceSequenceClassifier` and `DiceTokenClassifier` and a search over ``loss`` and its
        parameters, the lanes are linear heads on the vectors of the frozen encoder, which is run
        once, trained for as many epochs as the estimator; then `n_finalists` are fitted in full,
        half of them the best heads, and half unlike each other among the trials within one
        standard error of the best, and the best of those wins. Whether heads rank losses as full
        fits do differs by data set: auto fits 6 trials of the first lanes in full as well; if the
        two rankings agree by less than 0.7 (Spearman), it fits the others of those lanes in full,
        too, and goes on with full fits. It is full from the start where `n_trials` is below 16 or
        there is a `storage`.
    n_finalists : int, default=5
        Trials that are fitted in full after a search over heads.
    lane_layers : int, default=0
        With a text estimator: top layers of the encoder that each lane trains beside its head, with
        the estimator's own settings; the layers below are frozen, and run once for each input. A
        lane ends where a fit with ``frozen`` set to the layers below would end. If that is what
        the estimator has, the lanes are its fits, auto is shared, and nothing else is fitted but
        the best; else they stand for its fits as heads do, at a higher price. Here ``lr`` and
        ``weight_decay`` can be searched as well.
    n_lanes : int, default=16
        Trials that are asked for and trained together if shared. With `lane_layers` others take
        the place of those that are pruned; without, nothing is pruned.
    pruner : optuna pruner, "median" or None, default="median"
        Ends a trial that does worse than the median of others at the same epoch of the same fold.
        It sees the score that is searched: after each epoch of a fold on the fold's test rows, and
        after each fold the mean so far. Of estimators other than the text estimators of skdice, of
        those with ``early_stopping``, and where a scorer cannot score in mid-fit, it sees folds
        only.
    sampler : optuna sampler or None, default=None
        None is Optuna's TPE, seeded with `random_state` and the trial's number.
    storage : str, Path, optuna storage or None, default=None
        Where the study is kept, so that it can be gone on with, and be worked on by several
        processes that fit the same search: the URL of a database, or a file, which is made where
        there is none, for Optuna's journal. A trial of a process that was killed is run again by
        another on the same machine; on others, that takes a storage with a heartbeat.
    study_name : str or None, default=None
        With `storage`: the study to make, or to go on with if it is of the same space, estimator,
        scoring, folds and data.
    n_jobs : int or None, default=None
        Full fits at a time, through joblib; above 1 none of them is pruned.
    callbacks : list of callables or None, default=None
        Called with the study and the trial after each trial, and once more after the full fit of
        one that its head has judged, then with the score of that; ``study.stop()`` ends the
        search, whose finalists are fitted nonetheless.
    error_score : "raise" or float, default=nan
        What a trial whose fit fails scores, and a fold where a scorer fails; the error is kept in
        ``study_``.
    return_train_score : bool, default=False
    progress_bar : bool, default=False
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    best_params_ : dict
        Also after an interrupt; where that came before a full fit, of the best head.
    best_score_ : float
    best_index_ : int
    best_estimator_ : estimator
        With `refit`.
    cv_results_ : dict of arrays
        As in `GridSearchCV`, one row for each finished, pruned or failed trial, with its number
        and state; what a pruned trial did not run is NaN.
    study_ : optuna.Study
        Its values are of what ran: of full fits, or of heads where those screen. What full fits of
        screened trials found is in its ``user_attrs``, as ``full:<number>``.
    n_splits_ : int
    scorer_ : callable or dict of callables
        A dict with several scores.
    refit_time_ : float
    strategy_ : {"full", "shared"}
        What was done in the end; auto is also full with losses that are not skdice's, and where a
        scorer asks for predictions of other rows than it is given, which lanes and heads lack.
    agreement_ : float
        Spearman's correlation between heads and full fits, where auto looked at it. Trials of
        which only heads or lanes ran have the state ``SCREENED`` in `cv_results_`, with their
        scores in ``mean_shared_<score>``; what was not fitted in full is NaN elsewhere.

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

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit"])],
        "param_distributions": [dict, list, tuple, None],
        "n_trials": [Interval(Integral, 1, None, closed="left")],
        "timeout": [Interval(Real, 0, None, closed="neither"), None],
        "cv": ["cv_object"],
        "scoring": [str, callable, list, tuple, dict, None],
        "refit": ["boolean", str],
        "strategy": [StrOptions({"auto", "full", "shared"})],
        "n_finalists": [Interval(Integral, 1, None, closed="left")],
        "lane_layers": [Interval(Integral, 0, None, closed="left")],
        "n_lanes": [Interval(Integral, 1, None, closed="left")],
        "pruner": [StrOptions({"median"}), HasMethods("prune"), None],
        "sampler": [HasMethods("sample_independent"), None],
        "storage": [str, object, None],
        "study_name": [str, None],
        "n_jobs": [Integral, None],
        "callbacks": [list, None],
        "error_score": [StrOptions({"raise"}), Real],
        "return_train_score": ["boolean"],
        "progress_bar": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any = None,
        *,
        n_trials: int = 32,
        timeout: float | None = None,
        cv: Any = None,
        scoring: Any = None,
        refit: bool | str = True,
        strategy: str = "auto",
        n_finalists: int = 5,
        lane_layers: int = 0,
        n_lanes: int = 16,
        pruner: Any = "median",
        sampler: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int | None = None,
        callbacks: list[Callable[[Any, Any], None]] | None = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        progress_bar: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.strategy = strategy
        self.n_finalists = n_finalists
        self.lane_layers = lane_layers
        self.n_lanes = n_lanes
        self.pruner = pruner
        self.sampler = sampler
        self.storage = storage
        self.study_name = study_name
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.error_score = error_score
        self.return_train_score = return_train_score
        self.progress_bar = progress_bar
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        return tags

    # ---- the search

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run the trials, and fit the best parameters on all data.

        Parameters
        ----------
        X, y : as the estimator takes them
        **params : dict
            For the estimator's ``fit``, such as ``sample_weight``, and the splitter's ``groups``;
            where scikit-learn routes metadata, for whoever asked for it, the scorers among them.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad parameters, an empty or degenerate space, folds without a class, a storage
            that cannot be reached or a study of another search; before a trial runs.
        """
        self._validate_params()
        scorers, key = scorers_of(self.estimator, self.scoring, self.refit)
        params, of_split, of_scores = self._routed(params, scorers)
        X, y, of_split["groups"] = indexable(X, y, of_split.get("groups"))
        if y is None and get_tags(self.estimator).target_tags.required:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        if is_classifier(self.estimator):
            check_classification_targets(y)
        spaces = as_spaces(self.param_distributions, self.estimator)
        losses = check_space(self.estimator, spaces)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(splitter.split(X, y, **of_split))
        if not splits:
            raise ValueError(
                f"cv={self.cv!r} has no folds: give a splitter or a list of (train, test), as a "
                "generator is empty after its first use"
            )
        if is_classifier(self.estimator):
            check_classes(np.asarray(y), splits)
        elif self.scoring is None:
            check_tags(self.estimator, y, splits)
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)  # what an earlier fit found
        names = sorted({name for space in spaces for name in space})
        job = Job(self, X, y, params, splits, scorers, key, of_scores)
        screen = self._plan(X, y, names, params, splits, losses)
        self._seed = draw_seed(self.random_state) if self.random_state is not None else None
        self.study_ = self._study(job, spaces)
        self.n_splits_ = len(splits)
        self.multimetric_ = isinstance(self.scoring, (list, tuple, dict))
        self.scorer_: Any = scorers if self.multimetric_ else scorers[key]
        run = Run(self, spaces, job, screen)
        try:
            run.to_the_end()
        finally:
            # Also after an interrupt: what is finished can be looked at.
            self.study_, self.strategy_ = run.study, run.strategy
            if run.agreement is not None:
                self.agreement_ = run.agreement
            self._collect(spaces, job)
        if not np.isfinite(self.cv_results_[f"mean_test_{key}"]).any():
            if job.error is None:
                raise ValueError(
                    "no trial has a score: give n_trials, timeout or the pruner more room"
                )
            if type(job.error) is not ValueError:
                raise job.error
            raise ValueError(
                f"every trial failed (fit got {['X', 'y', *params]}), the last with: {job.error}"
            ) from job.error
        if self.refit:
            started = time.perf_counter()
            best = clone(self.estimator).set_params(**cloned(self.best_params_))
            self.best_estimator_ = (
                best.fit(X, y, **params) if y is not None else best.fit(X, **params)
            )
            self.refit_time_ = time.perf_counter() - started
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self.best_estimator_, name):
                    setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """What ``fit`` hands on to the estimator's, the splitter and the scorers, and ``score``."""
        router = MetadataRouter(owner=self)
        router.add(
            estimator=self.estimator,
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        router.add(
            splitter=check_cv(self.cv, classifier=is_classifier(self.estimator)),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        scored = MethodMapping().add(caller="fit", callee="score")
        scored.add(caller="score", callee="score")
        scorers, _ = scorers_of(self.estimator, self.scoring, self.refit)
        for name, scorer in scorers.items():
            router.add(**{f"scorer_{name}": scorer}, method_mapping=scored)
        return router

    def _routed(
        self, params: dict[str, Any], scorers: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, Any]]]:
        """What the estimator's ``fit``, the splitter and each scorer get."""
        if not routing_enabled():
            groups = params.pop("groups", None)
            weights = weights_of(scorers, params.get("sample_weight"))
            return params, {"groups": groups}, weights
        routed = process_routing(self, "fit", **params)
        of_scores = {name: dict(routed[f"scorer_{name}"].score) for name in scorers}
        return dict(routed.estimator.fit), dict(routed.splitter.split), of_scores

    def _plan(
        self, X: Any, y: Any, names: list[str], params: Any, splits: Any, losses: Any = ()
    ) -> Any:
        """Decide on the strategy; the vectors of the frozen encoder where heads stand for fits."""
        looked_at = losses if self.strategy == "auto" else ()
        self.strategy_ = "full"
        if self.strategy == "full":
            return None
        reason = lanes.why_not(self.estimator, names, params, X, looked_at)
        if reason is None:
            self.strategy_ = "shared"
            if not self.lane_layers:
                return None
            reason = "DiceClassifier has no layers below its head"
        elif self.lane_layers:
            reason = layers.why_not(self.estimator, names)
        elif hasattr(self.estimator, "backbone"):
            reason = screening.why_not(self.estimator, names, params, y)
            reason = reason or lanes.not_ours(looked_at)
        if self.lane_layers and reason is not None:
            raise self._no_layers(reason)
        if self.strategy == "shared" and reason is not None:
            raise ValueError(f"strategy='shared' is not possible: {reason}; use 'full' or 'auto'")
        few = self.n_trials < WORTH_A_PROBE or self.storage is not None
        few = few and self.strategy == "auto"
        own = self.lane_layers and isinstance(self.estimator.frozen, Integral)  # it may be exact
        if reason is not None or (few and not own):
            return None
        self.strategy_ = "shared"
        if not self.lane_layers:
            return screening.Screen(self.estimator, X, y, splits)
        try:
            screen = layers.TopLayers(self.estimator, self.lane_layers, X)
        except layers.NoLanes as error:
            raise self._no_layers(error) from error
        if few and not screen.exact:
            self.strategy_ = "full"
        return screen

    def _no_layers(self, reason: Any) -> ValueError:
        return ValueError(
            f"lane_layers={self.lane_layers} is not possible: {reason}; leave it 0, or use "
            "strategy='full'"
        )

    def _study(self, job: Job, spaces: list[Any]) -> Any:
        data = job.X, job.y, job.fit_params, job.score_params
        search = {}
        if self.storage is not None:
            search = described(self.estimator, spaces, job.scorers, job.key, job.splits, data)
            if self.lane_layers and self.strategy_ == "shared":
                search["estimator"] += f", its top {self.lane_layers} layers as lanes"
        with quiet_optuna():
            sampler = sampler_of(self.sampler, self._seed, 0)
            return open_study(self.storage, self.study_name, self.pruner, sampler, search)

    def _collect(self, spaces: list[Any], job: Job) -> None:
        """`cv_results_` and the best trial, from all trials of the study that have run."""
        self.cv_results_ = cv_results(
            self.study_, spaces, job, self.n_splits_, with_train=self.return_train_score
        )
        means = self.cv_results_[f"mean_test_{job.key}"]
        heads = self.cv_results_.get(f"mean_shared_{job.key}")
        if heads is not None and not np.isfinite(means).any():
            means = np.where(self.cv_results_["state"] == "SCREENED", heads, np.nan)
        if np.isfinite(means).any():
            self.best_index_ = int(np.nanargmax(means))
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            self.best_score_ = float(means[self.best_index_])

    # ---- what the best estimator does

    def _check_refit(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"this search has no best estimator (refit={self.refit!r}): use best_params_"
            )
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    @property
    def classes_(self) -> Any:
        """Classes of the best estimator."""
        return self._check_refit().classes_

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """The score that the best parameters were chosen by.

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


def _delegated(name: str) -> Any:
    def has(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", self.estimator), name)

    def method(self: Any, X: Any) -> Any:
        return getattr(self._check_refit(), name)(X)

    # Before it is wrapped: scikit-learn's scorers go by the name.
    method.__name__ = name
    method.__doc__ = f"`{name}` of the best estimator."
    return available_if(has)(method)


for _name in (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "predict_spans",
):
    setattr(LossSearchCV, _name, _delegated(_name))
