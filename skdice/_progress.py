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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def begin(self, done: int, total: int) -> None:
        """Begin some work, of which others may have done a part."""
        self.before = self.done = done
        self.total = total
        self.started = self.told = time.monotonic()
        # Not in a log file.
        if self.verbose and shows_bars():
            from tqdm.auto import tqdm

            self.bar = tqdm(total=total, initial=done, leave=False, unit=self.unit)

    def advance(self, done: int, what: str = "", note: str = "") -> None:
        """Set how much is done, and what it is."""
        self.done = done
        if self.bar is not None:
            self.bar.set_description_str(what, refresh=False)
            self.bar.set_postfix_str(note, refresh=False)
            self.bar.update(done - self.bar.n)

    @property
    def is_due(self) -> bool:
        """Whether there is no bar, and so a line should be printed again."""
        now = time.monotonic()
        if self.bar is not None or now - self.told < self.every:
            return False
        self.told = now
        return True

    def left(self) -> str:
        """The time that is left, by the mean time of a unit so far; "" before one is done."""
        if self.before < self.done < self.total:
            of_each = (time.monotonic() - self.started) / (self.done - self.before)
            return f"about {duration(of_each * (self.total - self.done))} left"
        return ""

    def say(self, *parts: str) -> None:
        """Print a line, also while there is a bar."""
        if self.bar is not None:
            self.bar.clear()
        if self.verbose:
            print(", ".join(filter(None, parts)), flush=True)
