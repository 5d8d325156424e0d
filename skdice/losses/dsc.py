"""Self-adjusting dice loss, DSC (Li et al., 2020, Eq. 11)."""

from __future__ import annotations

import warnings
from typing import Any, Self

import torch
from torch import Tensor

from skdice.losses._base import Problem, check_number
from skdice.losses.dice import DiceLoss

__all__ = ["DSCLoss"]


class DSCLoss(DiceLoss):
    """Self-adjusting dice: p is replaced by (1 - p)^exponent p, so easy examples weigh less.

    Parameters
    ----------
    exponent : float, default=0.1
        Strength of the decay (alpha in Eq. 11); 0 is the dice loss. The paper's exponent is 1,
        with which a positive is best at p = 1/2; its authors' code uses 0.01.
    squared, smooth, aggregation, background, absent, class_weight, ohem_ratio, surrogate, ema_decay
        As in `DiceLoss`.
    ignore_index, multilabel, reduction
        As in `DiceLoss`.

    Notes
    -----
    A positive is best at p = 1 / (1 + exponent): 0.91 by default, where its class is already the
    most probable by far.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020, Eq. 11.

    See Also
    --------
    DSCLoss.literal : the paper's formula to the letter.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import DiceLoss, DSCLoss
    >>> logits, target = torch.randn(8, 3), torch.randint(3, (8,))
    >>> bool(DSCLoss(exponent=0.0)(logits, target) == DiceLoss()(logits, target))
    True
    """

    def __init__(
        self,
        *,
        exponent: float = 0.1,
        squared: bool = True,
        smooth: float = 1.0,
        aggregation: str = "auto",
        background: int | str | None = "auto",
        absent: str = "auto",
        class_weight: Any = None,
        ohem_ratio: float = 0.0,
        surrogate: str = "none",
        ema_decay: float = 0.0,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(
            squared=squared,
            smooth=smooth,
            aggregation=aggregation,
            background=background,
            absent=absent,
            class_weight=class_weight,
            ohem_ratio=ohem_ratio,
            surrogate=surrogate,
            ema_decay=ema_decay,
            ignore_index=ignore_index,
            multilabel=multilabel,
            reduction=reduction,
        )
        self.exponent = exponent
        check_number("exponent", exponent, 0)

    @classmethod
    def literal(cls, **params: Any) -> Self:
        """The formula as printed (Eq. 11, Table 2): exponent 1, one ratio an example, no squares.

        Warns
        -----
        UserWarning
            It is at its best for a positive at p = 1/2 and pushes confident false positives
            further up, so that taggers collapse to the background.

        Examples
        --------
        >>> import warnings
        >>> from skdice.losses import DSCLoss
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     DSCLoss.literal()
        DSCLoss(exponent=1.0, squared=False, aggregation='example')
        """
        warnings.warn(
            "the paper's literal DSC is best for a positive at p = 1/2 and often collapses to the "
            "background; loss='dsc', by name, is the form that trains",
            UserWarning,
            stacklevel=2,
        )
        literal: dict[str, Any] = {"exponent": 1.0, "squared": False, "aggregation": "example"}
        return cls(**{**literal, **params})

    def _activation(self, problem: Problem) -> Tensor:
        # Through the logarithm: a power of 1 - p has no finite gradient where p rounds to 1.
        return torch.exp(self.exponent * problem.log_not_p()) * problem.p()

    def _focused(self, losses: Tensor, wrong: Tensor) -> Tensor:
        return losses * wrong**self.exponent
