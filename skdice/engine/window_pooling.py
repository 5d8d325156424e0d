"""Texts of several windows: one row of logits for each, made from the logits of its windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from skdice.engine.encoded import EncodedDataset, Update
from skdice.engine.layouts.layout import Layout
from skdice.text.encoding import Windows


@dataclass(frozen=True)
class WindowPooling:
    """The rule by which the logits of a text's windows become those of the text.

    Parameters
    ----------
    how : {"max", "mean"}
    positive : int or None, default=None
        The positive class of two, whose log-odds are pooled: a text is positive if one of its
        windows is. None pools the logits of each class or label by itself.
    """

    how: str
    positive: int | None = None

    def __call__(self, logits: torch.Tensor, inside: torch.Tensor) -> torch.Tensor:
        """Logits of texts, (n_texts, n_classes); those of a text with one window stay.

        Parameters
        ----------
        logits : Tensor of shape (n_texts, most_windows, n_classes)
        inside : Tensor of bool, shape (n_texts, most_windows)
            False where a text has no such window.
        """
        inside = inside.unsqueeze(-1)
        if self.how == "mean":
            return logits.masked_fill(~inside, 0.0).sum(dim=1) / inside.sum(dim=1)
        evidence = logits
        if self.positive is not None:
            i, other = self.positive, 1 - self.positive
            evidence = logits[..., i : i + 1] - logits[..., other : other + 1]
        deciding = evidence.masked_fill(~inside, -torch.inf).argmax(dim=1, keepdim=True)
        return logits.gather(1, deciding.expand(-1, -1, logits.shape[-1])).squeeze(1)


@dataclass(frozen=True)
class WindowsOfTexts:
    """The outputs of the module that are the windows of one text.

    Parameters
    ----------
    places : Tensor of int, shape (n_texts, most_windows)
        Rows of the output of all micro-batches, one after the other; any row where there is none.
    inside : Tensor of bool, shape (n_texts, most_windows)
    pooling : WindowPooling
    """

    places: torch.Tensor
    inside: torch.Tensor
    pooling: WindowPooling

    def to(self, move: Callable[[torch.Tensor], torch.Tensor]) -> WindowsOfTexts:
        """The same on another device."""
        return replace(self, places=move(self.places), inside=move(self.inside))

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """Logits of the texts from those of all windows."""
        by_text = logits.index_select(0, self.places.flatten()).unflatten(0, self.places.shape)
        return self.pooling(by_text, self.inside)


class TextDataset(EncodedDataset):
    """Texts with several windows, and for each text its target and weight: multiple instances.

    Parameters
    ----------
    windows : Windows
        In the order of the texts.
    targets : ndarray of shape (n_texts,) or (n_texts, n_labels)
    weights : ndarray of shape (n_texts,) or None
    pooling : WindowPooling
    """

    pools_windows = True

    def __init__(
        self,
        windows: Windows[Any],
        targets: Any,
        weights: np.ndarray | None,
        pooling: WindowPooling,
    ) -> None:
        super().__init__(windows, targets, weights)
        self.pooling = pooling
        self.ends: np.ndarray = np.searchsorted(windows.rows, np.arange(len(targets)), "right")
        self.counts: np.ndarray = np.diff(self.ends, prepend=0)

    def __len__(self) -> int:
        return len(self.counts)

    def places_of(self, drawn: np.ndarray) -> np.ndarray:
        """The texts that were drawn, which are numbered as they are."""
        return drawn

    def rows_of(self, chosen: np.ndarray) -> np.ndarray:
        """The texts with these numbers."""
        return np.unique(chosen)

    def update(self, layout: Layout, rows: np.ndarray, size: int) -> Update:
        """The micro-batches of an update on some texts.

        Each runs about as many subwords as `size` windows of full length have at most, however
        long the texts are.
        """
        counts = self.counts[rows]
        starts = np.repeat(self.ends[rows] - counts - np.cumsum(counts) + counts, counts)
        chosen = starts + np.arange(len(starts))
        runs = (np.cumsum(self.lengths[chosen]) - 1) // (size * int(self.lengths.max()))
        cuts = np.flatnonzero(np.diff(runs)) + 1
        parts = [layout.micro_batch(self.windows, part) for part in np.split(chosen, cuts)]
        sizes = [len(part.order) if part.n_outputs is None else part.n_outputs for part in parts]
        outputs = zip(parts, np.cumsum(sizes) - sizes, strict=True)
        at = np.concatenate([first + np.arange(len(part.order)) for part, first in outputs])
        order = np.concatenate([part.order for part in parts])
        inside = torch.arange(int(counts.max())) < torch.from_numpy(counts)[:, None]
        places = torch.zeros(inside.shape, dtype=torch.int64)
        # A text that is drawn twice has its windows twice; equal outputs serve either.
        places[inside] = torch.from_numpy(at[np.argsort(order, kind="stable")][_ranks(chosen)])
        assert isinstance(self.targets, np.ndarray)
        weight = None
        if self.weights is not None:
            weight = torch.from_numpy(self.weights[rows].astype(np.float32))
        target = torch.from_numpy(self.targets[rows])
        return Update(
            parts, target, weight, self.rows_of(rows), WindowsOfTexts(places, inside, self.pooling)
        )


def _ranks(values: np.ndarray) -> np.ndarray:
    """The place of each value among all, sorted; equal ones in their order."""
    return np.argsort(np.argsort(values, kind="stable"), kind="stable")
