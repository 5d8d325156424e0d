"""Numbers: rows of numbers in, one label or several labels out.

It is no task of the command line or of files, which hold texts.
"""

from __future__ import annotations

import copy
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
from skdice.engine.fit_plan import Examples, Mode
from skdice.engine.layouts.layout import MicroBatch
from skdice.engine.module import finite_bias
from skdice.engine.updates import Update
from skdice.exceptions import DataWarning
from skdice.inputs.labels import places_of, read_labels
from skdice.inputs.rows import check_weights
from skdice.losses.of_estimator import losses_in
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
        """Set the module: the user's own, a linear layer or an MLP."""
        n_features, n_classes = model.n_features_in_, self.n_outputs(model)
        with seeded(seed, resolve_device(model.device)):
            if isinstance(model.module, nn.Module):
                body = copy.deepcopy(model.module)
            elif model.module is not None:
                body = model.module(n_features, n_classes)
            else:
                sizes = as_numbers("hidden_layer_sizes", model.hidden_layer_sizes)
                if (sizes < 1).any() or (sizes % 1).any():
                    given = shown(model.hidden_layer_sizes)
                    raise ValueError(f"hidden_layer_sizes={given} must be integers of at least 1")
                body = _mlp([n_features, *map(int, sizes), n_classes], model.dropout)
        kind = torch.float32 if inputs.dtype == np.float32 else torch.float64
        model.module_ = Head(body, of_user=model.module is not None).to(kind)
        if model.module is not None:
            _check_outputs(model, inputs, seed, kind)

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
    """The user's module, or a linear layer or MLP, called with ``X=``."""

    def __init__(self, body: nn.Module, *, of_user: bool) -> None:
        super().__init__()
        self.body = body
        self.of_user = of_user

    @torch.no_grad()
    def start_from(self, bias: torch.Tensor | None) -> None:
        """Let the logits begin near this bias; a module of the user's is left as it is."""
        if bias is not None and not self.of_user:
            *_, last = self.body.modules()
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


def _mlp(sizes: list[int], dropout: float) -> nn.Module:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers[:-2])


def _check_outputs(model: Model, X: Data, seed: int, kind: torch.dtype) -> None:
    """Refuse a module that does not give one logit for each class."""
    rows = as_tensor(X[:2])  # two, as some modules turn a single row into a vector
    wanted = (rows.shape[0], len(model.classes_))
    try:
        with seeded(seed, "cpu"), torch.no_grad():
            shape = tuple(copy.deepcopy(model.module_).cpu().eval()(rows.to(kind)).shape)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"module fails on rows of {rows.shape[1]} features: {error}") from error
    if shape != wanted:
        raise ValueError(
            f"module makes outputs of shape {shape} from {wanted[0]} rows, and y holds "
            f"{wanted[1]} classes: it must make {wanted}, one logit for each class"
        )
