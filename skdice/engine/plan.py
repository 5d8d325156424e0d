"""A fit as a value: checked and encoded, but not yet run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from torch import nn

from skdice.text.inputs import take

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


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """A fit that is ready to run; nothing has been trained yet."""

    dataset: Any  # an EncodedDataset or the like, which gives the batches
    criterion: nn.Module  # the loss, prepared with the counts of the training data
    seed: int
    mode: Mode = "fresh"
    # None means `max_epochs` with the schedule; `partial_fit` gives a number, at a constant rate.
    epochs: int | None = None
    # The rows that a sampler drew for each epoch.
    rows: Sequence[np.ndarray] | None = None
    # Answers or entities, where the loss has no counts of classes.
    n_positives: int | None = None
    # Training examples of each class that the head does not have yet, for one of all the others.
    new_odds: Sequence[float] = ()
    # The validation set (Examples), scored after each epoch.
    validation: Any = None
    # The estimator's attributes once the plan runs, including the untrained module.
    fitted: dict[str, Any] = field(default_factory=dict, repr=False)
