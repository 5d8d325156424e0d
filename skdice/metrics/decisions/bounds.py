"""Bounds that a tuned decision promises for new rows: on precision, recall or alerts."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import hypergeom

from skdice._checks import checked
from skdice.metrics.decisions.counts import Counts
from skdice.metrics.decisions.objectives import Objective, check_between

__all__ = ["AlertBudget", "PrecisionAtRecall", "RecallAtPrecision"]

FEWEST_HITS = 10  # at the precision that was asked for, where its tests begin


class Promise(NamedTuple):
    """The promise of a tuned decision about a bound for new rows.

    Attributes
    ----------
    measure : str
        ``"precision"``, ``"recall"``, ``"alerts per 1,000 rows"`` or ``"accuracy of the decided
        rows"``.
    asked : float
    promised : float
        The same as `asked`, or else the best that the rows to tune on allow; of labels that have
        the bound each by itself, the worst. A share of 0, and 1,000 alerts, are no promise.
    confidence : float
    """

    measure: str
    asked: float
    promised: float
    confidence: float


@dataclass(frozen=True)
class Bound(Objective):
    """Base of the objectives that promise a bound for new rows, at least half as many.

    Where it cannot be promised, `fit` warns, and takes the threshold of the best promise.

    The threshold is chosen on the same rows that show whether the bound holds. So thresholds are
    tested in an order that is fixed in advance, from the safest on, until one fails. A test is
    Fisher's: if the new rows missed the bound, then of all ways to divide old and new rows alike, a
    share of at most 1 - `confidence` would show as many successes among the old ones. However many
    thresholds are tested, the error is that of one test for each place where the tests begin.

    A promise breaks if the old rows pass the test by luck and the new rows are unlucky too. So a
    test at a level of 0.2 or less errs with less than 0.4 of its level, and the levels of all
    places may sum to 2.5 times 1 - `confidence`. The first two have the whole of it, and each
    further one half of the one before: 1 + 1 + 1/4 + 1/8 + ... = 2.5. Later places have more rows,
    so that they can be stricter and lose little.

    The tuned decision comes nearer to 1 - `confidence` than a single test, since of the
    thresholds that pass it takes the one with the best score, which is often the last before a test
    fails. Where a bound is seldom within reach, the few splits in which it is promised are lucky
    ones, and more of these promises break: `confidence` is the share of all splits in which none is
    broken, and not that of the promises that are kept.

    What counts as evidence is what the share is of, and not all rows: the predicted positives, the
    true ones, or, for alerts, the rows. Each must be there once: the estimators leave out rows that
    repeat another one.
    """

    confidence: float = field(default=0.95, kw_only=True)
    each: bool = field(default=False, kw_only=True)

    parameter: ClassVar[str]  # of the bound, from 0 to `most`
    most: ClassVar[float] = 1
    measure: ClassVar[str]  # is bounded
    maximised: ClassVar[str]
    successes_are: ClassVar[str] = "positive"  # of the rows, in a warning
    loose_first: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_between("confidence", self.confidence, 0, 1)
        check_between(self.parameter, self._asked, 0, self.most)

    @property
    def _asked(self) -> float:
        """Bound that the user gave."""
        bound: float = getattr(self, self.parameter)
        return bound

    @property
    def _share(self) -> float:
        """Share of the trials that must succeed."""
        return self._asked

    @abstractmethod
    def _trials(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Successes and trials of the share that is bounded, for each decision."""

    def _value(self, counts: Counts) -> np.ndarray:
        """Recall, which the bound leaves to be maximised."""
        hits, _, true = counts.pooled
        return hits / np.maximum(true, 1)

    def _describe(self) -> str:
        """Name of what is maximised."""
        return self.maximised

    def _in_full(self) -> str:
        """What is maximised within which bound."""
        return f"the highest {self.maximised} at {self._in_words(self._share)}"

    def _resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Refuse classes without a background."""
        if kind == "classes":
            raise ValueError(
                f"scoring={self!r} is for two classes, several labels and spans, and y has "
                f"{len(classes)} classes, of which one is always predicted: use 'f1_macro' or Cost"
            )
        return self

    def _holds(self, counts: Counts) -> np.ndarray:
        """Return True for decisions that reach the share on the rows that were counted."""
        successes, trials = self._trials(counts)
        reached: np.ndarray = (trials == 0) | (successes >= self._share * trials)
        return reached

    def _promised(self, steps: Counts, share: float | None = None) -> np.ndarray:
        """Steps at which the share holds for new rows; they go from strict to loose thresholds."""
        share = self._share if share is None else share
        successes, trials = self._trials(steps)
        turn = slice(None, None, -1 if self.loose_first else 1)
        successes, trials = successes[turn], trials[turn]
        order, starts = self._tests(steps, trials, share)
        # Bonferroni's inequality for the promises of all places: see the class.
        levels = [(1 - self.confidence) * (1 if i < 2 else 0.5**i) for i in range(len(starts))]
        sure = self._sure(successes[order], trials[order], share, levels)
        held = np.zeros(len(successes), dtype=bool)
        for start, passed in zip(starts, sure, strict=True):
            fails = np.flatnonzero(~passed[start:])
            held[order[start : start + fails[0] if len(fails) else None]] = True
        return held[turn]

    def _best_share(self, steps: Counts) -> float:
        """Highest share that could have been promised; 0 if none."""
        # In thousandths, as they are told.
        shares = np.unique(np.floor(self._share * np.arange(1, 200) * 5) / 1000)[::-1]
        held = (float(s) for s in shares if s > 0 and self._promised(steps, s).any())
        return next(held, 0.0)

    def _promise(self, share: float) -> Promise:
        """Promise of a share."""
        return Promise(
            self.measure, self._asked, round(self._from_share(share), 9), self.confidence
        )

    def _from_share(self, share: float) -> float:
        """Share in the unit of `asked`."""
        return share

    def _in_words(self, share: float) -> str:
        """Share as the user gives it, with its name."""
        return f"{self.measure} {share:.3g}"

    def _sure(
        self, successes: np.ndarray, trials: np.ndarray, share: float, levels: Sequence[float]
    ) -> list[np.ndarray]:
        """Return True where new trials, half as many, reach a share, for each level of error."""

        def p(hits: Any, n: Any) -> Any:
            new = np.ceil(n / 2)
            missed = np.maximum(np.ceil(share * new - 1e-9) - 1, 0)  # hits among the new
            return np.where(n > 0, hypergeom.sf(hits - 1, n + new, hits + missed, n), 1.0)

        if not len(trials) or (trials != trials[0]).any():
            values = p(successes, trials)
            return [values <= level for level in levels]
        n = int(trials[0])  # of equal trials, from a number on they are sure

        def fewest(level: float) -> int:
            return bisect_left(range(n + 1), True, key=lambda hits: bool(p(hits, n) <= level))

        return [successes >= fewest(level) for level in levels]

    def _fewest_trials(self, share: float, most: int) -> int:
        """Number of trials that is needed if all succeed; `most` + 1 if that is not enough."""
        n = np.arange(1, most + 2)
        new = np.ceil(n / 2)
        failures = new - np.ceil(share * new - 1e-9) + 1  # all of them among the new
        log_p = gammaln(new + 1) - gammaln(new - failures + 1)
        log_p -= gammaln(n + new + 1) - gammaln(n + new - failures + 1)
        enough = log_p <= np.log(1 - self.confidence)
        enough[-1] = True
        return int(n[enough.argmax()])

    def _tests(
        self, steps: Counts, trials: np.ndarray, share: float
    ) -> tuple[np.ndarray, list[int]]:
        """Steps that are tested, and the places among them where the tests begin."""
        order = np.arange(len(trials))
        if steps.starts is None:
            return order, [0]
        middle, strict, loose = steps.starts
        if self.loose_first:  # the safe end has the second start
            return order, [len(trials) - 1 - i for i in (middle, loose, strict)]
        return order, [middle, strict, loose]


@dataclass(frozen=True)
class OfPredicted(Bound):
    """Base of the bounds on the share of the predicted that are right."""

    def _trials(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Hits among the predicted."""
        hits, predicted, _ = counts.pooled
        return hits, predicted

    def _tests(
        self, steps: Counts, trials: np.ndarray, share: float
    ) -> tuple[np.ndarray, list[int]]:
        if steps.starts is not None:
            return super()._tests(steps, trials, share)
        # A handful of rows says nothing about a low precision, so the first test waits for as many
        # rows as would hold ten hits. Sizes grow by a tenth. A false alarm among the surest rows
        # would end a single sequence, so that others begin at four times as many rows each.
        most = int(trials.max(initial=0))
        least = max(self._fewest_trials(share, most), min(FEWEST_HITS / share, most))
        sizes, places = (least * ratio ** np.arange(400.0) for ratio in (1.1, 4))
        # The last test is of all rows: where it passes, none has to be left out.
        order = np.unique(np.searchsorted(trials, np.append(sizes[sizes <= most], most)))
        return order, np.searchsorted(trials[order], places[places <= most]).tolist()


@checked
@dataclass(frozen=True)
class RecallAtPrecision(OfPredicted):
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
    Control", 2021: fixed-sequence testing, here with several starts.

    Examples
    --------
    >>> from skdice.metrics import RecallAtPrecision
    >>> RecallAtPrecision(0.9)
    RecallAtPrecision(confidence=0.95, each=False, precision=0.9)
    """

    precision: float

    parameter: ClassVar[str] = "precision"
    measure: ClassVar[str] = "precision"
    maximised: ClassVar[str] = "recall"


@checked
@dataclass(frozen=True)
class PrecisionAtRecall(Bound):
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

    parameter: ClassVar[str] = "recall"
    measure: ClassVar[str] = "recall"
    maximised: ClassVar[str] = "precision"
    loose_first: ClassVar[bool] = True

    def _trials(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Hits among the true."""
        hits, _, true = counts.pooled
        return hits, true

    def _value(self, counts: Counts) -> np.ndarray:
        """Precision, which the bound leaves to be maximised."""
        hits, predicted, _ = counts.pooled
        return hits / np.maximum(predicted, 1)


@checked
@dataclass(frozen=True)
class AlertBudget(Bound):
    """The highest recall with no more alerts than a budget, on new rows too.

    Parameters
    ----------
    per_thousand : float
        Alerts in 1,000 rows. An alert is a text with the positive class or any label, or a sentence
        with any span, whether or not the truth is known there.
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

    parameter: ClassVar[str] = "per_thousand"
    most: ClassVar[float] = 1000
    measure: ClassVar[str] = "alerts per 1,000 rows"
    maximised: ClassVar[str] = "recall"

    @property
    def _share(self) -> float:
        """Share of the rows without an alert."""
        return 1 - self.per_thousand / 1000

    def _trials(self, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
        """Rows without an alert among all."""
        return counts.n_rows - counts.alerts, np.full(np.shape(counts.alerts), counts.n_rows)

    def _from_share(self, share: float) -> float:
        """Alerts in 1,000 rows."""
        return 1000 * (1 - share)

    def _in_words(self, share: float) -> str:
        """Alerts in 1,000 rows."""
        return f"{1000 * (1 - share):.3g} {self.measure}"

    def _tests(
        self, steps: Counts, trials: np.ndarray, share: float
    ) -> tuple[np.ndarray, list[int]]:
        return np.arange(len(trials)), [0]  # a strict threshold is safe with spans too
