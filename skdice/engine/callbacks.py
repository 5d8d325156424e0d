"""Callbacks of the nets, and which callbacks of skorch can work with them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import signature
from typing import Any

from skorch.callbacks import (
    BatchScoring,
    Callback,
    EpochScoring,
    LRScheduler,
    PassthroughScoring,
    PrintLog,
)

from skdice._checks import counted, shown
from skdice._progress import Progress, duration
from skdice.engine.recipe import SCHEDULES


class ProgressBar(Callback):
    """Shows what a fit does and how long it will take.

    It says how long after the first updates. Then, in a terminal or notebook, there is a bar;
    elsewhere, as in a log file, a line a minute.
    """

    ENOUGH = 3.0, 10  # seconds or updates from which the time of a fit is told

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Forget an earlier fit."""
        self.progress_: Progress | None = None

    def on_batch_begin(self, net: Any, **kwargs: Any) -> None:
        """Start with the first update, when the number of updates is known."""
        if self.progress_ is not None:
            return
        done = net.fit_.progress.total  # not 0 where a fit goes on from a checkpoint
        goes_on = f", going on after update {done:,}" if done and net.n_steps_ else ""
        size = net.fit_.rows_of_one()
        print(f"lr {net.lr:g}, {_length(net)}batches of {size}{goes_on}", flush=True)
        self.progress_ = Progress(net.verbose, "update")
        self.progress_.begin(done, net.n_steps_ or None)
        # By the updates after the first one, which is slow.
        self.steady_: Progress | None = None
        self.told_time_ = not net.n_steps_

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Count one more update."""
        progress = self.progress_
        if progress is None:
            return
        progress.advance(net.fit_.progress.total, f"epoch {len(net.history)}")
        if not self.told_time_:
            self._tell_time(net, progress)
        if net.n_steps_ and progress.is_due:
            left = duration(progress.seconds_left or 0)
            progress.say(f"update {progress.done:,} of {net.n_steps_:,}, {left} left")

    def _tell_time(self, net: Any, progress: Progress) -> None:
        """Say once how long the fit takes, and a shorter one."""
        done, before = progress.done, progress.before
        if self.steady_ is None:
            self.steady_ = Progress(0, "update")
            self.steady_.begin(done, net.n_steps_)
        steady = progress if done == self.steady_.before == net.n_steps_ else self.steady_
        steady.advance(done)
        seconds, updates = self.ENOUGH
        known = done - self.steady_.before >= min(updates, (net.n_steps_ - before) // 10)
        if done == steady.before or not (known or steady.seconds >= seconds):
            return
        self.told_time_ = True
        of_one, shorter = steady.seconds / (done - steady.before), net.max_epochs // 3
        whole = of_one * net.n_steps_
        text = f"the fit takes about {duration(whole)}"
        if before:
            text = f"about {duration(of_one * (net.n_steps_ - done))} left"
        elif shorter:
            part = whole * shorter / net.max_epochs
            text += f"; max_epochs={shorter}, about {duration(part)}"
        if net.fit_.validation_score is not None:
            text += " (without validation)"
        progress.say(text)

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Make room for the line of the epoch."""
        if self.progress_ is not None:
            self.progress_.clear()

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Remove the bar, also after an error."""
        if self.progress_ is not None:
            self.progress_.close()
        self.progress_ = self.steady_ = None


class EpochLog(PrintLog):  # which skorch calls after the callbacks that record
    """A table of epochs, the scores first; in a terminal the best score is green."""

    FIRST, LAST = ("epoch", "valid_score", "train_loss"), ("lr", "skipped_updates", "dur")
    HIDDEN = ("batches", "eager", "max_epochs", "peak_lr")

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """The next line has names over it."""
        self.has_header_ = False

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Print a line."""
        row = net.history[-1]
        known = {*self.FIRST, *self.LAST, *self.HIDDEN}
        others = [key for key in sorted(row) if key not in known and not key.endswith("_best")]
        keys = [key for key in (*self.FIRST, *others, *self.LAST) if key in row]
        names = {key: f"{key.partition('_updates')[0]:>7}" for key in keys}
        if not self.has_header_:
            print("  ".join(names.values()), flush=True)
            self.has_header_ = True
        cells = []
        for key, name in names.items():
            value = row[key]
            form = ".1e" if key == "lr" else ".1f" if key == "dur" else ".4f"
            text = format(value, form) if isinstance(value, float) else str(value)
            cell = f"{text:>{len(name)}}"
            is_best = row.get(f"{key}_best") and sys.stdout.isatty()
            cells.append(f"\x1b[32m{cell}\x1b[0m" if is_best else cell)
        print("  ".join(cells), flush=True)


class AfterEpoch(Callback):
    """Call a function with the net after each epoch; clones call the same function."""

    def __init__(self, call: Callable[[Any], None]) -> None:
        self.call = call

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Call it."""
        self.call(net)


def _length(net: Any) -> str:
    """The number of epochs and updates of a fit; nothing where nobody knows it."""
    if not net.n_steps_:
        return ""
    return f"{counted(net.max_epochs, 'epoch')}, {counted(net.n_steps_, 'update')}, "


def check_callbacks(
    callbacks: list[Any] | None, net_params: dict[str, Any] | None, validated: bool = True
) -> None:
    """Refuse skorch callbacks that would have no effect here, or fail during training.

    Parameters
    ----------
    callbacks : list or None
    net_params : dict or None
        Whose ``callbacks`` are checked, too.
    validated : bool, default=True
        Whether the fit has a validation set.
    """
    chosen = [*(callbacks or []), *((net_params or {}).get("callbacks") or [])]
    chosen = [c[1] if isinstance(c, tuple) and len(c) == 2 else c for c in chosen]
    for callback in chosen:
        kind = callback if isinstance(callback, type) else type(callback)
        if not hasattr(kind, "set_params"):
            raise TypeError(f"callbacks holds {shown(callback)}, which is no callback of skorch")
        if issubclass(kind, LRScheduler):
            raise ValueError(
                f"callbacks holds {kind.__name__}, whose rate the net's own schedule would "
                f"overwrite: choose schedule= of {SCHEDULES}, and warmup="
            )
        if issubclass(kind, (BatchScoring, EpochScoring, PassthroughScoring)) and not (
            # This form is called with the net and the encoded training data, and works.
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
        others = [other for other in chosen if other is not callback]
        if not any(map(_records, others)) and (name := _monitored(callback)) is not None:
            names = ["train_loss", "lr", "dur", "skipped_updates"]
            names += ["valid_score", "valid_score_best"] if validated else []
            if name not in names:
                raise ValueError(
                    f"callbacks holds {kind.__name__} with monitor={name!r}, and this fit records "
                    f"{names}: give monitor='valid_score' (higher is better; for Checkpoint "
                    "'valid_score_best') and a validation set, by X_val and y_val where fit takes "
                    "them, or by early_stopping=True"
                )


def _monitored(callback: Any) -> str | None:
    """The entry of the history that a callback waits for, if there is one."""
    if isinstance(callback, type):
        parameter = signature(callback).parameters.get("monitor")
        monitor = None if parameter is None else parameter.default
    else:
        monitor = getattr(callback, "monitor", None)
    return monitor if isinstance(monitor, str) else None


def _records(callback: Any) -> bool:
    """Return True if a callback may make entries of its own in the history."""
    kind = callback if isinstance(callback, type) else type(callback)
    return issubclass(kind, EpochScoring) or not kind.__module__.startswith("skorch.")
