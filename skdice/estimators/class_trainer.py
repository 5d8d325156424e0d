"""What the classifier of texts and the tagger share: samplers, class counts, `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from skdice._compat import HasMethods
from skdice._typing import Weights
from skdice.engine.plan import Mode
from skdice.estimators.checks import fresh_loss
from skdice.estimators.transformer import TransformerEstimator
from skdice.losses import Loss
from skdice.resampling.batches import check_sampler, draw_rows

__all__ = ["ClassTrainer"]


@dataclass(kw_only=True, eq=False, repr=False)
class ClassTrainer(TransformerEstimator):
    """Base of the classifier of texts and of the tagger."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TransformerEstimator._parameter_constraints,
        "sampler": [HasMethods("fit_resample"), None],
    }

    sampler: Any = None

    classes_: np.ndarray = field(init=False)

    # Numbers of examples since the last fit, of each class and in total; partial_fit adds to them.
    _seen: np.ndarray | None = field(init=False)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, *, sample_weight: Weights = None
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
        return self._run(draft._prepare(X, y, sample_weight, mode=mode, classes=classes, epochs=1))

    # ---- the steps

    def _check_params(self, mode: Mode = "fresh") -> None:
        super()._check_params(mode)
        if self.sampler is not None:
            check_sampler(self.sampler)

    def _draw_epochs(self, y: Any, seed: int) -> Callable[[int], np.ndarray] | None:
        """A function from an epoch's number to the rows that `sampler` draws for it."""
        if self.sampler is None:
            return None

        @lru_cache(maxsize=1)  # the first epoch's rows are also counted and checked
        def rows(epoch: int) -> np.ndarray:
            mixed = np.random.default_rng([seed, epoch]).integers(2**31 - 1)
            return draw_rows(self.sampler, y, int(mixed))

        rows(0)  # an impossible strategy is refused before anything is loaded
        return rows

    def _prepared_loss(
        self,
        class_counts: np.ndarray,
        n_samples: float,
        mode: Mode,
        *,
        background: int | None,
        multilabel: bool = False,
    ) -> Loss:
        """The loss, prepared with class counts; those of all calls of `partial_fit` add up."""
        seen = np.append(class_counts, n_samples)
        if mode == "partial" and (before := getattr(self, "_seen", None)) is not None:
            seen = seen + before
        self._seen = seen
        criterion = fresh_loss(self.loss).prepare(
            seen[:-1], background=background, multilabel=multilabel, n_samples=seen[-1]
        )
        if mode == "partial":
            criterion.take_memory(self.net_.criterion_)
        return criterion
