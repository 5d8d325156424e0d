"""Many linear heads fitted at once, on rows of numbers or on vectors of a frozen encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.utils import check_X_y

from skdice.engine.arrays import blocks
from skdice.engine.devices import resolve_device
from skdice.engine.recipe import epochs_for
from skdice.estimators.before_folds import check_estimator
from skdice.estimators.classifier import DiceClassifier
from skdice.metrics import positive_class
from skdice.metrics.labels import as_labels
from skdice.metrics.schemes import infer_scheme
from skdice.model_selection.heads.predictions import ClassPredictions, TagPredictions
from skdice.model_selection.heads.training import Fold, train_heads
from skdice.text.inputs import as_sentences, as_tags, as_texts

# No head on the frozen encoder diverges at this rate on vectors of this norm. The heads train for
# as many epochs as the estimator does, since losses rank differently after few epochs than after
# many (docs/experiments.md).
LR, NORM = 1e-2, 4.0
BATCH_SIZE = {False: 32, True: 128}
OF_ESTIMATOR = ("pos_label", "device", "random_state")


@dataclass(frozen=True)
class FoldHeads:
    """The heads of one fold: weights of shape (n_heads, n_classes, n_features)."""

    classes: np.ndarray
    weight: torch.Tensor
    bias: torch.Tensor
    positive: int | None  # index of the positive class of two

    def logits(self, X: np.ndarray | torch.Tensor) -> np.ndarray:
        """Each head's logits for some rows, of shape (n_heads, n_rows, n_classes)."""
        if isinstance(X, np.ndarray):
            X = torch.from_numpy(X if X.dtype.kind == "f" else X.astype(float))
        x = X.to(self.weight)
        z = torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)
        return z.cpu().numpy()


def fit_heads(
    models: Sequence[DiceClassifier],
    X: np.ndarray | torch.Tensor,
    y: Any,
    train_rows: Sequence[np.ndarray],
    background: Any = None,
) -> list[FoldHeads]:
    """The same heads, to rounding, as the models' own fits on the training rows of each fold.

    The models have no hidden layers, and differ only in ``loss``, ``lr`` and ``weight_decay``. X as
    a tensor is what `table_of` gave. Where `background` is None it is, of two classes, the one that
    is not positive.
    """
    for model in models:
        check_estimator(model)
    first = models[0]
    table = X if isinstance(X, torch.Tensor) else table_of(X, y, first.device)
    folds, classes = [], []
    for rows in train_rows:
        labels, target = np.unique(y[rows], return_inverse=True)
        counts, index = np.bincount(target), None
        if background is not None:
            index = int(np.flatnonzero(labels == background)[0])
        elif len(labels) == 2:
            index = 1 - positive_class(labels, counts, first.pos_label)
        folds.append(Fold(np.asarray(rows), target, counts, index, labels))
        classes.append(labels)
    if len({(len(fold.counts), fold.background) for fold in folds}) > 1:  # cannot be stacked
        return [fit_heads(models, table, y, [rows], background)[0] for rows in train_rows]
    positive = [1 - (f.background or 0) if len(f.counts) == 2 else None for f in folds]
    return list(map(FoldHeads, classes, *train_heads(table, folds, models), positive))


def table_of(X: np.ndarray, y: Any, device: str) -> torch.Tensor:
    """Rows on the device, once they and their labels are checked; a CPU shares their memory."""
    X, _ = check_X_y(X, y, dtype=[np.float64, np.float32])
    found = resolve_device(device)
    # Apple's GPUs have no float64.
    return torch.from_numpy(X).to(found, torch.float32 if found.startswith("mps") else None)


class HeadData:
    """The data that linear heads are trained on and predict for.

    For a `DiceClassifier` that is its rows. For `DiceSequenceClassifier` and `DiceTokenClassifier`
    it is scaled vectors of texts or words from the frozen encoder, which is run once.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator = estimator
        self.tagging = estimator.task.per_position
        self.is_text = not isinstance(estimator, DiceClassifier)
        if self.tagging:
            X = as_sentences(X)
            tags = as_tags(y, X)
            self.scheme = infer_scheme(tags) if estimator.scheme == "auto" else estimator.scheme
            self.lengths = np.array([len(sentence) for sentence in X])
            y = [tag for row in tags for tag in row]
        elif self.is_text:
            X = as_texts(X)
        self.y = np.array([tag or "" for tag in y]) if self.tagging else as_labels(y)
        self.known = np.array([tag is not None for tag in y]) if self.tagging else None
        self.X = _scaled(estimator.frozen_vectors(X)) if self.is_text else X

    def fit(
        self, models: Sequence[Any], train_rows: Sequence[Any], **settings: Any
    ) -> list[FoldHeads]:
        """Heads of every model on the training rows of every fold.

        `settings` are for heads on the frozen encoder, such as ``lr``.
        """
        background = "O" if self.tagging and "O" in self.y else None
        if self.is_text:
            given = self.estimator.get_params(deep=False)
            how = {"lr": LR, "batch_size": BATCH_SIZE[self.tagging], **settings}
            how |= {name: given[name] for name in OF_ESTIMATOR if name in given}
            how["max_epochs"] = epochs_for(self.estimator, max(map(len, train_rows)))
            models = [DiceClassifier(loss=clone(m.loss, safe=False), **how) for m in models]
        rows = [self._places(rows) for rows in train_rows]
        if self.known is not None:
            rows = [places[self.known[places]] for places in rows]
        return fit_heads(models, self.table, self.y, rows, background)

    @cached_property
    def table(self) -> torch.Tensor:
        """The rows or vectors on the device, where they stay."""
        return table_of(self.X, self.y, self.estimator.device)

    def predict(self, heads: FoldHeads, rows: Any) -> list[Any]:
        """Predictions of a fold's heads for some rows, texts or sentences."""
        logits = heads.logits(self.table[self._places(rows)])
        if not self.tagging:
            return [ClassPredictions(heads.classes, z, heads.positive) for z in logits]
        how = self.lengths[rows].tolist(), self.scheme, self.estimator.constrained
        return [TagPredictions(heads.classes, z, *how) for z in logits]

    def _places(self, rows: Any) -> Any:
        """Indices of the vectors of some rows, texts or sentences."""
        if not self.tagging:
            return rows
        ends = np.cumsum(self.lengths)
        return np.concatenate([np.arange(ends[i] - self.lengths[i], ends[i]) for i in rows])


def _scaled(table: np.ndarray) -> np.ndarray:
    """Scale the table in place so that its rows have norm `NORM` on average.

    It is not centred, and columns are not scaled one by one: with fewer rows than columns, a head
    would then fit its rows before its intercept has moved, and call half of all others positive.
    """
    norms = [np.linalg.norm(table[part], axis=1) for part in blocks(len(table))]
    factor = table.dtype.type(NORM / max(np.concatenate(norms).mean(), np.finfo(np.float32).tiny))
    for part in blocks(len(table)):
        table[part] *= factor
    return table
