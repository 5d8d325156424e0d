"""Parts that tasks share before training: losses that are ready, and checks of labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.plan import Mode
from skdice.exceptions import MissingLabelWarning, UnnamedLabelsWarning
from skdice.losses import Loss, resolve_loss
from skdice.metrics.labels import Labels


def fresh_loss(loss: str | Loss) -> Loss:
    """A new loss that counts over the processes that train together, and no others."""
    fresh: Loss = clone(resolve_loss(loss))
    for part in fresh.modules():
        if isinstance(part, Loss):
            part.all_ranks = ranks.n_processes() > 1
    return fresh


def prepared_loss(
    model: Any, counts: np.ndarray, n_samples: float, mode: Mode, **inputs: Any
) -> Loss:
    """The loss, prepared with class counts; those of all calls of `partial_fit` add up.

    The counts are kept on `model` as ``class_counts_`` and ``n_samples_seen_``.
    """
    if mode == "partial" and hasattr(model, "class_counts_"):
        before = model.class_counts_
        counts = counts + np.pad(before, (0, len(counts) - len(before)))
        n_samples = n_samples + model.n_samples_seen_
    model.class_counts_, model.n_samples_seen_ = counts, n_samples
    loss = fresh_loss(model.loss).prepare(counts, n_samples=n_samples, **inputs)
    if mode == "partial":
        loss.copy_state_from(model.net_.criterion_)
    return loss


def check_known(
    known: Iterable[Any], held: Iterable[Any], what: str, of: str = "y", name: str = "y_val"
) -> None:
    """Refuse validation labels if training holds none of them: their score would always be 0."""
    known, held = set(known), set(held)
    if held and not known & held:
        raise ValueError(
            f"{name} holds none of the {what} of {of}: it has {sorted(held, key=str)}, and {of} "
            f"has {sorted(known, key=str)}: give both in the same form"
        )


def check_occurring(labels: Labels) -> None:
    """Warn of labels that no row has: nothing about them can be learned."""
    empty = labels.classes[~labels.values.any(axis=0)].tolist()
    if empty:
        warn(
            f"y has no row with the labels {empty[:20]}, which the model will learn never to "
            "predict: add such rows, or leave these labels out",
            MissingLabelWarning,
        )


def check_reduction(loss: Loss, name: str = "loss") -> None:
    """Refuse a loss that gives several values, as training needs a single one."""
    if loss.reduction == "none":
        raise ValueError(
            f"{name}={loss!r} gives a value for each element or class, and training needs one for "
            "all: leave out reduction='none'"
        )


def label_names(config: Any) -> list[str]:
    """The labels of a model of transformers, in the order of its outputs."""
    names = [str(config.id2label.get(i, f"LABEL_{i}")) for i in range(config.num_labels)]
    if len(names) < 2:
        raise ValueError(
            f"the model has {len(names)} output, and a classifier needs 2 or more: a model of "
            "regression, or of one logit, is not read"
        )
    if len(set(names)) < len(names):
        raise ValueError(f"the model names a label twice: {names}: mend id2label in config.json")
    if any(name.startswith("LABEL_") for name in names):
        warn(
            f"the model's config.json has no names for its labels: they are {names}",
            UnnamedLabelsWarning,
        )
    return names
