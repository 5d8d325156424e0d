"""A fit as a value: checked and encoded, but not yet run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from torch import nn

from skdice.text.inputs import take

__all__ = ["Examples", "FitPlan", "Mode"]

# A new model; a trained one with a new optimiser (`warm_start`); a trained one as it stands
# (`partial_fit`).
Mode = Literal["fresh", "warm", "partial"]


@dataclass(frozen=True)
class Examples:
    """Checked inputs with their targets and weights."""

    inputs: list[Any]  # texts, pairs, sentences or questions
    targets: Any  # a list or array
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the examples, by position."""
        weights = None if self.weights is None else self.weights[rows]
        return Examples(take(self.inputs, rows), take(self.targets, rows), weights)


@dataclass(frozen=True)
class FitPlan:
    """A fit that is ready to run; nothing has been trained yet.

    Attributes
    ----------
    dataset : EncodedDataset or the like
        What `FineTuningNet.updates` draws batches from.
    criterion : torch.nn.Module
        The loss, told what the training data hold.
    seed : int
    mode : {"fresh", "warm", "partial"}
    epochs : int or None
        None means `max_epochs` with the schedule; a number comes from `partial_fit`, which trains
        at a constant rate.
    rows_of_epoch : callable or None
        Gives the rows that a sampler draws for an epoch, from its number.
    validation : Examples or None
        Scored after each epoch.
    fitted : dict
        The estimator's attributes once the plan runs, including the untrained module.
    """

    dataset: Any
    criterion: nn.Module
    seed: int
    mode: Mode = "fresh"
    epochs: int | None = None
    rows_of_epoch: Callable[[int], np.ndarray] | None = None
    validation: Any = None
    fitted: dict[str, Any] = field(default_factory=dict, repr=False)
