"""Counts of right decisions, from which every objective is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass
class Counts:
    """Right, predicted and true items, for any number of decisions at once.

    Attributes
    ----------
    hits, predicted, true : ndarray of shape (..., n_kinds)
        A kind is a class, a type of span, or a label.
    alerts : ndarray of shape (...,)
        Rows in which something is predicted that is not the background.
    n_rows : int
        Texts, or sentences.
    n_known : int or None
        Pairs of a row and a kind whose truth is known, of which the other counts are; None is all
        of them. Alerts need no truth.
    positive : int or None
        The kind that counts, of two classes.
    starts : tuple of int or None
        Where the tests of a bound begin, if the strictest threshold is not the safest one: near
        the middle, on its strict and on its loose side.
    sum_by_pair : callable or None
        `total` of one of several classes, which hits alone do not tell.
    """

    hits: np.ndarray
    predicted: np.ndarray
    true: np.ndarray
    alerts: np.ndarray
    n_rows: int
    n_known: int | None = None
    positive: int | None = None
    starts: tuple[int, ...] | None = None
    sum_by_pair: Callable[[np.ndarray], np.ndarray] | None = None

    def __post_init__(self) -> None:
        self.predicted, self.true = np.broadcast_arrays(self.predicted, self.true)

    @property
    def of_positives(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hits, predicted and true, without the negative class of two."""
        kinds = slice(None) if self.positive is None else [self.positive]
        return self.hits[..., kinds], self.predicted[..., kinds], self.true[..., kinds]

    @property
    def pooled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hits, predicted and true of the positives, summed over the kinds."""
        hits, predicted, true = (part.sum(axis=-1) for part in self.of_positives)
        return hits, predicted, true

    def total(self, table: np.ndarray) -> np.ndarray:
        """Sum of a value by truth (rows of `table`) and prediction (columns) over all rows.

        Two rows and columns are no and yes of each label or type of span.
        """
        if self.sum_by_pair is not None:
            return self.sum_by_pair(table)
        hits, predicted, true = self.pooled
        (right, alarm), (missed, hit) = table
        known = self.n_known
        if known is None:
            known = self.of_positives[0].shape[-1] * self.n_rows
        negatives = known - predicted - true + hits
        total: np.ndarray = (
            alarm * (predicted - hits) + missed * (true - hits) + hit * hits + right * negatives
        )
        return total
