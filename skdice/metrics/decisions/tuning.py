"""Biases with which decisions reach an objective, from the probabilities of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdice._warn import warn
from skdice.exceptions import DecisionWarning
from skdice.metrics.decisions.bias_search import FAR
from skdice.metrics.decisions.bounds import Bound, Promise
from skdice.metrics.decisions.held_out_rows import BinaryRows, HeldOutRows, SpanRows
from skdice.metrics.decisions.objectives import Score


@dataclass
class Tuning:
    """A tuned decision.

    Attributes
    ----------
    bias : ndarray of shape (n_biases,)
    biases : ndarray of shape (n_draws, n_biases)
        The best bias of each draw.
    promise : Promise or None
        Of a bound.
    """

    bias: np.ndarray
    biases: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    promise: Promise | None = None


def tune(rows: HeldOutRows, objective: Score, *, n_draws: int = 20) -> Tuning:
    """The bias with which decisions on new rows come nearest to an objective.

    Parameters
    ----------
    rows : BinaryRows, ClassRows or SpanRows
        Of `skdice.metrics.decisions.held_out_rows`.
    objective : objective or callable
    n_draws : int, default=20
        The bias is the mean of the best ones of as many bootstrap draws of the rows, which varies
        less than the best one of all rows. 0 tunes once on all rows.

    References
    ----------
    L. Breiman, "Bagging Predictors", Machine Learning 1996. The rule was chosen by its regret:
    ``examples/paper/decisions.py``.
    """
    if isinstance(objective, Bound):
        bias, promise = bounded(rows, objective)  # type: ignore[arg-type]  # never of classes
        return Tuning(bias, promise=promise)
    return bagged(rows, lambda drawn: drawn.best_bias(objective), n_draws)


def bagged(rows: Any, best_bias: Callable[[Any], np.ndarray], n_draws: int) -> Tuning:
    """The mean of the best biases of bootstrap draws of the rows; of all rows without draws."""
    if n_draws == 0:
        return Tuning(best_bias(rows))
    random = np.random.default_rng(0)
    drawn = (random.integers(rows.n_rows, size=rows.n_rows) for _ in range(n_draws))
    biases = np.array([best_bias(rows.take(chosen)) for chosen in drawn])
    middle = np.median(biases, axis=0)  # a bias without end, of one draw, is not to decide
    bias = np.clip(biases, middle - FAR, middle + FAR).mean(axis=0)
    return Tuning(bias, biases)


def bounded(rows: BinaryRows | SpanRows, objective: Bound) -> tuple[np.ndarray, Promise]:
    """The bias with which a bound holds for new rows, and the rest is as good as can be."""
    bias, share = np.zeros(rows.n_biases), objective._share
    groups = rows.groups(objective.each)
    while groups:
        missed = {}
        for name, together in groups.items():
            shifts, steps = rows.counts_by_shift(together, bias)
            held = objective._promised(steps)
            if not held.any():
                missed[name] = together
                if len(groups) > 1:
                    continue
                share = objective._best_share(steps)
                _tell(rows, objective, name, share, int(steps.true.max(initial=0)))
                held = objective._promised(steps, share) if share else held
            if held.any():
                values = np.where(held, objective._value(steps), -np.inf)
                bias[together] += shifts[int(values.argmax())]
        if not missed or len(groups) == 1:
            break
        # Those that are too rare to reach it by themselves are to reach it together.
        groups = {", ".join(missed): [i for together in missed.values() for i in together]}
    return bias, objective._promise(share)


def _tell(
    rows: BinaryRows | SpanRows, objective: Bound, name: str, share: float, n_true: int
) -> None:
    """Warn of the best share that can be promised."""
    of = f" for {name}" if name else ""
    told = f"with {rows.n_rows} different rows to tune on, of which {n_true} are "
    told += f"{objective.successes_are},"
    sure = f"at {100 * objective.confidence:g}% confidence"
    if share:
        told += f" the best that can be promised {sure} is {objective._in_words(share)}. Ask for"
        told += " that, lower the confidence,"
    else:
        told += f" no bound on {objective.measure} can be promised {sure}. Lower the confidence,"
    done = "keeps that promise" if share else "stays as it is"
    warn(
        f"scoring={objective!r} cannot be promised{of}: {told} or give more rows to tune on. The "
        f"decision {done}",
        DecisionWarning,
    )
