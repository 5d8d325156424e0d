"""Rows that a decision leaves to a person: those nearest to where it turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdice._checks import checked, shown
from skdice.inputs.labels import first
from skdice.metrics.decisions.bounds import OfPredicted, Promise
from skdice.metrics.decisions.counts import Counts
from skdice.metrics.decisions.held_out_rows import BinaryRows, ClassRows, thresholds
from skdice.metrics.decisions.objectives import Cost, Objective, Score
from skdice.metrics.decisions.tuning import Tuning, bagged, bounded

__all__ = ["RejectAt"]

MOST_PLACES = 500  # at which a window of rows to leave out may begin or end, and is tried
MOST_MARGINS = 100  # that are tried for several classes or labels, where each is scored anew


@checked
@dataclass(frozen=True)
class RejectAt(OfPredicted):
    """The fewest rows left to a person so that of the others a share is decided right.

    The rows that are left out are those of which the model is least sure. A row of several labels
    is decided right if all its labels are. No bias is tuned. For a precision of the positive class
    use `RecallAtPrecision`.

    New, and not proven yet: it may change.

    Parameters
    ----------
    accuracy : float
        Share of the decided rows that are right, between 0 and 1: 0.95 allows 5 % errors.
    confidence : float, default=0.95
        How sure it is that new rows of the same kind, at least half as many, hold the bound.

    Notes
    -----
    Of several labels only rows whose labels are all known show whether a decision is right. `fit`
    takes these, and raises where there are none.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
    Theory 1970. The promise is that of `RecallAtPrecision`.

    Examples
    --------
    >>> from skdice.metrics import RejectAt
    >>> RejectAt(0.95)
    RejectAt(confidence=0.95, accuracy=0.95)
    """

    accuracy: float

    each: ClassVar[bool] = False  # type: ignore[misc]  # a row is decided as a whole
    parameter: ClassVar[str] = "accuracy"
    measure: ClassVar[str] = "accuracy of the decided rows"
    maximised: ClassVar[str] = "share of rows decided"
    successes_are: ClassVar[str] = "decided right"

    def _in_full(self) -> str:
        """What is left to a person for which bound."""
        return f"the fewest rows left to a person at {self._in_words(self._share)}"

    def _resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Refuse spans, of which there is no row to leave."""
        if kind == "spans":
            raise ValueError(f"scoring={self!r} is for classes and labels, and y has tags")
        return self


def check_reject_label(label: Any, classes: np.ndarray, several: bool) -> None:
    """Refuse a label of rows left to a person that is a class, or of another type than they are."""
    known = classes.tolist()
    named = several or isinstance(known[0], str)
    kind = "U" if named else classes.dtype.kind
    like = np.ndim(label) == 0 and np.asarray(label).dtype.kind == kind and label == label
    if not like or label in known:
        way_out = "'?'" if named else "-1"
        raise ValueError(
            f"reject_label={shown(label)} must be of the type of the classes and none of "
            f"{first(known)}: give another, such as {way_out}"
        )


def sureness(scores: np.ndarray, several: bool) -> np.ndarray:
    """How far each row is from another decision, in log-odds, of shape (n,).

    `scores` are log-probabilities of classes, or log-odds of `several` labels, with the biases.
    """
    if several:
        nearest: np.ndarray = np.abs(scores).min(axis=1)
        return nearest
    best = np.sort(scores, axis=1)[:, -2:]
    difference: np.ndarray = best[:, 1] - best[:, 0]
    return difference


def _sureness_of(rows: BinaryRows | ClassRows, bias: np.ndarray) -> np.ndarray:
    """How far each held-out row is from another decision."""
    if isinstance(rows, BinaryRows):
        return sureness(rows.margins + bias, True)
    return sureness(rows.log_p + bias, False)


def margin_of_share(sure: np.ndarray, share: float) -> float:
    """The margin below which at most a share of the rows lies."""
    return _margin_of(np.sort(sure), int(share * len(sure) + 1e-9))


def _margin_of(ordered: np.ndarray, size: int) -> float:
    """The margin below which the `size` least sure rows lie; equal ones are decided together."""
    if size == 0:
        return 0.0
    last, following = ordered[size - 1], np.append(ordered, np.inf)[size]
    middle = (last + min(following, last + 2)) / 2
    return float(middle if following > last else following)


def best_margin(
    rows: BinaryRows | ClassRows, bias: np.ndarray, objective: Score, share: float
) -> float:
    """The margin with which the decided rows score best, where at most a share lies below it.

    Of equally good margins it is the largest.
    """
    sure, decisions = _sureness_of(rows, bias), rows.decide(bias)
    order = np.argsort(sure, kind="stable")
    ordered = sure[order]
    most = int(share * rows.n_rows + 1e-9)
    # A margin lies between rows that are not equally sure.
    sizes = np.append(0, np.flatnonzero(np.diff(ordered)) + 1)
    sizes = sizes[sizes <= most]
    if len(sizes) > MOST_MARGINS:
        sizes = sizes[np.linspace(0, len(sizes) - 1, MOST_MARGINS).astype(int)]
    kept = [order[size:] for size in sizes]
    values = [rows.take(some).score(objective, decisions[some]) for some in kept]
    best = np.flatnonzero(np.round(values, 12) == np.round(max(values), 12))[-1]
    return _margin_of(ordered, int(sizes[best]))


def tune_rejecting(
    rows: BinaryRows, objective: Objective, share: float, n_draws: int = 20
) -> tuple[Tuning, float]:
    """The decision with which one of two classes scores best, where some rows are left out.

    At most a share of the rows is left out: those nearest to the threshold. The bias and the margin
    are the means of the best ones of `n_draws` bootstrap draws, as in `tune`.

    Returns
    -------
    tuning : Tuning
    margin : float
        Log-odds to the other decision below which a row is left out.
    """
    found = bagged(rows, lambda drawn: _best_window(drawn, objective, share), n_draws)
    tuning = Tuning(found.bias[:1], found.biases[:, :1])
    sure = np.abs(rows.margins[:, 0] + tuning.bias)
    return tuning, min(float(found.bias[1]), margin_of_share(sure, share))


def _best_window(rows: BinaryRows, objective: Objective, share: float) -> np.ndarray:
    """The bias in the middle of the best window of rows to leave out, and half its width."""
    order = np.argsort(-rows.margins[:, 0], kind="stable")
    ordered, n = rows.margins[order, 0], rows.n_rows
    hits = np.append(0, np.cumsum(rows.true[order, 0]))
    # Windows begin and end between rows with different margins.
    ends = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [n]])
    worth = np.append(True, np.diff(hits[ends]) > 0)
    if isinstance(objective, Cost) or not objective._alarms_never_gain:
        worth[:] = True  # a mean of costs can gain where a right no is left out
    first, last = _windows(ends, ends[worth], int(share * n + 1e-9))
    left, left_out = n - (last - first), hits[last] - hits[first]
    true = hits[-1] - left_out
    right = np.stack([left - first - (true - hits[first]), hits[first]], axis=-1)
    predicted, both = np.stack([left - first, first], -1), np.stack([left - true, true], -1)
    values = objective._value(Counts(right, predicted, both, first, left, positive=1))
    best = np.lexsort([last - first, np.round(values, 12)])[-1]  # of the best, the largest
    high, low = thresholds(ordered, np.array([first[best], last[best]]))
    return np.array([-(high + low) / 2, (high - low) / 2])


def _windows(ends: np.ndarray, worth: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Where windows of at most `size` rows begin and end, among them the best.

    A window that is not as large as it may be gains by a further false alarm at its upper end, and
    loses by a further right no at its lower end, which scores more if it is decided. So one end is
    right below a true row, which are the places in `worth`, or the window is as large as may be.
    """
    if len(worth) > MOST_PLACES:
        worth = worth[np.linspace(0, len(worth) - 1, MOST_PLACES).astype(int)]
    first, last = (worth[at] for at in np.triu_indices(len(worth)))
    furthest = ends[np.searchsorted(ends, worth + size, "right") - 1]
    earliest = ends[np.searchsorted(ends, worth - size)]
    first, last = np.concatenate([first, worth, earliest]), np.concatenate([last, furthest, worth])
    kept = last - first <= size
    return first[kept], last[kept]


def reject_at(
    rows: BinaryRows | ClassRows, objective: RejectAt
) -> tuple[np.ndarray, float, Promise]:
    """The bias, the margin below which rows are left to a person, and the promise.

    There is no bias, since the rows that chose it could not show what holds with it.
    """
    if isinstance(rows, BinaryRows):
        rows = rows.take(np.flatnonzero(rows.known.all(axis=1)))
        if not rows.n_rows:
            raise ValueError(
                f"scoring={objective!r} needs rows whose labels are all known, and of those to "
                "tune on there is none: complete the labels of some, or give another objective"
            )
    none = np.zeros(rows.n_biases)
    sure = _sureness_of(rows, none)
    right = (rows.decide(none) == rows.truth).reshape(rows.n_rows, -1).all(axis=1)
    decided = BinaryRows(sure[:, None], right[:, None], rows.y_true)
    bias, promise = bounded(decided, objective)
    return none, max(-float(bias[0]), 0.0), promise
