"""Which skorch callbacks can work with the nets here."""

from __future__ import annotations

from typing import Any

from skorch.callbacks import BatchScoring, EpochScoring, LRScheduler, PassthroughScoring

from skdice.engine.schedules import SCHEDULES

__all__ = ["check_callbacks"]


def check_callbacks(callbacks: list[Any] | None, net_params: dict[str, Any] | None) -> None:
    """Refuse skorch callbacks that would do nothing here, or fail amid training.

    Raises
    ------
    ValueError
        If one schedules the learning rate, or scores what skorch takes for the data.
    """
    for given in [*(callbacks or []), *((net_params or {}).get("callbacks") or [])]:
        callback = given[1] if isinstance(given, tuple) else given
        kind = callback if isinstance(callback, type) else type(callback)
        if issubclass(kind, LRScheduler):
            raise ValueError(
                f"callbacks holds {kind.__name__}, whose rate the net's own schedule would "
                f"overwrite: choose schedule= of {SCHEDULES}, and warmup="
            )
        if issubclass(kind, (BatchScoring, EpochScoring, PassthroughScoring)) and not (
            # Called with the net and the encoded training data, which it may predict.
            issubclass(kind, EpochScoring)
            and getattr(callback, "on_train", False)
            and not callback.use_caching
            and callable(callback.scoring)
        ):
            raise ValueError(
                f"callbacks holds {kind.__name__}, which cannot read the net's batches: give fit "
                "X_val and y_val where it takes them, or early_stopping=True, and each epoch's "
                "score is its valid_score in history_"
            )
