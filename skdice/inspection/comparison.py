"""A chart of a comparison of losses."""

from __future__ import annotations

from typing import Self

import numpy as np

from skdice._checks import shown
from skdice.inspection.axes import label_of, pyplot
from skdice.model_selection.comparison import Comparison


class ComparisonDisplay:
    """Precision, recall and F1 of each row of a comparison.

    A diamond is the mean, and a dot is a seed. The lines of F1 are the intervals of the table: how
    far a row may be from the best.

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
        """Draw on a new figure; an axis whose values are all above 50 % begins there."""
        models, measures = self.comparison.rows, self.comparison.averages
        size = (10, 1.2 + 0.42 * max(len(models), 1))
        figure, axes = pyplot().subplots(
            1, len(measures), figsize=size, sharey=True, layout="constrained"
        )
        for axis, measure in zip(axes, measures, strict=True):
            lowest = 100.0
            for i, model in enumerate(models):
                if not model.runs:
                    continue
                is_best = model is self.comparison.best
                colour = "#c2571a" if is_best else "#4a6b8a"
                values, mean = 100 * np.array(model.values(measure)), 100 * model.mean(measure)
                lowest = min(lowest, *values)
                axis.plot(values, np.full(len(values), i), "o", color=colour, markersize=3)
                axis.plot(mean, i, "D", color=colour, markersize=6)
                if measure == "f1" and not is_best:
                    ends = 100 * np.array(self.comparison.behind(model)[1:])
                    ends += 100 * self.comparison.best.mean("f1")
                    lowest = min(lowest, *ends[np.isfinite(ends)], 100.0)
                    axis.plot(ends, [i, i], color=colour, linewidth=2, alpha=0.5)
                axis.annotate(
                    f"{mean:.1f}", (mean, i), (0, 5), textcoords="offset points", fontsize=8,
                    ha="center", color="#222222",
                )  # fmt: skip
            axis.set_xlim(50 if lowest > 50 else 0, 101)
            axis.set_title(measure.replace("_", " ").capitalize(), fontsize=10)
            axis.set_xlabel("% (lines: 95 %)" if measure == "f1" else "%", fontsize=8)
            axis.grid(axis="x", alpha=0.25)
            axis.set_axisbelow(True)
            axis.tick_params(labelsize=8)
            axis.spines[["top", "right", "left"]].set_visible(False)
        names = [label_of(model.label) for model in models]
        axes[0].set_yticks(range(len(models)), names, fontsize=9)
        axes[0].set_ylim(len(models) - 0.4, -0.6)
        figure.suptitle(label_of(self.comparison.title), fontsize=11)
        self.figure_, self.axes_ = figure, axes
        return self
