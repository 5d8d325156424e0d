"""Rows that a decision leaves to a person: those nearest to where it turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skdice._checks import checked, shown
from skdice.inputs.labels import first
from skdice.metrics.decisions.bounds import RecallAtPrecision
from skdice.metrics.decisions.counts import Counts
from skdice.metrics.decisions.held_out_rows import BinaryRows, ClassRows
from skdice.metrics.decisions.objectives import Fbeta, Objective
from skdice.metrics.decisions.tuning import Tuning, bagged, bounded, tune

__all__ = ["RejectAt"]


@checked
@dataclass(frozen=True)
class RejectAt(RecallAtPrecision):
    """The fewest rows left to a person so that the decisions on the others have a precision.

    Of two classes these are the predicted positives of which the precision cannot be promised. Of
    more classes and of several labels they are the rows that the model is least sure of, and the
    precision is the share of the others that are decided right, with all their labels.

    Parameters
    ----------
    precision : float
        Between 0 and 1.
    confidence : float, default=0.95
        How sure it is that new rows of the same kind, at least half as many, hold the bound.
    strict : bool, default=False
        Whether to raise where the bound cannot be promised. Otherwise `fit` warns, and takes the
        best promise.

    References
    ----------
    C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE Transactions on Information
    Theory 1970. The promise is that of `RecallAtPrecision`.

    Examples
    --------
    >>> from skdice.metrics import RejectAt
    >>> RejectAt(0.95).in_full()
    'the fewest rows left to a person at precision 0.95'
    """

    maximised: ClassVar[str] = "share of rows decided"

    def in_full(self) -> str:
        """What is left to a person for which bound."""
        return f"the fewest rows left to a person at {self.in_words(self.share)}"

    def resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Refuse spans, of which there is no row to leave."""
        if kind == "spans":
            raise ValueError(f"scoring={self!r} is for classes and labels, and y has tags")
        if self.each:
            raise ValueError("each=True has no meaning for RejectAt, which leaves out whole rows")
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


def margin_of_share(sure: np.ndarray, share: float) -> float:
    """The margin below which at most a share of the rows lies."""
    ordered = np.append(np.sort(sure), np.inf)
    k = int(share * len(sure) + 1e-9)
    if k == 0:
        return 0.0
    middle = (ordered[k - 1] + min(ordered[k], ordered[k - 1] + 2)) / 2
    return float(middle if ordered[k] > ordered[k - 1] else ordered[k])


def tune_rejecting(
    rows: BinaryRows, objective: Objective, share: float, n_draws: int = 20
) -> Tuning:
    """The bias with which one of two classes is decided best where a share of the rows is left out.

    The rows left out are those nearest to the threshold. The bias is the mean of the best ones of
    `n_draws` bootstrap draws, as in `tune`.
    """
    return bagged(rows, lambda drawn: _best_middle(drawn, objective, share), n_draws)


def _best_middle(rows: BinaryRows, objective: Objective, share: float) -> np.ndarray:
    """The bias at the middle of the best window of rows to leave out."""
    margins = rows.margins[:, 0]
    order = np.argsort(-margins, kind="stable")
    ordered, n = margins[order], len(margins)
    hits = np.append(0, np.cumsum(rows.truth[order, 0]))
    # Windows begin and end between rows with different margins.
    ends = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [n]])
    size = int(share * n + 1e-9)
    first = ends[ends <= n - size]
    last = ends[np.searchsorted(ends, first + size, "right") - 1]
    largest = last - first == (last - first).max()
    first, last = first[largest], last[largest]
    true = hits[-1] - (hits[last] - hits[first])
    left = n - (last - first)
    found = np.stack([left - first - (true - hits[first]), hits[first]], axis=-1)
    predicted, both = np.stack([left - first, first], -1), np.stack([left - true, true], -1)
    counts = Counts(found, predicted, both, first, left, positive=1)
    best = int(np.argmax(objective.value(counts)))
    edges = np.concatenate([ordered[:1] + 2, ordered, ordered[-1:] - 2])
    high, low = ((edges[at] + edges[at + 1]) / 2 for at in (first[best], last[best]))
    return np.array([-(high + low) / 2])


def reject_at(
    rows: BinaryRows | ClassRows, objective: RejectAt, two: bool, n_draws: int
) -> tuple[np.ndarray, float, Any]:
    """The bias, the margin below which rows are left to a person, and the promise.

    Of two classes the upper threshold keeps the bound, and the lower one is that of the best F1.
    Else there is no bias, since the rows that chose it could not show what holds with it.
    """
    if two and isinstance(rows, BinaryRows):
        lower = -float(tune(rows, Fbeta(), n_draws=n_draws).bias[0])
        bias, promise = bounded(rows, objective)
        upper = max(-float(bias[0]), lower) if promise.promised else lower
        return np.array([-(upper + lower) / 2]), (upper - lower) / 2, promise
    none = np.zeros(rows.n_biases)
    if isinstance(rows, BinaryRows):
        sure = sureness(rows.margins, True)
    else:
        sure = sureness(rows.log_p, False)
    right = (rows.decide(none) == rows.truth).reshape(rows.n_rows, -1).all(axis=1)
    decided = BinaryRows(sure[:, None], right[:, None], rows.y_true)
    bias, promise = bounded(decided, objective)
    return none, max(-float(bias[0]), 0.0), promise
