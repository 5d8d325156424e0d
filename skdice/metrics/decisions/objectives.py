"""Objectives of a tuned decision: a score, or a cost; bounds are in `bounds`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from skdice._checks import as_numbers, check_choice, checked, position, shown
from skdice.metrics.decisions.counts import Counts

__all__ = ["Cost", "Fbeta"]


class Objective(ABC):
    """Base of the objectives that `BiasTunedClassifier` and `BiasTunedTagger` maximise.

    A new objective is a frozen dataclass with `_value` and `_describe`. Its fields are parameters
    that a search reaches, as in ``scoring__beta``.
    """

    @abstractmethod
    def _value(self, counts: Counts) -> np.ndarray:
        """Number for each decision in `counts`; higher is better."""

    @abstractmethod
    def _describe(self) -> str:
        """Name of what `_value` gives, for an axis."""

    def _in_full(self) -> str:
        """Words for what a decision was tuned for."""
        return self._describe()

    def _resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Objective for decisions of one kind.

        Parameters
        ----------
        kind : {"two", "classes", "labels", "spans"}
            One of two classes, one of more, several labels, or spans.
        classes : sequence of labels
        positive : int or None
            Index of the positive one of two.

        Raises
        ------
        ValueError
            If such decisions cannot have it.
        """
        return self

    @property
    def _alarms_never_gain(self) -> bool:
        """True if one more false alarm never raises `_value`: fewer thresholds are tried then."""
        return True

    # ---- scikit-learn's parameters

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


# An objective, or a function from true and predicted labels to a number.
Score = Objective | Callable[[Any, Any], float]


@checked
@dataclass(frozen=True)
class Fbeta(Objective):
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
        check_between("beta", self.beta, 0, 1e6)
        check_choice("average", self.average, ("auto", "micro", "macro"))

    def _value(self, counts: Counts) -> np.ndarray:
        """Score; a macro average is over the kinds that are true or predicted."""
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

    def _describe(self) -> str:
        """F with beta and average."""
        return f"F{self.beta:g}" + ("" if self.average == "auto" else f", {self.average}")

    def _resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Score with the average that ``"auto"`` stands for."""
        if self.average != "auto" or kind == "two":
            return self
        return replace(self, average="macro" if kind == "classes" else "micro")


@checked
@dataclass(frozen=True, repr=False)
class Cost(Objective):
    """The cost of decisions, to be as low as possible.

    Parameters
    ----------
    matrix : dict, or array of shape (2, 2) or (n_classes, n_classes)
        A dict gives the cost of each mistake by truth and prediction: ``{("bad", "good"): 10,
        ("good", "bad"): 1}`` makes a bad one that is taken for good ten times as bad as the
        opposite. Right decisions cost 0 unless they are named.

        Rows of an array are the truth and columns the prediction, in the order of ``classes_``.
        With several labels and with spans they are absent and present: ``[[0, 1], [20, 0]]`` makes
        a missed label or span as bad as 20 false ones. With spans ``matrix[0][0]`` must be 0.

    Raises
    ------
    ValueError
        By `fit`, if a dict lacks a mistake or names no class, or if an array is given and the
        positive class is the first of two: ``[[0, 1], [20, 0]]`` would be read the other way round
        by those who think of negative and positive.

    Examples
    --------
    >>> from skdice.metrics import Cost
    >>> Cost({("bad", "good"): 10, ("good", "bad"): 1})
    Cost(bad taken for good: 10, good taken for bad: 1)
    """

    matrix: Any

    def __post_init__(self) -> None:
        given: Any
        if isinstance(self.matrix, Mapping):
            pairs = list(self.matrix)
            if wrong := [p for p in pairs if not (isinstance(p, tuple) and len(p) == 2)]:
                raise ValueError(
                    f"matrix has the key {shown(wrong[0])}: give (truth, prediction), as in "
                    "{('bad', 'good'): 10, ('good', 'bad'): 1}"
                )
            costs = as_numbers("matrix", list(self.matrix.values()))
            given = dict(zip(pairs, costs.tolist(), strict=True))
        else:
            table = as_numbers("matrix", self.matrix, 2)
            if table.shape[0] != table.shape[1] or len(table) < 2:
                raise ValueError(
                    f"matrix has shape {table.shape}: give a row and a column for each class"
                )
            given = tuple(map(tuple, table.tolist()))
        object.__setattr__(self, "matrix", given)

    def __repr__(self) -> str:
        if isinstance(self.matrix, dict):
            return f"Cost({self._by_name(self.matrix)})"
        rows = (", ".join(f"{cost:g}" for cost in row) for row in self.matrix)
        return f"Cost([{', '.join(f'[{row}]' for row in rows)}])"

    def __hash__(self) -> int:
        return hash(repr(self))

    @staticmethod
    def _by_name(costs: Mapping[Any, float]) -> str:
        return ", ".join(f"{true} taken for {found}: {c:g}" for (true, found), c in costs.items())

    def _value(self, counts: Counts) -> np.ndarray:
        """Mean cost of a row, negative."""
        mean: np.ndarray = -counts.total(np.array(self.matrix)) / np.maximum(counts.n_rows, 1)
        return mean

    def _describe(self) -> str:
        """Sign and name of the cost."""
        return "minus the mean cost"

    def _in_full(self) -> str:
        """What each mistake costs."""
        if isinstance(self.matrix, dict):
            return f"the lowest cost ({self._by_name(self.matrix)})"
        return f"the lowest cost ({self!r})"

    def _resolve(self, kind: str, classes: Sequence[Any], positive: int | None) -> Objective:
        """Cost as an array: of two classes the negative one first, of more as in `classes`."""
        names = np.asarray(classes).tolist()
        if isinstance(self.matrix, dict):
            table = self._table(kind, names)
            turn = -1 if kind == "two" and positive == 0 else 1
            return replace(self, matrix=table[::turn, ::turn])
        size = len(names) if kind == "classes" else 2
        if len(self.matrix) != size:
            raise ValueError(f"scoring={self!r} must have {size} rows, and has another number")
        if kind == "two" and positive == 0:
            (_, upper), (lower, _) = self.matrix
            one, other = names
            raise ValueError(
                f"scoring={self!r} can be read in two ways, as the positive class {one!r} is the "
                f"first of {names}: name the classes, as in Cost({{({one!r}, {other!r}): "
                f"{upper:g}, ({other!r}, {one!r}): {lower:g}}}) if the rows are in this order"
            )
        if kind == "spans" and self.matrix[0][0] != 0:
            raise ValueError(f"scoring={self!r}: matrix[0][0] must be 0, as no span is no row")
        return self

    def _table(self, kind: str, names: list[Any]) -> np.ndarray:
        """Costs by name as an array in the order of `names`."""
        if kind not in ("two", "classes"):
            raise ValueError(
                f"scoring={self!r} names classes, and each {kind[:-1]} is there or not: give "
                "Cost([[0, 1], [20, 0]]), where a missed one costs 20 and a false one 1"
            )
        table = np.where(np.eye(len(names), dtype=bool), 0.0, np.nan)
        for pair, cost in self.matrix.items():
            where = f"scoring={self!r} does not fit y: class"
            at = (position(where, name, names, "classes") for name in pair)
            table[tuple(at)] = cost
        if (missing := np.argwhere(np.isnan(table))).size:
            true, found = (names[i] for i in missing[0])
            raise ValueError(
                f"scoring={self!r} does not say what {true!r} taken for {found!r} costs: add "
                f"({true!r}, {found!r})"
            )
        return table

    @property
    def _alarms_never_gain(self) -> bool:
        """True if a false alarm costs no less than a negative row."""
        return bool(self.matrix[0][1] >= self.matrix[0][0])


def check_between(name: str, value: float, low: float, high: float) -> None:
    """Refuse what is not between two numbers, ends excluded."""
    if not low < value < high:
        raise ValueError(f"{name}={shown(value)} must be above {low} and below {high:g}")
