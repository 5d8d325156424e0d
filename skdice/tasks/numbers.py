"""Numbers: rows of numbers in, one label or several labels out.

It is no task of the command line or of files, which hold texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data
from torch import nn
from torch.utils.data import Dataset

from skdice._checks import as_numbers, check_unmasked, shown
from skdice._types import Data, Model, Weights
from skdice._warn import warn
from skdice.engine.devices import check_device, resolve_device, seeded
from skdice.engine.encoded import Update
from skdice.engine.fit_plan import Examples, Mode
from skdice.engine.layouts.layout import MicroBatch
from skdice.engine.module import finite_bias
from skdice.exceptions import DataWarning
from skdice.inputs.labels import places_of, read_labels
from skdice.inputs.rows import check_weights
from skdice.losses.base import losses_in
from skdice.tasks.classification import Classification
from skdice.text.long_texts import Cuts

POSITIVES = 30  # that a batch holds on average, where its size is "auto"
FEW_POSITIVES = 3  # on average: with fewer, most batches teach an overlap loss little
LEAST_ROWS = 256


class Numbers(Classification):
    """Labels of rows of numbers."""

    name = "numbers"
    rows = "rows of numbers"
    estimator = "DiceClassifier"

    # ---- rows

    def inputs(self, X: Data) -> Any:
        """Return rows as they are: `validate_data` checks them beside their estimator."""
        return X

    def read(self, model: Model, X: Data, y: Data) -> tuple[Any, Any]:
        """Return rows with their `Labels`."""
        return X, read_labels(y, missing=True)

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return rows of one type with labels and weights, and set the number of features."""
        # Most GPUs are many times slower in float64, and Apple's have none.
        on_cpu = check_device(model.device) == "cpu"
        rows = checked_rows(model, X, [np.float64, np.float32] if on_cpu else [np.float32])
        labels = read_labels(y, rows.shape[0], missing=True)
        if getattr(y, "ndim", 1) == 2 and not labels.multilabel:
            column_or_1d(y, warn=True)
        weights = check_weights(sample_weight, len(labels.values))
        return Examples(rows, labels, None if weights is None else weights.astype(rows.dtype))

    # ---- training

    def check_params(self, model: Model, mode: Mode) -> None:
        """Refuse nothing: there is no head to agree with."""

    def _set_width(self, model: Model, inputs: Data, mode: Mode) -> None:
        """Do nothing: the number of features was set as the rows were read."""

    def build(
        self, model: Model, seed: int, inputs: Any = None, n_outputs: int | None = None
    ) -> None:
        """Set the module, a linear layer or an MLP."""
        hidden = as_numbers("hidden_layer_sizes", model.hidden_layer_sizes)
        if (hidden < 1).any() or (hidden % 1).any():
            given = shown(model.hidden_layer_sizes)
            raise ValueError(f"hidden_layer_sizes={given} must be integers of at least 1")
        sizes = [model.n_features_in_, *map(int, hidden), self.n_outputs(model)]
        with seeded(seed, resolve_device(model.device)):
            layers: list[nn.Module] = []
            for before, after in pairwise(sizes):
                layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(model.dropout)]
            model.module_ = Head(nn.Sequential(*layers[:-2]))
        model.module_.to(torch.float32 if inputs.dtype == np.float32 else torch.float64)

    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the loss with the counts of the classes, and set the size of a batch."""
        loss: Any = super().criterion(model, data, dataset, drawn)
        share = share_of_rarest(model.class_counts_ / model.n_samples_seen_, loss.background_)
        model.batch_size_ = rows_of_batch(model.batch_size, len(data), share)
        if any(part.excludes_background and part.is_set_level for part in losses_in(loss)):
            _tell_of_few_positives(model, len(data), share)
        return loss

    def encode(self, model: Model, sources: Data, cuts: Cuts | None = None) -> Any:
        """Return the rows."""
        return sources

    def dataset(self, model: Model, windows: Any, targets: Any, weights: np.ndarray | None) -> Any:
        """Return rows with their targets and weights."""
        if targets is None:
            return NumericDataset(windows)
        if model.multilabel_:
            return NumericDataset(windows, targets.astype(windows.dtype), weights)
        return NumericDataset(windows, places_of(targets, model.classes_), weights)

    # ---- predictions

    def row_outputs(self, model: Model, rows: Iterable[Any]) -> Any:
        """Return logits as they are."""
        return rows


@dataclass
class NumericDataset(Dataset):
    """Rows of numbers with targets and weights."""

    X: Any  # an array or a sparse matrix
    targets: np.ndarray | None = None
    weight: np.ndarray | None = None

    of_words = False

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def update(self, layout: None, rows: np.ndarray, size: int) -> Update:
        """All rows of an update at once, in the order of the data."""
        place = np.sort(rows)
        weight = None if self.weight is None else torch.from_numpy(self.weight[place])
        assert self.targets is not None
        # Indexing by row numbers has made a copy already.
        part = MicroBatch([{"X": as_tensor(self.X[place], copy=False)}], place)
        return Update([part], torch.from_numpy(self.targets[place]), weight, place)


class Head(nn.Module):
    """A linear layer or an MLP, called with ``X=``."""

    def __init__(self, body: nn.Sequential) -> None:
        super().__init__()
        self.body = body

    @torch.no_grad()
    def start_from(self, bias: torch.Tensor | None) -> None:
        """Let the logits begin near this bias."""
        if bias is not None:
            *_, last = self.body
            # Without any weights, the gradient of a bias at the log-prior is rounding alone, of
            # which Adam makes whole steps.
            last.get_parameter("weight").mul_(0.01)
            last.get_parameter("bias").copy_(finite_bias(bias))

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Logits of shape (n_rows, n_classes)."""
        return self.body(X)


def rows_of_batch(size: int | str, n_rows: int, share: float) -> int:
    """The rows of a batch: `size`, or what "auto" stands for in `DiceClassifier`.

    Parameters
    ----------
    size : int or "auto"
    n_rows : int
        Training rows.
    share : float
        Of the rarest class among them.

    Examples
    --------
    >>> from skdice.tasks.numbers import rows_of_batch
    >>> [rows_of_batch("auto", 4000, share) for share in (0.5, 0.03, 0.001)]
    [256, 1000, 4000]
    >>> rows_of_batch("auto", 200, 0.5), rows_of_batch(32, 4000, 0.03)
    (200, 32)
    """
    if size != "auto":
        return int(size)
    return min(max(math.ceil(POSITIVES / share), LEAST_ROWS), n_rows)


def share_of_rarest(shares: np.ndarray, background: int | None) -> float:
    """The share of the rarest class that has a row and is not the background."""
    return float(min((n for i, n in enumerate(shares) if n and i != background), default=1.0))


def _tell_of_few_positives(model: Model, n_rows: int, share: float) -> None:
    """Warn of a batch that holds few positives, unless it has all rows."""
    n_positives = model.batch_size_ * share
    if n_positives < FEW_POSITIVES and model.batch_size_ < n_rows:
        warn(
            f"batch_size={model.batch_size} holds {n_positives:.3g} rows of the rarest class on "
            "average, and an overlap loss counts over a batch: give "
            f"batch_size={rows_of_batch('auto', n_rows, share)}, or 'auto'",
            DataWarning,
        )


def checked_rows(model: Model, X: Data, kinds: list[Any], **how: Any) -> Any:
    """Rows as scikit-learn reads them, an array or a sparse matrix of one of these types."""
    check_unmasked("X", X)
    return validate_data(model, X, accept_sparse="csr", dtype=kinds, **how)


def as_tensor(rows: Any, copy: bool = True) -> torch.Tensor:
    """Rows of an array or a sparse matrix, dense."""
    if sparse.issparse(rows):
        return torch.from_numpy(rows.toarray())
    return torch.from_numpy(np.array(rows) if copy else np.asarray(rows))
