"""Cross-entropy, plain and weighted (Li et al., 2020, Eq. 1 and 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from skdice.losses._base import Loss, Problem, check_number, class_vector

__all__ = ["CrossEntropyLoss", "WeightedCrossEntropyLoss"]


def _at_least_one(counts: Any, n_samples: Any) -> Tensor:
    """Counts in which an absent class counts once, or as the rarest where weights are small."""
    counts = torch.as_tensor(counts)
    # A sum of weights less all of them need not be 0 to the last digit.
    once = torch.where(counts > 1e-9 * n_samples, counts, 1.0).min().clamp(max=1.0)
    return torch.maximum(counts, once)


class CrossEntropyLoss(Loss):
    """Cross-entropy: -log p of the right class (Eq. 1).

    Parameters
    ----------
    label_smoothing : float, default=0.0
        Share of the target that is spread evenly over all classes, from 0 to 1.
    class_weight : sequence of float or None, default=None
        A factor for each class; (2,) for one logit; of each label's positives for a multi-label
        problem. The mean divides by the number of examples, not by the sum of these factors.
    tau : float, default=0.0
        Add this much of the log-prior of each class (of its log-odds, for sigmoids) to the logits
        in training only (not after ``eval()``), so that what is predicted favours rare classes
        (Menon et al., 2021, Eq. 10). It needs the class counts that `prepare` gets; the estimators
        give them.
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

    def __init__(
        self,
        *,
        label_smoothing: float = 0.0,
        class_weight: Any = None,
        tau: float = 0.0,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight
        self.tau = tau
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction
        self._check()
        check_number("label_smoothing", label_smoothing, 0, 1)
        check_number("tau", tau, 0)

    def _class_weight(self) -> Any:
        return self.class_weight

    def _adjusted(self, problem: Problem) -> Problem:
        """The problem with the log-prior added to its logits."""
        tau = getattr(self, "tau", 0.0)
        if not self.training or (not isinstance(tau, Tensor) and tau == 0):
            return problem
        if not hasattr(self, "class_counts_"):
            raise ValueError(
                f"CrossEntropyLoss(tau={tau!r}) needs class counts: call prepare(class_counts=...) "
                "first, or leave tau at 0"
            )
        # Or a log-prior would be infinite.
        counts = _at_least_one(self.class_counts_, self.n_samples_)
        n_wanted = 2 if problem.kind == "binary" else problem.logits.shape[-1]
        if len(counts) != n_wanted:
            raise ValueError(
                f"class_counts={counts.tolist()!r} has {len(counts)} counts, and tau={tau!r} needs "
                f"{n_wanted} with these logits: give prepare one for each class, and (2,) for one "
                "logit"
            )
        if problem.kind == "multiclass":
            prior = torch.log(counts / counts.sum())
        elif problem.kind == "binary":
            prior = torch.log(counts[1:] / counts[0])
        else:
            prior = torch.log(counts / _at_least_one(self.n_samples_ - counts, self.n_samples_))
        logits = problem.logits + tau * prior.to(problem.logits)
        return replace(problem, logits=logits, _odds=None)  # those were of the other logits

    def _elements(self, problem: Problem) -> Tensor:
        problem = self._adjusted(problem)
        smoothing = getattr(self, "label_smoothing", 0.0)
        n_classes = problem.logits.shape[-1]
        if problem.kind == "multiclass":
            target = (1 - smoothing) * problem.target + smoothing / n_classes
            weight = class_vector("class_weight", self._class_weight(), n_classes, target)
            if weight is not None:
                target = target * weight
            return -(target * problem.log_p()).sum(-1)
        target = (1 - smoothing) * problem.target + smoothing / 2
        positive, negative = self._two_sided(n_classes, target)
        elements = -(
            positive * target * problem.log_p() + negative * (1 - target) * problem.log_not_p()
        )
        return elements[:, 0] if problem.kind == "binary" else elements

    def _two_sided(self, n_classes: int, like: Tensor) -> tuple[Any, Any]:
        """Weights of the positive and the negative side of sigmoid problems."""
        weight = self._class_weight()
        if weight is None:
            return 1.0, 1.0
        if n_classes == 1:
            pair = class_vector("class_weight", weight, 2, like)
            assert pair is not None
            return pair[..., 1], pair[..., 0]
        return class_vector("class_weight", weight, n_classes, like), 1.0


class WeightedCrossEntropyLoss(CrossEntropyLoss):
    """Cross-entropy with a weight for each class (Eq. 2).

    The weight of class t is ``log10((n - n_t) / n_t + K)``, with n examples in training, n_t of
    them of the class (Section 3.2). The mean divides by the number of examples N.

    Parameters
    ----------
    K : float, default=1.0
        A larger K evens the weights out. With ``K=1`` a class that makes up all but a few of the
        examples weighs next to nothing; with a smaller K its weight would be negative, and is 0.
    class_weight : sequence of float or None, default=None
        Weights to use as they are instead.
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

    def __init__(
        self,
        *,
        K: float = 1.0,
        class_weight: Any = None,
        ignore_index: int = -100,
        multilabel: bool = False,
        reduction: str = "mean",
    ) -> None:
        Loss.__init__(self)
        self.K = K
        self.class_weight = class_weight
        self.ignore_index = ignore_index
        self.multilabel = multilabel
        self.reduction = reduction
        self._check()
        check_number("K", K, 0, open_low=True)

    def _log_odds(self, count: Any) -> Any:
        count = _at_least_one(count, self.n_samples_)  # or a weight would be infinite
        ratio = (self.n_samples_ - count).clamp(min=0.0) / count
        return torch.log10(ratio + self.K).clamp(min=0)

    @property
    def weights_(self) -> Tensor:
        """The weight of each class, of shape (n_classes,)."""
        return self._log_odds(self.class_counts_)

    def _class_weight(self) -> Any:
        if self.class_weight is not None:
            return self.class_weight
        if not hasattr(self, "class_counts_"):
            raise ValueError(
                "WeightedCrossEntropyLoss needs class counts: call prepare(class_counts=...) "
                "first, or give class_weight"
            )
        return self.weights_

    def _two_sided(self, n_classes: int, like: Tensor) -> tuple[Any, Any]:
        if n_classes == 1 or self.class_weight is not None:
            return super()._two_sided(n_classes, like)
        self._class_weight()
        negative = self._log_odds(self.n_samples_ - self.class_counts_)
        return self.weights_.to(like), negative.to(like)
