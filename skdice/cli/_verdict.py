"""A comparison in words: what its rows are, which are within noise, which loss to take."""

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
    "ce_dice": "a mean of ce and dice, the default of classifiers",
    "tfidf": "no transformer: n-grams and a logistic regression",
    "crf": "no transformer: a conditional random field",
}
TUNED = "with a bias for each class that held-out rows chose for F1"


def meanings(models: list[Candidate]) -> dict[str, str]:
    """Each loss and decision of the rows with its meaning."""
    named = {str(model.loss): MEANINGS.get(str(model.loss)) for model in models}
    named["+ tuned"] = TUNED if any(model.tuned for model in models) else None
    return {name: meaning for name, meaning in named.items() if meaning}


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
