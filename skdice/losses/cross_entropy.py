"""Cross-entropy, plain and weighted (Li et al., 2020, Eq. 1 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from skdice.losses._parameters import (
    CLASS_WEIGHT,
    ClassWeight,
    Number,
    PerClass,
    is_above_zero,
    number,
)
from skdice.losses.base import Loss
from skdice.losses.inputs import LossInputs, class_sides
from skdice.losses.search_ranges import Range, Ranges


def cross_entropy(
    inputs: LossInputs, class_weight: PerClass = None, label_smoothing: Number = 0.0
) -> Tensor:
    """Cross-entropy; see `CrossEntropyLoss`."""
    sides = class_sides("class_weight", class_weight, inputs)
    return inputs.reduce(log_losses(inputs, *sides, smoothing=label_smoothing))


def log_losses(
    inputs: LossInputs,
    positive: Number = 1.0,
    negative: Number = 1.0,
    *,
    smoothing: Number = 0.0,
    gamma: Number = 0.0,
) -> Tensor:
    """-(1 - p)^gamma log p of the true side of each element, times the factor of its class."""
    if inputs.index is not None:
        log_p = inputs.true_class_log_p()
        losses = -log_p
        if is_above_zero(gamma):
            # Kept below 0, where log(1 - p) is finite: at 0 the loss and its gradient are 0.
            log_p = log_p.clamp(max=-torch.finfo(log_p.dtype).tiny)
            losses = -log_p * torch.exp(gamma * torch.log(-torch.expm1(log_p)))
        if isinstance(positive, Tensor):
            losses = losses * positive[inputs.index].unsqueeze(-1)
        if is_above_zero(smoothing):
            of_all = -(inputs.log_p() * positive).sum(-1, keepdim=True) / inputs.n_classes
            losses = (1 - smoothing) * losses + smoothing * of_all
        return losses
    multiclass = inputs.kind == "multiclass"
    target = (1 - smoothing) * inputs.target
    target = target + smoothing / (inputs.n_classes if multiclass else 2)
    log_p = inputs.log_p()
    log_not_p = inputs.log_not_p() if is_above_zero(gamma) or not multiclass else log_p
    right = -target * positive * _decay(gamma, log_not_p) * log_p
    if multiclass:
        return right.sum(-1, keepdim=True)
    return right - (1 - target) * negative * _decay(gamma, log_p) * log_not_p


def _decay(gamma: Number, log_wrong: Tensor) -> Number:
    return torch.exp(gamma * log_wrong) if is_above_zero(gamma) else 1.0


def _with_log_prior(
    inputs: LossInputs, tau: Number, class_counts: Tensor | None, n_samples: Any
) -> LossInputs:
    """The problem with `tau` times the log-prior added to its logits."""
    if class_counts is None:
        raise ValueError(
            f"CrossEntropyLoss(tau={tau!r}) needs class counts: call prepare(class_counts=...) "
            "first, or leave tau at 0"
        )
    n_wanted = 2 if inputs.kind == "binary" else inputs.n_classes
    if len(class_counts) != n_wanted:
        raise ValueError(
            f"class_counts={class_counts.tolist()!r} has {len(class_counts)} counts, and "
            f"tau={tau!r} needs {n_wanted} with these logits: give prepare one for "
            "each class, and (2,) for one logit"
        )
    prior = log_prior(class_counts, n_samples, multilabel=inputs.kind == "multilabel")
    if inputs.kind == "binary":
        prior = prior[1:] - prior[0]
    return inputs.with_logits(inputs.logits + tau * prior.to(inputs.logits))


def log_prior(
    counts: Tensor,
    n_samples: Any,
    *,
    multilabel: bool,
    positive: Any = None,
    negative: Number | Tensor = 1.0,
) -> Tensor:
    """The logarithm of each class's share; of several labels the log-odds of each.

    `positive` holds the factor of each class, and `negative` that of the negatives of each label.
    """
    counts = _at_least_one(counts, n_samples)  # or a log-prior would be infinite
    weighted = counts
    if positive is not None:
        factors = torch.as_tensor(positive).to(counts)
        # The loss refuses factors of another length when it is called.
        if not factors.ndim or len(factors) == len(counts):
            weighted = counts * factors
    if multilabel:
        return torch.log(weighted / (_at_least_one(n_samples - counts, n_samples) * negative))
    return torch.log(weighted / weighted.sum())


def prior_of(loss: Loss, positive: Any = None, negative: Number | Tensor = 1.0) -> Tensor:
    """The `log_prior` of what `prepare` told a loss."""
    counts, n = loss.class_counts_, loss.n_samples_
    multilabel = loss.is_multilabel
    return log_prior(counts, n, multilabel=multilabel, positive=positive, negative=negative)


def _at_least_one(counts: Tensor, n_samples: Any) -> Tensor:
    """Counts in which an absent class has 1, or that of the rarest class where that is smaller."""
    # Rounding may leave a little where a sum less all its terms should be 0.
    once = torch.where(counts > 1e-9 * n_samples, counts, 1.0).min().clamp(max=1.0)
    return torch.maximum(counts, once)


@dataclass(kw_only=True, eq=False, repr=False)
class CrossEntropyLoss(Loss):
    """Cross-entropy: -log p of the right class (Eq. 1).

    Parameters
    ----------
    label_smoothing : float, default=0.0
        Share of the target that is spread evenly over all classes, from 0 to 1.
    class_weight : sequence of float, "balanced", dict or None, default=None
        A factor for each class: shape (2,) for one logit; for a multi-label problem one for the
        positives of each label. The mean divides by the number of examples, not by the sum of these
        factors. ``"balanced"`` makes the classes of the training data weigh the same: n examples of
        k classes, n_t of class t, have the factor n / (k n_t), as in scikit-learn; the positives of
        one of several labels (n - n_t) / n_t. A dict gives factors by label (of a tagger: by tag),
        and labels that it leaves out have 1. Both need what `prepare` gets.
    tau : float, default=0.0
        Add this much of the log-prior of each class (of its log-odds, for sigmoids) to the logits
        in training only (not after ``eval()``), so that predictions favour rare classes (Menon et
        al., 2021, Eq. 10). It needs the class counts that `prepare` gets; the estimators give them.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean", "sum", "none"}, default="mean"

    References
    ----------
    A. K. Menon et al., "Long-tail learning via logit adjustment", ICLR 2021.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import CrossEntropyLoss
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
    >>> CrossEntropyLoss(reduction="none")(logits, torch.tensor([0, 1]))
    tensor([0.1269, 0.6931])
    """

    name = "ce"
    heeds_weights = True
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "label_smoothing": number(0, 1),
        "class_weight": CLASS_WEIGHT,
        "tau": number(0),
    }
    searched: ClassVar[Ranges] = {"label_smoothing": Range(0.0, 0.2)}
    needed_buffers: ClassVar[tuple[str, ...]] = ("class_counts", "n_samples")
    normalizes_over_positions = True

    label_smoothing: Number = 0.0
    class_weight: ClassWeight = None
    tau: Number = 0.0

    def kernel(
        self,
        inputs: LossInputs,
        *,
        tau: Number,
        class_counts: Tensor | None,
        n_samples: Any,
        **values: Any,
    ) -> Tensor:
        """Cross-entropy, in training of logits with `tau` times the log-prior."""
        if self.training and is_above_zero(tau):
            inputs = _with_log_prior(inputs, tau, class_counts, n_samples)
        return cross_entropy(inputs, **values)

    def start_bias(self) -> Tensor:
        """The log-prior, weighted as the loss is, less the part of it that `tau` adds."""
        return prior_of(self, self._prepared("class_weight")) - self.tau * prior_of(self)


def class_weights(counts: Tensor, n_samples: Any, K: Number) -> Tensor:
    """``log10((n - n_t) / n_t + K)`` for each class (Section 3.2), and at least 0."""
    counts = _at_least_one(counts, n_samples)  # or a weight would be infinite
    ratio = (n_samples - counts).clamp(min=0.0) / counts
    return torch.log10(ratio + K).clamp(min=0)


def weighted_cross_entropy(
    inputs: LossInputs,
    *,
    K: Number,
    class_weight: PerClass,
    class_counts: Tensor | None,
    n_samples: Any,
) -> Tensor:
    """Weighted cross-entropy from `class_counts` or `class_weight`.

    See `WeightedCrossEntropyLoss`.
    """
    if class_weight is not None:
        return cross_entropy(inputs, class_weight=class_weight)
    if class_counts is None:
        raise ValueError(
            "WeightedCrossEntropyLoss needs class counts: call prepare(class_counts=...) "
            "first, or give class_weight"
        )
    positive = class_weights(class_counts, n_samples, K)
    if inputs.kind != "multilabel":
        return cross_entropy(inputs, class_weight=positive)
    negative = class_weights(n_samples - class_counts, n_samples, K)
    sides = (weights.to(inputs.logits) for weights in (positive, negative))
    return inputs.reduce(log_losses(inputs, *sides))


@dataclass(kw_only=True, eq=False, repr=False)
class WeightedCrossEntropyLoss(Loss):
    """Cross-entropy with a weight for each class (Eq. 2).

    The weight of class t is ``log10((n - n_t) / n_t + K)``, with n examples in training, n_t of
    them of the class (Section 3.2). The mean divides by the number of examples N.

    Parameters
    ----------
    K : float, default=1.0
        The larger K, the more even the weights. With ``K=1`` a class that makes up nearly all
        examples weighs almost nothing. With a smaller K its weight would be negative; it is set to
        0.
    class_weight : sequence of float, "balanced", dict or None, default=None
        Weights to use instead, as they are; see `CrossEntropyLoss`.
    ignore_index : int, default=-100
    multilabel : bool, default=False
    reduction : {"mean", "sum", "none"}, default="mean"

    Raises
    ------
    ValueError
        When called without `class_weight` before `prepare` has told it the class counts.

    References
    ----------
    X. Li, X. Sun, Y. Meng, J. Liang, F. Wu, J. Li, "Dice Loss for Data-imbalanced NLP Tasks",
    ACL 2020, Section 3.2.

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import WeightedCrossEntropyLoss
    >>> loss = WeightedCrossEntropyLoss(K=1).prepare(class_counts=[90, 10])
    >>> [round(weight, 3) for weight in loss.weights_.tolist()]
    [0.046, 1.0]
    """

    name = "weighted_ce"
    heeds_weights = True
    kernel: ClassVar[Callable[..., Tensor]] = staticmethod(weighted_cross_entropy)
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "K": number(0, closed="right"),
        "class_weight": CLASS_WEIGHT,
    }
    searched: ClassVar[Ranges] = {"K": Range(1.0, 20.0, log=True)}
    needed_buffers: ClassVar[tuple[str, ...]] = ("class_counts", "n_samples")

    K: Number = 1.0
    class_weight: ClassWeight = None

    @property
    def weights_(self) -> Tensor:
        """The weight of each class, of shape (n_classes,)."""
        return class_weights(self.class_counts_, self.n_samples_, self.K)

    def start_bias(self) -> Tensor:
        """The log-prior, weighted as the loss is."""
        if self.class_weight is not None:
            return prior_of(self, self._prepared("class_weight"))
        negative = class_weights(self.n_samples_ - self.class_counts_, self.n_samples_, self.K)
        return prior_of(self, self.weights_, negative)
