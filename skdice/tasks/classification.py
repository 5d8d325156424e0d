"""Classification: texts or pairs in, one label or several labels out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from torch import nn

from skdice._checks import shown
from skdice._types import Data, Encoder, Model, Rows, Weights
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.callbacks import above_zero, highest
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit_plan import Examples, Mode, check_known, prepared_loss
from skdice.engine.module import EncoderModule, EncoderWithHead, TaskModel, check_pooling
from skdice.engine.window_pooling import TextDataset, WindowPooling
from skdice.exceptions import DataWarning
from skdice.inputs.labels import (
    UNKNOWN,
    Labels,
    first,
    known_labels,
    labels_to_score,
    places_of,
    rarest_labels,
    read_labels,
    refuse_new,
    single_labels,
)
from skdice.inputs.rows import check_weights
from skdice.inputs.texts import as_texts, check_width, refuse_labels_in
from skdice.metrics.classification import class_scores
from skdice.metrics.decisions.positive import positive_class
from skdice.tasks._base import Blocks, Task
from skdice.text.encoding import Windows
from skdice.text.long_texts import Cuts, TextWindow, encode_texts

Found = list[tuple[TextWindow, np.ndarray]]


class Classification(Task):
    """Labels of texts or of pairs of texts."""

    name = "classification"
    rows = "texts to classify"
    estimator = "DiceSequenceClassifier"
    head: ClassVar[str | None] = "SequenceClassification"
    per_position = False

    # ---- rows

    def inputs(self, X: Data) -> list[Any]:
        """Return texts or pairs."""
        return as_texts(X, may_be_empty=True)

    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return texts or pairs with their `Labels`."""
        texts = as_texts(X)
        labels = read_labels(y, len(texts), missing=True)
        refuse_labels_in(texts, labels.values)
        return texts, labels

    def check_test(self, y: Data, y_test: Data) -> None:
        """Refuse labels of test rows that training does not have."""
        labels = read_labels(y, missing=True)
        known_labels(y_test, labels.classes, labels.multilabel, "y_test", missing=True)

    def drawn_by(self, X: Data, y: Data) -> tuple[Any, Any]:
        """Return labels or 0/1 rows for folds, and for samplers one label a row."""
        return read_labels(y, missing=True).values, single_labels(y)

    # ---- training

    def check_params(self, model: Model, mode: Mode) -> None:
        """Refuse a `pooling` of another head than the one that was fitted."""
        native = self.uses_native_head(model)
        if mode != "fresh" and native != isinstance(model.module_, TaskModel):
            raise ValueError(
                f"pooling={model.pooling!r} needs another head than the one that was fitted: fit "
                "with warm_start=False, or set pooling back"
            )

    def has_two_classes(self, model: Model) -> bool:
        """Return True if each text has one of two labels."""
        return not model.multilabel_ and len(model.classes_) == 2

    def learn(
        self, model: Model, data: Examples, held: Examples | None, mode: Mode, classes: Rows | None
    ) -> tuple[Examples, Examples | None]:
        """Set the classes; targets become labels, or 0/1 rows in the order of the classes."""
        self._set_width(model, data.inputs, mode)
        given: Labels = data.targets
        learned = _further_labels if mode != "fresh" else _new_labels
        data = replace(data, targets=learned(model, given, classes))
        if held is not None:
            held = replace(held, targets=_held_out_labels(model, held, given))
        return data, held

    def _set_width(self, model: Model, inputs: list[Any], mode: Mode) -> None:
        """Set whether rows are texts or pairs, or refuse others than before."""
        known = None if mode == "fresh" else model.n_features_in_
        model.n_features_in_ = check_width(inputs, known, model)

    def named(self, model: Model) -> Callable[[Any, Any], Any]:
        """Return what tells the classes that outputs name, or labels above one half."""
        return above_zero if model.multilabel_ else highest

    def nothing_found(self, model: Model, seen: np.ndarray) -> str | None:
        """Return what a model does that named these classes, or these labels, only."""
        if model.multilabel_:
            return None if seen.any() else "predicts no label at all"
        return super().nothing_found(model, seen)

    def strata(self, model: Model, data: Examples) -> Any:
        """Return the labels, 0/1 rows where there are several."""
        return data.targets

    def sampled(self, model: Model, data: Examples) -> Any:
        """Return the labels; of several labels the rarest of each row, as it has one class."""
        return rarest_labels(data.targets, model.classes_) if model.multilabel_ else data.targets

    def prepare_training(self, model: Model, data: Examples, held: Examples | None) -> None:
        """Choose the positive class of two."""
        if model.multilabel_ or len(model.classes_) != 2:
            return
        # A warm start keeps the positive class, even if its data have another majority.
        if model.pos_label is not None or not hasattr(model, "positive_"):
            # Of rows, as weights may make the classes alike.
            counts = np.bincount(self._indices(model, data), _shares(data) > 0, minlength=2)
            model.positive_ = positive_class(model.classes_, counts, model.pos_label)
        if model.verbose and ranks.rank() == 0:
            print(f"the positive class is {model.classes_[model.positive_]!s}", flush=True)

    def n_outputs(self, model: Model) -> int:
        """Return the number of classes."""
        return len(model.classes_)

    def uses_native_head(self, model: Model) -> bool:
        """Return whether `pooling` asks for the architecture's own head."""
        native: bool = model.pooling == "native"
        return native

    def assemble(self, model: Model, encoder: Encoder, n_outputs: int) -> EncoderModule:
        """Return the encoder with pooling and a linear head."""
        return EncoderWithHead(encoder, n_outputs, model.dropout, model.pooling)

    def update_module(self, model: Model, module: EncoderModule) -> None:
        """Let the head pool as `pooling` says now."""
        if isinstance(module, EncoderWithHead):
            check_pooling(module.encoder, model.pooling)
            module.pooling = model.pooling

    def encode(self, model: Model, sources: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return one window of each text, or several of a long one."""
        settings = model.max_length_, model.long_texts, cuts
        return encode_texts(model.tokenizer_, sources, *settings)

    def dataset(
        self, model: Model, windows: Windows[Any], targets: Any, weights: np.ndarray | None
    ) -> EncodedDataset:
        """Return texts with their targets; some may have several windows."""
        if targets is None:
            return EncodedDataset(windows)
        if model.multilabel_:
            targets = targets.astype(np.float32)
        else:
            targets = places_of(targets, model.classes_)
        if len(windows) == len(targets):
            return EncodedDataset(windows, targets, weights)
        return TextDataset(windows, targets, weights, window_pooling(model))

    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the loss with the counts of the classes; of two, the other is the background."""
        rows = slice(None) if drawn is None else drawn
        share = _shares(data)[rows]
        total = float(share.sum(dtype=float))
        of_loss = {"multilabel": model.multilabel_, "classes": model.classes_}
        if model.multilabel_:
            targets = dataset.targets[rows]
            # Of all rows, as if those whose label is not known were like the others.
            known = share @ (targets != UNKNOWN)
            counts = share @ (targets == 1) * (total / np.where(known > 0, known, 1))
        else:
            targets = self._indices(model, data)[rows]
            counts = np.bincount(targets, share, minlength=len(model.classes_))
        positive = positive_index(model)
        background = None if positive is None else 1 - positive
        return prepared_loss(model, counts, total, background=background, **of_loss)

    def _indices(self, model: Model, data: Examples) -> np.ndarray:
        return places_of(data.targets, model.classes_)

    # ---- predictions, from the windows of texts with their logits

    def row_outputs(self, model: Model, rows: Iterable[Found]) -> list[np.ndarray]:
        """Return the logits of each text, of shape (n_classes,)."""
        return [_pooled(model, np.stack([logits for _, logits in row])) for row in rows]

    def decide(self, model: Model, sources: list[Any], outputs: Iterable[Any]) -> np.ndarray:
        """Return labels of shape (n,), or 0/1 rows if multi-label."""
        return decided(model, np.stack(list(outputs)))

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 of validation rows by their weights, as `score` counts them."""
        found = [row for block in blocks for row in self.decide(model, *block)]
        return self.rate(model, held.targets, found, held.weights)["f1"]

    # ---- scores

    def truth(self, model: Model, X: Data, y: Data) -> Any:
        """Return labels or 0/1 rows; those that the model does not know count as missed."""
        several = getattr(model, "multilabel_", False)
        labels = labels_to_score(y, model.classes_, several).values
        check_consistent_length(X, labels)
        return labels

    def rate(
        self, model: Model, true: Rows, predicted: Iterable[Any], sample_weight: Weights = None
    ) -> dict[str, float]:
        """Return precision, recall, F1 and accuracy."""
        weights = check_weights(sample_weight, len(true))
        positive = positive_index(model)
        return class_scores(
            np.asarray(true), np.array(predicted), model.classes_, positive, weights
        )

    def cost(self, model: Model, inputs: Data, true: Rows, predicted: Rows) -> dict[str, float]:
        """Return the mean cost of a row; labels may be strings, as files have them."""
        table = np.array(getattr(model, "tuned_for_", {}).get("cost", []))
        if not len(table):
            return {}
        if model.multilabel_:
            if isinstance(true, np.ndarray) and true.ndim == 2:
                t = true
            else:
                t = labels_to_score(true, model.classes_, True).values
            p = known_labels(predicted, model.classes_, True)
            if t.shape != p.shape:  # what labels that training did not have cost is not known
                return {}
            of_label = np.where(t == UNKNOWN, 0, table[np.maximum(t, 0), p.astype(int)])
            return {"cost": float(of_label.sum(axis=1).mean())}
        place = {str(label): i for i, label in enumerate(model.classes_.tolist())}
        if {str(label) for label in true} - set(place):
            return {}
        t, p = (np.array([place[str(label)] for label in part]) for part in (true, predicted))
        return {"cost": float(table[t, p].mean())}

    def measure(self, model: Model) -> str:
        """Return what `rate` counts."""
        positive = positive_index(model)
        if positive is not None:
            return f"class {model.classes_[positive]!s}"
        return "labels, micro" if getattr(model, "multilabel_", False) else "classes, macro"


def decided(model: Model, logits: np.ndarray) -> np.ndarray:
    """Labels of shape (n,); 0/1 rows of shape (n, n_labels) if multi-label."""
    if getattr(model, "multilabel_", False):
        return (logits > 0).astype(int)
    labels: np.ndarray = model.classes_[logits.argmax(axis=1)]
    return labels


def positive_index(model: Model) -> int | None:
    """Index of the positive class of two; None for more classes and multi-label problems."""
    several = len(model.classes_) != 2 or getattr(model, "multilabel_", False)
    return None if several else model.positive_


def window_pooling(model: Model) -> WindowPooling:
    """Return what makes the logits of a text of those of its windows."""
    return WindowPooling(model.window_pooling, positive_index(model))


def _pooled(model: Model, logits: np.ndarray) -> np.ndarray:
    """Logits of a text from those of its windows."""
    if len(logits) == 1:
        return logits[0]
    inside = torch.ones(1, len(logits), dtype=torch.bool)
    return window_pooling(model)(torch.from_numpy(logits)[None], inside)[0].numpy()


def _shares(data: Examples) -> np.ndarray:
    return np.ones(len(data)) if data.weights is None else data.weights


# ---- the labels of a new model, of further training, and of validation texts


def _new_labels(model: Model, labels: Labels, more: Rows | None) -> np.ndarray:
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


def _further_labels(model: Model, labels: Labels, more: Rows | None) -> np.ndarray:
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


def _held_out_labels(model: Model, held: Examples, given: Labels) -> np.ndarray:
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
