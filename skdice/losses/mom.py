"""Majority or minority learning (Nemoto et al., 2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from skdice.losses._parameters import BACKGROUND, Number, number
from skdice.losses.base import Loss
from skdice.losses.cross_entropy import log_losses
from skdice.losses.inputs import LossInputs, at_least_tiny, resolve_background
from skdice.losses.search_ranges import Range, Ranges


def mom(
    inputs: LossInputs, *, lam: Number, background: int | None, class_counts: Tensor | None
) -> Tensor:
    """Cross-entropy, and the same of the majority class alone; see `MoMLoss`."""
    inputs, background = resolve_background(inputs, background)
    of_majority = _of_majority(inputs, background, class_counts)
    n_majority = at_least_tiny(inputs.sum_rows(of_majority).sum())
    # Both are means: the second over the majority alone.
    factors = lam + (1 - lam) * of_majority * inputs.n_examples() / n_majority
    return inputs.reduce(log_losses(inputs) * factors)


def _of_majority(inputs: LossInputs, background: int | None, class_counts: Tensor | None) -> Tensor:
    """The share of each example that is of the majority class."""
    if inputs.kind != "multiclass":
        return 1 - inputs.target
    majority: Any = background
    if majority is None:
        if class_counts is None:
            raise ValueError(
                "MoMLoss needs to know the majority class: give background=, or call "
                "prepare(class_counts=...) first"
            )
        majority = class_counts.argmax()
    if inputs.index is not None:
        return (inputs.index == majority).unsqueeze(-1).to(inputs.logits.dtype)
    classes = torch.arange(inputs.n_classes, device=inputs.logits.device)
    return (inputs.target * (classes == majority)).sum(-1, keepdim=True)


@dataclass(kw_only=True, eq=False, repr=False)
class MoMLoss(Loss):
    """Majority or minority (MoM) learning: cross-entropy that also looks at the majority alone.

    With CE the mean of -log p of the right class over a batch, and CE_O the same over the examples
    of the majority class, such as ``O``::

        lam CE + (1 - lam) CE_O

    Parameters
    ----------
    lam : float, default=0.5
        Share of the loss over all examples (lambda). 1 is cross-entropy.
    background : "auto", int or None, default="auto"
        The majority class. ``"auto"`` is what `prepare` was told, or else the class with the most
        training examples. One logit has classes 0 and 1, of which 0 is the majority unless 1 is
        given.
    ignore_index : int, default=-100
    multilabel : bool, default=False
        Targets are 0/1 rows. The majority are the zeros.
    reduction : {"mean", "sum", "none"}, default="mean"

    Raises
    ------
    ValueError
        When called with several classes of which none is known to be the majority.

    Notes
    -----
    Errors on the majority, which cost precision, weigh more. Errors on the minority weigh less.
    Each term is a mean over its own examples; a batch without one of the majority has a CE_O of 0.

    References
    ----------
    S. Nemoto, S. Kitada, H. Iyatomi, "Majority or Minority: Data Imbalance Learning Method for
    Named Entity Recognition", IEEE Access 13, 2025 (arXiv 2401.11431).

    Examples
    --------
    >>> import torch
    >>> from skdice.losses import MoMLoss
    >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
    >>> MoMLoss(lam=0.5, background=0)(logits, target)  # 0.41 over both, 0.13 over the first
    tensor(0.2685)
    """

    name = "mom"
    heeds_weights = True
    kernel: ClassVar[Callable[..., Tensor]] = staticmethod(mom)
    _parameter_constraints = {
        **Loss._parameter_constraints,
        "lam": number(0, 1),
        "background": BACKGROUND,
    }
    searched: ClassVar[Ranges] = {"lam": Range(0.0, 1.0)}
    needed_buffers: ClassVar[tuple[str, ...]] = ("class_counts",)
    is_set_level = True

    lam: Number = 0.5
    background: int | str | None = "auto"
