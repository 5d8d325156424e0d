"""The protocol of a task: how its rows are read, learned, encoded, decided on and rated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from torch import nn

from skdice import backbones
from skdice._compat import check_feature_names
from skdice._types import Data, Encoder, Model, Rows, Weights
from skdice.engine import adapters
from skdice.engine.callbacks import highest
from skdice.engine.devices import resolve_device, seeded
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit_plan import Examples, Mode
from skdice.engine.module import (
    EncoderModule,
    EncoderWithHead,
    TaskModel,
    checkpoint_gradients,
    freeze,
)
from skdice.inputs.rows import check_weights
from skdice.text.encoding import Windows
from skdice.text.long_texts import Cuts

# Blocks of rows: sources and outputs, as in `Task.decide`.
Blocks = Iterable[tuple[list[Any], list[Any]]]


class Task(ABC):
    """The part of an estimator's fit and predictions that differs between tasks.

    A task has no state: `model` is always the estimator, whose parameters it reads and on which
    `learn` sets the fitted attributes (labels, scheme). A fit calls `examples`, `learn`, `strata`,
    `sampled`, `prepare_training`, `build`, `encode`, `dataset` and `criterion`, in this order: see
    `skdice.engine.fit_plan`. A prediction calls `inputs`, `sources`, `encode`, `row_outputs` and
    `decide`. What files ask of a task is in `skdice.tasks.files`, and what model cards ask in
    `skdice.tasks.cards`.
    """

    name: ClassVar[str]  # on the command line and in `Dataset`
    rows: ClassVar[str]  # in the words of a message, as "texts with entities"
    estimator: ClassVar[str]  # the name of its class in `skdice.estimators`
    head: ClassVar[str | None]  # of transformers, as in BertForTokenClassification
    tuned_by: ClassVar[str] = "BiasTunedClassifier"  # the estimator that tunes its decision
    judged_by: ClassVar[str] = "predict"  # the method whose rows `rate` takes
    judged: ClassVar[str] = "labels"  # or "spans" or "answers": what a report is about
    outputs: ClassVar[str] = "classes_"  # the attribute that names the outputs of the head
    has_classes: ClassVar[bool] = True  # otherwise positions in the text are predicted
    per_position: ClassVar[bool] = True  # otherwise the head sees whole texts
    has_words: ClassVar[bool] = True  # otherwise the backbone splits texts into words
    longest: ClassVar[int] = 512  # subwords of an input, unless `max_length` is set

    def __str__(self) -> str:
        return self.name

    # ---- rows of X and y

    @abstractmethod
    def inputs(self, X: Data) -> list[Any]:
        """Return the checked rows of X."""

    def passages(self, inputs: list[Any]) -> list[Any]:
        """Return the texts or tokens that spans are in."""
        return inputs

    @abstractmethod
    def read(self, model: Model, X: Data, y: Data) -> tuple[list[Any], Any]:
        """Return the checked rows of X and of y, as `fit`, `score` and folds take them."""

    def examples(self, model: Model, X: Data, y: Data, sample_weight: Weights = None) -> Examples:
        """Return rows to train on: sources, and targets in the form that `learn` takes."""
        inputs, targets = self.read(model, X, y)
        return Examples(inputs, targets, check_weights(sample_weight, len(inputs)))

    def check_test(self, y: Data, y_test: Data) -> None:
        """Refuse labels of test rows that training does not have."""

    def drawn_by(self, X: Data, y: Data) -> tuple[Any, Any]:
        """Return y as folds take it, and as samplers take it."""
        return y, y

    def check_columns(self, model: Model, X: Data, *, reset: bool = False) -> None:
        """Refuse a frame with other columns than `fit` saw, as scikit-learn does; reset learns."""
        if reset:
            model.__dict__.pop("_columns_unknown", None)
        if "_columns_unknown" not in vars(model):  # it was saved before names were
            check_feature_names(model, X, reset=reset)

    # ---- training

    def check_params(self, model: Model, mode: Mode) -> None:
        """Refuse parameters of the task that do not fit each other, or the head that is there."""

    def has_two_classes(self, model: Model) -> bool:
        """Return whether each text has one of two labels, which are trained at a lower rate."""
        return False

    @abstractmethod
    def learn(
        self, model: Model, data: Examples, held: Examples | None, mode: Mode, classes: Rows | None
    ) -> tuple[Examples, Examples | None]:
        """Set the labels on `model`, or check them against those of the last fit.

        Returns training and validation examples, their targets by the labels that were learned.
        """

    def strata(self, model: Model, data: Examples) -> Any:
        """Return a key for each row that a validation split keeps in proportion; None for none."""
        return None

    def sampled(self, model: Model, data: Examples) -> Any:
        """Return the y that a sampler sees."""
        return data.targets

    def prepare_training(self, model: Model, data: Examples, held: Examples | None) -> None:
        """Set on `model` what follows from the rows that are left to train on; warn of them."""

    @abstractmethod
    def n_outputs(self, model: Model) -> int:
        """Return the number of the head's outputs."""

    def uses_native_head(self, model: Model) -> bool:
        """Return whether the head is the architecture's own, as transformers has it."""
        config = backbones.load_config(model.backbone, model.revision)
        return backbones.class_with_head(self.head, config) is not None

    def assemble(self, model: Model, encoder: Encoder, n_outputs: int) -> EncoderModule:
        """Return the encoder with a head of skdice's own."""
        return EncoderWithHead(encoder, n_outputs, dropout=model.dropout)

    def build(
        self, model: Model, seed: int, inputs: Any = None, n_outputs: int | None = None
    ) -> None:
        """Set on `model` the tokenizer and a module: the encoder with a new head."""
        device = resolve_device(model.device)
        self.load_tokenizer(model)
        n_outputs = self.n_outputs(model) if n_outputs is None else n_outputs
        with seeded(seed, device):
            if self.uses_native_head(model):
                loaded = backbones.load_with_head(
                    model.backbone, str(self.head), n_outputs, model.revision
                )
                module: EncoderModule = TaskModel(loaded, str(self.head), model.dropout)
            else:
                encoder = backbones.load_encoder(model.backbone, model.revision)
                module = self.assemble(model, encoder, n_outputs)
        with seeded(seed, device):  # the model may have drawn numbers for a head of its own
            if isinstance(module, TaskModel):
                module.reset_output_layer()
            if model.adapter is not None:
                adapters.add_adapter(module, model.adapter)
        freeze(module, model.frozen)
        if model.gradient_checkpointing:
            checkpoint_gradients(module, True)
        model.module_ = module

    def load_tokenizer(self, model: Model) -> None:
        """Set on `model` the tokenizer of its backbone, unless it has one."""
        if not hasattr(model, "tokenizer_"):
            model.tokenizer_ = backbones.load_tokenizer(model.backbone, model.revision)

    def update_module(self, model: Model, module: EncoderModule) -> None:
        """Let a trained module take parameters of the head that were set since."""

    def sources(self, model: Model, inputs: list[Any]) -> list[Any]:
        """Return what `encode` and `decide` take: the inputs, or texts with their words."""
        return inputs

    @abstractmethod
    def encode(self, model: Model, sources: list[Any], cuts: Cuts | None = None) -> Windows[Any]:
        """Return the windows of `sources`; `cuts` counts what of them was left out."""

    def targets(self, model: Model, windows: Windows[Any], targets: Any) -> Any:
        """Return the target of each window, from those of the rows."""
        return [self.target(model, window, targets[window.row]) for window in windows]

    def target(self, model: Model, window: Any, of_row: Any) -> np.ndarray:
        """Return the target of a window, from that of its row."""
        raise NotImplementedError

    def dataset(
        self, model: Model, windows: Windows[Any], targets: Any, weights: np.ndarray | None
    ) -> EncodedDataset:
        """Return windows, each with its target, if there are targets, and the weight of its row."""
        if targets is not None:
            targets = self.targets(model, windows, targets)
        return EncodedDataset(windows, targets, None if weights is None else weights[windows.rows])

    @abstractmethod
    def criterion(
        self, model: Model, data: Examples, dataset: Any, drawn: np.ndarray | None
    ) -> nn.Module:
        """Return the loss, prepared with the counts of the training data.

        `drawn` are the rows of `dataset` that the first epoch trains on; None for all.
        """

    def named(self, model: Model) -> Callable[[Any, Any], Any]:
        """Return what tells the classes that outputs name, as in `Predicted`."""
        return highest

    def nothing_found(self, model: Model, seen: np.ndarray) -> str | None:
        """Return what a model does that named these classes only; None if that is fine."""
        names = getattr(model, self.outputs)[seen].tolist()
        return None if len(names) > 1 else f"predicts {names[0]!r} only"

    def after_training(self, model: Model, held: Examples | None, blocks: Blocks) -> None:
        """Tune on validation rows what can be tuned; `blocks` are those of `validation_score`."""

    # ---- predictions

    @abstractmethod
    def row_outputs(self, model: Model, rows: Iterable[Any]) -> list[Any]:
        """Return for each row what follows from its windows and their logits.

        That is log-probabilities of tags, logits of classes, or candidates of answers and spans.
        Each of `rows` is a list of windows with their logits.
        """

    @abstractmethod
    def decide(self, model: Model, sources: list[Any], outputs: Iterable[Any]) -> Any:
        """Return what `predict` gives for each row, from its `row_outputs`."""

    def validation_score(self, model: Model, held: Examples, blocks: Blocks) -> float:
        """Return F1 from 0 to 1 on validation rows; `blocks` are sources and outputs of some."""
        found = [row for block in blocks for row in self.decide(model, *block)]
        return float(self.rate(model, held.targets, found)["f1"])

    # ---- scores

    def paired_spans(
        self, model: Model, inputs: list[Any], true: Rows, predicted: Rows
    ) -> tuple[list[list[Any]], list[list[Any]]]:
        """Return true and predicted spans as (type, start, end), if the task is judged by spans."""
        raise NotImplementedError

    def truth(self, model: Model, X: Data, y: Data) -> Any:
        """Return the checked rows of y as `rate` takes them."""
        self.check_columns(model, X)
        return self.read(model, X, y)[1]

    @abstractmethod
    def rate(self, model: Model, true: Rows, predicted: Iterable[Any]) -> dict[str, float]:
        """Return the scores of what `judged_by` gave, with ``f1`` among them."""

    def cost(self, model: Model, inputs: Data, true: Rows, predicted: Rows) -> dict[str, float]:
        """Return the mean ``cost`` of a row, if the decision was tuned for one."""
        return {}

    @abstractmethod
    def measure(self, model: Model) -> str:
        """Return the words for what `rate` counts."""
