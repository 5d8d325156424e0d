"""What a tuned decision is to reach: a score, a cost, or a bound that is promised for new rows."""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.special import gammaln
from scipy.stats import hypergeom

from skdice._checks import as_numbers, check_choice, checked, shown

__all__ = ["AlertBudget", "Cost", "Fbeta", "PrecisionAtRecall", "RecallAtPrecision"]


@dataclass
class Counts:
    """What decisions got right, for any number of decisions at once.

    Attributes
    ----------
    hits, predicted, true : ndarray of shape (..., n_kinds)
        A kind is a class, a type of span, or a label.
    alerts : ndarray of shape (...,)
        Rows in which something is predicted that is not the background.
    n_rows : int
        Texts, or sentences.
    positive : int or None
        The kind that counts, of two classes.
    starts : tuple of int or None
        Where the tests of a bound begin, if the strictest threshold is not the safest one.
    """

    hits: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    alerts: np.ndarray
    n_rows: int
    positive: int | None = None
    starts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        self.predicted, self.true = np.broadcast_arrays(self.predicted, self.true)

    @property
    def of_positives(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hits, predicted and true, without the negative class of two."""
        kinds = slice(None) if self.positive is None else [self.positive]
        return self.hits[..., kinds], self.predicted[..., kinds], self.true[..., kinds]

    @property
    def pooled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same, summed over the kinds."""
        hits, predicted, true = (part.sum(axis=-1) for part in self.of_positives)
        return hits, predicted, true


class Objective(Protocol):
    """What `BiasTunedClassifier` and `BiasTunedTagger` can maximise."""

    def _value(self, counts: Counts) -> np.ndarray:
        """A number for each decision in `counts`; higher is better."""
        ...


class Parameters:
    """scikit-learn's parameters of an objective, so that a search reaches ``scoring__beta``."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}  # type: ignore[arg-type]

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; values that are refused leave the objective as it was."""
        known = self.get_params()
        if unknown := sorted(set(params) - set(known)):
            raise ValueError(
                f"Invalid parameter {unknown[0]!r} for {type(self).__name__}: it has {list(known)}"
            )
        vars(self).update(vars(type(self)(**{**known, **params})))
        return self

    def __sklearn_clone__(self) -> Self:
        return copy(self)


@checked
@dataclass(frozen=True)
class Fbeta(Parameters):
    """The F-beta score: recall counts `beta` times as much as precision.

    Parameters
    ----------
    beta : float, default=1.0
    average : {"auto", "micro", "macro"}, default="auto"
        Over classes, labels or types of spans. ``"auto"`` is the positive class of two, macro for
        more classes, and micro for several labels and for spans.

    Examples
    --------
    >>> from skdice.metrics import Fbeta
    >>> Fbeta(2)
    Fbeta(beta=2, average='auto')
    """

    beta: float = 1.0
    average: str = "auto"

    def __post_init__(self) -> None:
        _check_number("beta", self.beta, 0, 1e6)
        check_choice("average", self.average, ("auto", "micro", "macro"))

    def _value(self, counts: Counts) -> np.ndarray:
        """The score; a macro average is over the kinds that are true or predicted."""
        if self.average == "auto":
            hits, predicted, true = counts.of_positives
        else:
            hits, predicted, true = counts.hits, counts.predicted, counts.true
        if self.average == "micro":
            hits, predicted, true = (
                part.sum(axis=-1, keepdims=True) for part in (hits, predicted, true)
            )
        total = self.beta**2 * true + predicted
        scores = (1 + self.beta**2) * hits / np.where(total > 0, total, 1)
        mean: np.ndarray = scores.sum(axis=-1) / np.maximum((total > 0).sum(axis=-1), 1)
        return mean


@dataclass(frozen=True)
class BalancedAccuracy:
    """The mean of the classes' recalls."""

    def _value(self, counts: Counts) -> np.ndarray:
        """The mean over the classes that are true."""
        recalls = counts.hits / np.maximum(counts.true, 1)
        mean: np.ndarray = recalls.sum(axis=-1) / np.maximum((counts.true > 0).sum(axis=-1), 1)
        return mean


@checked
@dataclass(frozen=True)
class Cost(Parameters):
    """What decisions cost, to be as low as possible.

    Parameters
    ----------
    matrix : array of shape (2, 2) or (n_classes, n_classes)
        Rows are the truth and columns the prediction. Two rows are negative and positive, whatever
        the classes' names, so ``[[0, 1], [20, 0]]`` makes a missed positive as bad as 20 false
        alarms; with several labels each label has that cost, with spans each span, where
        ``matrix[0][0]`` must be 0. More rows are in the order of ``classes_``.

    Examples
    --------
    >>> from skdice.metrics import Cost
    >>> Cost([[0, 1], [20, 0]]).matrix
    ((0.0, 1.0), (20.0, 0.0))
    """

    matrix: Any

    def __post_init__(self) -> None:
        table = as_numbers("matrix", self.matrix, 2)
        if table.shape[0] != table.shape[1] or len(table) < 2:
            raise ValueError(
                f"matrix has shape {table.shape}: give a row and a column for each class"
            )
        object.__setattr__(self, "matrix", tuple(map(tuple, table.tolist())))

    def _value(self, counts: Counts) -> np.ndarray:
        """The mean cost of a row, negative."""
        hits, predicted, true = counts.of_positives
        (right, alarm), (missed, hit) = self.matrix
        costs = alarm * (predicted - hits) + missed * (true - hits) + hit * hits
        costs = costs + right * (counts.n_rows - predicted - true + hits)
        total: np.ndarray = -costs.sum(axis=-1) / max(counts.n_rows, 1)
        return total


# ---- bounds


@dataclass(frozen=True)
class Constraint(Parameters):
    """Base of the objectives that promise a bound for new rows, at least half as many.

    The threshold is chosen on the same rows that show whether the bound holds. So thresholds are
    tested in an order that is fixed in advance, from the safest on, until one fails. A test is
    Fisher's: if the new rows missed the bound, then of all ways to divide old and new rows alike, a
    share of at most 1 - `confidence` would show as many successes among the old ones. As the new
    rows have to be unlucky too, a promise breaks with less than 0.4 of that probability, whatever
    the true share is. However many thresholds are tested, the error is that of one test for each
    place where the tests begin, of which there are up to three.

    What counts as evidence is what the share is of, and not all rows: the predicted positives, the
    true ones, or, for alerts, the rows. Each must be there once: the estimators leave out rows that
    repeat another one. Where a bound is seldom within reach, the few splits in which it is promised
    are lucky ones, and more of these promises break; the confidence is that of all splits.
    """

    confidence: float = field(default=0.95, kw_only=True)
    each: bool = field(default=False, kw_only=True)

    what: ClassVar[str]  # is bounded
    other: ClassVar[str]  # is maximised
    loose_first: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_number("confidence", self.confidence, 0, 1)

    @property
    def _share(self) -> float:
        """The share that `_trials` must exceed."""
        raise NotImplementedError

    def _trials(self, steps: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Successes and trials of the share that is bounded, for each step."""
        raise NotImplementedError

    def _value(self, counts: Counts) -> np.ndarray:
        """Recall, which the bound leaves to be maximised."""
        hits, _, true = counts.pooled
        return hits / np.maximum(true, 1)

    def _promised(self, steps: Counts, share: float | None = None) -> np.ndarray:
        """Which steps hold the bound for new rows; steps go from strict to loose thresholds."""
        share = self._share if share is None else share
        successes, trials = self._trials(steps)
        turn = slice(None, None, -1 if self.loose_first else 1)
        successes, trials = successes[turn], trials[turn]
        order, starts = self._order(trials, share)
        if steps.starts is not None and not isinstance(self, AlertBudget):
            last = len(trials) - 1
            order = np.arange(len(trials))
            starts = [last - i if self.loose_first else i for i in steps.starts]
        sure = self._sure(successes[order], trials[order], share)
        held = np.zeros(len(successes), dtype=bool)
        for start in starts:
            fails = np.flatnonzero(~sure[start:])
            held[order[start : start + fails[0] if len(fails) else None]] = True
        return held[turn]

    def _sure(self, successes: np.ndarray, trials: np.ndarray, share: float) -> np.ndarray:
        """Whether new trials, half as many, will reach a share."""

        def p(hits: Any, n: Any) -> Any:
            new = np.ceil(n / 2)
            missed = np.maximum(np.ceil(share * new - 1e-9) - 1, 0)  # hits among the new
            return np.where(n > 0, hypergeom.sf(hits - 1, n + new, hits + missed, n), 1.0)

        if not len(trials) or (trials != trials[0]).any():
            sure: np.ndarray = p(successes, trials) <= 1 - self.confidence
            return sure
        n = int(trials[0])  # of equal trials, from a number on they are sure
        return successes >= bisect_left(
            range(n + 1), True, key=lambda hits: bool(p(hits, n) <= 1 - self.confidence)
        )

    def _order(self, trials: np.ndarray, share: float) -> tuple[np.ndarray, list[int]]:
        """Which steps are tested, and where in them the tests begin."""
        return np.arange(len(trials)), [0]

    def _least(self, share: float) -> int:
        """How many trials are needed if all succeed."""
        n = np.arange(1, 10 + int(8 * np.log(1 - self.confidence) / np.log(share)))
        new = np.ceil(n / 2)
        failures = new - np.ceil(share * new - 1e-9) + 1  # all of them among the new
        log_p = gammaln(new + 1) - gammaln(new - failures + 1)
        log_p -= gammaln(n + new + 1) - gammaln(n + new - failures + 1)
        return int(n[(log_p <= np.log(1 - self.confidence)).argmax()])

    def _best(self, steps: Counts) -> float:
        """The highest share that could have been promised."""
        # In thousandths, as they are told.
        shares = np.unique(np.floor(self._share * np.arange(1, 200) * 5) / 1000)[::-1]
        held = (float(s) for s in shares if s > 0 and self._promised(steps, s).any())
        return next(held, 0.0)

    def _told(self, share: float) -> str:
        """A share in words."""
        return f"{self.what} {share:.3g}"


@checked
@dataclass(frozen=True)
class RecallAtPrecision(Constraint):
    """The highest recall at a precision that holds for new rows too.

    Parameters
    ----------
    precision : float
        Between 0 and 1.
    confidence : float, default=0.95
        How sure it is that new rows of the same kind, at least half as many, hold the bound.
    each : bool, default=False
        Whether each label or type of span is to reach it by itself, instead of all together.

    Notes
    -----
    With the default confidence, a precision of 0.9 needs at least 39 predicted positives. Equal
    rows of one label count as one.

    References
    ----------
    A. N. Angelopoulos et al., "Learn then Test: Calibrating Predictive Algorithms to Achieve Risk
    Control", 2021: fixed-sequence testing, here with two starts.

    Examples
    --------
    >>> from skdice.metrics import RecallAtPrecision
    >>> RecallAtPrecision(0.9)
    RecallAtPrecision(confidence=0.95, each=False, precision=0.9)
    """

    precision: float

    what: ClassVar[str] = "precision"
    other: ClassVar[str] = "recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_number("precision", self.precision, 0, 1)

    @property
    def _share(self) -> float:
        """The precision."""
        return self.precision

    def _trials(self, steps: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Hits among the predicted."""
        hits, predicted, _ = steps.pooled
        return hits, predicted

    def _order(self, trials: np.ndarray, share: float) -> tuple[np.ndarray, list[int]]:
        # Sizes grow by a tenth. One false alarm among the surest rows would end a single sequence,
        # so there is a second one.
        least = self._least(share)
        sizes = least * 1.1 ** np.arange(400)
        order = np.unique(np.searchsorted(trials, sizes[sizes <= trials.max(initial=0)]))
        starts = np.searchsorted(trials[order], [least, 4 * least])
        return order, [int(start) for start in starts if start < len(order)]


@checked
@dataclass(frozen=True)
class PrecisionAtRecall(Constraint):
    """The highest precision at a recall that holds for new rows too.

    Parameters
    ----------
    recall : float
        Between 0 and 1.
    confidence : float, default=0.95
        How sure it is that new rows of the same kind, at least half as many, hold the bound.
    each : bool, default=False
        Whether each label or type of span is to reach it by itself, instead of all together.

    Notes
    -----
    With the default confidence, a recall of 0.9 needs at least 39 positives. Equal rows of one
    label count as one.

    Examples
    --------
    >>> from skdice.metrics import PrecisionAtRecall
    >>> PrecisionAtRecall(0.9, confidence=0.99)
    PrecisionAtRecall(confidence=0.99, each=False, recall=0.9)
    """

    recall: float

    what: ClassVar[str] = "recall"
    other: ClassVar[str] = "precision"
    loose_first: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_number("recall", self.recall, 0, 1)

    @property
    def _share(self) -> float:
        """The recall."""
        return self.recall

    def _trials(self, steps: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Hits among the true."""
        hits, _, true = steps.pooled
        return hits, true

    def _value(self, counts: Counts) -> np.ndarray:
        """Precision."""
        hits, predicted, _ = counts.pooled
        return hits / np.maximum(predicted, 1)


@checked
@dataclass(frozen=True)
class AlertBudget(Constraint):
    """The highest recall with no more alerts than a budget, on new rows too.

    Parameters
    ----------
    per_thousand : float
        Alerts in 1,000 rows. A row is a text with the positive class or any label, or a sentence
        with any span.
    confidence : float, default=0.95
        How sure it is that new rows of the same kind, at least half as many, hold the bound.
    each : bool, default=False
        Whether each label or type of span has the budget by itself, instead of all together.

    Examples
    --------
    >>> from skdice.metrics import AlertBudget
    >>> AlertBudget(50)
    AlertBudget(confidence=0.95, each=False, per_thousand=50)
    """

    per_thousand: float

    what: ClassVar[str] = "alerts per 1,000 rows"
    other: ClassVar[str] = "recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_number("per_thousand", self.per_thousand, 0, 1000)

    @property
    def _share(self) -> float:
        """The rows without an alert."""
        return 1 - self.per_thousand / 1000

    def _trials(self, steps: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Rows without an alert among all."""
        return steps.n_rows - steps.alerts, np.full(np.shape(steps.alerts), steps.n_rows)

    def _told(self, share: float) -> str:
        """Alerts in 1,000 rows."""
        return f"{1000 * (1 - share):.3g} {self.what}"


def _check_number(name: str, value: float, low: float, high: float) -> None:
    """Refuse what is not between two numbers, ends excluded."""
    if not low < value < high:
        raise ValueError(f"{name}={shown(value)} must be above {low} and below {high:g}")
