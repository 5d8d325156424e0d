"""A chart of a comparison of losses."""

from __future__ import annotations

from typing import Self

import numpy as np

from skdice._checks import shown
from skdice.inspection.axes import label_of, pyplot
from skdice.model_selection.comparison import Comparison


class ComparisonDisplay:
    """Precision, recall and F1 of each model of a comparison, with a dot for each seed.

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
        """Draw on a new figure: a bar at the mean, dots for the seeds."""
        models, measures = self.comparison.rows, self.comparison.averages
        size = (10, 1.2 + 0.42 * max(len(models), 1))
        figure, axes = pyplot().subplots(
            1, len(measures), figsize=size, sharey=True, layout="constrained"
        )
        best = max(range(len(models)), key=lambda i: models[i].mean("f1"), default=None)
        for axis, measure in zip(axes, measures, strict=True):
            for i, model in enumerate(models):
                colour = "#c2571a" if i == best else "#4a6b8a"
                mean = 100 * model.mean(measure)
                axis.barh(i, mean, height=0.6, color=colour, alpha=0.35)
                values = 100 * np.array(model.values(measure))
                axis.plot(values, np.full(len(values), i), "o", color=colour, markersize=4)
                axis.text(1.5, i, f"{mean:.1f}", va="center", fontsize=8, color="#222222")
            axis.set_xlim(0, 100)
            axis.set_title(measure.replace("_", " ").capitalize(), fontsize=10)
            axis.set_xlabel("%", fontsize=8)
            axis.grid(axis="x", alpha=0.25)
            axis.set_axisbelow(True)
            axis.tick_params(labelsize=8)
            axis.spines[["top", "right", "left"]].set_visible(False)
        names = [label_of(model.label) for model in models]
        axes[0].set_yticks(range(len(models)), names, fontsize=9)
        axes[0].invert_yaxis()
        figure.suptitle(label_of(self.comparison.title), fontsize=11)
        self.figure_, self.axes_ = figure, axes
        return self
