"""Soft counts of hits, false alarms and misses, and what an overlap loss makes of them.

With p the probability of a class and y 1 for its examples, summed over a batch::

    TP = sum p y      FP = sum p^2 (1 - y)      FN = sum (1 - p)^2 y

    1 - (tp TP + s) / (tp TP + fp FP + fn FN + s)

`Formula` holds tp, fp and fn; s is `smooth`; ``squared=False`` leaves out the squares.

The log surrogate of this ratio is cross-entropy. Its weights are those that the ratio without
squares gives to an example, with D its denominator. They are constants in the backward pass::

    of -log p of a positive:            (tp (fp FP + fn FN) + fn (tp TP + s)) / D^2
    of -log(1 - p) of a negative:       fp (tp TP + s) / D^2

It is a mean over examples, as cross-entropy is, with a hit counted as 2. The ratio's own gradients
are far larger, above all in batches with positives, so that clipping a gradient's norm would shrink
these alone. `tests/losses/test_formulas.py` and `test_surrogate.py` hold all of it to naive loops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import torch
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
from skdice.losses.base import Loss
from skdice.losses.inputs import (
    LossInputs,
    at_least_tiny,
    class_vector,
    finite,
    resolve_background,
)


class Formula(NamedTuple):
    """The constants that tell one overlap loss from another."""

    tp: Number  # what a hit counts,
    fp: Number  # a false alarm,
    fn: Number  # and a miss
    squared: bool = True  # whether errors are squared
    exponent: Number | None = None  # a of DSC, which replaces p by (1 - p)^a p
    # Whether a soft target y counts as y^2, so that the errors of dice are (p - y)^2.
    squares_targets: bool = False


def scores(inputs: LossInputs, formula: Formula) -> Tensor:
    """p, or (1 - p)^a p, of shape (N, C)."""
    p = inputs.p()
    if formula.exponent is None:
        return p
    # Through the logarithm: a power of 1 - p has no finite gradient where p rounds to 1.
    return torch.exp(formula.exponent * inputs.log_not_p()) * p


def soft_counts(inputs: LossInputs, p: Tensor, formula: Formula) -> Tensor:
    """The counts tp TP and fp FP + fn FN of each example in each class, of shape (2, N, C)."""
    y, false, missed = inputs.target, p, 1 - p
    if formula.squared:
        false, missed = false**2, missed**2
    if formula.squares_targets:
        # p^2 (1 - y) + (1 - p)^2 y - y (1 - y) = (p - y)^2
        missed = missed - (1 - y)
    return torch.stack(
        [formula.tp * (y * p), formula.fp * ((1 - y) * false) + formula.fn * (y * missed)]
    )


def _summed(
    inputs: LossInputs, p: Tensor, formula: Formula, factors: Tensor, pooled: bool
) -> Tensor:
    """The counts of a batch, of shape (2, C), or (2,) if they are `pooled` over the classes."""
    counts = inputs.sum_rows(soft_counts(inputs, p, formula))
    return (factors * counts).sum(-1) if pooled else counts


def ratio(counts: Tensor, smooth: Number) -> Tensor:
    """1 - (hits + smooth) / (hits + errors + smooth), exact where it is close to 0.

    It is 0 where that would be 0/0: smooth=0, no positives and no probability.
    """
    hits, errors = counts.unbind()
    return errors / at_least_tiny(hits + errors + smooth)


def class_factors(like: Tensor, class_weight: PerClass, background: int | None) -> Tensor:
    """A factor for each class, 0 for the background."""
    n_classes = like.shape[-1]
    factors = torch.ones(n_classes, dtype=like.dtype, device=like.device)
    if class_weight is not None:
        factors = class_vector("class_weight", class_weight, n_classes, like)
    if background is None:
        return factors
    return factors * (torch.arange(n_classes, device=like.device) != background)


def log_surrogate(
    inputs: LossInputs,
    formula: Formula,
    factors: Tensor,
    smooth: Number,
    pooled: bool,
    background: int | None,
) -> Tensor:
    """Cross-entropy with the weights of the ratio of the counts, of each class or `pooled`."""
    if not pooled and inputs.kind == "multiclass" and background is None:
        # Most classes of a softmax may be absent from a batch. All that these can do is to push
        # probabilities down, and their gradients would outweigh those of the others.
        factors = factors * (inputs.sum_rows(inputs.target) > 0)
    plain = formula._replace(squared=False, squares_targets=False)
    hits, errors = _summed(inputs, inputs.p().detach(), plain, factors, pooled).unbind()
    denominator = at_least_tiny(hits + errors + smooth)
    # The ratio's weights, times its denominator (a mean over classes), with a hit counted as 2.
    scale = 2 * inputs.share_of_example()
    if not pooled:
        factors = factors / at_least_tiny(factors.sum())
        scale = scale * (factors * denominator).sum() / denominator
        # With several labels, each class has its own mean over examples.
        scale = scale * inputs.n_classes if inputs.kind == "multilabel" else scale
    of_hits = (hits + smooth) / denominator
    positive = scale * (errors / denominator + formula.fn / formula.tp * of_hits)
    negative = scale * (formula.fp / formula.tp) * of_hits

    log_p = inputs.true_class_log_p()
    losses = _decayed(-log_p, lambda: finite(torch.log(-torch.expm1(log_p))), formula)
    if inputs.index is None:
        losses = inputs.target * losses
    weights = inputs.weight * (factors * positive)
    if not (pooled and inputs.kind == "multiclass"):
        others = _decayed(-inputs.log_not_p(), inputs.log_p, formula)
        others = inputs.weighted((factors * negative) * (1 - inputs.target) * others)
        return (inputs.of_true_class(weights) * losses).sum() + others.sum()
    weights = torch.where(factors == 0, negative * _of_background(inputs, factors), weights)
    return (inputs.of_true_class(weights) * losses).sum()


def _of_background(inputs: LossInputs, factors: Tensor) -> Tensor:
    """Weights of the background's examples, which are the negatives of all counted classes."""
    if inputs.index is not None:
        return inputs.weight
    # Each weighs as much as the classes that it is taken for.
    p = inputs.p().detach() * (factors > 0)
    of_classes = (inputs.weight * factors * p).sum(-1, keepdim=True)
    return of_classes / at_least_tiny(p.sum(-1, keepdim=True))


def _decayed(losses: Tensor, log_wrong: Callable[[], Tensor], formula: Formula) -> Tensor:
    """Log losses times DSC's power of the probability of the wrong side, from its logarithm."""
    if formula.exponent is None:
        return losses
    return losses * (formula.exponent * log_wrong().detach()).exp_()


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

    def kernel(
        self,
        inputs: LossInputs,
        *,
        smooth: Number,
        average: str,
        background: int | None,
        class_weight: PerClass,
        surrogate: str,
        **values: Any,
    ) -> Tensor:
        """The loss; see `Loss.kernel`."""
        inputs, background = resolve_background(inputs, background)
        formula = self.formula(**values)
        factors = class_factors(inputs.logits, class_weight, background)
        if average == "samples":
            return _mean_over_samples(inputs, formula, factors, smooth)
        pooled = average == "micro"
        if average == "auto":  # pooled over all classes of a softmax, FP equal FN
            pooled = background is not None or inputs.kind == "binary"
        if pooled and class_weight is not None:
            inputs = inputs.as_table()
        if surrogate == "log":
            return log_surrogate(inputs, formula, factors, smooth, pooled, background)
        losses = ratio(_summed(inputs, scores(inputs, formula), formula, factors, pooled), smooth)
        if pooled:
            return losses
        losses = factors * losses
        losses = losses if inputs.reduction == "none" else losses.sum()
        return losses / at_least_tiny(factors.sum()) if inputs.reduction == "mean" else losses
