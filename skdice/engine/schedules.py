"""Learning rate schedules as factors of `lr`, stepped once for each update."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

__all__ = ["SCHEDULES", "schedule_factor"]

SCHEDULES = ("constant", "linear", "cosine", "polynomial", "one_cycle")


def schedule_factor(name: str, n_steps: int, warmup: float) -> Callable[[int], float]:
    """The factor of the learning rate at each update.

    Parameters
    ----------
    name : {"constant", "linear", "cosine", "polynomial", "one_cycle"}
        ``polynomial`` falls with the square of the remaining share; ``one_cycle`` rises and falls
        along cosines, from 1/25 of the rate and down to 1/10,000 of that.
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
    return partial(_FACTORS[name], rising=rising, n_steps=n_steps)


def _left(step: int, rising: int, n_steps: int) -> float:
    """The share of the updates after warm-up that is still to come."""
    return max(n_steps - step, 0) / max(n_steps - rising, 1)


def _constant(step: int, rising: int, n_steps: int) -> float:
    return min((step + 1) / rising, 1.0) if rising else 1.0


def _linear(step: int, rising: int, n_steps: int) -> float:
    return (step + 1) / rising if step < rising else _left(step, rising, n_steps)


def _cosine(step: int, rising: int, n_steps: int) -> float:
    if step < rising:
        return (step + 1) / rising
    return (1 - math.cos(math.pi * _left(step, rising, n_steps))) / 2


def _polynomial(step: int, rising: int, n_steps: int) -> float:
    return (step + 1) / rising if step < rising else _left(step, rising, n_steps) ** 2


def _one_cycle(step: int, rising: int, n_steps: int) -> float:
    first, last = 1 / 25, 1 / 25e4
    if step < rising:
        return first + (1 - first) * (1 - math.cos(math.pi * (step + 1) / rising)) / 2
    return last + (1 - last) * (1 - math.cos(math.pi * _left(step, rising, n_steps))) / 2


# Plain functions, so that a net with its schedule can be pickled.
_FACTORS = {
    "constant": _constant,
    "linear": _linear,
    "cosine": _cosine,
    "polynomial": _polynomial,
    "one_cycle": _one_cycle,
}
