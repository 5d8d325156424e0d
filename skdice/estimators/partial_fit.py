"""What the classifier of texts and the tagger share: `partial_fit`, class counts, samplers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    sampler: Any
    net_: FineTuningNet
    _draft: Callable[[], Any]
    _epochs_for: Callable[[int], int]
    _run: Callable[[FitPlan], Any]

    # Numbers of examples since the last fit, of each class and in total; partial_fit adds to them.
    _seen: np.ndarray

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None
    ) -> Self:
        """Train one more epoch on these examples, at the constant rate `lr`.

        With ``lr="auto"`` that is a third of the rate of `fit`, whose rate falls.

        Class counts for the loss add up over all calls since the last `fit`, and its memory of
        earlier batches (`ema_decay`) is kept. `sampler` is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array or list of shape (n_classes,), default=None
            All labels or tags that will ever be seen; needed on the first call unless `y` holds
            them all. A tagger takes new ones later, too: its head grows by them.

        Returns
        -------
        self

        Notes
        -----
        If training raises, weights, counts and history are again those before the call. Only the
        optimiser's averages are not: the next call starts with new ones.
        """
        mode: Mode = "partial" if hasattr(self, "net_") else "fresh"
        draft = self._draft()
        self._run(draft._prepare(X, y, sample_weight, mode=mode, classes=classes, epochs=1))
        return self

    def _draw_epochs(self, y: Any, seed: int, mode: Mode) -> list[np.ndarray] | None:
        """The rows that `sampler` draws for each epoch; None without a sampler."""
        # The numbers in the history that the epochs will have.
        first = 1 + (len(self.net_.history) if mode == "warm" else 0)
        rows = draw_epochs(self.sampler, y, seed, [first])
        if rows is None:
            return None
        others = range(first + 1, first + self._epochs_for(len(rows[0])))
        return rows + (draw_epochs(self.sampler, y, seed, others) or [])

    def _prepared_loss(
        self, class_counts: np.ndarray, n_samples: float, mode: Mode, **problem: Any
    ) -> Loss:
        """The loss, prepared with class counts; those of all calls of `partial_fit` add up."""
        seen = np.append(class_counts, n_samples)
        if mode == "partial" and (before := getattr(self, "_seen", None)) is not None:
            seen = seen + np.insert(before, -1, np.zeros(len(seen) - len(before)))
        self._seen = seen
        loss = fresh_loss(self.loss).prepare(seen[:-1], n_samples=seen[-1], **problem)
        if mode == "partial":
            loss.copy_state_from(self.net_.criterion_)
        return loss


def draw_epochs(sampler: Any, y: Any, seed: int, epochs: Iterable[int]) -> list[np.ndarray] | None:
    """The rows that `sampler` draws for each epoch; None without a sampler.

    All are drawn before anything is loaded. So an impossible strategy is refused first, and the
    number of updates is known.
    """
    if sampler is None:
        return None
    check_sampler(sampler)
    seeds = (np.random.default_rng([seed, epoch]).integers(2**31 - 1) for epoch in epochs)
    return [draw_rows(sampler, y, int(drawn)) for drawn in seeds]
