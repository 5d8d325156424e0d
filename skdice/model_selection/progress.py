"""Lines of a search or a comparison while it runs, if its `verbose` is above 0.

In a terminal or notebook that is a bar; elsewhere, as in a log file, lines.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Self

import numpy as np
from skorch.callbacks import Callback

from skdice._progress import Pace, has_bar
from skdice.model_selection.records import TrialRecord

FORM = "{desc} {percentage:3.0f}%|{bar}|"


class Told:
    """A bar with a text behind it, or lines."""

    def __init__(self, verbose: int) -> None:
        self.verbose, self.drawn = verbose, 0.0
        self.bar: Any = None
        if verbose and has_bar():
            from tqdm.auto import tqdm

            self.bar = tqdm(total=1.0, bar_format=FORM, leave=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.bar is not None:
            self.bar.close()

    def show(self, what: str, share: float, *notes: str) -> None:
        """Set the bar, if there is one, to a share of the work."""
        now = time.monotonic()
        if self.bar is None or now - self.drawn < 0.1:
            return
        self.bar.n, self.drawn = share, now
        self.bar.bar_format = f"{FORM} {', '.join(filter(None, notes))}"  # a postfix has a comma
        self.bar.set_description_str(what, refresh=True)

    def say(self, *parts: str) -> None:
        """Print a line, also while there is a bar."""
        text = ", ".join(filter(None, parts))
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        elif self.verbose:
            print(text, flush=True)


class SearchProgress(Told):
    """Trials done, the best score so far and the time left.

    With `verbose` above 1 each trial has a line, with its parameters and score.
    """

    EVERY = 5.0  # seconds between two lines at least

    def begin(self, kind: str, done: int, total: int, best: float = float("nan")) -> None:
        """Begin some work, such as "trial" or "full fit", of which some may be done."""
        self.kind, self.done, self.total, self.best = kind, done, total, best
        self.pace, self.told = Pace(done), -float("inf")

    def advance(self, done: int, scores: list[float], most: float) -> None:
        """Tell of work that was done, with its scores; at most so many seconds are left."""
        self.done, self.best = done, float(np.fmax.reduce([self.best, *scores]))
        ended = done >= self.total
        best = f"best {self.best:.3f}" if np.isfinite(self.best) else "none with a score"
        left = "" if ended else self.pace.left(done, self.total, most)
        self.show(f"{self.kind}s {done}/{self.total}", done / max(self.total, done), best, left)
        now = time.monotonic()
        if self.bar is None and (ended or now - self.told >= self.EVERY):
            self.told = now
            self.say(f"{self.kind} {done} of {self.total}", best, left)

    def tell(self, number: int, record: TrialRecord, key: str) -> None:
        """Print the score and the parameters of a trial, with `verbose` above 1."""
        if self.verbose > 1:
            done = record.state == "COMPLETE"
            result = f"{record.score(key):.3f}" if done else record.state.lower()
            given = (f"{name}={value!r}" for name, value in record.params.items())
            self.say(f"trial {number}: {result}", *given)


class ComparisonProgress(Told):
    """The row, epoch and update that run, and the time left, by the updates of all rows."""

    def __init__(self, verbose: int) -> None:
        super().__init__(verbose)
        self.label, self.done, self.of_one, self.share = "", 0, 0, 0.0
        self.pace: Pace | None = None
        self.fits_left = 0  # with the one that runs

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # the clones of an estimator tell one progress

    def begin(self, label: str, seed: int, fits_left: int) -> None:
        """Begin a run; with it so many fits are left."""
        self.label, self.fits_left = f"{label}, seed {seed}", fits_left
        self.show(self.label, self.share)

    def update(self, net: Any) -> None:
        """Count one more update of a net."""
        if self.pace is None:  # the first update is slow: the clock starts after it
            self.pace = Pace(1)
        self.done += 1
        self.of_one, at = net.n_steps_, net.fit_.progress.total
        total = self.done + self.of_one * self.fits_left - at
        self.share = self.done / total
        epoch = f"epoch {len(net.history)} of {net.max_epochs}"
        where = f"update {at:,} of {self.of_one:,}"
        self.show(self.label, self.share, epoch, where, self.pace.left(self.done, total))

    def end(self, f1: float, fits_left: int) -> None:
        """Tell of a run that is done."""
        left = ""
        if self.pace is not None and fits_left:
            left = self.pace.left(self.done, self.done + self.of_one * fits_left)
        self.say(f"{self.label}: F1 {100 * f1:.1f}", left)


class OfUpdates(Callback):
    """Tells a `ComparisonProgress` of each update of a net and of its end; clones tell the same."""

    def __init__(self, progress: ComparisonProgress) -> None:
        self.progress = progress

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Tell of an update."""
        self.progress.update(net)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Count a fit, of which a run may have several."""
        self.progress.fits_left -= 1
