"""Estimates of how long work takes, and places to say it."""

from __future__ import annotations

import sys
import time


def duration(seconds: float) -> str:
    """A time in words: "1 min 05 s"."""
    minutes, rest = divmod(max(round(seconds), 1), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def has_bar() -> bool:
    """Return True if a bar can be shown: in a terminal or notebook, and not in a log file."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class Pace:
    """The time that is left of some work, by the mean time of its parts so far.

    Parameters
    ----------
    done : float, default=0
        Parts that others did before.
    """

    def __init__(self, done: float = 0) -> None:
        self.started, self.before = time.monotonic(), done

    def left(self, done: float, total: float, most: float = float("inf")) -> str:
        """The time left in words, at most so many seconds; "" before a part is done."""
        if done <= self.before:
            return ""
        of_one = (time.monotonic() - self.started) / (done - self.before)
        return f"about {duration(min(of_one * (total - done), most))} left"
