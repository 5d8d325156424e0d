"""Progress of work, and the time that is left of it."""

from __future__ import annotations

import sys
import time
from typing import Any, Self


def shows_bars() -> bool:
    """Return True in a terminal or notebook, and not where a log file is written."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def duration(seconds: float) -> str:
    """A time in words: "1 min 05 s"."""
    minutes, rest = divmod(max(round(seconds), 1), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


class Progress:
    """Work that is done and left: tqdm's bar in a terminal or notebook, elsewhere lines.

    Parameters
    ----------
    verbose : int
        0 shows nothing.
    unit : str
        Of the work, such as "update".
    every : float, default=60
        Seconds between two lines, see `is_due`.
    """

    def __init__(self, verbose: int, unit: str, every: float = 60.0) -> None:
        self.verbose, self.unit, self.every = verbose, unit, every
        self.bar: Any = None
        self.begin(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def begin(self, done: float, total: float | None = None) -> None:
        """Begin some work, of which others may have done a part; None if nobody knows its size."""
        self.close()
        self.before = self.done = done
        self.total = total
        self.started = self.told = time.monotonic()
        # Not in a log file.
        if self.verbose and total != 0 and shows_bars():
            from tqdm.auto import tqdm

            self.bar = tqdm(total=total, initial=done, leave=False, unit=self.unit)

    def advance(self, done: float, what: str = "", *notes: str, total: float | None = None) -> None:
        """Set how much is done, and what it is; `total` if its size was not known."""
        self.done, self.total = done, total or self.total
        if self.bar is not None:
            self.bar.total = self.total
            self.bar.set_description_str(what, refresh=False)
            self.bar.set_postfix_str(", ".join(filter(None, notes)), refresh=False)
            self.bar.update(done - self.bar.n)

    @property
    def is_due(self) -> bool:
        """Whether there is no bar, and so a line should be printed again."""
        now = time.monotonic()
        if self.bar is not None or now - self.told < self.every:
            return False
        self.told = now
        return True

    @property
    def seconds(self) -> float:
        """The time since the beginning."""
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """The time that is left by the mean time of a unit so far; None before one is done."""
        if self.done <= self.before or self.total is None:
            return None
        return self.seconds / (self.done - self.before) * (self.total - self.done)

    def left(self, most: float = float("inf")) -> str:
        """The time that is left in words, at most so many seconds; "" if it is not known."""
        seconds = self.seconds_left
        return "" if not seconds else f"about {duration(min(seconds, most))} left"

    def say(self, *parts: str) -> None:
        """Print a line, also while there is a bar."""
        self.clear()
        if self.verbose:
            print(", ".join(filter(None, parts)), flush=True)

    def clear(self) -> None:
        """Make room for a line."""
        if self.bar is not None:
            self.bar.clear()

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()
        self.bar = None
