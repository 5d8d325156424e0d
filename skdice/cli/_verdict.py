"""A comparison in words: what its rows are, which are within noise, which loss to take."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

import numpy as np

from skdice.cli._common import class_for
from skdice.losses.base import LOSSES
from skdice.model_selection.candidates import BASELINES, Candidate
from skdice.model_selection.comparison import Comparison


def meanings(models: list[Candidate]) -> Iterator[str]:
    """Each loss and baseline of the rows with the first line of its docstring."""
    known = LOSSES | BASELINES
    for name in dict.fromkeys(str(m.loss) for m in models if str(m.loss) in known):
        yield f"{name:11}  {str(known[name].__doc__).splitlines()[0]}"
    if any(model.tuned for model in models):
        yield f"{'+ tuned':11}  With a bias for each class, which held-out rows chose for F1."


def verdict(comparison: Comparison, task: str) -> Iterator[str]:
    """Say which rows are within noise of the best, and which loss to take."""
    best, judged = comparison.best, comparison.judged
    default = str(signature(class_for(task)).parameters["loss"].default)
    alike, behind = _apart(comparison)
    several = max(len(model.runs) for model in judged) > 1  # seeds
    if len(judged) > 1:
        yield f"Highest F1: {best.label}{', the default' if best.label == default else ''}."
    if alike:
        yield f"Within noise of it: {', '.join(alike)}."
        yield "More test rows, or --seeds 5, may tell them apart."
    if behind:
        yield f"Behind by more than noise: {', '.join(behind)}."
    for model in comparison.rows:
        if model.n_empty:
            yield f"Left out: {model.label}, which {model.empty_note}."
    if len(judged) > 1 and not several:
        yield "One seed calls no winner: give --seeds 3."
    if best.is_baseline:
        return
    if default in alike:
        yield f"The default, {default}, stays the loss to take: what is ahead is within noise."
    elif several and default in behind:
        yield f"Take {best.label}: it is ahead of the default, {default}, by more than noise."


def _apart(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The rows whose interval behind the best holds 0, and those whose does not."""
    alike: list[str] = []
    behind: list[str] = []
    for model in comparison.judged:
        _, low, high = comparison.behind(model)
        if model is not comparison.best and np.isfinite(low):
            (alike if low <= 0 <= high else behind).append(model.label)
    return alike, behind
