"""Loss and score of a fit, epoch by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdice._checks import as_numbers, checked
from skdice.inspection.axes import given_axes, label_of, pyplot


@checked
class TrainingHistoryDisplay:
    """Training loss of each epoch and, if there was validation data, the validation score.

    Parameters
    ----------
    train_loss : array of shape (n_epochs,)
    valid_score : array of shape (n_epochs,) or None, default=None
    name : str, default=""
        For the legend.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and list of axes, after `plot`
    """

    def __init__(
        self,
        train_loss: Sequence[float],
        valid_score: Sequence[float] | None = None,
        name: str = "",
    ) -> None:
        self.train_loss = as_numbers("train_loss", train_loss, finite=False)
        self.valid_score = None
        if valid_score is not None:
            self.valid_score = as_numbers("valid_score", valid_score, finite=False)
        self.name = name

    @classmethod
    @checked
    def from_estimator(cls, estimator: Any, *, name: str | None = None, axes: Any = None) -> Self:
        """Draw the ``history_`` of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator of skdice
            The validation score is there if `fit` had validation data.
        name : str or None, default=None
            None is the loss.
        axes : list of matplotlib axes or None, default=None
            Axes of another such display, to draw several fits on the same ones.

        Raises
        ------
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from skdice import DiceClassifier
        >>> from skdice.inspection import TrainingHistoryDisplay
        >>> X, y = make_classification(weights=[0.9], random_state=0)
        >>> model = DiceClassifier(max_epochs=3, early_stopping=True, random_state=0).fit(X, y)
        >>> len(TrainingHistoryDisplay.from_estimator(model).valid_score)
        3
        """
        check_is_fitted(estimator, "history_")
        history = estimator.history_
        scores = [epoch["valid_score"] for epoch in history if "valid_score" in epoch]
        losses = [epoch["train_loss"] for epoch in history]
        shown = name if name is not None else str(estimator.loss)
        return cls(losses, scores or None, shown).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw the loss, and the score beside it with its best epoch marked."""
        curves = {"training loss": self.train_loss}
        if self.valid_score is not None:
            curves["validation score"] = self.valid_score
        if axes is None:
            n, plt = len(curves), pyplot()
            _, grid = plt.subplots(1, n, figsize=(4.2 * n, 3), squeeze=False, layout="constrained")
            axes = list(grid[0])
        panels = given_axes("axes", axes, len(curves))
        for ax, (title, values) in zip(panels, curves.items(), strict=False):
            n_before = sum(len(line.get_xdata()) > 1 for line in ax.lines)
            style = ("-", "--", "-.", ":")[n_before % 4]
            epochs = np.arange(len(values)) + 1
            (line,) = ax.plot(
                epochs, values, style, marker="o", markersize=3, label=label_of(self.name)
            )
            if title == "validation score":
                best, ring = values.argmax(), {"markersize": 9, "fillstyle": "none"}
                ax.plot(best + 1, values[best], "o", color=line.get_color(), **ring)
            ax.set(title=title, xlabel="epoch")
            ax.grid(alpha=0.25)
            ax.legend(fontsize=8)
        self.figure_, self.axes_ = panels[0].figure, axes
        return self
