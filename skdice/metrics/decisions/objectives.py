"""Objectives of a tuned decision: a score, or a cost; bounds are in `bounds`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np

from skdice._checks import as_numbers, check_choice, checked, shown
from skdice.metrics.decisions.counts import Counts

__all__ = ["Cost", "Fbeta"]


class Objective(ABC):
    """Base of the objectives that `BiasTunedClassifier` and `BiasTunedTagger` maximise.

    A new objective is a frozen dataclass with `value` and `describe`. Its fields are parameters
    that a search reaches, as in ``scoring__beta``.
    """

    is_bound: ClassVar[bool] = False

    @abstractmethod
    def value(self, counts: Counts) -> np.ndarray:
        """Number for each decision in `counts`; higher is better."""

    @abstractmethod
    def describe(self) -> str:
        """Name of what `value` gives, for an axis."""

    def resolve(self, kind: str, n_classes: int) -> Objective:
        """Objective for decisions of one kind.

        Parameters
        ----------
        kind : {"two", "classes", "labels", "spans"}
            One of two classes, one of more, several labels, or spans.
        n_classes : int

        Raises
        ------
        ValueError
            If such decisions cannot have it.
        """
        return self

    @property
    def alarms_never_gain(self) -> bool:
        """True if one more false alarm never raises `value`: fewer thresholds are tried then."""
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


def is_objective(scoring: Any) -> TypeGuard[Objective]:
    """Return True for an objective, and False for a name, a class or a function."""
    return isinstance(scoring, Objective)


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
        check_number("beta", self.beta, 0, 1e6)
        check_choice("average", self.average, ("auto", "micro", "macro"))

    def value(self, counts: Counts) -> np.ndarray:
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

    def describe(self) -> str:
        """F with beta."""
        return f"F{self.beta:g}"

    def resolve(self, kind: str, n_classes: int) -> Objective:
        """Score with the average that ``"auto"`` stands for."""
        if self.average != "auto" or kind == "two":
            return self
        return replace(self, average="macro" if kind == "classes" else "micro")


@dataclass(frozen=True)
class BalancedAccuracy(Objective):
    """The mean of the classes' recalls."""

    def value(self, counts: Counts) -> np.ndarray:
        """Mean over the classes that are true."""
        recalls = counts.hits / np.maximum(counts.true, 1)
        mean: np.ndarray = recalls.sum(axis=-1) / np.maximum((counts.true > 0).sum(axis=-1), 1)
        return mean

    def describe(self) -> str:
        """Name of the score."""
        return "balanced accuracy"


@checked
@dataclass(frozen=True)
class Cost(Objective):
    """The cost of decisions, to be as low as possible.

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

    def value(self, counts: Counts) -> np.ndarray:
        """Mean cost of a row, negative."""
        mean: np.ndarray = -counts.total(np.array(self.matrix)) / max(counts.n_rows, 1)
        return mean

    def describe(self) -> str:
        """Sign and name of the cost."""
        return "minus the mean cost"

    def resolve(self, kind: str, n_classes: int) -> Objective:
        """Refuse a matrix of another size than the decisions have."""
        size = n_classes if kind == "classes" else 2
        if len(self.matrix) != size:
            raise ValueError(f"scoring={self!r} must have {size} rows, and has another number")
        if kind == "spans" and self.matrix[0][0] != 0:
            raise ValueError(f"scoring={self!r}: matrix[0][0] must be 0, as no span is no row")
        return self

    @property
    def alarms_never_gain(self) -> bool:
        """True if a false alarm costs no less than a negative row."""
        return bool(self.matrix[0][1] >= self.matrix[0][0])


def check_number(name: str, value: float, low: float, high: float) -> None:
    """Refuse what is not between two numbers, ends excluded."""
    if not low < value < high:
        raise ValueError(f"{name}={shown(value)} must be above {low} and below {high:g}")
