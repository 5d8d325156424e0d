"""A tuned decision on other rows: its objective against the bias, and precision against recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from skdice._checks import as_numbers, checked, position, same_length
from skdice._types import Data
from skdice.estimators.tuned.decision import Decision
from skdice.inspection.axes import given_axes, label_of, pyplot
from skdice.metrics.decisions.bounds import Bound
from skdice.metrics.decisions.chosen_objective import LOG_LOSS, in_full, resolve_scoring
from skdice.metrics.decisions.held_out_rows import ClassRows, HeldOutRows, SpanRows
from skdice.metrics.decisions.objectives import Objective
from skdice.metrics.decisions.rejection import RejectAt


@checked
class DecisionDisplay:
    """The objective of a tuned decision against a bias, and precision against recall.

    The ring is the chosen bias. The band holds the best biases of the bootstrap draws of the tuner:
    a wide one, or one on both sides of 0, says that the rows do not tell which bias is best.

    Parameters
    ----------
    bias, score, precision, recall : arrays of shape (n_points,)
        A bias in rising order, and what it gives.
    chosen : int, default=0
        Index of the tuned bias.
    draws : list of float, default=()
        The best bias of each bootstrap draw.
    holds : list of bool or None, default=None
        Whether a bound holds at each point; None is all of them.
    bound : dict or None, default=None
        What is bounded, such as ``{"precision": 0.9}``.
    measure : str, default="score"
        What is tuned.
    label : str, default=""
        What the bias is of.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and list of axes, after `plot`
    """

    def __init__(
        self,
        bias: Any,
        score: Any,
        precision: Any,
        recall: Any,
        *,
        chosen: int = 0,
        draws: Sequence[float] = (),
        holds: Sequence[bool] | None = None,
        bound: dict[str, float] | None = None,
        measure: str = "score",
        label: str = "",
    ) -> None:
        names, given = ("bias", "score", "precision", "recall"), (bias, score, precision, recall)
        self.bias, self.score, self.precision, self.recall = same_length(names, given)
        if not 0 <= chosen < len(self.bias):
            raise ValueError(f"chosen={chosen} must be the index of one of {len(self.bias)} biases")
        everywhere = np.ones(len(self.bias)) if holds is None else holds
        self.holds = same_length(("bias", "holds"), (self.bias, everywhere))[1] > 0
        self.chosen, self.draws = int(chosen), as_numbers("draws", draws)
        self.bound = dict(bound or {})
        as_numbers("bound", list(self.bound.values()))
        self.measure, self.label = measure, label

    @classmethod
    @checked
    def from_estimator(
        cls,
        estimator: Any,
        X: Data,
        y: Data,
        *,
        label: Any = None,
        axes: Any = None,
    ) -> Self:
        """Draw a fitted estimator on rows that it was not tuned on.

        Parameters
        ----------
        estimator : fitted `BiasTunedClassifier` or `BiasTunedTagger`
            Or a fitted classifier or tagger: its bias is 0, and its objective ``"auto"``.
        X, y : rows and their labels or tags
        label : label, type of span or None, default=None
            What gets the bias, and whose objective is drawn; with three classes or more, and for a
            function, the objective of all. None is the positive class of two, the rarest of more,
            all labels together, or all types of spans.
        axes : list of one or two matplotlib axes or None, default=None
            On a single one the objective alone is drawn.

        Raises
        ------
        TypeError, NotFittedError
            If `estimator` is no fitted classifier or tagger.
        ValueError
            If `label` is unknown, or X and y do not match.

        Notes
        -----
        The curve has 61 biases around 0, the tuned bias and its draws, and the tuned one. Where
        several biases move together, it is their mean. It is over the mean of the others, where one
        of several classes or tags is predicted. ``"neg_log_loss"`` tunes no decision: for it the F1
        of ``"auto"`` is drawn.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from skdice import BiasTunedClassifier, DiceClassifier
        >>> from skdice.inspection import DecisionDisplay
        >>> X, y = make_classification(600, weights=[0.9], random_state=0)
        >>> tuned = BiasTunedClassifier(DiceClassifier(random_state=0), random_state=0)
        >>> tuned.fit(X[:400], y[:400])
        BiasTunedClassifier(estimator=DiceClassifier(random_state=0), random_state=0)
        >>> display = DecisionDisplay.from_estimator(tuned, X[400:], y[400:])
        >>> bool(display.score[display.chosen] == tuned.score(X[400:], y[400:]))
        True
        """
        decision = Decision.of(estimator, X, y)
        tuned, rows, kind = decision.tuned, decision.rows, decision.kind
        if isinstance(decision.objective, RejectAt):
            raise ValueError(
                f"estimator was tuned for {decision.objective!r}, which has no bias to draw: see "
                "RejectDisplay"
            )
        if decision.objective == LOG_LOSS:
            decision.objective = resolve_scoring("auto", kind, tuned.classes_)
        objective = decision.objective
        names = _places(decision)
        everything = [i for group in names.values() for i in group]
        of_all = label is None or callable(objective) or isinstance(rows, ClassRows)
        if label is not None:
            together = [*names.values()][position("label", label, [*names], "labels")]
        else:
            label, together = _usual(rows, names, everything)
        bounded = together if getattr(objective, "each", True) else everything
        curves = _curves(decision, together, bounded, of_all)
        whole = isinstance(objective, Objective)
        measure = objective._describe() if whole else in_full(tuned.scoring, objective)
        return cls(**curves, measure=measure, label=str(label)).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the objective, and precision against recall beside it."""
        if axes is None:
            _, axes = pyplot().subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
        panels = given_axes("axes", axes)[:2]
        shown = (self.bias, self.score), (self.recall, self.precision)
        for ax, (x, values) in zip(panels, shown, strict=False):
            kept = (x > 0) | (x is self.bias)  # without any recall there is no precision
            ax.plot(x[kept], values[kept], ":", color="#888888")
            ax.plot(x[kept], np.where(self.holds, values, np.nan)[kept])
            at = x[self.chosen], values[self.chosen]
            ax.plot(*at, "o", color="black", fillstyle="none", markersize=9)
            ax.grid(alpha=0.25)
        of, told = label_of(self.label), "".join(f", {k} {v:g}" for k, v in self.bound.items())
        measure, score = label_of(self.measure), self.score[self.chosen]
        panels[0].axvline(0, color="#999999", linewidth=1)
        if len(self.draws):
            ends = self.draws.min(), self.draws.max()
            panels[0].axvspan(*ends, alpha=0.15, label=f"best of {len(self.draws)} draws")
            panels[0].legend(fontsize=8)
        title = f"{measure} {score:.2f} at {self.bias[self.chosen]:.2f}{label_of(told)}"
        panels[0].set(xlabel=f"bias of {of}" if of else "bias", ylabel=measure, title=title)
        for ax in panels[1:]:
            for name, line in (("precision", ax.axhline), ("recall", ax.axvline)):
                if name in self.bound:
                    line(self.bound[name], color="#b22222", linestyle="--", linewidth=1)
            ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.03), ylim=(0, 1.03))
            chosen = self.precision[self.chosen], self.recall[self.chosen]
            ax.set_title("precision {:.2f}, recall {:.2f}".format(*chosen))
        self.figure_, self.axes_ = panels[0].figure, panels
        return self


def _places(decision: Decision) -> dict[Any, list[int]]:
    """The biases of each label or type of span."""
    classes = decision.tuned.classes_.tolist()
    if decision.kind == "two":
        return {classes[decision.tuned.positive_]: [0]}
    if isinstance(decision.rows, SpanRows):
        return decision.rows.of_types(True)
    return {name: [i] for i, name in enumerate(classes)}


def _usual(
    rows: HeldOutRows, names: dict[Any, list[int]], everything: list[int]
) -> tuple[Any, list[int]]:
    """The label that gets the bias where none is asked for: the rarest of classes, or all."""
    if isinstance(rows, ClassRows):
        counts = np.bincount(rows.truth[rows.truth >= 0], minlength=rows.n_biases)
        rarest = int(np.where(counts, counts, np.inf).argmin())
        return [*names][rarest], [rarest]
    if isinstance(rows, SpanRows) and len(everything) == rows.n_biases:
        raise ValueError(f"label=None needs the tag 'O': give one of {list(names)}")
    return "" if len(names) > 1 else next(iter(names), ""), everything


def _curves(
    decision: Decision, together: list[int], bounded: list[int], of_all: bool
) -> dict[str, Any]:
    """Arguments of the display whose biases in `together` move by the same."""
    rows, objective = decision.rows, decision.objective
    start = decision.in_rows(decision.tuned.bias_)
    others = np.setdiff1d(np.arange(len(start)), together)
    if decision.kind in ("two", "labels"):
        others = others[:0]

    def place(biases: np.ndarray) -> np.ndarray:
        """Return the places of biases on the axis."""
        over = biases[..., others].mean(axis=-1) if len(others) else 0.0
        at: np.ndarray = biases[..., together].mean(axis=-1) - over
        return at

    now = float(place(start))
    draws = place(decision.in_rows(decision.tuned.bias_draws_))
    ends = np.array([0.0, now, *draws])
    grid = np.union1d(np.linspace(ends.min() - 3, ends.max() + 3, 61), [now])
    points, holds = [], []
    moves = np.isin(np.arange(len(start)), together)
    for value in grid:
        decisions = decision.rows.decide(start + (value - now) * moves)
        counts = rows.counts(decisions, together)
        score = rows.score(objective, decisions) if of_all else objective._value(counts)
        hits, predicted, true = counts.pooled
        points.append((score, hits / max(predicted, 1), hits / max(true, 1)))
        if isinstance(objective, Bound):
            holds.append(bool(objective._holds(rows.counts(decisions, bounded))))
    score, precision, recall = np.array(points, dtype=float).T
    bound = {objective.measure: objective._asked} if isinstance(objective, Bound) else None
    chosen = int(np.searchsorted(grid, now))
    curves = {"bias": grid, "score": score, "precision": precision, "recall": recall}
    return {**curves, "chosen": chosen, "draws": draws, "holds": holds or None, "bound": bound}
