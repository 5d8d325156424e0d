"""Callbacks of the nets: the rate, the score on held-out rows, what a fit predicts."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from skorch.callbacks.scoring import ScoringBase

from skdice._checks import shown
from skdice._compat import expect_skipped_steps
from skdice._types import Model
from skdice.engine import ranks
from skdice.engine.devices import to_device
from skdice.engine.encoded import Update
from skdice.engine.recipe import schedule_factor


class Schedule(LRScheduler):
    """skorch's scheduler with the factor of the net's `schedule` and `warmup` at each update."""

    def __init__(self) -> None:
        # With a history, skorch would count its epochs as steps made.
        super().__init__(
            torch.optim.lr_scheduler.LambdaLR, event_name=None, step_every="batch", last_epoch=-1
        )

    def on_train_begin(self, net: NeuralNet, **kwargs: object) -> None:
        """Begin a schedule of as many updates as the fit has; the rate stays if nobody knows."""
        whole = net.n_updates_ > 0
        self.lr_lambda = schedule_factor(
            net.schedule if whole else "constant", net.n_updates_, net.warmup
        )
        super().on_train_begin(net, **kwargs)
        expect_skipped_steps(net.optimizer_)

    def on_train_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Forget it: each fit makes its own, and a pickle has no use for it."""
        self.lr_scheduler_ = None


def begin_anew(callback: Callback) -> None:
    """Let a scheduler of the user's begin at its first step, whatever the history holds."""
    if not isinstance(callback, LRScheduler) or hasattr(callback, "last_epoch"):
        return
    if callback._get_policy_cls() is not torch.optim.lr_scheduler.ReduceLROnPlateau:
        callback.last_epoch = -1


class ValidationScore(Callback):
    """Record the score on held-out rows as ``valid_score``, and if it is the best so far.

    Parameters
    ----------
    score : callable
        Called without arguments after each epoch.
    """

    def __init__(self, score: Callable[[], float] | None) -> None:
        self.score = score

    def on_epoch_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Score."""
        assert self.score is not None
        found = float(ranks.share(self.score()))
        before = [epoch["valid_score"] for epoch in net.history[net.first_epoch_ : -1]]
        net.history.record("valid_score", found)
        net.history.record("valid_score_best", found > max(before, default=-float("inf")))

    def on_train_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Forget the rows, so that pickles stay small."""
        self.score = None


class Predicted(Callback):
    """Note which classes the outputs of an epoch name, as they pass.

    Parameters
    ----------
    named : callable
        From logits and an `Update` to a tensor of bool, of shape (n, n_classes): which classes each
        output names.
    """

    seen_: Any = None  # of shape (n_classes,)

    def __init__(self, named: Callable[[torch.Tensor, Update], torch.Tensor]) -> None:
        self.named = named

    def on_epoch_begin(self, net: NeuralNet, **kwargs: object) -> None:
        """Forget the epoch before."""
        self.seen_ = None

    def on_batch_end(
        self, net: NeuralNet, batch: Update, y_pred: torch.Tensor, **kwargs: object
    ) -> None:
        """Add the classes of an update; outputs without weight are padding."""
        named = self.named(y_pred, batch)
        if batch.weight is not None and len(batch.weight) == len(named):
            named = named & (to_device(batch.weight, net.device) > 0).unsqueeze(-1)
        named = named.any(0)
        self.seen_ = named if self.seen_ is None else self.seen_ | named

    def on_train_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Leave the device."""
        if self.seen_ is not None:
            self.seen_ = self.seen_.cpu().numpy()


def highest(logits: torch.Tensor, batch: Update) -> torch.Tensor:
    """Name the class with the highest logit."""
    return logits >= logits.amax(-1, keepdim=True)


def above_zero(logits: torch.Tensor, batch: Update) -> torch.Tensor:
    """Name each label whose probability is above one half."""
    return logits > 0


class AfterEpoch(Callback):
    """Call a function with the estimator after each epoch; clones call the same function."""

    model: Model | None = None  # the estimator, which exists only once it is being fitted

    def __init__(self, call: Callable[[Any], None]) -> None:
        self.call = call

    def on_epoch_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Call it."""
        self.call(self.model)

    def on_train_end(self, net: NeuralNet, **kwargs: object) -> None:
        """Forget the estimator, which holds the net."""
        self.model = None


def check_callbacks(callbacks: list[Any] | None, validated: bool) -> None:
    """Refuse callbacks that would do nothing, or fail after the first epoch.

    Parameters
    ----------
    callbacks : list or None
    validated : bool
        Whether the fit has a validation set.
    """
    given = [item[1] if isinstance(item, tuple) else item for item in callbacks or []]
    kinds = [item if isinstance(item, type) else type(item) for item in given]
    # A callback that is not skorch's own may record what another monitors.
    own = all(kind.__module__.startswith("skorch.") for kind in kinds)
    for callback, kind in zip(given, kinds, strict=True):
        name = f"callbacks holds {kind.__name__}"
        if not issubclass(kind, Callback):
            raise TypeError(f"callbacks holds {shown(callback)}, which is no callback of skorch")
        if isinstance(callback, type) and "monitor" in signature(kind).parameters:
            monitor = signature(kind).parameters["monitor"].default
        else:
            monitor = getattr(callback, "monitor", None)
        if monitor in ("valid_loss", "valid_loss_best") and own:
            raise ValueError(
                f"{name} with monitor={monitor!r}, which a fit does not record: give "
                "'valid_score', which is better if higher (Checkpoint: 'valid_score_best'), or "
                "'train_loss'"
            )
        scores = issubclass(kind, ScoringBase) and not getattr(callback, "on_train", False)
        if scores and not callable(scoring := getattr(callback, "scoring", None)):
            raise ValueError(
                f"{name} with scoring={shown(scoring)}: a net gives logits, so give a function "
                "(net, X, y) of the encoded rows X; the F1 of held-out rows is valid_score"
            )
        if not validated and (scores or monitor in ("valid_score", "valid_score_best")):
            raise ValueError(
                f"{name}, and this fit has no validation set: give on_train=True, or "
                "early_stopping=True, or X_val and y_val where fit takes them"
            )
