"""Cross-entropy plus an overlap loss, as is standard in image segmentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from skdice.losses._parameters import Number, number
from skdice.losses.base import Loss, resolve_loss
from skdice.losses.inputs import LossInputs, scalar
from skdice.losses.search_ranges import Range, Ranges

Part = Callable[[LossInputs], Tensor]  # as `kernel` gets it


class CompoundLoss(Loss):
    """A mean of two losses, by default a tenth of cross-entropy and nine tenths of dice.

    The loss is (1 - weight) first + weight second.

    Cross-entropy gives every token a gradient, also where an overlap loss is flat. The overlap loss
    weighs errors by what they cost in F1. Image segmentation has used their sum since nnU-Net.

    Parameters
    ----------
    first, second : str or Loss, default="ce" and "dice"
        Names or losses of this package with ``reduction="mean"``. Segmentation's sum of two
        formulas is ``CompoundLoss("ce", DiceLoss.literal(average="auto"), weight=0.5)``. Their own
        parameters are reached as ``second__smooth``, in an estimator as
        ``loss__second__smooth``.
    weight : float, default=0.9
        Share of the second, from 0 to 1.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean"}, default="mean"

    Raises
    ------
    ValueError, TypeError
        For an unknown loss, a share outside 0 to 1, another reduction, or a part that defines
        `forward` in place of `kernel`.

    References
    ----------
    F. Isensee et al., "nnU-Net", Nature Methods 18, 2021.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CompoundLoss, CrossEntropyLoss, DiceLoss
    >>> logits, target = torch.zeros(4, 3), torch.tensor([0, 0, 1, 2])
    >>> both = CompoundLoss("ce", DiceLoss(), weight=0.25)(logits, target)
    >>> parts = CrossEntropyLoss()(logits, target), DiceLoss()(logits, target)
    >>> torch.isclose(both, 0.75 * parts[0] + 0.25 * parts[1])
    tensor(True)
    """

    name = "ce_dice"
    heeds_weights = True
    reductions: ClassVar[tuple[str, ...]] = ("mean",)
    searched: ClassVar[Ranges] = {"weight": Range(0.0, 1.0)}
    _parameter_constraints = {**Loss._parameter_constraints, "weight": number(0, 1)}

    first: Loss
    second: Loss

    # Not a dataclass: a part given by name is kept as an object, which torch registers as a module.
    def __init__(
        self,
        first: str | Loss = "ce",
        second: str | Loss = "dice",
        weight: Number = 0.9,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        self.first, self.second = resolve_loss(first, "first"), resolve_loss(second, "second")
        self.weight = weight
        super().__init__(ignore_index=ignore_index, multilabel=multilabel, reduction=reduction)

    def _check(self) -> None:
        super()._check()
        for name, part in self.parts.items():
            if not part.has_functional_form:
                raise TypeError(
                    f"{name}={part!r} computes its loss in `forward`, which a CompoundLoss does "
                    "not call: let the class define `kernel` instead"
                )
            if self.reduction != "mean" or part.reduction != "mean":
                raise ValueError(
                    f"a CompoundLoss needs reduction='mean', also of its parts ({name}={part!r}): "
                    "an overlap loss has no value for each example to add"
                )
            for shared, default in (("ignore_index", -100), ("multilabel", False)):
                value = getattr(part, shared)
                if value not in (default, getattr(self, shared)):
                    raise ValueError(
                        f"{name}={part!r} has a {shared} that the CompoundLoss has not: give "
                        f"{shared}={value!r} to the CompoundLoss"
                    )

    @property
    def parts(self) -> dict[str, Loss]:
        """Both losses."""
        return {"first": self.first, "second": self.second}

    def kernel(self, inputs: LossInputs, *, first: Part, second: Part, weight: Number) -> Tensor:
        """The weighted mean of both parts; see `Loss.kernel`."""
        return self.mean_of(first(inputs), second(inputs), weight)

    def mean_of(self, first: Tensor, second: Tensor, weight: Any = None) -> Tensor:
        """The weighted mean of the two losses of a batch."""
        weight = self.weight if weight is None else weight
        return torch.lerp(first, second, scalar(weight, first))
