"""BiasTunedClassifier: a decision tuned for an objective on held-out data."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.utils import Tags, check_consistent_length, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from skdice._checks import check_lengths, shown
from skdice._compat import Interval
from skdice._fitting import all_or_nothing, check_params
from skdice._types import Data
from skdice.engine.fit_plan import check_known, check_validation, draw_seed
from skdice.estimators.before_folds import check_rows
from skdice.estimators.evaluation import ClassScores
from skdice.estimators.fold_fits import group_folds, probabilities_of
from skdice.estimators.tuned.base import BiasTuned, HeldOut
from skdice.inputs.labels import UNKNOWN, as_labels, known_labels, read_labels
from skdice.inputs.rows import check_weights, object_array
from skdice.metrics.calibration import log, log_odds
from skdice.metrics.decisions.bounds import Bound
from skdice.metrics.decisions.chosen_objective import resolve_scoring
from skdice.metrics.decisions.held_out_rows import BinaryRows, ClassRows, HeldOutRows
from skdice.metrics.decisions.objectives import Objective
from skdice.metrics.decisions.positive import positive_before_fit, positive_of
from skdice.metrics.decisions.rejection import (
    RejectAt,
    best_margin,
    check_reject_label,
    margin_of_share,
    reject_at,
    sureness,
    tune_rejecting,
)
from skdice.metrics.decisions.tuning import Tuning
from skdice.resampling.stratification import MultilabelStratifiedKFold, held_out_rows


@dataclass(eq=False, repr=False)
class BiasTunedClassifier(ClassScores, ClassifierMixin, BiasTuned):
    """A classifier whose decision is tuned for F1, a cost or a bound on held-out data.

    The baseline that any loss has to beat: train with cross-entropy, then add a bias for each class
    to the log-probabilities. With two classes that is threshold tuning, as in scikit-learn's
    `TunedThresholdClassifierCV`; this one also takes more classes, and several labels a text.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
    scoring : str, objective or callable, default="auto"
        What to maximise on held-out rows:

        - ``"auto"``: the F1 of the positive class of two, macro F1 for more classes, micro F1 for
          several labels.
        - ``"f1"`` (with several labels, each label's own), ``"f1_micro"``, ``"f1_macro"``,
          ``"accuracy"``.
        - ``Fbeta(2)``, ``Cost({("spam", "ham"): 20, ("ham", "spam"): 1})``, and, for two classes or
          several labels, the bounds ``RecallAtPrecision(0.9)``, ``PrecisionAtRecall(0.9)`` and
          ``AlertBudget(50)``, all of `skdice.metrics`.
        - ``"neg_log_loss"``: biases and a temperature that make the probabilities calibrated.
        - A function of true and predicted labels, higher being better, such as a metric of
          scikit-learn.
    n_bootstraps : int, default=20
        The bias is the mean of the best ones of as many bootstrap draws of the held-out rows. 0
        tunes once on all rows. Bounds and ``"neg_log_loss"`` do not use it. A function is called
        dozens of times for each class and draw, so with a slow one give few draws.
    pos_label : label or None, default=None
        The positive class of two. None is the estimator's own where it has one, and else chosen
        as in `DiceSequenceClassifier`.
    reject : float, default=0.0
        Share of the rows that `predict` leaves to a person, so that the others are decided best:
        the rows nearest to where the decision turns. `RejectAt` as `scoring` chooses the share.
    reject_label : label, default="?"
        What `predict` gives for such rows, of the type of the classes: -1 beside numbers. Of
        several labels they are rows of -1, and `predict_labels` gives a list of this label.
    cv : int, float, splitter, "prefit" or None, default=None
        Where held-out data come from: a number of folds (None is 5), a share of the rows, or
        ``"prefit"``, which is all rows for an estimator that is fitted already. With folds or a
        share the estimator is fitted on all rows at the end. Ignored if `fit` gets ``X_val``.
    random_state : int, RandomState or None, default=None
        Seed of the split, if `cv` is a share, or a number of folds for several labels.

    Attributes
    ----------
    estimator_ : fitted classifier
    bias_ : ndarray of shape (n_classes,)
        Added to the log-probabilities, or to the log-odds of several labels.
    threshold_ : float
        Of two classes, the probability of `estimator_` above which a row is positive.
    thresholds_ : dict of float
        The same by name, of each of several labels or of the positive class.
    reject_margin_ : float
        Log-odds to another decision below which a row is left to a person: of two classes a row
        whose log-odds are less than twice as far below the threshold's.
    tuned_for_ : dict
        What the decision was tuned for: the ``"objective"`` in words and, of a `Cost`, the
        ``"cost"`` of each truth (rows) and prediction in the order of `classes_`, or, with several
        labels, of absent and present.
    bound_ : Promise or None
        Of a bound ``(measure, asked, promised, confidence)``: what was asked for, and what new
        rows will hold.
    temperature_ : float
        What the sums are then divided by. The decision does not change with it. It makes the
        probabilities likeliest on the held-out rows.
    bias_draws_ : ndarray of shape (n_bootstraps, n_classes)
        The best biases of each draw.
    classes_ : ndarray of shape (n_classes,)
    positive_ : int
        Index of the positive class of two.
    multilabel_ : bool

    Notes
    -----
    Of several labels, those with few positives take mostly a bias that is common to all. Equal rows
    of one label are one piece of evidence for a bound, and are then in one fold, unless `cv` is a
    splitter.

    References
    ----------
    A. K. Menon et al., "Long-tail learning via logit adjustment", ICLR 2021. C. Guo et al., "On
    Calibration of Modern Neural Networks", ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdice import BiasTunedClassifier, DiceClassifier
    >>> from skdice.metrics import RecallAtPrecision
    >>> X, y = make_classification(600, weights=[0.8], class_sep=2, random_state=0)
    >>> model = DiceClassifier(loss="ce", max_epochs=20, random_state=0)
    >>> tuned = BiasTunedClassifier(model, scoring=RecallAtPrecision(0.8)).fit(X, y)
    >>> tuned.bias_.shape
    (2,)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BiasTuned._parameter_constraints,
        "pos_label": "no_validation",
        "reject": [Interval(Real, 0, 1, closed="left")],
        "reject_label": "no_validation",
    }

    _: KW_ONLY
    pos_label: Any = None
    reject: float = 0.0
    reject_label: Any = "?"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).classifier_tags
        if inner is not None and tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = inner.multi_class
            tags.classifier_tags.multi_label = inner.multi_label
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Data,
        y: Data,
        *,
        X_val: Data | None = None,
        y_val: Data | None = None,
        **params: Any,
    ) -> Self:
        """Fit the estimator, and tune the biases on rows that it did not see.

        Parameters
        ----------
        X, y : as the estimator takes them
            `y` may hold several labels a row, if the estimator takes them: 0/1 rows, a frame of
            such columns, or lists of names.
        X_val, y_val : as X and y, default=None
            Rows to tune on, also passed to the estimator's ``fit`` if that takes them.
        **params : dict
            For the estimator's ``fit``, such as ``sample_weight``. ``groups``, of shape (n,), is
            for `cv`: rows of one group are in one fold.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad parameters, if one of `X_val` and `y_val` is missing, or if they share no label
            with `y`.

        Warns
        -----
        DecisionWarning
            If a bound cannot be promised. The warning names the best that can be, which the
            decision then keeps, and `bound_` holds it.
        """
        check_params(self)
        params, groups = self._routed(params, X_val)
        check_validation(X_val, y_val)
        if X is None:
            raise TypeError("X=None must hold a row for each label of y")
        prefit = self.cv == "prefit" and X_val is None
        labels, classes, several = self._targets(y, prefit)
        check_rows(self.estimator, X)
        X, y = indexable(X, _rows_of(labels, classes) if several else y)
        kind = "labels" if several else "two" if len(classes) == 2 else "classes"
        positive = self._positive_of_two(labels, classes, prefit) if kind == "two" else None
        resolve_scoring(self.scoring, kind, classes, positive)
        self._check_rejecting(classes, several)
        splits: Any = ()
        if X_val is not None:
            y_val = _validation_targets(y_val, labels, classes, several)
            _check_like(X, X_val, y_val)
        elif not prefit:
            splits = self._folds(X, labels, groups)
        parts = self._fit_and_hold_out(X, y, X_val, y_val, params, splits)
        self._learn_classes(labels, classes, several)
        held = self._held_out(parts)
        self.reject_margin_: Any = None  # `_search` finds some
        self._tune(*held, parts)
        if self.reject_margin_ is None:
            sure = sureness(held[2] + self.bias_, several)
            self.reject_margin_ = margin_of_share(sure, self.reject)
        if self.reject_margin_:
            self.tuned_for_["reject_margin"] = self.reject_margin_
        self._held = held[2:]  # logits and truth, for `adapt_prior`
        return self

    def _targets(self, y: Any, prefit: bool) -> tuple[np.ndarray, np.ndarray, bool]:
        """Labels of shape (n,) or 0/1 rows, the classes or names, and True for rows."""
        given = read_labels(y, missing=True)
        labels, classes, several = given.values, given.classes, given.multilabel
        if not len(labels):
            raise ValueError("y holds 0 samples: a decision is tuned on one at least")
        if several and len(classes) == 1 and not isinstance(self.estimator, ClassScores):
            raise ValueError(
                f"y names one label only, {str(classes[0])!r}: give a yes or no for each row, as "
                f"in [{str(classes[0])!r} in row for row in y]"
            )
        if not prefit:
            return labels, classes, several
        check_is_fitted(self.estimator)
        names = self.estimator.classes_
        if not isinstance(names, list):  # scikit-learn's trees have a list of arrays
            classes = np.asarray(names)
            labels = known_labels(y, names, missing=True) if several else labels
        if not several:
            check_known(classes.tolist(), labels.tolist(), "classes", "the estimator", "y")
        return labels, classes, several

    def _positive_of_two(self, labels: np.ndarray, classes: np.ndarray, prefit: bool) -> int:
        """The index of the positive class that the fitted estimator has, or will have."""
        if prefit:
            return positive_of(self.estimator, labels, self.pos_label)
        return positive_before_fit(self.estimator, labels, classes, self.pos_label)

    def _check_rejecting(self, classes: np.ndarray, several: bool) -> None:
        """Refuse rows left to a person beside a bound, and a label for them that is a class."""
        if self.reject and isinstance(self.scoring, Bound):
            raise ValueError(
                f"reject={self.reject} does not go with scoring={self.scoring!r}: leave one out, "
                "or give scoring=RejectAt(0.95), which chooses the share"
            )
        if self.reject or isinstance(self.scoring, RejectAt):
            check_reject_label(self.reject_label, classes, several)

    def _learn_classes(self, labels: np.ndarray, classes: np.ndarray, several: bool) -> None:
        """Set the classes and the positive one of two, as the fitted estimator has them."""
        self.multilabel_ = several
        anew = self.estimator_ is not self.estimator
        if several and anew and hasattr(self.estimator_, "multilabel_"):
            self.estimator_.classes_ = classes  # it was fitted on rows without names
        self.classes_: np.ndarray = classes if several else self.estimator_.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if self._kind == "two":
            self.positive_ = positive_of(self.estimator_, labels, self.pos_label)

    def predict(self, X: Data) -> np.ndarray:
        """Labels of shape (n,); 0/1 rows of shape (n, n_labels) for several labels.

        A row that is left to a person has the `reject_label`, or is of -1.
        """
        scores = self.decide(X) * self.temperature_
        rejected = sureness(scores, self.multilabel_) < self.reject_margin_
        if self.multilabel_:
            return np.where(rejected[:, None], -1, (scores > 0).astype(int))
        best = scores.argmax(axis=1)
        if self._kind == "two":  # a tie is negative, whichever class comes first
            at = self.positive_
            best = np.where(scores[:, at] > scores[:, 1 - at], at, 1 - at)
        found: np.ndarray = self.classes_[best]
        if not rejected.any():
            return found
        check_reject_label(self.reject_label, self.classes_, False)  # it may have been set since
        return np.where(rejected, self.reject_label, found)

    def predict_proba(self, X: Data) -> np.ndarray:
        """Probabilities of shape (n, n_classes) after the biases and the temperature."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Data) -> np.ndarray:
        """Log-probabilities of shape (n, n_classes) after the biases and the temperature."""
        scores = self.decide(X)
        return log_expit(scores) if self.multilabel_ else log_softmax(scores, axis=1)

    def decide(self, X: Data) -> np.ndarray:
        """Logits of shape (n, n_classes): log-probabilities plus biases, over the temperature."""
        probabilities = self._inner().predict_proba(X)
        of_proba = log_odds if self.multilabel_ else log
        logits: np.ndarray = of_proba(probabilities) + self.bias_
        return logits / self.temperature_

    def _names(self, row: np.ndarray) -> list[Any]:
        """The names of the labels of a row, or `reject_label` where a person decides."""
        return [self.reject_label] if (row < 0).any() else super()._names(row)

    def _rated(self, judge: Any, X: Any, true: Any, found: Any, **how: Any) -> dict[str, float]:
        """Scores of the rows that are decided, and the share of those that are not."""
        if not self.reject_margin_:
            scores = super()._rated(judge, X, true, found, **how)
            may_reject = self.reject or isinstance(self.scoring, RejectAt)
            return {**scores, "rejected": 0.0} if may_reject else scores
        rejected = (found < 0).any(axis=1) if self.multilabel_ else found == self.reject_label
        if rejected.all():
            raise ValueError("all rows are left to a person: there is no decision to score")
        weights = check_weights(how.get("sample_weight"), len(true))
        how["sample_weight"] = None if weights is None else weights[~rejected]
        scores = super()._rated(judge, X, true[~rejected], found[~rejected], **how)
        return {**scores, "rejected": float(rejected.mean())}

    @property
    def threshold_(self) -> float:
        """Probability of the estimator above which a row is positive, of two classes."""
        check_is_fitted(self)
        if self._kind != "two":
            raise AttributeError(
                f"threshold_ is of two classes, and there are {len(self.classes_)} "
                + ("labels: see thresholds_" if self.multilabel_ else "classes: see bias_")
            )
        at, margin = self.positive_, self.reject_margin_
        return float(expit(self.bias_[1 - at] - self.bias_[at] + margin))

    @property
    def thresholds_(self) -> dict[Any, float]:
        """Probabilities of the estimator from which on a row has a label, by the label's name."""
        check_is_fitted(self)
        names = self.classes_.tolist()
        if not self.multilabel_:
            threshold = self.threshold_  # refuses more than two classes
            return {names[self.positive_]: threshold}
        return dict(zip(names, expit(self.reject_margin_ - self.bias_).tolist(), strict=True))

    def _search(self, rows: Any, objective: Any) -> Tuning:
        """The biases that come nearest to the objective, also where rows are left out."""
        if isinstance(objective, RejectAt):
            bias, self.reject_margin_, promise = reject_at(rows, objective)
            return Tuning(bias, promise=promise)
        if self.reject and self._kind == "two" and isinstance(objective, Objective):
            draws = int(self.n_bootstraps)
            tuning, self.reject_margin_ = tune_rejecting(rows, objective, self.reject, draws)
            return tuning
        tuning = super()._search(rows, objective)
        if self.reject:
            self.reject_margin_ = best_margin(rows, tuning.bias, objective, self.reject)
        return tuning

    @property
    def _kind(self) -> str:
        """Return the kind of decision, as `resolve_scoring` calls it."""
        if self.multilabel_:
            return "labels"
        return "two" if len(self.classes_) == 2 else "classes"

    def _in_class_order(self, table: np.ndarray) -> np.ndarray:
        """Costs in the order of the classes; of two, an objective has the negative one first."""
        return table[::-1, ::-1] if self._kind == "two" and self.positive_ == 0 else table

    def _splits(self, X: Any, labels: np.ndarray, groups: Any) -> Any:
        """Train and held-out indices."""
        rows = np.zeros(len(labels))
        cv: Any = 5 if self.cv is None else self.cv
        if groups is not None:
            return group_folds(cv, labels.ndim == 1).split(X, labels, groups)
        if labels.ndim == 2 and isinstance(cv, Real):
            seed, n = draw_seed(self.random_state) % 2**32, len(labels)
            if isinstance(cv, Integral):
                return MultilabelStratifiedKFold(int(cv), random_state=seed).split(rows, labels)
            held = held_out_rows(n, max(1, round(n * float(cv))), seed, labels)
            return [(np.delete(np.arange(n), held), held)]
        if isinstance(cv, Real) and not isinstance(cv, Integral):
            seed = draw_seed(self.random_state) % 2**32
            splitter = StratifiedShuffleSplit(1, test_size=float(cv), random_state=seed)
            return splitter.split(rows, labels)
        if not isinstance(cv, Integral):
            return cv.split(X, labels)
        smallest = int(np.unique(labels, return_counts=True)[1].min())
        if smallest < 2:
            raise ValueError(
                "a class of y has 1 sample only, and held-out data needs 2 of each: leave the "
                "class out, or give X_val and y_val"
            )
        return StratifiedKFold(min(int(cv), smallest)).split(rows, labels)

    def _judged(self, X: Any, y: Any) -> tuple[HeldOutRows, Any, np.ndarray, np.ndarray]:
        """Return what `_held_out` gives, of rows that may be others than those to tune on."""
        labels = known_labels(y, self.classes_, self.multilabel_, missing=True)
        part = HeldOut(X, labels, *probabilities_of(self.estimator_, X))
        check_lengths(X=range(len(part.table)), y=labels)
        return self._held_out([part])

    def _held_out(self, parts: list[HeldOut]) -> tuple[HeldOutRows, Any, np.ndarray, np.ndarray]:
        """Held-out rows, the objective, and the rows' logits and truth."""
        kind, positive = self._kind, self.positive_ if self._kind == "two" else None
        objective = resolve_scoring(self.scoring, kind, self.classes_, positive)
        rows: HeldOutRows
        if kind == "labels":
            read = partial(known_labels, classes=self.classes_, multilabel=True, missing=True)
            answers = np.concatenate([read(part.y) for part in parts])
            if callable(objective) and (answers == UNKNOWN).any():
                raise ValueError(
                    f"scoring={shown(self.scoring)} is a function, which reads no missing labels: "
                    "give a name such as 'f1_macro', or an objective such as Fbeta(2)"
                )
            logits = np.concatenate([log_odds(part.table) for part in parts])
            truth = np.where(answers == UNKNOWN, -1, answers)
            rows = BinaryRows(logits, truth, answers, None, self.classes_.tolist())
            return rows, objective, logits, truth
        of_parts = [as_labels(part.y) for part in parts]
        answers = np.concatenate(of_parts)
        truth = self._indices(answers, self.classes_.tolist())
        logits = self._stacked(parts)
        if positive is None:
            rows = ClassRows(logits, truth, answers, self.classes_)
        else:
            margins = logits[:, [positive]] - logits[:, [1 - positive]]
            names = self.classes_[[1 - positive, positive]]
            rows = BinaryRows(margins, truth[:, None] == positive, answers, names)
        return rows, objective, logits, self._told(parts, of_parts)

    def _class_biases(self, bias: np.ndarray) -> np.ndarray:
        """A bias for each class; of two, the positive one has it."""
        return np.eye(2)[self.positive_] * bias[0] if self._kind == "two" else bias


def _validation_targets(
    y_val: Any, labels: np.ndarray, classes: np.ndarray, several: bool
) -> np.ndarray:
    """Labels to tune on, of those in `labels`."""
    if several:
        return _rows_of(known_labels(y_val, classes, True, "y_val", True), classes)
    found = as_labels(y_val, name="y_val")
    check_known(labels.tolist(), found.tolist(), "labels")
    return found


def _check_like(X: Any, X_val: Any, y_val: Any) -> None:
    """Refuse rows to tune on of another number than their labels, or of other columns than X."""
    check_consistent_length(X_val, y_val)
    if (width := _width(X_val)) != _width(X) and None not in (width, _width(X)):
        raise ValueError(f"X_val has {width} columns and X {_width(X)}: give the same")


def _rows_of(table: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """0/1 rows, or lists of names of a single label, whose column would be one of classes."""
    if len(classes) > 1:
        return np.where(table == UNKNOWN, np.nan, table) if (table == UNKNOWN).any() else table
    return object_array([[name for name in classes.tolist() if row[0] == 1] for row in table])


def _width(X: Any) -> int | None:
    """The number of columns of a table, and None of what has none."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None
