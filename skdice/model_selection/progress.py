"""What a search and a comparison tell of their `Progress`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from skorch.callbacks import Callback

from skdice._progress import Progress
from skdice.model_selection.records import TrialRecord


class SearchProgress(Progress):
    """Trials done, the best score so far and the time left.

    With `verbose` above 1 each trial has a line, with its parameters and score.
    """

    EVERY = 5.0  # seconds between two lines at least

    def __init__(self, verbose: int) -> None:
        super().__init__(verbose, "trial", self.EVERY)

    def begin_kind(self, kind: str, done: int, total: int, best: float = float("nan")) -> None:
        """Begin some work, such as "trial" or "full fit", of which some may be done."""
        self.unit, self.best = kind, best
        self.begin(done, total)
        self.told = -float("inf")

    def end_some(self, done: int, results: list[float], most: float) -> None:
        """Tell of work that was done, with its scores; at most so many seconds are left."""
        self.best = float(np.fmax.reduce([self.best, *results]))
        best = f"best {self.best:.3f}" if np.isfinite(self.best) else "none with a score"
        self.advance(done, f"{self.unit}s", best)
        has_ended = self.bar is None and done >= (self.total or 0)
        if self.is_due or has_ended:
            left = "" if has_ended else self.left(most)
            self.say(f"{self.unit} {done} of {self.total}", best, left)

    def tell(self, number: int, record: TrialRecord, key: str) -> None:
        """Print the score and the parameters of a trial, with `verbose` above 1."""
        if self.verbose > 1:
            done = record.state == "COMPLETE"
            result = f"{record.score(key):.3f}" if done else record.state.lower()
            given = (f"{name}={value!r}" for name, value in record.params.items())
            self.say(f"trial {number}: {result}", *given)


class ComparisonProgress(Progress):
    """The row, epoch and update that run, and the time left, by the updates of all rows."""

    def __init__(self, verbose: int) -> None:
        super().__init__(verbose, "update")
        self.label, self.of_one = "", 0
        self.fits_left = 0  # with the one that runs

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the clones of an estimator tell one progress

    def begin_run(self, label: str, seed: int, fits_left: int) -> None:
        """Begin a run; with it so many fits are left."""
        self.label, self.fits_left = f"{label}, seed {seed}", fits_left
        self.advance(self.done, self.label)

    def count(self, net: Any) -> None:
        """Count one more update of a net."""
        self.of_one, at = net.n_updates_, net.done_
        done = self.done + 1
        total = done + self.of_one * self.fits_left - at
        if done == 1:  # the first update is slow: the clock starts after it
            self.begin(done, total)
        where = f"epoch {len(net.history)} of {net.max_epochs}", f"update {at:,} of {self.of_one:,}"
        self.advance(done, self.label, *where, total=total)

    def end_run(self, f1: float, fits_left: int) -> None:
        """Tell of a run that is done."""
        self.total = self.done + self.of_one * fits_left
        self.say(f"{self.label}: F1 {100 * f1:.1f}", self.left())


class OfUpdates(Callback):
    """Tells a `ComparisonProgress` of each update of a net and of its end; clones tell the same."""

    def __init__(self, progress: ComparisonProgress) -> None:
        self.progress = progress

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Tell of an update."""
        self.progress.count(net)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Count a fit, of which a run may have several."""
        self.progress.fits_left -= 1
