"""Precision, recall and F1 over Tversky's alpha (the paper's Table 10 as a picture)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone, is_classifier

from skdice._checks import as_numbers, check_has, checked
from skdice._types import Data
from skdice.estimators.before_folds import with_pos_label
from skdice.inputs.rows import take
from skdice.inspection.axes import axes_or_new
from skdice.losses import TverskyLoss
from skdice.losses.base import resolve_loss
from skdice.model_selection.checks import folds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEASURES = ("precision", "recall", "f1")
COLOURS = {"precision": "#4a6b8a", "recall": "#7a9a5b", "f1": "#c2571a"}


@checked
class TverskySweepDisplay:
    """Precision, recall and F1 against alpha, the cost of a false positive.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    values : dict of arrays of shape (n_alphas, n_folds)
        ``precision``, ``recall`` and ``f1``.
    measure : str, default=""
        What the scores measure, for the title.
    tied : bool, default=True
        Whether beta was 1 - alpha.

    Attributes
    ----------
    figure_, ax_ : matplotlib figure and axes, after `plot`

    References
    ----------
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Table 10.
    """

    def __init__(
        self, alphas: Any, values: dict[str, Any], measure: str = "", *, tied: bool = True
    ) -> None:
        self.alphas = as_numbers("alphas", alphas)
        order = np.argsort(self.alphas, kind="stable")
        self.alphas, self.values = self.alphas[order], {}
        for name in MEASURES:
            table = as_numbers("values", values.get(name), 2, finite=False)
            if len(table) != len(order):
                raise ValueError(f"values[{name!r}] needs a row for each of {len(order)} alphas")
            self.values[name] = table[order]
        self.measure = measure
        self.tied = tied

    @classmethod
    @checked
    def from_estimator(
        cls,
        estimator: Any,
        X: Data,
        y: Data,
        *,
        alphas: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
        cv: Any = 3,
    ) -> Self:
        """Fit `estimator` with each alpha, and beta = 1 - alpha, on every fold, and draw.

        Parameters
        ----------
        estimator : any classifier or tagger of skdice that has a loss
            Its own loss is used if that is a `TverskyLoss`, else ``"tversky"``. Alpha and beta are
            set on it.
        X, y : data
        alphas : list of float, default=0.1 to 0.9
        cv : int, splitter or iterable, default=3

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from skdice import DiceClassifier
        >>> from skdice.inspection import TverskySweepDisplay
        >>> X, y = make_classification(weights=[0.9], random_state=0)
        >>> display = TverskySweepDisplay.from_estimator(
        ...     DiceClassifier(max_epochs=5, random_state=0), X, y, alphas=[0.3, 0.7], cv=2)
        >>> display.values["f1"].shape
        (2, 2)
        """
        check_has("estimator", estimator, "fit", "task", "loss")
        alphas = as_numbers("alphas", alphas).tolist()
        if not alphas or not all(0 <= alpha <= 1 for alpha in alphas):
            raise ValueError(f"alphas={alphas!r} must hold numbers from 0 to 1")
        if estimator.task.judged == "answers":
            raise ValueError(
                f"estimator={type(estimator).__name__}() reads answers, which have no precision "
                "and recall to draw: sweep a classifier or a tagger"
            )
        is_tversky = isinstance(estimator.loss, TverskyLoss)
        loss = estimator.loss if is_tversky else resolve_loss("tversky")
        estimator = clone(with_pos_label(estimator, y)).set_params(loss=loss)
        splits = folds_of(cv, X, y, is_classifier(estimator))
        table = np.empty((len(MEASURES), len(alphas), len(splits)))
        for i, alpha in enumerate(alphas):
            for j, (train, test) in enumerate(splits):
                model = clone(estimator).set_params(loss__alpha=alpha, loss__beta=1.0 - alpha)
                model.fit(take(X, train), take(y, train))
                scores = model.evaluate(take(X, test), take(y, test))
                table[:, i, j] = [scores[name] for name in MEASURES]
        return cls(
            alphas, dict(zip(MEASURES, table, strict=True)), model.task.measure(model)
        ).plot()

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on `ax` or a new figure: a line at the mean, the spread over folds around it.

        Folds without a score (NaN) are left out.

        Raises
        ------
        ValueError
            If no fold has an F1.
        """
        scores = {name: 100 * np.ma.masked_invalid(self.values[name]) for name in MEASURES}
        f1 = scores["f1"].mean(axis=1)
        if not f1.count():
            raise ValueError(
                f"values['f1'] holds no finite number for alphas={self.alphas.tolist()}: every "
                "fit failed or had no score, so there is nothing to draw"
            )
        ax = axes_or_new(ax, 6, 4)
        for name, colour in COLOURS.items():
            mean, spread = scores[name].mean(axis=1), scores[name].std(axis=1)
            label = "F1" if name == "f1" else name
            ax.plot(self.alphas, mean, "o-", color=colour, label=label, markersize=4)
            band: dict[str, Any] = {"color": colour, "alpha": 0.15, "lw": 0}
            ax.fill_between(self.alphas, mean - spread, mean + spread, **band)
        best = int(f1.argmax())
        ax.axvline(self.alphas[best], color="#999999", lw=0.8, ls=":")
        ax.set(
            title=f"best F1 {f1[best]:.1f} at {self.alphas[best]:.2f}",
            xlabel="alpha (beta = 1 - alpha)" if self.tied else "alpha",
            ylabel=f"% ({self.measure})" if self.measure else "%",
        )
        ax.grid(alpha=0.25)
        ax.legend(frameon=False)
        self.figure_, self.ax_ = ax.figure, ax
        return self
