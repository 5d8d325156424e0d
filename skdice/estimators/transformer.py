"""What the text estimators share: a backbone, its net, predictions, files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags

from skdice import backbones
from skdice._checks import checked, naming
from skdice._compat import HasMethods, Interval, StrOptions
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine import adapters
from skdice.engine.arrays import BLOCK
from skdice.engine.batching import EncodedDataset, Padder
from skdice.engine.devices import autocast_dtype, resolve_device, seeded
from skdice.engine.features import run_encoder
from skdice.engine.module import (
    EncoderModule,
    EncoderWithHead,
    TaskModel,
    checkpoint_gradients,
    copy_out_of_file,
    freeze,
)
from skdice.engine.net import FineTuningNet
from skdice.engine.plan import Examples, FitPlan, Mode
from skdice.estimators import storage
from skdice.estimators.checks import OF_TEXT_NET, check_validation, split_indices
from skdice.estimators.chosen import Chosen
from skdice.estimators.hub import PushToHub, local_folder
from skdice.estimators.streams import StreamedPredictions
from skdice.text.encoding import Window, Windows
from skdice.text.subwords import text_blocks

# Fitted attributes that not every estimator has.
_OPTIONAL = ("positive_", "_seen", "_sharpness")
# Those that are arrays.
_ARRAYS = ("classes", "tags")
CHARACTERS = 2**24  # of the texts that are predicted at a time, however few they are


@dataclass(kw_only=True, eq=False, repr=False)
class _Backbone:  # the last base, whose field is the first parameter of a signature
    backbone: str = DEFAULT_BACKBONE


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerEstimator(PushToHub, StreamedPredictions, Chosen, _Backbone):
    """Base of the text estimators.

    A subclass adds the parameters of its task, and defines ``_read`` (X and y as `Examples`),
    ``_plan`` (from examples to a `FitPlan`), ``_windows`` (encoded inputs), ``_target`` (of a
    window), ``evaluate`` and ``_fitted_of`` (what is known of a model of transformers).
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Chosen._parameter_constraints,
        "backbone": [str, Path],
        "max_length": [Interval(Integral, 4, None, closed="left"), None],
        **OF_TEXT_NET,
        "frozen": [
            StrOptions({"none", "embeddings", "encoder"}),
            Interval(Integral, 0, None, closed="left"),
        ],
        "adapter": [StrOptions({"lora"}), HasMethods(["to_dict", "save_pretrained"]), None],
        "gradient_checkpointing": ["boolean"],
        "warm_start": ["boolean"],
    }
    max_length: int | None = None
    batch_size: int = 32
    gradient_accumulation: int = 1
    max_grad_norm: float | None = 1.0
    weight_decay: float = 0.01
    warmup: float = 0.1
    dropout: float = 0.1
    frozen: str | int = "none"
    adapter: Any = None
    gradient_checkpointing: bool = False
    precision: str = "auto"
    warm_start: bool = False

    tokenizer_: Any = field(init=False)

    _module: EncoderModule = field(init=False)
    _padder: ClassVar[type[Padder]] = Padder
    _longest: ClassVar[int] = 512  # subwords of an input, unless `max_length` is set
    # Fitted attributes that `save_pretrained` writes beside parameters and weights.
    _saved: ClassVar[tuple[str, ...]] = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    # ---- before training

    @property
    def _outputs(self) -> np.ndarray:
        """What the outputs of the head stand for."""
        return self.classes_

    def _check_params(self, mode: Mode = "fresh") -> None:
        """Refuse bad parameters; further training needs no `backbone`, which may be gone."""
        super()._check_params()
        if self.adapter is not None:
            adapters.peft()
            if self.frozen != "none":
                raise ValueError(
                    f"frozen={self.frozen!r} and adapter={self.adapter!r}: an adapter freezes the "
                    "whole encoder by itself; leave frozen='none'"
                )
        if mode == "fresh":
            backbones.find_backbone(self.backbone)

    def _fit(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Self:
        """Plan a fit on a copy, so that a refused fit changes nothing, and run it."""
        warm = hasattr(self, "net_") and np.array_equal(self.warm_start, True)
        mode: Mode = "warm" if warm else "fresh"
        return self._run(self._draft()._prepare(X, y, sample_weight, X_val, y_val, mode=mode))

    def _prepare(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        *,
        mode: Mode,
        **options: Any,
    ) -> FitPlan:
        """Check parameters and data, and plan a fit on them; `options` are for ``_plan``."""
        self._check_params(mode)
        check_validation(X_val, y_val)
        data = self._read(X, y, sample_weight)
        # This reads on another copy: `_read` must learn from the training data only.
        held = None
        if X_val is not None:
            with naming({"X": "X_val", "y": "y_val"}):
                held = self._draft()._read(X_val, y_val)
        plan = self._plan(data, held, mode, **options)
        return replace(plan, mode=mode, epochs=options.get("epochs"), fitted=self.__dict__)

    def _hold_out(
        self, data: Examples, held: Examples | None, seed: int, strata: Any = None
    ) -> tuple[Examples, Examples | None]:
        """Training and validation examples; with `early_stopping` some rows are set aside."""
        if held is not None or not self.early_stopping:
            return data, held
        keys = [tuple(row) if isinstance(row, list) else row for row in data.inputs]
        kept, rows = split_indices(keys, self.validation_fraction, seed, strata)
        return data.take(kept), data.take(rows)

    def _build(self, n_outputs: int, seed: int) -> None:
        """Load tokenizer and encoder, add a new head, and drop the last fit."""
        tokenizer, device = backbones.load_tokenizer(self.backbone), resolve_device(self.device)
        with seeded(seed, device):
            if self._has_task_model():
                model = backbones.load_task_model(self.backbone, self.task, n_outputs)
                module: EncoderModule = TaskModel(model, self.task, self.dropout)
            else:
                module = self._assemble(backbones.load_encoder(self.backbone), n_outputs)
        with seeded(seed, device):
            if isinstance(module, TaskModel):
                module.reset_output_layer()
            if self.adapter is not None:
                adapters.add_adapter(module, self.adapter)
        freeze(module, self.frozen)
        copy_out_of_file(module)
        checkpoint_gradients(module, self.gradient_checkpointing)
        for name in ("net_", "history_", "n_iter_", "_sharpness"):
            self.__dict__.pop(name, None)
        self.tokenizer_, self._module = tokenizer, module

    def _has_task_model(self) -> bool:
        """Whether transformers has a head for this task on this architecture."""
        return backbones.task_class(self.task, backbones.load_config(self.backbone)) is not None

    def _assemble(self, encoder: Any, n_outputs: int) -> EncoderModule:
        """The encoder with a head of skdice's own."""
        return EncoderWithHead(encoder, n_outputs, dropout=self.dropout)

    def _max_length(self) -> int:
        encoder = self._module.encoder
        return backbones.input_length(self.max_length, encoder, self.tokenizer_, self._longest)

    def _encode(
        self, inputs: Any, targets: Any = None, weights: np.ndarray | None = None
    ) -> EncodedDataset:
        """Windows of the inputs, each with its target and the weight of its row."""
        windows = self._windows(inputs)
        if targets is not None:
            targets = self._targets(windows, targets)
        return EncodedDataset(windows, targets, None if weights is None else weights[windows.rows])

    def _targets(self, windows: Windows[Any], targets: Any) -> Any:
        return [self._target(window, targets[window.row]) for window in windows]

    # ---- the net

    def _make_net(self, criterion: Any, seed: int) -> FineTuningNet:
        settings = self._net_settings(
            criterion,
            seed,
            padder=self._padder.of(self.tokenizer_),
            gradient_accumulation=self.gradient_accumulation,
            max_grad_norm=self.max_grad_norm,
            precision=self.precision,
        )
        return FineTuningNet(self._module, **settings)

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        if plan.mode == "warm":  # the parameters may have been set since
            self._module = copy.deepcopy(self._module)
            freeze(self._module, self.frozen)
            checkpoint_gradients(self._module, self.gradient_checkpointing)
            self._module.set_dropout(self.dropout)
        net = super()._net_for(plan)
        self._module = net.module_
        return net

    def _spread(self, plan: FitPlan) -> float:
        if plan.epochs is not None:  # partial_fit is called often, and each call is short
            return 0.0
        # The shorter rows tell as much in less time.
        shorter = np.argsort(plan.dataset.lengths, kind="stable")[: len(plan.dataset) // 2 + 4]
        rows = np.unique(shorter[np.linspace(0, len(shorter) - 1, 8).astype(int)])
        logits = self.net_.logits(EncodedDataset([plan.dataset.windows[i] for i in rows]))
        if len({row.shape[-1] for row in logits}) > 1:  # an output for each pair of tokens
            logits = [row.reshape(-1, 1) for row in logits]
        return float(np.vstack(logits).std(axis=0).max())

    # ---- predictions

    def score(self, X: Any, y: Any) -> float:
        """F1 as in `evaluate`, from 0 to 1."""
        return self.evaluate(X, y)["f1"]

    def _validation_score(self, held: Examples) -> float:
        # Not `score`, which may refuse classes that training did not hold.
        return self.evaluate(held.inputs, held.targets)["f1"]

    def _predicted(self, inputs: Any, *options: Any) -> Iterator[list[tuple[Any, np.ndarray]]]:
        """For each input its windows with their logits in float64; encoded block by block.

        `options` are for ``_encode``, behind targets and weights.
        """
        for part in text_blocks(inputs, BLOCK, CHARACTERS):
            dataset = self._encode(inputs[part], None, None, *options)
            windows, logits = dataset.windows, self.net_.logits(dataset)
            ends = np.searchsorted(windows.rows, np.arange(part.stop - part.start + 1))
            for start, end in pairwise(ends.tolist()):
                yield [(windows[i], logits[i].astype(np.float64)) for i in range(start, end)]

    def _frozen(self, windows: Sequence[Window], pooling: str | None = None) -> list[np.ndarray]:
        """Vectors of windows from the present encoder: pooled, or one for each position."""
        device = resolve_device(self.device)
        return run_encoder(
            self._module.encoder,
            self._padder.of(self.tokenizer_),
            windows,
            pooling=pooling,
            batch_size=max(self.batch_size, 64),
            device=device,
            dtype=autocast_dtype(self.precision, device),
        )

    # ---- adapters

    def merge_adapter(self) -> Self:
        """Add the trained adapter into the weights, so that the model is an ordinary one.

        Predictions stay the same to rounding; `save_pretrained` then writes all weights. The next
        `fit` adds a new adapter as long as `adapter` is set.

        Returns
        -------
        self

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If it has no adapter.
        """
        self._check_fitted()
        if not self._module.adapted:
            raise ValueError("there is no adapter to merge: fit with adapter='lora'")
        self._module = adapters.merge_adapter(self._module)
        return storage.ready(self, self.history_, self.device)

    # ---- files

    def __getstate__(self) -> dict[str, Any]:
        """The module is written once, with the net."""
        state = dict(super().__getstate__())
        if "net_" in state:
            state.pop("_module", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Let the net and the estimator share one module again."""
        super().__setstate__(state)
        if hasattr(self, "net_"):
            self._module = self.net_.module_

    @checked
    def save_pretrained(
        self, folder: str | Path, *, metrics: dict[str, float] | None = None
    ) -> Path:
        """Write the fitted estimator as a model of transformers, with all other state as JSON.

        Where the head is the architecture's own (taggers, readers and ``pooling="native"``), the
        folder is read by ``AutoModelFor...``, ``pipeline`` and any server of such models. Only
        skdice reads other heads: transformers refuses the folder, while ``backbone=folder`` and
        ``AutoModel.from_pretrained(folder / "encoder")`` take the encoder from it. `callbacks`,
        `net_params`, `sampler` and a `random_state` that is not an int are not written.

        Parameters
        ----------
        folder : str or Path
            Made if missing. It gets ``config.json``, ``model.safetensors``, the tokenizer's files,
            ``README.md`` (the model card) and ``skdice.json``. A model that was there is replaced
            as a whole, when the new one is complete; other files stay. If others wrote or changed
            the README.md, that stays too, and the card is ``MODEL_CARD.md``.
        metrics : dict or None, default=None
            Scores for the model card, such as ``{"test F1": 0.471}``.

        Returns
        -------
        Path
            The folder.

        Warns
        -----
        UserWarning
            If one of the parameters that are not written is set, or the tags are in a scheme that
            pipelines of transformers do not join.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the loss is not one of skdice's own (pickle the estimator instead).
        ValueError
            If the folder is a file, a mount point, or the working or home directory or above one,
            none of which can be replaced; if weights are NaN.
        OSError
            If the folder or the one that holds it cannot be written; what was there stays.
        """
        self._check_fitted()
        return storage.save(self, folder, metrics)

    @classmethod
    @checked
    def from_pretrained(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Read an estimator that `save_pretrained` wrote; nothing in the files is executed.

        It predicts as before and can be trained further. `callbacks`, `net_params` and `sampler`
        are None, and ``history_`` holds what JSON can hold of it.

        Parameters
        ----------
        folder : str or Path
            A folder, or the id of a repository on the hub. A folder is read without the network.
        device : str, default="auto"
            Device to predict on.

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the folder holds no estimator of this class, if any file of the model is missing,
            new, or not as it was saved, or if weights are NaN.
        """
        return storage.load(cls, local_folder(folder), device)

    @classmethod
    @checked
    def from_transformers(cls, folder: str | Path, *, device: str = "auto", **params: Any) -> Self:
        """A fitted estimator around a model of transformers that others fine-tuned for the task.

        It can predict, be scored and tuned, and be trained further with another loss by
        `partial_fit` or ``warm_start=True``. Labels come from the model's ``id2label``, sorted as
        always in scikit-learn.

        Parameters
        ----------
        folder : str or Path
            A folder, or the id of a model on the hub.
        device : str, default="auto"
        **params : dict
            Of the estimator, such as ``loss="dsc"``. In a classifier `pooling` is ``"native"``, and
            of two classes the model's second is the positive one unless `pos_label` names the
            other.

        Returns
        -------
        estimator

        Warns
        -----
        UserWarning
            If the model has no names for its labels, which are then ``LABEL_0``, ``LABEL_1``...

        Raises
        ------
        ValueError
            If the model is of another task, has missing or surplus weights, has one label only, or
            asks for code of its own.
        TypeError
            If it is a `DiceMRCTagger`, whose heads no model of transformers has.
        """
        return storage.wrap(cls, folder, device, params)

    def _fitted_state(self) -> dict[str, Any]:
        """Fitted attributes, other than parameters and weights, that `save_pretrained` writes."""
        names = (*self._saved, *_OPTIONAL)
        return {name.strip("_"): getattr(self, name) for name in names if hasattr(self, name)}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        for name in (*self._saved, *_OPTIONAL):
            key = name.strip("_")
            if name in self._saved or key in state:
                setattr(self, name, np.array(state[key]) if key in _ARRAYS else state[key])
