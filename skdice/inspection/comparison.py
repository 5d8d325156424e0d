"""A chart of a comparison of losses."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from skdice._checks import shown
from skdice.inspection.axes import label_of, pyplot
from skdice.model_selection.comparison import Comparison


class ComparisonDisplay:
    """Precision, recall and F1 of each row of a comparison, and how far its F1 is behind.

    A diamond is the mean, and a dot is a seed. The last axis is of differences of F1: a diamond is
    how far a row is below the highest F1, and a line is the interval that the table gives. A row of
    which a fit found nothing has none.

    Parameters
    ----------
    comparison : Comparison

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array of axes, after `plot`
    """

    def __init__(self, comparison: Comparison) -> None:
        if not isinstance(comparison, Comparison):
            raise TypeError(f"comparison={shown(comparison)} must be what compare_losses gives")
        self.comparison = comparison

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Draw `comparison`."""
        return cls(comparison).plot()

    def plot(self) -> Self:
        """Draw on a new figure; an axis of scores that are all above 50 % begins there."""
        models, measures = self.comparison.rows, self.comparison.averages
        figure, axes = pyplot().subplots(
            1, len(measures) + 1, figsize=(12, 1.2 + 0.42 * len(models)), sharey=True,
            layout="constrained",
        )  # fmt: skip
        for axis, measure in zip(axes, measures, strict=False):
            self._scores(axis, models, measure)
        self._differences(axes[-1], models)
        for axis in axes:
            axis.grid(axis="x", alpha=0.25)
            axis.set_axisbelow(True)
            axis.tick_params(labelsize=8)
            axis.spines[["top", "right", "left"]].set_visible(False)
        names = [label_of(model.label) for model in models]
        axes[0].set_yticks(range(len(models)), names, fontsize=9)
        axes[0].set_ylim(len(models) - 0.4, -0.6)
        self.figure_, self.axes_ = figure, axes
        return self

    def _scores(self, axis: Any, models: list[Any], measure: str) -> None:
        """Draw one score of every run, and its mean."""
        for i, model in enumerate(models):
            values, mean = 100 * np.array(model.values(measure)), 100 * model.mean(measure)
            colour = self._colour(model)
            axis.plot(values, np.full(len(values), i), "o", color=colour, markersize=3)
            axis.plot(mean, i, "D", color=colour, markersize=6)
            _annotate(axis, mean, i, f"{mean:.1f}")
        lowest = min(min(model.values(measure)) for model in models)
        axis.set_xlim(50 if lowest > 0.5 else 0, 101)
        axis.set_title(measure.replace("_", " ").capitalize(), fontsize=10)
        axis.set_xlabel("%", fontsize=8)

    def _differences(self, axis: Any, models: list[Any]) -> None:
        """Draw the differences to the highest F1, with their intervals."""
        for i, model in enumerate(models):
            if model.n_empty:  # not to be judged
                axis.annotate("found nothing", (0, i), fontsize=8, ha="right", va="center")
                continue
            apart, *ends = 100 * np.array(self.comparison.behind(model))
            colour = self._colour(model)
            axis.plot(ends, [i, i], color=colour, linewidth=2, alpha=0.5)
            axis.plot(apart, i, "D", color=colour, markersize=6)
            _annotate(axis, apart, i, f"{apart:+.1f}" if apart else "highest")
        axis.axvline(0, color="#888888", linewidth=0.8, linestyle=":")
        axis.margins(x=0.15)
        axis.set_title("Difference of F1", fontsize=10)
        axis.set_xlabel("points to the highest\n(lines: 95 %, all at once)", fontsize=8)

    def _colour(self, model: Any) -> str:
        return "#c2571a" if model is self.comparison.best else "#4a6b8a"


def _annotate(axis: Any, x: float, y: int, text: str) -> None:
    axis.annotate(
        text, (x, y), (0, 5), textcoords="offset points", fontsize=8, ha="center", color="#222222"
    )
