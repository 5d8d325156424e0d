"""Overlap losses: one minus a ratio of soft counts (`_soft_counts`), or its log surrogate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from skdice._compat import StrOptions
from skdice.losses._parameters import (
    BACKGROUND,
    CLASS_WEIGHT,
    ClassWeight,
    Number,
    PerClass,
    is_above_zero,
    number,
)
from skdice.losses._soft_counts import (
    Formula,
    class_factors,
    hard_negatives,
    log_surrogate,
    ratio,
    scores,
    soft_counts,
)
from skdice.losses.base import Loss
from skdice.losses.inputs import LossInputs, at_least_tiny, resolve_background

OPTIONS = ("smooth", "average", "absent", "class_weight", "ohem_ratio", "surrogate")


def overlap_loss(
    inputs: LossInputs,
    formula: Formula,
    *,
    smooth: Number,
    average: str,
    background: int | None,
    class_weight: PerClass,
    absent: str = "include",
    ohem_ratio: Number = 0.0,
    surrogate: str = "none",
    over_batches: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """An overlap loss.

    Every class is a problem of its own against the rest. `DiceLoss` has the options. `background`
    is one by `resolve_background`. `over_batches` makes the counts of this batch, of shape (2, C),
    an average over it and earlier ones.
    """
    average = resolve_average(inputs, average, background)
    pooled = average == "micro"
    factors = class_factors(inputs.logits, class_weight, background)
    share = inputs.share_of_example()  # before mining, which leaves a mean over all
    if is_above_zero(ohem_ratio):
        inputs = inputs.as_table(inputs.weight * hard_negatives(inputs, ohem_ratio))
    elif class_weight is not None and pooled:
        inputs = inputs.as_table(inputs.given_weight)
    if average == "samples":
        return _mean_over_samples(inputs, formula, factors, smooth)
    if absent == "auto":
        softmax = inputs.kind == "multiclass" and background is None
        unknown = softmax and surrogate == "log" and over_batches is None
        absent = "ignore" if unknown else "include"
    if absent == "ignore" and not pooled:
        factors = factors * (inputs.sum_rows(inputs.target) > 0)
    log = surrogate == "log"
    if log:
        formula = formula._replace(squared=False, squares_targets=False)
    p = inputs.p().detach() if log else scores(inputs, formula)
    counts = inputs.sum_rows(soft_counts(inputs, p, formula))
    if over_batches is not None:
        counts = over_batches(counts)
    if pooled:
        counts = (factors * counts).sum(-1)
    if log:
        return log_surrogate(inputs, formula, counts, factors, share, smooth, pooled)
    losses = ratio(counts, smooth)
    if pooled:
        return losses
    losses = factors * losses
    losses = losses if inputs.reduction == "none" else losses.sum()
    return losses / at_least_tiny(factors.sum()) if inputs.reduction == "mean" else losses


def memory_of_counts(positives: float, n_updates: int) -> float:
    """What "auto" takes for `ema_decay`, where a batch holds so many positives on average.

    The counts reach back over about 30 positives, though over no more than a tenth of the
    training. A batch of two positives or more needs none of others.
    """
    if positives >= 2:
        return 0.0
    return min(max(1 - max(positives / 30, 10 / n_updates), 0.0), 0.999)


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
        "absent": [StrOptions({"auto", "include", "ignore"})],
        "class_weight": CLASS_WEIGHT,
        "ohem_ratio": number(0),
        "surrogate": [StrOptions({"none", "log"})],
        "ema_decay": [*number(0, 1), StrOptions({"auto"})],
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
    absent: str = "auto"
    class_weight: ClassWeight = None
    ohem_ratio: Number = 0.0
    surrogate: str = "log"
    ema_decay: Number | str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Counts of earlier batches and how many there were, each decayed: (3, C).
        self.register_buffer("running_", None)

    def _check(self) -> None:
        super()._check()
        average, reduction = self.average, self.reduction
        if average == "samples" and self.is_stateful:
            raise ValueError(
                f"ema_decay={self.ema_decay!r} with average='samples', which counts nothing "
                "over batches: take 'auto', 'macro' or 'micro', or ema_decay=0"
            )
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
        return self.average != "samples" or is_above_zero(self.ohem_ratio)

    @property
    def is_stateful(self) -> bool:
        """True if it averages over the batches of training."""
        return is_above_zero(self._prepared("ema_decay"))

    def prepare(self, class_counts: Any, *args: Any, **kwargs: Any) -> Self:
        """Tell the loss about the training data and forget earlier batches; see `Loss.prepare`."""
        super().prepare(class_counts, *args, **kwargs)
        self.ema_decay_ = 0.0
        if self.n_updates_ is not None and self.surrogate == "log":
            positives = self.n_epochs_ * self._rarest_positives() / self.n_updates_
            self.ema_decay_ = memory_of_counts(positives, self.n_updates_)
        self.running_ = torch.zeros(3, len(self.class_counts_)) if self.is_stateful else None
        return self

    def _rarest_positives(self) -> float:
        """Training examples of what has a ratio: all counted classes together, or the rarest."""
        background = self.background_ if isinstance(self.background, str) else self.background
        counted = [n for i, n in enumerate(self.class_counts_.tolist()) if n and i != background]
        together = self.average == "micro" or (self.average == "auto" and background is not None)
        return sum(counted) if together else min(counted, default=0.0)

    def _prepared(self, name: str) -> Any:
        if name == "ema_decay" and isinstance(self.ema_decay, str):
            return getattr(self, "ema_decay_", 0.0)
        return super()._prepared(name)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if (
            self.is_stateful and f"{prefix}running_" in state_dict
        ):  # its shape is that of the batches
            self.running_ = torch.zeros_like(state_dict[f"{prefix}running_"])
        super()._load_from_state_dict(state_dict, prefix, *args)

    def kernel(
        self, inputs: LossInputs, *, background: int | None, ema_decay: Number, **values: Any
    ) -> Tensor:
        """The loss; in training it remembers the counts. See `Loss.kernel`."""
        options = {name: values.pop(name) for name in OPTIONS}
        inputs, options["background"] = resolve_background(inputs, background)
        if is_above_zero(ema_decay):
            options["over_batches"] = partial(self._over_batches, decay=ema_decay)
        return overlap_loss(inputs, self.formula(**values), **options)

    def _over_batches(self, counts: Tensor, decay: Number) -> Tensor:
        """The average of counts over this batch and earlier ones, which it remembers."""
        if not (self.training and torch.is_grad_enabled()):
            return counts
        total = torch.cat([counts, torch.ones_like(counts[:1])]).detach()
        # A batch that overflowed, as fp16 may, is not remembered.
        total = torch.where(total.isfinite().all(), total, 0.0)
        if self.running_ is not None:
            # It starts as zeros for each class; a problem of one logit counts one of two.
            total = total + decay * self.running_.to(total)[..., : counts.shape[-1]]
        self.running_ = total
        # The average's value and the batch's own gradient.
        return total[:2] / total[2] + (counts - counts.detach())
