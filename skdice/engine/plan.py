"""What a fit is, before any of it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from torch import nn

__all__ = ["Examples", "FitPlan", "Mode"]

# A new model; a trained one with a new optimiser (`warm_start`); a trained one as it stands
# (`partial_fit`).
Mode = Literal["fresh", "warm", "partial"]


@dataclass(frozen=True)
class Examples:
    """Checked inputs with their targets and weights.

    Attributes
    ----------
    inputs : list
        Texts, pairs, sentences or questions.
    targets : list or ndarray
    weights : ndarray of shape (n_examples,) or None
    """

    inputs: list[Any]
    targets: Any
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the examples, by position."""
        if isinstance(self.targets, np.ndarray):
            targets = self.targets[rows]
        else:
            targets = [self.targets[i] for i in rows]
        weights = None if self.weights is None else self.weights[rows]
        return Examples([self.inputs[i] for i in rows], targets, weights)


@dataclass(frozen=True)
class FitPlan:
    """A fit that is checked, encoded and ready to run; nothing has been trained yet.

    Attributes
    ----------
    dataset : EncodedDataset or the like
        What `FineTuningNet.updates` draws batches from.
    criterion : torch.nn.Module
        The loss, told what the training data hold.
    seed : int
    mode : {"fresh", "warm", "partial"}
    epochs : int or None
        None is `max_epochs` with the schedule; a number is a call of `partial_fit`, at a constant
        rate.
    rows_of_epoch : callable or None
        From an epoch's number to the rows that a sampler draws for it.
    validation : Examples or None
        Scored after each epoch.
    fitted : dict
        Attributes of the estimator once the plan runs, the untrained module among them.
    """

    dataset: Any
    criterion: nn.Module
    seed: int
    mode: Mode = "fresh"
    epochs: int | None = None
    rows_of_epoch: Callable[[int], np.ndarray] | None = None
    validation: Any = None
    fitted: dict[str, Any] = field(default_factory=dict, repr=False)
