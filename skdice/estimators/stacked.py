"""Many `DiceClassifier`s with linear heads, fitted at once on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.utils import check_X_y

from skdice._typing import Labels
from skdice.engine.devices import resolve_device
from skdice.engine.stacked_heads import Fold, HeadSettings, train_stacked_heads
from skdice.estimators._checks import draw_seed
from skdice.estimators.classifier import DiceClassifier
from skdice.losses import resolve_loss
from skdice.metrics import positive_class

__all__ = ["FoldHeads", "fit_heads"]


@dataclass(frozen=True)
class FoldHeads:
    """The heads of one fold: weights of shape (n_heads, n_classes, n_features)."""

    classes: np.ndarray
    weight: torch.Tensor
    bias: torch.Tensor

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Each head's logits for some rows, of shape (n_heads, n_rows, n_classes)."""
        x = torch.from_numpy(X if X.dtype.kind == "f" else X.astype(float)).to(self.weight)
        z = torch.einsum("bh,kch->kbc", x, self.weight) + self.bias.unsqueeze(1)
        return z.cpu().numpy()


def fit_heads(
    models: Sequence[DiceClassifier],
    X: np.ndarray,
    y: Labels,
    train_rows: Sequence[np.ndarray],
    background: object = None,
) -> list[FoldHeads]:
    """Heads that end where the models' own fits on each fold would end, to rounding.

    Parameters
    ----------
    models : list of DiceClassifier
        Without hidden layers; they may differ in ``loss``, ``lr`` and ``weight_decay``.
    X : ndarray of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    train_rows : list of ndarray
        Indices of the training rows of each fold.
    background : label or None, default=None
        None is, of two classes, the one that is not positive.
    """
    for model in models:
        model._check_params()
    first, device = models[0], resolve_device(models[0].device)
    X, y = check_X_y(X, y, dtype=[np.float64, np.float32])
    folds, classes = [], []
    for rows in train_rows:
        labels, target = np.unique(y[rows], return_inverse=True)
        counts, index = np.bincount(target), None
        if background is not None:
            index = int(np.flatnonzero(labels == background)[0])
        elif len(labels) == 2:
            index = 1 - positive_class(labels, counts, first.pos_label)
        folds.append(Fold(np.asarray(rows), target, counts, index))
        classes.append(labels)
    if len({(len(fold.counts), fold.background) for fold in folds}) > 1:  # not to be stacked
        return [fit_heads(models, X, y, [rows], background)[0] for rows in train_rows]
    # Apple's GPUs do not know float64.
    table = torch.from_numpy(X).to(device, torch.float32 if device.startswith("mps") else None)
    settings = HeadSettings(
        losses=[resolve_loss(model.loss) for model in models],
        lr=[model.lr for model in models],
        weight_decay=[model.weight_decay for model in models],
        max_epochs=first.max_epochs,
        batch_size=first.batch_size,
        schedule=first.schedule,
        warmup=first.warmup,
        seed=draw_seed(first.random_state),
    )
    return list(map(FoldHeads, classes, *train_stacked_heads(table, folds, settings)))
