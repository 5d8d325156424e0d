"""The vectors that linear heads are trained on and predict for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice.engine.recipe import epochs_for
from skdice.engine.vectors import blocks
from skdice.estimators.classifier import DiceClassifier
from skdice.inputs.labels import as_labels
from skdice.inputs.sentences import as_sentences, as_tags
from skdice.model_selection.heads.predictions import ClassHead, TagHead
from skdice.model_selection.heads.training import FoldHeads, fit_heads
from skdice.tags.schemes import infer_scheme

# No head on the frozen encoder diverges at this rate on vectors of this norm. The heads train for
# as many epochs as the estimator does, since losses rank differently after few epochs than after
# many (docs/experiments.md).
LR, NORM = 1e-2, 4.0
BATCH_SIZE = {False: 32, True: 128}
OF_ESTIMATOR = ("pos_label", "device", "random_state")


class HeadData:
    """The data that linear heads are trained on and predict for.

    For a `DiceClassifier` that is its rows. For `DiceSequenceClassifier` and `DiceTokenClassifier`
    it is scaled vectors of texts or words from the frozen encoder, which is run once.
    """

    def __init__(self, estimator: Any, X: Any, y: Any) -> None:
        self.estimator, self.factor = estimator, 1.0
        self.tagging = estimator.task.per_position
        self.is_text = not isinstance(estimator, DiceClassifier)
        if self.tagging:
            X = as_sentences(X)
            tags = as_tags(y, X)
            self.scheme = infer_scheme(tags) if estimator.scheme == "auto" else estimator.scheme
            self.ends = np.cumsum([0, *map(len, X)])
            every = list(chain.from_iterable(tags))
            self.known = np.array([tag is not None for tag in every])
            self.y = np.array([tag or "" for tag in every])
        else:
            self.y, self.known = as_labels(y), np.ones(len(y), dtype=bool)
        if self.is_text:
            X = estimator.frozen_vectors(X)
            norms = [np.linalg.norm(X[part], axis=1) for part in blocks(len(X))]
            self.factor = NORM / max(np.concatenate(norms).mean(), np.finfo(np.float32).tiny)
            # Columns are not centred or scaled one by one: with fewer rows than columns, a head
            # would then fit its rows before its intercept moves, and call half of others positive.
            for part in blocks(len(X)):
                X[part] *= X.dtype.type(self.factor)
        self.X = X

    def fit(self, models: Sequence[Any], train_rows: Sequence[Any]) -> list[FoldHeads]:
        """Heads of every model on the training rows of every fold."""
        background = "O" if self.tagging and "O" in self.y else None
        if self.is_text:
            given = self.estimator.get_params(deep=False)
            how: dict[str, Any] = {"lr": LR, "batch_size": BATCH_SIZE[self.tagging]}
            how |= {name: given[name] for name in OF_ESTIMATOR if name in given}
            how["max_epochs"] = epochs_for(self.estimator, max(map(len, train_rows)))
            models = [DiceClassifier(loss=clone(m.loss, safe=False), **how) for m in models]
        rows = [places[self.known[places]] for places in map(self._places, train_rows)]
        return fit_heads(models, self.X, self.y, rows, background)

    def predict(self, heads: FoldHeads, rows: Any, X: Any = None) -> list[Any]:
        """The models of a fold's heads, which know their logits for some rows; these are `X`."""
        known = heads.logits(self.X[self._places(rows)])

        def model(head: int) -> Any:
            def logits_of(asked: Any) -> np.ndarray:
                return known[head] if asked is X else heads.logits(self._vectors(asked))[head]

            if not self.tagging:
                return ClassHead(heads.classes, logits_of, heads.positive)
            return TagHead(heads.classes, logits_of, self.scheme, self.estimator.constrained)

        return [model(head) for head in range(len(known))]

    def _vectors(self, X: Any) -> Any:
        """The vectors of rows that a scorer asks for, beside those that it was given."""
        return self.estimator.frozen_vectors(X) * self.factor if self.is_text else np.asarray(X)

    def _places(self, rows: Any) -> Any:
        """Indices of the vectors of some rows, texts or sentences."""
        if not self.tagging:
            return rows
        return np.concatenate([np.arange(self.ends[i], self.ends[i + 1]) for i in rows])
