"""A comparison in words: its rows, what is noise, what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np

from skdice.cli._common import class_for
from skdice.model_selection.candidates import Candidate
from skdice.model_selection.comparison import Comparison

MEANINGS = {
    "ce": "cross-entropy, which most tools train with",
    "weighted_ce": "cross-entropy in which rare classes weigh more",
    "focal": "cross-entropy in which what is right already weighs less",
    "dice": "one minus a soft F1 of the batch (an overlap loss)",
    "tversky": "dice with one weight for false alarms and one for misses",
    "dsc": "dice in which easy examples weigh less",
    "ce_dice": "a mean of ce and dice, the default of skdice",
    "tfidf": "no transformer: n-grams and a logistic regression",
    "crf": "no transformer: a conditional random field",
}
DECISIONS = {
    "tuned": "with a bias for each class that held-out rows chose for F1",
    "prior": "with one bias that held-out rows chose, times the log-prior",
}


def meanings(models: list[Candidate]) -> Iterator[tuple[str, str]]:
    """Each part of the rows with its meaning, once."""
    from skdice.losses import LOSSES, DSCLoss

    losses = list(dict.fromkeys(model.loss for model in models if isinstance(model.loss, str)))
    for loss in losses:
        cls = LOSSES.get(loss)
        # A loss of the user's own may have no docstring.
        first = ((cls.__doc__ if cls else None) or "").partition("\n")[0]
        if meaning := MEANINGS.get(loss, first):
            yield loss, meaning
    for decision in dict.fromkeys(model.decision for model in models if model.decision):
        yield f"+ {decision}", DECISIONS[decision]
    for model in models:
        if model.sampler is not None:
            yield f"+ {type(model.sampler).__name__}", "trained on rows that it draws"
    if {"dice", "dsc"} <= set(losses):
        exponent = DSCLoss().exponent
        yield "dice, dsc", f"alike: the exponent of dsc is {exponent:g} by default; 0 is dice"


def verdict(comparison: Comparison, task: str) -> Iterator[str]:
    """Say which rows are within noise of the best, which loss to take, and what to try next."""
    best, models = comparison.best, comparison.judged
    default = str(signature(class_for(task)).parameters["loss"].default)
    alike, behind = _apart(comparison)
    several = max(len(model.runs) for model in models) > 1
    if len(models) > 1:
        yield f"Highest F1: {best.label}{', the default' if best.label == default else ''}."
    if alike:
        yield f"Within noise of it: {', '.join(alike)}."
    if behind:
        yield f"Behind by more than noise: {', '.join(behind)}."
    for model in comparison.rows:
        if model.n_empty:
            yield f"Left out: {model.label}, which {model.empty_note}."
    if len(models) > 1 and not several:
        yield "One seed calls no winner: give --seeds 3."
    stays = default in alike and not best.is_baseline
    if stays:
        yield f"The default, {default}, stays the loss to take: what is ahead is within noise."
    elif default in behind and several and not best.is_baseline:
        yield f"Take {best.label}: it is ahead of the default, {default}, by more than noise."
    if alike:
        yield "Next: more test rows, or --seeds 5, to tell them apart."
    yield from _next(best, models, default if stays or not several else best.loss, default, task)


def _apart(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The rows whose interval behind the best holds 0, and those whose does not."""
    alike: list[str] = []
    behind: list[str] = []
    for model in comparison.judged:
        _, low, high = comparison.behind(model)
        if model is not comparison.best and np.isfinite(low):
            (alike if low <= 0 <= high else behind).append(model.label)
    return alike, behind


def _next(
    best: Candidate, models: list[Candidate], loss: Any, default: str, task: str
) -> Iterator[str]:
    """What to try next with a loss."""
    from skdice.tasks import TASKS

    decided = any(model.decision for model in models)
    if TASKS[task].has_classes and not decided and isinstance(loss, str):
        yield f'Next: --losses "{loss}, {loss} + tuned" adds a tuned decision.'
    if loss != default and (best.sampler is not None or best.decision):
        yield f"Next: fit {best.label} in Python: skdice train knows losses only."
    elif not best.is_baseline and isinstance(loss, str):
        option = "" if loss == default else f" --loss {loss}"
        yield f"Next: skdice train FILE{option} --out model"
