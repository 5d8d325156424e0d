"""What the classifier of texts and the tagger share: `partial_fit`, class counts, samplers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

import numpy as np

from skdice.engine.net import FineTuningNet
from skdice.engine.plan import FitPlan, Mode
from skdice.estimators.checks import fresh_loss
from skdice.losses import Loss
from skdice.resampling.batches import check_sampler, draw_rows


class PartialFit:
    """Further training of an estimator that counts the examples of each class."""

    loss: str | Loss
    net_: FineTuningNet
    _draft: Callable[[], Any]
    _run: Callable[[FitPlan], Any]

    # Numbers of examples since the last fit, of each class and in total; partial_fit adds to them.
    _seen: np.ndarray

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Train one more epoch on these examples, at the constant rate `lr`.

        Class counts for the loss add up over all calls since the last `fit`, and its memory of
        earlier batches (`ema_decay`) is kept. `sampler` is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array or list of shape (n_classes,), default=None
            All labels or tags that will ever be seen; needed on the first call unless `y` holds
            them all.

        Returns
        -------
        self
        """
        mode: Mode = "partial" if hasattr(self, "net_") else "fresh"
        draft = self._draft()
        self._run(draft._prepare(X, y, sample_weight, mode=mode, classes=classes, epochs=1))
        return self

    def _prepared_loss(
        self, class_counts: np.ndarray, n_samples: float, mode: Mode, **problem: Any
    ) -> Loss:
        """The loss, prepared with class counts; those of all calls of `partial_fit` add up."""
        seen = np.append(class_counts, n_samples)
        if mode == "partial" and (before := getattr(self, "_seen", None)) is not None:
            seen = seen + before
        self._seen = seen
        loss = fresh_loss(self.loss).prepare(seen[:-1], n_samples=seen[-1], **problem)
        if mode == "partial":
            loss.take_memory(self.net_.criterion_)
        return loss


def draw_epochs(sampler: Any, y: Any, seed: int) -> Callable[[int], np.ndarray] | None:
    """A function from an epoch's number to the rows that `sampler` draws for it; None without."""
    if sampler is None:
        return None
    check_sampler(sampler)

    @lru_cache(maxsize=1)  # the first epoch's rows are also counted and checked
    def rows(epoch: int) -> np.ndarray:
        mixed = np.random.default_rng([seed, epoch]).integers(2**31 - 1)
        return draw_rows(sampler, y, int(mixed))

    rows(0)  # an impossible strategy is refused before anything is loaded
    return rows
