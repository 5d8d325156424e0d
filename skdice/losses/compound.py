"""Cross-entropy plus an overlap loss, as is the standard in image segmentation."""

from __future__ import annotations

from typing import Any, Self

import torch
from sklearn.base import clone
from torch import Tensor

from skdice.losses._base import Loss, Problem, check_number

__all__ = ["CompoundLoss"]


class CompoundLoss(Loss):
    """A mean of two losses: (1 - weight) first + weight second.

    Cross-entropy gives every token a gradient, also where an overlap loss is flat; the overlap
    loss says what the errors cost. Their sum is what segmentation has used since nnU-Net.

    Parameters
    ----------
    first, second : str or Loss, default="ce" and "dice"
        Names or losses of this package with ``reduction="mean"``. A name means what it does alone;
        segmentation's sum of two formulas is ``CompoundLoss("ce", DiceLoss())``. Their own
        parameters are reached as ``second__smooth``, in an estimator as
        ``loss__second__smooth``.
    weight : float, default=0.5
        Share of the second, from 0 to 1.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean"}, default="mean"

    Raises
    ------
    ValueError, TypeError
        For an unknown loss, a share outside 0 to 1, or another reduction.

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

    def __init__(
        self,
        first: str | Loss = "ce",
        second: str | Loss = "dice",
        weight: Any = 0.5,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        from skdice.losses._registry import resolve_loss

        # Objects also where names were given, so that their parameters can be set.
        self.first, self.second = resolve_loss(first), resolve_loss(second)
        self.weight = weight
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction
        self._check()

    def _check(self) -> None:
        super()._check()
        check_number("weight", self.weight, 0, 1)
        for name in ("first", "second"):
            part = getattr(self, name)
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
    def is_set_level(self) -> bool:
        """Whether it is more than a mean over examples, so that batches do not add up."""
        return any(getattr(part, "is_set_level", False) for part in (self.first, self.second))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, with those of the parts if `deep`."""
        params = super().get_params(deep=False)
        if deep:
            for name in ("first", "second"):
                params.update(
                    {f"{name}__{key}": value for key, value in params[name].get_params().items()}
                )
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments, or those of a part as in ``second__smooth``.

        Values that are refused leave the loss as it was.
        """
        from skdice.losses._registry import resolve_loss

        own: dict[str, Any] = {}
        of_parts: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            part, nested, key = name.partition("__")
            if nested and part in ("first", "second"):
                of_parts.setdefault(part, {})[key] = value
            else:
                own[name] = resolve_loss(value) if name in ("first", "second") else value
        clone(self)._assign(own, of_parts)
        return self._assign(own, of_parts)

    def _assign(self, own: dict[str, Any], of_parts: dict[str, dict[str, Any]]) -> Self:
        super().set_params(**own)
        for part, params in of_parts.items():
            getattr(self, part).set_params(**params)
        self._check()
        return self

    def __sklearn_clone__(self) -> Self:
        params = super().get_params(deep=False)
        return type(self)(**{**params, "first": clone(self.first), "second": clone(self.second)})

    def prepare(self, *args: Any, **kwargs: Any) -> Self:
        """Tell both losses about the training data; see `Loss.prepare`."""
        super().prepare(*args, **kwargs)
        self.first.prepare(*args, **kwargs)
        self.second.prepare(*args, **kwargs)
        return self

    def _loss(self, problem: Problem) -> Tensor:
        return self.mean_of(self.first._loss(problem), self.second._loss(problem))

    def mean_of(self, first: Tensor, second: Tensor) -> Tensor:
        """What the two losses of a batch make together."""
        weight = torch.as_tensor(self.weight, dtype=first.dtype, device=first.device)
        return torch.lerp(first, second, weight)
