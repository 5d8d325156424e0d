"""Derivatives of the losses in p (the paper's Figure 1)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import clone

from skdice._checks import as_numbers, check_range, checked
from skdice.inspection.axes import given_axes, label_of, pyplot
from skdice.losses import LOSSES, DiceLoss, DSCLoss, Loss, TverskyLoss
from skdice.losses.base import resolve_loss


@checked
class LossGradientDisplay:
    """Gradient of each loss for one example, against its predicted probability.

    Parameters
    ----------
    p : array of shape (n_points,)
        Probability of the positive class.
    gradients : dict of pairs of arrays of shape (n_points,)
        Maps each name to the derivatives by p for a positive and for a negative example.

    Attributes
    ----------
    figure_, axes_ : matplotlib figure and array of two axes, after `plot`

    Notes
    -----
    A derivative below 0 pushes p up. Shown is the derivative of the loss of a whole batch, times
    the size of the batch. For a mean over examples this is the derivative of the example's loss.

    References
    ----------
    X. Li et al., "Dice Loss for Data-imbalanced NLP Tasks", ACL 2020, Figure 1.
    """

    def __init__(self, p: Any, gradients: Mapping[str, tuple[Any, Any]]) -> None:
        self.p = as_numbers("p", p)
        self.gradients = {}
        for name, sides in gradients.items():
            pair = as_numbers("gradients", sides, 2)
            if pair.shape != (2, len(self.p)):
                raise ValueError(f"gradients[{name!r}] must be two arrays as long as p, {len(p)}")
            self.gradients[name] = tuple(pair)

    @classmethod
    @checked
    def from_losses(
        cls,
        losses: Mapping[str, str | Loss] | None = None,
        *,
        n_points: int = 99,
        n_positive: int = 10,
        n_negative: int = 90,
        p_positive: float = 0.7,
        p_negative: float = 0.1,
    ) -> Self:
        """Differentiate and draw.

        Parameters
        ----------
        losses : dict or None, default=None
            Maps a label to a loss, given by name or as an object. None draws the six losses with
            their defaults, and dice, Tversky and DSC as printed in the paper's Table 2.
        n_points : int, default=99
            Number of probabilities, evenly spread between 0 and 1.
        n_positive, n_negative : int, default=10 and 90
            Size of the rest of the batch, which matters to losses over a whole batch. Weighted
            cross-entropy takes its class counts from these, too.
        p_positive, p_negative : float, default=0.7 and 0.1
            Predicted probabilities of the rest of the batch.

        Raises
        ------
        ValueError, TypeError
            For an unknown loss, or numbers out of range.

        Examples
        --------
        >>> import numpy as np
        >>> from skdice.inspection import LossGradientDisplay
        >>> display = LossGradientDisplay.from_losses({"cross-entropy": "ce"}, n_points=3)
        >>> positive, negative = display.gradients["cross-entropy"]
        >>> np.round(positive, 2), np.round(negative, 2)
        (array([-4.  , -2.  , -1.33]), array([1.33, 2.  , 4.  ]))
        """
        for name, value in (("p_positive", p_positive), ("p_negative", p_negative)):
            if not 0 < value < 1:
                raise ValueError(f"{name}={value!r} must lie between 0 and 1")
        check_range(1, MOST, n_points=n_points, n_positive=n_positive, n_negative=n_negative)
        others = torch.tensor([p_positive] * n_positive + [p_negative] * n_negative).double()
        labels = torch.tensor([1] * n_positive + [0] * n_negative)
        p = np.linspace(0, 1, n_points + 2)[1:-1]
        gradients = {}
        for name, loss in (_paper_and_defaults() if losses is None else losses).items():
            # Not in training mode, in which a loss may remember the batches of earlier points.
            loss = clone(resolve_loss(loss)).prepare([n_negative, n_positive]).eval()
            positive, negative = (
                np.array([_derivative(loss, value, side, others, labels) for value in p])
                for side in (1, 0)
            )
            gradients[name] = positive, negative
        return cls(p, gradients).plot()

    def plot(self, axes: Any = None) -> Self:
        """Draw on two axes, for a positive and a negative example, or on a new figure."""
        if axes is None:
            _, axes = pyplot().subplots(1, 2, figsize=(11, 4.2), layout="constrained")
        axes = given_axes("axes", axes, 2)
        kinds = list(dict.fromkeys(name.removesuffix(PRINTED) for name in self.gradients))
        sides = (("a positive example", (-12, 2)), ("a negative example", (-2, 8)))
        for i, (ax, (title, limits)) in enumerate(zip(axes[:2], sides, strict=True)):
            for name, curves in self.gradients.items():
                colour = f"C{kinds.index(name.removesuffix(PRINTED)) % 10}"
                style = "--" if name.endswith(PRINTED) else "-"
                ax.plot(self.p, curves[i], style, color=colour, label=label_of(name))
            ax.axhline(0, color="#999999", lw=0.8)
            ax.set(title=title, xlabel="p", ylim=limits)
            ax.grid(alpha=0.25)
        axes[0].set_ylabel("derivative of the loss in p")
        axes[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
        self.figure_, self.axes_ = axes[0].figure, axes
        return self


PRINTED = ", as printed"
MOST = 1_000_000  # examples and points


def _paper_and_defaults() -> dict[str, str | Loss]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        literal = DSCLoss.literal()
    return {
        **{name: name for name in LOSSES},
        f"dice{PRINTED}": DiceLoss.literal(),
        f"tversky{PRINTED}": TverskyLoss.literal(),
        f"dsc{PRINTED}": literal,
    }


def _derivative(loss: Loss, p: float, side: int, others: Any, labels: Any) -> float:
    """dL/dp of one example beside `others`, times the batch's size."""
    value = torch.tensor([p], dtype=torch.float64, requires_grad=True)
    logits = torch.logit(torch.cat([value, others]))
    target = torch.cat([torch.tensor([side]), labels])
    (slope,) = torch.autograd.grad(loss(logits, target), value)
    return float(slope) * len(target)
