"""Labels that a classifier learns: those of a new model, of further training, and held out."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdice._checks import shown
from skdice._types import Model, Rows
from skdice._warn import warn
from skdice.engine.fit_plan import Examples, check_known
from skdice.exceptions import DataWarning
from skdice.inputs.labels import Labels, first
from skdice.inputs.texts import check_width
from skdice.metrics.decisions.positive import positive_class


def new_labels(model: Model, labels: Labels, more: Rows | None) -> np.ndarray:
    """Labels, or 0/1 rows in the order of the classes, which are set."""
    if more is not None:
        labels = labels.joined(more)
    classes, multilabel = labels.classes, labels.multilabel
    if len(classes) < 2 and not multilabel:
        raise ValueError(
            f"y holds one class only ({shown(classes[0])}): a classifier needs two or more"
        )
    if not multilabel and model.pos_label is not None and len(classes) == 2:
        positive_class(classes, np.zeros(2), model.pos_label)  # refuses an unknown label
    model.classes_, model.multilabel_ = classes, multilabel
    if multilabel and more is None:
        _check_occurring(labels)
    return labels.values


def further_labels(model: Model, labels: Labels, more: Rows | None) -> np.ndarray:
    """The labels of further training, for each of which the head has an output."""
    known, found = model.classes_.tolist(), labels.classes.tolist()
    unlike = not labels.multilabel and isinstance(found[0], str) != isinstance(known[0], str)
    if unlike or labels.multilabel != model.multilabel_:
        raise ValueError(
            f"y holds labels of a kind that the first fit did not see, such as {shown(found[0])}: "
            f"give labels such as {first(known)}, or fit with warm_start=False"
        )
    if more is not None:
        labels = labels.joined(more)
        if labels.given == "table":  # the columns of which have names now
            labels = labels._replace(given="columns")
    if labels.given != "table":
        refuse_new(labels.classes.tolist(), known)
    return labels.among(model.classes_) if labels.multilabel else labels.values


def refuse_new(labels: list[Any], known: list[Any]) -> None:
    """Refuse labels for which a fitted model has no output."""
    if new := [label for label in labels if label not in known]:
        raise ValueError(
            f"the labels {first(new)} are new to the fitted model, which knows {first(known)}: "
            "name all labels in the first partial_fit(classes=...), or fit a new model. It may "
            "start from the encoder of this one: save_pretrained(folder), then backbone=folder"
        )


def held_out_labels(model: Model, held: Examples, given: Labels) -> np.ndarray:
    """The labels of validation texts; refuses texts and labels of another kind than `given`."""
    if isinstance(held.inputs, list):
        check_width(held.inputs, model.n_features_in_, model, "X_val")
    labels: Labels = held.targets
    unlike = labels.multilabel != model.multilabel_
    if unlike or (labels.given == "table" and labels.values.shape[1] != len(model.classes_)):
        raise ValueError(
            f"y_val has shape {labels.values.shape} and y {given.values.shape}: give labels of the "
            "same kind, with a column for each label of a multi-label problem"
        )
    if model.multilabel_:
        return labels.among(model.classes_, "y_val")
    check_known(model.classes_.tolist(), labels.classes.tolist(), "labels")
    return labels.values


def _check_occurring(labels: Labels) -> None:
    """Warn of labels that no row has: nothing about them can be learned."""
    empty = labels.classes[~(labels.values == 1).any(axis=0)].tolist()
    if empty:
        warn(
            f"y has no row with the labels {empty[:20]}, which the model will learn never to "
            "predict: add such rows, or leave these labels out",
            DataWarning,
        )
