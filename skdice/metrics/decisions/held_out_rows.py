"""Held-out rows with their probabilities and truth, as `tuning.tune` needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from skdice._checks import shown
from skdice.metrics.decisions.bias_search import FAR, tune_bias
from skdice.metrics.decisions.counts import Counts
from skdice.metrics.decisions.objectives import Objective, Score
from skdice.metrics.decisions.span_counter import SpanCounter, running_counts
from skdice.tags.decoding import best_tags

_N_STEPS = 64  # thresholds of a label, where not all are tried
POOLING = 20  # positives with which a label's own bias counts as much as the common one
_GRID = np.array([-40.0, -20.0, -12.0, *np.arange(-8, 8.01, 0.25), 12.0, 20.0, 40.0])


def _number(value: Any) -> float:
    """Return what a function of the user's gave; refuse what is no finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise ValueError(
            f"the function given as scoring returned {shown(value)}: it must return a finite "
            "number for all decisions, also where nothing is predicted"
        )
    return number


def thresholds(ordered: np.ndarray, above: np.ndarray) -> np.ndarray:
    """The middles between two margins, of which `above` are over each; `ordered` ones fall."""
    if not len(ordered):
        return np.zeros(len(above))
    edges = np.concatenate([ordered[:1] + 2, ordered, ordered[-1:] - 2])
    high, low = edges[above], edges[above + 1]
    # A probability of 0 lies endlessly far below, and would count as much in a mean.
    middle = np.maximum((high + low) / 2, high - FAR)
    found: np.ndarray = np.where(middle < high, middle, low)
    return found


@dataclass
class BinaryRows:
    """Yes or no for each label, or for the positive class of two: yes above a margin of 0.

    Attributes
    ----------
    margins : ndarray of shape (n_rows, n_labels)
        Log-odds.
    truth : ndarray of bool or int, shape (n_rows, n_labels)
        Below 0 where it is not known: what is decided there is an alert, and in no other count.
    y_true : ndarray
        The truth as the user gave it.
    class_names : ndarray of two labels, or None
        The negative and the positive class of two.
    labels : list of str
    """

    margins: np.ndarray
    truth: np.ndarray
    y_true: np.ndarray
    class_names: np.ndarray | None = None
    labels: Sequence[Any] = ("",)

    def __post_init__(self) -> None:
        self.n_rows, self.n_biases = self.margins.shape
        self.true, self.known = self.truth == 1, self.truth >= 0

    def decide(self, bias: np.ndarray) -> np.ndarray:
        """Return True if each label is predicted, of shape (n_rows, n_labels)."""
        decisions: np.ndarray = self.margins + bias > 0
        return decisions

    def score(self, objective: Score, decisions: np.ndarray) -> float:
        """Return a score of decisions."""
        if not callable(objective):
            return float(objective._value(self._table(*self._found(decisions))))
        named = decisions.astype(int)
        if self.class_names is not None:
            named = self.class_names[named[:, 0]]
        return _number(objective(self.y_true, named))

    def _found(self, decisions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hits and predictions of each label, where the truth is known."""
        return (decisions & self.true).sum(axis=0), (decisions & self.known).sum(axis=0)

    def _table(self, hits: np.ndarray, predicted: np.ndarray, alerts: Any = 0) -> Counts:
        """Counts of shape (..., n_labels), or of both classes."""
        n, true, alerts = self.n_rows, self.true.sum(axis=0), np.asarray(alerts)
        if self.class_names is None:
            return Counts(hits, predicted, true, alerts, n, int(self.known.sum()))
        hits = np.concatenate([n - predicted - true + hits, hits], axis=-1)
        both = np.concatenate([n - predicted, predicted], axis=-1)
        return Counts(hits, both, np.append(n - true, true), alerts, n, positive=1)

    def counts(self, decisions: np.ndarray, together: list[int]) -> Counts:
        """Counts of some labels."""
        parts = self.margins[:, together], self.truth[:, together], self.y_true
        some, predicted = type(self)(*parts, self.class_names), decisions[:, together]
        return some._table(*some._found(predicted), predicted.any(axis=1).sum())

    def take(self, chosen: np.ndarray) -> Self:
        """Some of the rows, perhaps twice."""
        parts = self.margins[chosen], self.truth[chosen], self.y_true[chosen]
        return type(self)(*parts, self.class_names, self.labels)

    def best_bias(self, objective: Score) -> np.ndarray:
        """The best bias; of labels with few positives, mostly the common one."""
        true = self.true.sum(axis=0)
        bias = np.zeros(self.n_biases)
        for _ in range(3 if self.n_biases > 1 else 1):
            before = bias.copy()
            for label in range(self.n_biases):
                bias[label] = self._best_of(objective, bias, label)
            if (bias == before).all():
                break
        if self.n_biases == 1:
            return bias
        common = self._shared_bias(objective)
        own = true / (true + POOLING)
        mixed: np.ndarray = own * bias + (1 - own) * common
        return mixed

    def _shared_bias(self, objective: Score) -> float:
        """The best bias that all labels share, where they count together."""
        shifts, steps = self.counts_by_shift([*range(self.n_biases)], np.zeros(self.n_biases))
        if not callable(objective):
            return float(shifts[objective._value(steps).argmax()])
        shifts = shifts[np.linspace(0, len(shifts) - 1, _N_STEPS).astype(int)]
        scores = [self.score(objective, self.decide(shift)) for shift in shifts]
        return float(shifts[int(np.argmax(scores))])

    def _best_of(self, objective: Score, bias: np.ndarray, label: int) -> float:
        """The best bias of a label; of equally good ones the nearest to the one it has."""
        shifts, steps = self.counts_by_shift([label], np.zeros(self.n_biases))
        hits, predicted = steps.hits[:, 0], steps.predicted[:, 0]
        # A threshold is best right below a positive row, or where none or all are predicted.
        kept = np.unique([0, *(np.flatnonzero(np.diff(hits)) + 1), len(shifts) - 1])
        if not (callable(objective) or objective._alarms_never_gain):  # or right above one
            kept = np.union1d(kept, np.flatnonzero(np.diff(hits)))
        if len(kept) > _N_STEPS and (callable(objective) or self.n_biases > 1):
            kept = kept[np.linspace(0, len(kept) - 1, _N_STEPS).astype(int)]
        decisions = self.decide(bias)
        now = self.score(objective, decisions)
        if callable(objective):
            values = []
            for shift in shifts[kept]:
                decisions[:, label] = self.margins[:, label] + shift > 0
                values.append(self.score(objective, decisions))
            scores = np.array(values)
        else:
            tables = [np.tile(part, (len(kept), 1)) for part in self._found(decisions)]
            tables[0][:, label], tables[1][:, label] = hits[kept], predicted[kept]
            scores = objective._value(self._table(*tables))
        if scores.max() <= now + 1e-12:
            return float(bias[label])
        ties = shifts[kept][scores >= scores.max() - 1e-12]
        return float(ties[np.abs(ties - bias[label]).argmin()])

    def groups(self, each: bool) -> dict[str, list[int]]:
        """Each label, or all."""
        if not each or self.n_biases == 1:
            return {"": [*range(self.n_biases)]}
        return {str(label): [i] for i, label in enumerate(self.labels)}

    def counts_by_shift(self, together: list[int], bias: np.ndarray) -> tuple[np.ndarray, Counts]:
        """Every threshold for some labels: between two margins whose truth is known, the middle."""
        margins, known = self.margins[:, together] + bias[together], self.known[:, together]
        order = np.argsort(-margins[known], kind="stable")
        ordered, true = margins[known][order], self.true[:, together][known][order]
        ends = np.append(np.flatnonzero(np.diff(ordered)) + 1, len(ordered))
        predicted = np.append(0, ends)
        shifts = -thresholds(ordered, predicted)
        hits = np.append(0, np.cumsum(true))[predicted]
        # A row is one alert, whichever of the labels it has.
        alerts = self.n_rows - np.searchsorted(np.sort(margins.max(axis=1)), -shifts, "right")
        tables = hits[:, None], predicted[:, None], true.sum()[None]
        return shifts, Counts(*tables, alerts, self.n_rows, len(ordered))


@dataclass
class ClassRows:
    """One of three classes or more: the one with the highest log-probability after the biases.

    Attributes
    ----------
    log_p : ndarray of shape (n_rows, n_classes)
    truth : ndarray of int, shape (n_rows,)
        Indices; -1 for a class that the model does not know.
    y_true : ndarray of shape (n_rows,)
        The truth as the user gave it.
    class_names : ndarray of shape (n_classes,)
    """

    log_p: np.ndarray
    truth: np.ndarray
    y_true: np.ndarray
    class_names: np.ndarray

    def __post_init__(self) -> None:
        self.n_rows, self.n_biases = self.log_p.shape

    def decide(self, bias: np.ndarray) -> np.ndarray:
        """Indices of classes, of shape (n_rows,)."""
        return (self.log_p + bias).argmax(axis=1)

    def score(self, objective: Score, decisions: np.ndarray) -> float:
        """Return a score of decisions."""
        if callable(objective):
            return _number(objective(self.y_true, self.class_names[decisions]))
        return float(objective._value(self.counts(decisions, [*range(self.n_biases)])))

    def counts(self, decisions: np.ndarray, together: list[int]) -> Counts:
        """Counts of some classes."""
        hits, predicted, true = (
            np.bincount(classes[classes >= 0], minlength=self.n_biases)[together]
            for classes in (decisions[decisions == self.truth], decisions, self.truth)
        )
        known = self.truth >= 0
        pairs = self.truth[known], decisions[known]
        none, n = np.zeros(()), len(pairs[0])
        return Counts(hits, predicted, true, none, n, sum_by_pair=lambda table: table[pairs].sum())

    def take(self, chosen: np.ndarray) -> Self:
        """Some of the rows, perhaps twice."""
        parts = self.log_p[chosen], self.truth[chosen], self.y_true[chosen]
        return type(self)(*parts, self.class_names)

    def best_bias(self, objective: Score) -> np.ndarray:
        """The best bias that `tune_bias` finds; a function, which is slow, is called less often."""
        scores: dict[bytes, float] = {}  # the passes meet the same decisions again

        def score(decisions: np.ndarray) -> float:
            key = decisions.tobytes() if callable(objective) else b""
            if not key or key not in scores:
                scores[key] = self.score(objective, decisions)
            return scores[key]

        return tune_bias(
            self.log_p,
            self.truth,
            score,
            scores=None if callable(objective) else partial(self._scores, objective),
            n_tries=12 if callable(objective) else 64,
        )

    def _scores(
        self, objective: Objective, k: int, rival: np.ndarray, steps: np.ndarray, n_steps: int
    ) -> np.ndarray:
        """Return the score at each step, where rows become class `k` one after another."""
        before = np.zeros_like(steps), steps, rival
        after = steps, np.full_like(steps, n_steps), np.full_like(steps, k)
        predicted = running_counts([before, after], n_steps, self.n_biases)
        right = [tuple(part[now[2] == self.truth] for part in now) for now in (before, after)]
        hits = running_counts(right, n_steps, self.n_biases)
        known = self.truth >= 0
        true = np.bincount(self.truth[known], minlength=self.n_biases)

        def sum_by_pair(table: np.ndarray) -> np.ndarray:
            values = table[self.truth[known], rival[known]]
            change = np.bincount(
                steps[known], table[self.truth[known], k] - values, minlength=n_steps + 1
            )
            total: np.ndarray = values.sum() + change[:n_steps].cumsum()
            return total

        counts = Counts(hits, predicted, true, np.zeros(()), int(known.sum()))
        return objective._value(replace(counts, sum_by_pair=sum_by_pair))


@dataclass
class SpanRows:
    """Tags of tokens, judged by the spans that they make.

    Attributes
    ----------
    log_p : ndarray of shape (n_tokens, n_classes)
    truth : ndarray of int, shape (n_tokens,)
        Indices; -1 for a tag that the model does not know.
    tags : list of lists of str
        The truth of each sentence.
    classes : list of str
    scheme : str
    constrained : bool
        Whether the tagger predicts well-formed sequences alone, as bounds then count. A search for
        the best bias counts the best tag of each token.
    """

    log_p: np.ndarray
    truth: np.ndarray
    tags: Sequence[Sequence[str]]
    classes: Sequence[str]
    scheme: str
    constrained: bool = False

    def __post_init__(self) -> None:
        self.n_rows, self.n_biases = len(self.tags), len(self.classes)
        self.counter = SpanCounter(self.tags, self.classes, self.scheme)
        self.ends = np.cumsum(self.counter.lengths)

    def decide(self, bias: np.ndarray) -> np.ndarray:
        """Indices of tags, of shape (n_tokens,)."""
        tables = np.split(self.log_p + bias, self.ends[:-1])
        return best_tags(tables, self.classes, self.scheme, constrained=self.constrained)

    def score(self, objective: Score, decisions: np.ndarray) -> float:
        """Return a score of decisions."""
        if not callable(objective):
            return float(objective._value(self.counter.counts(decisions)))
        named = np.split(np.asarray(self.classes)[decisions], self.ends[:-1])
        return _number(objective(self.tags, [row.tolist() for row in named]))

    def counts(self, decisions: np.ndarray, together: list[int]) -> Counts:
        """Counts of the types of some tags."""
        return self.counter.counts(decisions, sorted({*self.counter.kinds[together] - 1}))

    def take(self, chosen: np.ndarray) -> Self:
        """Some of the sentences, perhaps twice."""
        sizes = self.counter.lengths[chosen]
        first = np.repeat((self.ends - self.counter.lengths)[chosen], sizes)
        tokens = first + np.arange(len(first)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        parts = self.log_p[tokens], self.truth[tokens], [self.tags[i] for i in chosen]
        return type(self)(*parts, self.classes, self.scheme, self.constrained)

    def best_bias(self, objective: Score) -> np.ndarray:
        """The best bias that `tune_bias` finds."""
        return tune_bias(
            self.log_p,
            self.truth,
            lambda decisions: self.score(objective, decisions),
            scores=None if callable(objective) else partial(self._scores, objective),
        )

    def _scores(
        self, objective: Objective, k: int, rival: np.ndarray, steps: np.ndarray, n_steps: int
    ) -> np.ndarray:
        """Return the score at each step, where tokens become class `k` one after another."""
        return objective._value(self.counter.counts_by_step(k, rival, steps, n_steps))

    def of_types(self, each: bool) -> dict[str, list[int]]:
        """The tags of each type, or all but the background."""
        groups: dict[str, list[int]] = {}
        for i, kind in enumerate(self.counter.kinds[: self.n_biases].tolist()):
            if kind:
                groups.setdefault(self.counter.types[kind - 1] if each else "", []).append(i)
        return groups

    def groups(self, each: bool) -> dict[str, list[int]]:
        """The same, of tags with a background."""
        groups = self.of_types(each)
        if not groups or sum(map(len, groups.values())) == self.n_biases:
            raise ValueError("a bound on precision, recall or alerts needs the tag 'O' and others")
        return groups

    def counts_by_shift(self, together: list[int], bias: np.ndarray) -> tuple[np.ndarray, Counts]:
        """A grid of shifts; the strictest cut spans into pieces, so tests begin near the middle."""
        shifts, moved = _GRID, np.zeros(self.n_biases)
        moved[together] = 1
        found = [self.counts(self.decide(bias + s * moved), together) for s in shifts]
        hits, predicted, alerts = (
            np.array([getattr(counts, name) for counts in found])
            for name in ("hits", "predicted", "alerts")
        )
        starts = tuple(np.searchsorted(shifts, [0.0, -2.0, 2.0]).tolist())
        counts = Counts(hits, predicted, found[0].true, alerts, self.n_rows, starts=starts)
        return shifts, counts


HeldOutRows = BinaryRows | ClassRows | SpanRows
