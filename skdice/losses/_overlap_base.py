"""Parameters and memory of the overlap losses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from skdice.losses._base import Loss
from skdice.losses._checks import INF, ClassWeight, Number, is_above_zero
from skdice.losses._overlap import Formula, overlap_loss
from skdice.losses._problem import Problem, with_background


@dataclass(kw_only=True, eq=False, repr=False)
class OverlapLoss(Loss):
    """Base of the dice and Tversky losses; see `DiceLoss` for the shared parameters.

    A subclass gives `formula`, a function of the parameters that it adds to those below.
    """

    formula: ClassVar[Callable[..., Formula]]
    bounds = {"smooth": (0, INF), "ohem_ratio": (0, INF), "ema_decay": (0, 1)}
    choices = {
        **Loss.choices,
        "average": ("auto", "micro", "macro", "samples"),
        "absent": ("auto", "include", "ignore"),
        "surrogate": ("none", "log"),
    }
    leaves_background_out = True
    printed: ClassVar[dict[str, Any]] = {"average": "samples", "smooth": 1.0, "surrogate": "none"}

    smooth: Number = 0.01
    average: str = "auto"
    background: int | str | None = "auto"
    absent: str = "auto"
    class_weight: ClassWeight = None
    ohem_ratio: Number = 0.0
    surrogate: str = "log"
    ema_decay: Number = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        # Counts of earlier batches and how many there were, each decayed: (3, C).
        self.register_buffer("running_", None)

    def _check(self) -> None:
        super()._check()
        average, reduction = self.average, self.reduction
        if average == "samples" and self.remembers:
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
        return cls(**{**cls.printed, **params})

    @property
    def is_set_level(self) -> bool:
        """Whether it is more than a mean over examples, so that losses of batches do not add up."""
        return self.average != "samples" or is_above_zero(self.ohem_ratio)

    @property
    def remembers(self) -> bool:
        """Whether it averages over the batches of training."""
        return is_above_zero(self.ema_decay)

    def prepare(self, class_counts: Any, *args: Any, **kwargs: Any) -> Self:
        """Tell the loss about the training data and forget earlier batches; see `Loss.prepare`."""
        super().prepare(class_counts, *args, **kwargs)
        self.running_ = torch.zeros(3, len(self.class_counts_)) if self.remembers else None
        return self

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if self.remembers and f"{prefix}running_" in state_dict:  # its shape is that of the batches
            self.running_ = torch.zeros_like(state_dict[f"{prefix}running_"])
        super()._load_from_state_dict(state_dict, prefix, *args)

    def compute(
        self, problem: Problem, params: Mapping[str, Any], state: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """`functional_loss` of a `Problem`; of the state, only what changes is returned."""
        options = self._keywords(params, state)
        of_formula = inspect.signature(self.formula).parameters
        formula = self.formula(**{name: options.pop(name) for name in of_formula})
        problem, options["background"] = with_background(problem, options["background"])
        learns = self.training and torch.is_grad_enabled()
        running = state.get("running_") if learns else None
        loss, running = overlap_loss(problem, formula, running=running, **options)
        return loss, {"running_": running} if learns and running is not None else {}
