"""Self-adjusting dice loss (Li et al., ACL 2020, Eq. 12)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from skdice._warn import warn
from skdice.exceptions import CollapseWarning
from skdice.losses._overlap import Formula
from skdice.losses._parameters import Number, number
from skdice.losses.dice import DiceLoss, dice_formula
from skdice.losses.search_ranges import Range, Ranges


def dsc_formula(exponent: Number = 0.1, squared: bool = True) -> Formula:
    """The dice formula, with p replaced by (1 - p)^exponent p."""
    return dice_formula(squared)._replace(exponent=exponent)


@dataclass(kw_only=True, eq=False, repr=False)
class DSCLoss(DiceLoss):
    """Self-adjusting dice: p is replaced by (1 - p)^exponent p, so easy examples weigh less.

    Parameters
    ----------
    exponent : float, default=0.1
        Strength of the decay (alpha in Eq. 12); 0 is the dice loss. The paper's exponent is 1,
        with which a positive is best at p = 1/2; its authors' code uses 0.01.
    squared, smooth, average, background, class_weight, surrogate
        As in `DiceLoss`.
    ignore_index, multilabel, reduction
        As in `DiceLoss`.

    See Also
    --------
    DSCLoss.literal : the paper's formula to the letter.

    Notes
    -----
    Without the surrogate the loss of a positive is lowest at p = 1 / (1 + exponent), by default
    0.91, and not at 1.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020, Eq. 12.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss, DSCLoss
    >>> logits, target = torch.randn(8, 3), torch.randint(3, (8,))
    >>> bool(DSCLoss(exponent=0.0)(logits, target) == DiceLoss()(logits, target))
    True
    """

    name = "dsc"
    _parameter_constraints = {**DiceLoss._parameter_constraints, "exponent": number(0)}
    formula: ClassVar[Callable[..., Formula]] = staticmethod(dsc_formula)
    searched: ClassVar[Ranges] = {"exponent": Range(0.0, 0.5), **DiceLoss.searched}
    literal_params: ClassVar[dict[str, Any]] = {
        **DiceLoss.literal_params,
        "exponent": 1.0,
        "squared": False,
    }

    exponent: Number = 0.1

    @classmethod
    def literal(cls, **params: Any) -> Self:
        """The formula as printed (Eq. 12, Table 2): exponent 1, per example, without squares.

        Parameters
        ----------
        **params
            Other parameters, and those of the formula to change.

        Warns
        -----
        CollapseWarning
            The loss of a positive is lowest at p = 1/2, and confident false positives are pushed
            further up, so that taggers collapse to the background.

        Examples
        --------
        >>> import warnings
        >>> from skdice.losses import DSCLoss
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     loss = DSCLoss.literal()
        >>> loss.exponent, loss.squared, loss.average, loss.surrogate
        (1.0, False, 'samples', 'none')
        """
        warn(
            "the paper's literal DSC is best for a positive at p = 1/2 and often collapses to the "
            "background; DSCLoss(), or loss='dsc', is the form that trains",
            CollapseWarning,
        )
        return super().literal(**params)
