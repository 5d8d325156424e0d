"""A comparison in words: its rows, what is noise, what to try next."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature

import numpy as np

from skdice._checks import counted
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
    """Name rows that cannot be told from the best, the loss to take, and what to try next."""
    from skdice.tasks import TASKS

    models = comparison.judged
    best, n_test = comparison.best, comparison.settings["n_test"]
    n_runs = max(len(model.runs) for model in models)
    alike: list[str] = []
    behind: list[str] = []
    for model in models:
        _, low, high = comparison.behind(model)
        if model is not best and np.isfinite(low):
            (alike if low <= 0 <= high else behind).append(model.label)
    default = str(signature(class_for(task)).parameters["loss"].default)
    stays = default in alike and not best.is_baseline
    if len(models) > 1:
        yield f"Highest F1: {best.label}{', the default' if best.label == default else ''}."
    if alike:
        yield f"Within noise of it (the interval holds 0): {', '.join(alike)}."
    noise = "noise" if n_runs > 1 else "the noise of the test rows"
    if behind:
        yield f"Behind by more than {noise}: {', '.join(behind)}."
    for model in comparison.rows:
        if model.n_empty:
            yield f"Left out: {model.label}, which {model.empty_note}."
    if alike or behind:
        chance = f"the {counted(n_test, 'test row')}"
        chance += f" and of {n_runs} seeds" if n_runs > 1 else " alone"
        yield f"All intervals hold at once in 95 % of comparisons: the chance of {chance}."
    if n_runs == 1 and len(models) > 1:
        yield "One seed calls no winner: --seeds 3 tells the luck of a seed from a better loss."
    if stays:
        f1 = {model.label: model.mean("f1") for model in models}
        ahead = [label for label in f1 if f1[label] > f1[default]]
        yield (
            f"The default, {default}, stays the loss to take: what is ahead of it here "
            f"({', '.join(ahead)}) is so within noise, and other rows or seeds may turn it around."
        )
    elif default in behind and n_runs > 1 and not best.is_baseline:
        yield f"Take {best.label}: it is ahead of the default, {default}, by more than noise."
    if alike:
        more = "" if n_runs >= 5 else ", or --seeds 5,"
        until = "" if stays or best.label == default else "; until then the simplest will do"
        yield f"Next: more test rows{more} to tell them apart{until}."
    stays = stays or n_runs == 1  # one seed calls no winner
    loss = default if stays else best.loss
    decided = any(model.decision for model in models)
    if TASKS[task].has_classes and not decided and isinstance(loss, str):
        yield f'Next: --losses "{loss}, {loss} + tuned" adds a tuned decision.'
    if not stays and (best.sampler is not None or best.decision):
        pages = ["Resampling"] if best.sampler is not None else []
        pages += ["Tuned decisions"] if best.decision else []
        yield (
            f"Next: fit {best.label} in Python, by {' and '.join(pages)} in the guide: skdice "
            "train knows losses only."
        )
    elif not best.is_baseline and isinstance(loss, str):
        option = "" if loss == default else f" --loss {loss}"
        yield f"Next: skdice train FILE{option} --out model"
