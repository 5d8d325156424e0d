"""LossSearchCV: search the losses' own parameters with Optuna."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import Tags, get_tags, indexable

from skdice._compat import BaseSearchCV, HasMethods, Interval, StrOptions
from skdice._fitting import all_or_nothing, check_params
from skdice._types import Data
from skdice.engine.fit_plan import draw_seed
from skdice.engine.ranks import check_alone
from skdice.estimators.before_folds import check_factors, check_rows, with_pos_label
from skdice.inputs.labels import holds_tags
from skdice.inputs.rows import check_given
from skdice.losses import Loss
from skdice.model_selection.checks import check_classes, check_scores, folds_of, weights_of
from skdice.model_selection.heads.head_fits import HeadFits, why_no_heads
from skdice.model_selection.spaces import as_spaces, check_space, import_optuna, suggest
from skdice.model_selection.studies import identity_of, new_study, open_study, optuna_log
from skdice.model_selection.trials import FullFits, ended_trials


def _explain_no_score(study: Any, full: FullFits) -> NoReturn:
    """Raise the error of the last trial that failed, or say that there was none."""
    errors = [record.error for _, record in ended_trials(study) if record.error]
    if not errors:
        raise ValueError("no trial has a score: give n_trials or the pruner more room")
    kind = TypeError if errors[-1].startswith("TypeError: ") else ValueError
    got = ["X", "y", *full.fit_params]
    raise kind(f"every trial failed (fit got {got}), the last with: {errors[-1]}")


@dataclass(eq=False, repr=False)
class LossSearchCV(BaseSearchCV):
    """Search parameters with Optuna and cross-validation, in `GridSearchCV`'s manner.

    Parameters
    ----------
    estimator : estimator
        Any scikit-learn estimator. With those of skdice, Optuna's pruners see each epoch.
    param_distributions : dict or list of dicts
        Maps each parameter to an Optuna distribution, a list of choices, or a function of the other
        parameters, such as ``lambda params: 1 - params["loss__alpha"]``. A list of dicts searches
        all of them. `loss_space` gives that of a loss.
    n_trials : int, default=32
        Number of trials in the study, with those that a storage holds already. Interrupted ones do
        not count.
    cv : as in `GridSearchCV`, default=None
    scoring : str, callable or None, default=None
        As in `GridSearchCV`, but one score only.
    refit : bool, default=True
        Fit the best parameters on all data.
    strategy : {"auto", "full", "shared"}, default="auto"
        ``"full"`` fits the estimator for each trial and fold. ``"shared"`` trains linear heads of
        16 trials together. For a `DiceClassifier` with a linear head and a search over ``loss`` and
        its parameters, each head equals its own fit, and ``"auto"`` is shared. Everywhere else
        ``"auto"`` is full.

        For `DiceSequenceClassifier` and `DiceTokenClassifier` and a search over ``loss`` and its
        parameters, ``"shared"`` trains heads on the frozen encoder, then fits `n_finalists` trials
        in full, and the best of those wins. On some data sets heads rank losses differently than
        full fits.
    n_finalists : int, default=5
        Number of full fits after heads, of the best ones.
    pruner : optuna pruner, "median" or None, default="median"
        Stops bad trials early; heads are never stopped. ``"median"`` stops a trial below the median
        of the others at the same epoch of the same fold. A pruner sees the score on the fold's test
        rows after each epoch, and the mean so far after each fold. It sees folds only with
        ``early_stopping``, with scorers that cannot score during a fit, and with other than
        skdice's text estimators.
    optuna_sampler : optuna sampler or None, default=None
        None is Optuna's TPE, seeded with `random_state`.
    storage : str, Path, optuna storage or None, default=None
        An SQLite file or the URL of a database. It keeps the study, so that it can be continued, or
        shared by several processes that fit the same search; they may run a few more trials. A
        trial of a killed process is tried again after two minutes.
    study_name : str or None, default=None
        Name of the study there. Its space, estimator, scoring and folds must be the same.
    n_jobs : int or None, default=None
        Processes, through joblib, that run full fits on one `storage`.
    callbacks : list of callables or None, default=None
        Called with the study and the trial after each trial, in the process that ran it.
        ``study.stop()`` ends the trials there; after heads, one trial is fitted in full anyway.
    error_score : "raise" or float, default=nan
        Score of a fold whose fit or scorer fails. The error is kept in ``study_``.
    verbose : int, default=0
        Above 0 Optuna logs each trial, with the best score so far.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    best_params_, best_score_, best_index_ : dict, float and int
        Also after an interrupt.
    best_estimator_, refit_time_ : estimator and float
        With `refit`.
    cv_results_ : dict of arrays
        As in `GridSearchCV`, one row for each finished, pruned or failed trial, with its number and
        state. ``n_empty`` is the number of folds in which its fit found nothing: predictions of the
        test rows that are all of one class, or hold no span. Such a trial was trained too short to
        be judged, and is the best only if there is no other.
    heads_ : dict of arrays
        Of heads before full fits, as `cv_results_`.
    study_ : optuna.Study
    n_splits_ : int
    scorer_ : callable
    strategy_ : {"full", "shared"}

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
        "param_distributions": [dict, list, tuple],
        "n_trials": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "strategy": [StrOptions({"auto", "full", "shared"})],
        "n_finalists": [Interval(Integral, 1, None, closed="left")],
        "pruner": [StrOptions({"median"}), HasMethods("prune"), None],
        "optuna_sampler": [HasMethods("sample_independent"), None],
        "storage": [str, object, None],
        "study_name": [str, None],
        "n_jobs": [Interval(Integral, -(2**31), 2**31 - 1, closed="both"), None],
        "callbacks": [list, None],
        "error_score": [StrOptions({"raise"}), float, Interval(Real, -1e300, 1e300, closed="both")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    n_trials: int = 32
    cv: Any = None
    scoring: Any = None
    refit: bool = True
    strategy: str = "auto"
    n_finalists: int = 5
    pruner: Any = "median"
    optuna_sampler: Any = None
    storage: Any = None
    study_name: str | None = None
    n_jobs: int | None = None
    callbacks: list[Callable[[Any, Any], None]] | None = None
    error_score: Any = np.nan
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None

    return_train_score: ClassVar[bool] = False  # which scikit-learn's table of results asks for

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)

    @partial(all_or_nothing, of=Exception)  # an interrupted search keeps its finished trials
    def fit(self, X: Data, y: Data | None = None, **params: Any) -> Self:
        """Run the trials, and fit the best parameters on all data.

        Parameters
        ----------
        X, y : as the estimator takes them
        **params : dict
            For the estimator's ``fit``, such as ``sample_weight``, and the splitter's ``groups``.
            Scorers that take ``sample_weight`` get it, too.

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
        self._check_jobs()
        scorer = check_scoring(self.estimator, self.scoring)
        check_given(y, "a target for each row")
        X, y, groups = indexable(X, y, params.pop("groups", None))
        check_rows(self.estimator, X, y)
        splits = self._folds(X, y, groups)
        spaces = as_spaces(self.param_distributions)
        losses = check_space(self.estimator, spaces)
        check_factors(self.estimator, losses, X, y)
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)  # results of an earlier fit
        full = FullFits(
            with_pos_label(self.estimator, y), spaces, X, y, splits, params, scorer,
            weights_of(scorer, params.get("sample_weight")), self.error_score,
            prunes=self.pruner is not None,
            seed=draw_seed(self.random_state) if self.optuna_sampler is None else None,
        )  # fmt: skip
        self.n_splits_: int = len(splits)
        self.scorer_, self.multimetric_ = scorer, False
        self.strategy_: str = self._choose(full, losses)
        self._search(full, identity_of(self, spaces, splits))
        if not hasattr(self, "best_index_"):
            _explain_no_score(self.study_, full)
        if self.refit:
            self._refit(full)
        return self

    def _folds(self, X: Any, y: Any, groups: Any) -> list[Any]:
        """The folds; refuses those and labels with which trials cannot be scored."""
        classifies = is_classifier(self.estimator)
        splits = folds_of(self.cv, X, y, classifies, groups)
        if classifies:
            check_classes(y, splits)
        if classifies or holds_tags(y):
            check_scores(self.scoring, y)
        return splits

    def _check_jobs(self) -> None:
        """Refuse several processes without a storage that they can share."""
        in_memory = isinstance(self.storage, import_optuna().storages.InMemoryStorage)
        if effective_n_jobs(self.n_jobs) > 1 and (in_memory or self.storage is None):
            raise ValueError(
                f"n_jobs={self.n_jobs} with storage={self.storage!r}: processes share a file or a "
                "database, such as storage='study.db'"
            )

    def _search(self, full: FullFits, identity: str) -> None:
        """Run the trials, and set the attributes that hold their results."""
        of_heads, n_trials = self.strategy_ == "shared" and not full.is_text, self.n_trials
        with optuna_log(self.verbose):
            study = open_study(self, identity)
            try:
                if self.strategy_ == "shared" and full.is_text:
                    n_trials = self._propose(full, study)
                missing = n_trials - len(ended_trials(study))
                n_jobs = min(1 if of_heads else effective_n_jobs(self.n_jobs), missing)
                if missing > 0:
                    run = delayed(self._optimize)(full, n_trials, of_heads, study, n_jobs > 1)
                    Parallel(n_jobs=n_jobs)([run] * n_jobs)
            finally:  # also after an interrupt
                self._collect(study, full)

    def _optimize(
        self, full: FullFits, n_trials: int, of_heads: bool, study: Any, shared: bool = False
    ) -> None:
        """Run trials in this process until the study has `n_trials`."""

        def end(study: Any, trial: Any) -> None:
            if len(ended_trials(study)) >= n_trials:
                study.stop()

        callbacks = [end, *(self.callbacks or [])]
        objective = HeadFits(full, n_trials, callbacks) if of_heads else full
        if shared:
            study.sampler.reseed_rng()  # or each process would try the same
        with optuna_log(self.verbose):
            study.optimize(objective, callbacks=callbacks)

    def _propose(self, full: FullFits, study: Any) -> int:
        """Train heads, put the most promising settings into the study's queue; return how many."""
        heads = new_study(self)
        self._optimize(full, self.n_trials, True, heads)
        ended = ended_trials(heads)
        self.heads_: dict[str, Any] = self._table(ended, full)
        scored = [(r.mean, trial.params) for trial, r in ended if np.isfinite(r.mean)]
        if not scored:
            _explain_no_score(heads, full)
        ranked = sorted(scored, key=lambda pair: -pair[0])
        best = list({str(params): params for _, params in ranked}.values())[: self.n_finalists]
        for params in best:
            study.enqueue_trial(params, skip_if_exists=True)
        return len(best)

    def _collect(self, study: Any, full: FullFits) -> None:
        """Set the attributes that hold the results of all trials."""
        self.study_ = study
        if not (ended := ended_trials(study)):
            return
        self.cv_results_: dict[str, Any] = self._table(ended, full)
        means, empty = self.cv_results_["mean_test_score"], self.cv_results_["n_empty"] > 0
        best = max(range(len(means)), key=lambda i: (np.isfinite(means[i]), not empty[i], means[i]))
        if np.isfinite(means[best]):
            self.best_index_: int = best
            self.best_params_: dict[str, Any] = self.cv_results_["params"][best]
            self.best_score_: float = float(means[best])

    def _table(self, ended: list[Any], full: FullFits) -> dict[str, Any]:
        """`cv_results_` of some `ended_trials`, in scikit-learn's form."""
        from optuna.trial import FixedTrial

        trials, records = zip(*ended, strict=True)
        params = [suggest(FixedTrial(trial.params), full.spaces) for trial in trials]
        folds = [
            {"fit_time": seconds, "score_time": np.nan, "test_scores": score}
            for record in records
            for _, seconds, score in zip_longest(
                full.splits, record.fit_time, record.scores, fillvalue=np.nan
            )
        ]
        more = {
            "trial": [trial.number for trial in trials],
            "state": np.array([trial.state.name for trial in trials], dtype=object),
            "n_empty": [record.n_empty for record in records],
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of trials without a score
            table = self._format_results(params, len(full.splits), folds, more)
        return {name: column for name, column in table.items() if "score_time" not in name}

    def _refit(self, full: FullFits) -> None:
        """Fit the best parameters on all rows."""
        started = time.perf_counter()
        best = full.model(self.best_params_)
        self.best_estimator_: Any = best.fit(full.X, full.y, **full.fit_params)
        self.refit_time_: float = time.perf_counter() - started
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_: np.ndarray = self.best_estimator_.feature_names_in_

    def _choose(self, full: FullFits, losses: list[Loss]) -> str:
        """The strategy: heads where it is asked for, or where they equal the full fits."""
        if self.strategy == "full" or (self.strategy == "auto" and full.is_text):
            return "full"
        reason = why_no_heads(full, losses)
        if self.strategy == "shared" and reason is not None:
            raise ValueError(f"strategy='shared' is not possible: {reason}; use 'full' or 'auto'")
        return "full" if reason is not None else "shared"
