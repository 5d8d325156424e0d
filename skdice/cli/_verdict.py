"""A comparison in words: its rows, what is noise, what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

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
    from skdice.losses import DSCLoss

    losses = list(dict.fromkeys(str(model.loss) for model in models))
    yield from ((loss, meaning) for loss in losses if (meaning := _meaning(loss)))
    for decision in dict.fromkeys(model.decision for model in models if model.decision):
        yield f"+ {decision}", DECISIONS[decision]
    for model in models:
        if model.sampler is not None:
            yield f"+ {type(model.sampler).__name__}", "trained on rows that it draws"
    if {"dice", "dsc"} <= set(losses):
        exponent = DSCLoss().exponent
        yield "dice, dsc", f"alike: the exponent of dsc is {exponent:g} by default; 0 is dice"


def _meaning(loss: str) -> str:
    """What a loss is; one of the user's own may have no docstring."""
    from skdice.losses import LOSSES

    return MEANINGS.get(loss) or (getattr(LOSSES.get(loss), "__doc__", "") or "").partition("\n")[0]


def verdict(comparison: Comparison, task: str) -> Iterator[str]:
    """Say which rows are within noise of the best, which loss to take, and what to try next."""
    best = comparison.best
    default = str(signature(class_for(task)).parameters["loss"].default)
    alike, behind = _apart(comparison)
    several = max(len(model.runs) for model in comparison.judged) > 1  # seeds
    yield from _order(comparison, default, alike, behind, several)
    stays = default in alike and not best.is_baseline
    if stays:
        yield f"The default, {default}, stays the loss to take: what is ahead is within noise."
    elif several and default in behind and not best.is_baseline:
        yield f"Take {best.label}: it is ahead of the default, {default}, by more than noise."
    if alike:
        yield "Next: more test rows, or --seeds 5, to tell them apart."
    yield from _next(comparison, task, default, stays or not several)


def _apart(comparison: Comparison) -> tuple[list[str], list[str]]:
    """The rows whose interval behind the best holds 0, and those whose does not."""
    alike: list[str] = []
    behind: list[str] = []
    for model in comparison.judged:
        _, low, high = comparison.behind(model)
        if model is not comparison.best and np.isfinite(low):
            (alike if low <= 0 <= high else behind).append(model.label)
    return alike, behind


def _order(
    comparison: Comparison, default: str, alike: list[str], behind: list[str], several: bool
) -> Iterator[str]:
    """The best row, those that are near it or behind, and those that cannot be judged."""
    if len(comparison.judged) > 1:
        best = comparison.best.label
        yield f"Highest F1: {best}{', the default' if best == default else ''}."
    if alike:
        yield f"Within noise of it: {', '.join(alike)}."
    if behind:
        yield f"Behind by more than noise: {', '.join(behind)}."
    for model in comparison.rows:
        if model.n_empty:
            yield f"Left out: {model.label}, which {model.empty_note}."
    if len(comparison.judged) > 1 and not several:
        yield "One seed calls no winner: give --seeds 3."


def _next(comparison: Comparison, task: str, default: str, stays: bool) -> Iterator[str]:
    """The command to try next with the default, if it `stays`, or with the best loss."""
    from skdice.tasks import TASKS

    best = comparison.best
    loss = default if stays else best.loss
    decided = any(model.decision for model in comparison.judged)
    if TASKS[task].has_classes and not decided:
        yield f'Next: --losses "{loss}, {loss} + tuned" adds a tuned decision.'
    if not stays and (best.sampler is not None or best.decision):
        yield f"Next: fit {best.label} in Python: skdice train knows losses only."
    elif not best.is_baseline:
        option = "" if loss == default else f" --loss {loss}"
        yield f"Next: skdice train FILE{option} --out model"
