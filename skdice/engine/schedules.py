"""Learning rate schedules as factors of `lr`, stepped once for each update."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

SCHEDULES = ("constant", "linear", "cosine", "polynomial", "one_cycle")


def schedule_factor(name: str, n_steps: int, warmup: float) -> Callable[[int], float]:
    """The factor of the learning rate at each update.

    Parameters
    ----------
    name : {"constant", "linear", "cosine", "polynomial", "one_cycle"}
        ``polynomial`` falls with the square of the remaining share; ``one_cycle`` rises along a
        cosine from 1/25 of the rate, and falls along one to 1/10,000 of where it began, as torch's
        `OneCycleLR` does. The others are those of transformers, but that the first update has the
        rate which transformers gives the second: it does not train at rate 0.
    n_steps : int
        Updates in the whole fit.
    warmup : float
        Share of the updates during which the rate rises, from 0 to 1.

    Returns
    -------
    callable
        From the index of an update (from 0) to a factor in [0, 1].

    Examples
    --------
    >>> from skdice.engine.schedules import schedule_factor
    >>> factor = schedule_factor("linear", n_steps=10, warmup=0.2)
    >>> [round(factor(step), 3) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.125]
    """
    rising = min(math.ceil(warmup * n_steps), n_steps)
    # A plain function, so that a net with its schedule can be pickled.
    return partial(_factor, name=name, rising=rising, n_steps=n_steps)


def _factor(step: int, name: str, rising: int, n_steps: int) -> float:
    if name == "one_cycle":
        if step < rising:
            return _cosine(1 / 25, 1.0, step / (rising - 1) if rising > 1 else 1.0)
        return _cosine(1.0, 1 / 25e4, (step - rising + 1) / max(n_steps - rising, 1))
    if step < rising:
        return (step + 1) / rising
    if name == "constant":
        return 1.0
    left = max(n_steps - step, 0) / max(n_steps - rising, 1)  # of the updates after warm-up
    if name == "cosine":
        return _cosine(0.0, 1.0, left)
    return left**2 if name == "polynomial" else left


def _cosine(start: float, end: float, share: float) -> float:
    """From `start` to `end` along half a wave."""
    return start + (end - start) * (1 - math.cos(math.pi * min(share, 1.0))) / 2
