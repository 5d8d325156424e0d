"""Overlap losses: one minus a ratio of soft counts (`_soft_counts`), or its log surrogate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from torch import Tensor

from skdice._compat import StrOptions
from skdice.losses._parameters import (
    BACKGROUND,
    CLASS_WEIGHT,
    ClassWeight,
    Number,
    PerClass,
    number,
)
from skdice.losses._soft_counts import (
    Formula,
    class_factors,
    log_surrogate,
    ratio,
    scores,
    soft_counts,
)
from skdice.losses.base import Loss
from skdice.losses.inputs import LossInputs, at_least_tiny, resolve_background

OPTIONS = ("smooth", "average", "class_weight", "surrogate")


def overlap_loss(
    inputs: LossInputs,
    formula: Formula,
    *,
    smooth: Number,
    average: str,
    background: int | None,
    class_weight: PerClass,
    surrogate: str,
) -> Tensor:
    """An overlap loss.

    Every class is a problem of its own against the rest. `DiceLoss` has the options. `background`
    is one by `resolve_background`.
    """
    average = resolve_average(inputs, average, background)
    pooled = average == "micro"
    factors = class_factors(inputs.logits, class_weight, background)
    if class_weight is not None and pooled:
        inputs = inputs.as_table()
    if average == "samples":
        return _mean_over_samples(inputs, formula, factors, smooth)
    log = surrogate == "log"
    if log and not pooled and inputs.kind == "multiclass" and background is None:
        # Most classes of a softmax may be absent from a batch. All that these can do is to push
        # probabilities down, and their gradients would outweigh those of the others.
        factors = factors * (inputs.sum_rows(inputs.target) > 0)
    if log:
        formula = formula._replace(squared=False, squares_targets=False)
    p = inputs.p().detach() if log else scores(inputs, formula)
    counts = inputs.sum_rows(soft_counts(inputs, p, formula))
    if pooled:
        counts = (factors * counts).sum(-1)
    if log:
        return log_surrogate(inputs, formula, counts, factors, smooth, pooled)
    losses = ratio(counts, smooth)
    if pooled:
        return losses
    losses = factors * losses
    losses = losses if inputs.reduction == "none" else losses.sum()
    return losses / at_least_tiny(factors.sum()) if inputs.reduction == "mean" else losses


def resolve_average(inputs: LossInputs, average: str, background: int | None) -> str:
    """Read "auto": over all classes of a softmax, pooled FP equal FN, so it is macro there."""
    if average != "auto":
        return average
    return "micro" if background is not None or inputs.kind == "binary" else "macro"


def _mean_over_samples(
    inputs: LossInputs, formula: Formula, factors: Tensor, smooth: Number
) -> Tensor:
    """One ratio for each example and class, reduced."""
    ratios = ratio(soft_counts(inputs, scores(inputs, formula), formula), smooth)
    losses = inputs.weight * factors * ratios
    if inputs.reduction == "mean":
        total = inputs.sum_rows(factors.expand_as(losses)).sum()
        return losses.sum() * inputs.ranks / at_least_tiny(total)
    losses = losses / at_least_tiny(factors.sum())
    losses = losses * len(factors) if inputs.kind == "multilabel" else losses.sum(-1)
    return losses.sum() if inputs.reduction == "sum" else losses.reshape(inputs.shape)


@dataclass(kw_only=True, eq=False, repr=False)
class OverlapLoss(Loss):
    """Base of the dice and Tversky losses; see `DiceLoss` for the shared parameters.

    A subclass gives `formula`, a function of the parameters that it adds to those below.
    """

    formula: ClassVar[Callable[..., Formula]]
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Loss._parameter_constraints,
        "smooth": number(0),
        "average": [StrOptions({"auto", "micro", "macro", "samples"})],
        "background": BACKGROUND,
        "class_weight": CLASS_WEIGHT,
        "surrogate": [StrOptions({"none", "log"})],
    }
    excludes_background = True
    heeds_weights = True
    literal_params: ClassVar[dict[str, Any]] = {
        "average": "samples",
        "smooth": 1.0,
        "surrogate": "none",
    }

    smooth: Number = 0.01
    average: str = "auto"
    background: int | str | None = "auto"
    class_weight: ClassWeight = None
    surrogate: str = "log"

    def _check(self) -> None:
        super()._check()
        average, reduction = self.average, self.reduction
        if self.surrogate == "log" and (average == "samples" or reduction != "mean"):
            raise ValueError(
                f"surrogate='log' with average={average!r} and reduction={reduction!r}: it weighs "
                "the examples of a batch by its counts, so take 'auto', 'macro' or 'micro', and "
                "'mean', or surrogate='none'"
            )

    @classmethod
    def literal(cls, **params: Any) -> Self:
        """The formula as printed (Table 2): one ratio for each example, without the surrogate.

        Parameters
        ----------
        **params
            Other parameters, and those of the formula to change.
        """
        return cls(**{**cls.literal_params, **params})

    @property
    def is_set_level(self) -> bool:
        """True of more than a mean over examples, where losses of batches do not add up."""
        return self.average != "samples"

    def kernel(self, inputs: LossInputs, *, background: int | None, **values: Any) -> Tensor:
        """The loss; see `Loss.kernel`."""
        options = {name: values.pop(name) for name in OPTIONS}
        inputs, options["background"] = resolve_background(inputs, background)
        return overlap_loss(inputs, self.formula(**values), **options)
