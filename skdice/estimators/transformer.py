"""Base of the text estimators: a backbone, its net, predictions, files."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from torch import nn

from skdice import backbones
from skdice._checks import checked
from skdice._compat import HasMethods, Interval, StrOptions
from skdice._types import Data, Rows, Weights
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine import adapters, devices
from skdice.engine.ahead import ahead
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit_plan import FitPlan, Mode, plan_fit
from skdice.engine.layouts.layout import Padding
from skdice.engine.module import EncoderModule, checkpoint_gradients, freeze
from skdice.engine.net import FineTuningNet
from skdice.engine.recipe import check_optimizer
from skdice.engine.vectors import BLOCK, BLOCK_ON_GPU
from skdice.estimators import hub, storage
from skdice.estimators._net_estimator import NetEstimator
from skdice.estimators.evaluation import Scored
from skdice.inputs.rows import object_array
from skdice.tasks import Task
from skdice.text.encoding import Windows, text_blocks
from skdice.text.long_texts import Cuts

CHARACTERS = 2**24  # of the texts that are predicted at a time, however few they are
# Fitted attributes that not every estimator has.
_OPTIONAL = ("positive_", "class_counts_", "n_samples_seen_")
_ARRAYS = ("classes", "tags", "class_counts")
Blocks = Iterator[tuple[list[Any], list[Any]]]  # inputs of a block, and something for each
_AUTO = {
    name: [*NetEstimator._parameter_constraints[name], StrOptions({"auto"})]
    for name in ("max_epochs", "lr", "n_iter_no_change")
}


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerEstimator(hub.Pushed, Scored, NetEstimator):
    """Base of the text estimators.

    A subclass has a `task`, the parameters of that task, and the methods that predict.

    Parameters
    ----------
    backbone : str
        An encoder or decoder that `AutoModel` loads, by hub id or local folder.
    revision : str or None
        A branch, a tag or a commit of the backbone on the hub; None is its newest commit.
    max_length : int or None
        Longest window in subwords; None is what the backbone allows, 512 at most.
    max_epochs : int or "auto"
        Number of passes over the training data. ``"auto"`` takes many passes over few rows and few
        over many: about 500 updates, in 3 to 30 passes. See :doc:`/guide/recipe`.
    lr : float or "auto"
        Peak learning rate of AdamW. ``"auto"`` follows from the width of the encoder, `frozen`,
        `adapter`, and the rows of an update where they are few.
    batch_size : int
        Rows in a batch.
    gradient_accumulation : int
        Batches per update: the same update as with one batch of all rows, in less memory.
    max_grad_norm : float or None
        The gradient is clipped to this norm; None does not clip.
    dropout : float
        Dropout before the head.
    frozen : int, "embeddings", "encoder" or None
        Parts not to train. An int freezes the embeddings and that many of the lowest layers.
    adapter : "lora", peft.PeftConfig or None
        Train only the head and small matrices beside the encoder's weights, which saves memory
        for large models. Needs the extra ``skdice[peft]``; see `merge_adapter`.
    gradient_checkpointing : bool
        Keep only each layer's input for the backward pass: half the memory for long texts.
    precision : {"auto", "fp32", "fp16", "bf16"}
        Number format of training and prediction. ``"auto"`` is bf16 on CUDA (fp16 on older GPUs).
        On a CPU it predicts in fp32, and trains in bf16 if the processor multiplies matrices at
        least 1.2 times as fast in it, which is measured once in a process. Small encoders train in
        fp32. The last layer and the loss are always fp32. On a fitted estimator it acts at once, as
        do `device`, `batch_size` and `max_length`.
    early_stopping : bool
        Stop when `score` on validation texts stops rising, and restore the best epoch.
    n_iter_no_change : int or "auto"
        Epochs without a better score before `early_stopping` ends the fit. ``"auto"``
        is a third of the epochs, but at least 3.
    net_params : dict or None
        Further settings of the skorch net, as in skorch's documentation, such as
        ``{"optimizer": torch.optim.NAdam}``. They override parameters of the same name. With
        ``{"optimizer__param_groups": [("head*", {"lr": 1e-3})]}`` the parameters of these names
        (the encoder's begin with ``encoder``) have their own settings; `schedule` scales the rate.
        Refused are ``module``, ``criterion``, ``callbacks``, ``train_split``, ``warm_start`` and
        ``compile``.
    warm_start : bool
        Start `fit` from the weights of the last fit. Rate and epochs are chosen as for a first fit.
        Another `backbone` or `adapter` than that of the last fit is refused.
    verbose : int
        Above 0, print the rate, the number of epochs and updates, and the precision, then skorch's
        table of epochs; in a terminal also its progress bar. With `checkpoint_dir` it says whether
        the fit begins, goes on, or was finished before.

    Attributes
    ----------
    tokenizer_ : transformers tokenizer
    """

    task: ClassVar[Task]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetEstimator._parameter_constraints,
        **_AUTO,
        "backbone": [str, Path],
        "revision": [str, None],
        "max_length": [Interval(Integral, 4, None, closed="left"), None],
        "gradient_accumulation": [Interval(Integral, 1, None, closed="left")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "precision": [StrOptions({"auto", "fp32", "fp16", "bf16"})],
        "frozen": [
            StrOptions({"embeddings", "encoder"}),
            Interval(Integral, 0, None, closed="left"),
            None,
        ],
        "adapter": [StrOptions({"lora"}), HasMethods(["to_dict", "save_pretrained"]), None],
        "gradient_checkpointing": ["boolean"],
        "warm_start": ["boolean"],
    }
    backbone: str = DEFAULT_BACKBONE
    revision: str | None = None
    max_length: int | None = None
    max_epochs: int | str = "auto"
    lr: float | str = "auto"
    batch_size: int = 32
    gradient_accumulation: int = 1
    max_grad_norm: float | None = 1.0
    weight_decay: float = 0.01
    warmup: float = 0.1
    dropout: float = 0.1
    frozen: str | int | None = None
    adapter: Any = None
    gradient_checkpointing: bool = False
    precision: str = "auto"
    n_iter_no_change: int | str = "auto"
    warm_start: bool = False

    tokenizer_: Any = field(init=False)
    module_: EncoderModule = field(init=False)

    # Fitted attributes that `save_pretrained` writes beside parameters and weights.
    _saved: ClassVar[tuple[str, ...]] = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    @property
    def max_length_(self) -> int:
        """The longest input of the fitted model, in subwords."""
        of_model = self.module_.encoder, self.tokenizer_, self.task.longest
        return backbones.input_length(self.max_length, *of_model)

    @property
    def outputs_(self) -> np.ndarray:
        """The labels or tags that the outputs of the head stand for."""
        names: np.ndarray = getattr(self, self.task.outputs)
        return names

    # ---- training

    def _check_params(self, mode: Mode = "fresh", validated: bool = True) -> None:
        """Refuse bad parameters; further training needs no `backbone`, which may be gone."""
        super()._check_params(mode, validated)
        check_optimizer(self)
        if self.adapter is not None:
            adapters.peft()
            if self.frozen is not None:
                raise ValueError(
                    f"frozen={self.frozen!r} and adapter={self.adapter!r}: an adapter freezes the "
                    "whole encoder by itself; leave frozen=None"
                )
        if mode == "fresh":
            backbones.find_backbone(self.backbone, self.revision)
            return
        now = storage.made_of(self)
        for name, (checksum, before) in self.module_.made_of.items():
            anew = name == "frozen" and mode == "warm"  # which a warm start sets
            if now[name][0] != checksum and not anew:
                raise ValueError(
                    f"{name}={now[name][1]} is not what the model was fitted with, which was "
                    f"{before}: further training goes on with that. Set it back, or fit anew, "
                    "with warm_start=False"
                )

    @available_if(lambda self: self.task.has_classes)
    def partial_fit(
        self, X: Data, y: Data, classes: Rows | None = None, *, sample_weight: Weights = None
    ) -> Self:
        """Train one more epoch on these examples, at the constant rate `lr`.

        With ``lr="auto"`` that is a third of the rate of `fit`, whose rate falls.

        Class counts for the loss add up over all calls since the last `fit`. `sampler` is not used.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array or list of shape (n_classes,), default=None
            All labels or tags that will ever be seen. The first call needs it unless its `y` holds
            them all: later calls refuse others.

        Returns
        -------
        self

        Notes
        -----
        If training raises, weights, counts and history are again those before the call. Only the
        optimiser's averages are not: the next call starts with new ones.
        """
        mode: Mode = "partial" if hasattr(self, "net_") else "fresh"
        self._check_params(mode, validated=False)
        return self._run(plan_fit(self, X, y, sample_weight, mode=mode, classes=classes, epochs=1))

    def _make_net(
        self, criterion: nn.Module, seed: int, callbacks: list[Any] | None = None
    ) -> FineTuningNet:
        settings = self._net_settings(
            criterion,
            seed,
            callbacks,
            padding=Padding.of(self.tokenizer_),
            gradient_accumulation=self.gradient_accumulation,
            max_grad_norm=self.max_grad_norm,
            precision=self.precision,
        )
        return FineTuningNet(self.module_, **settings)

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        if plan.mode == "warm":  # the parameters may have been set since
            self.module_ = copy.deepcopy(self.module_)
            freeze(self.module_, self.frozen)
            checkpoint_gradients(self.module_, self.gradient_checkpointing)
            self.module_.set_dropout(self.dropout)
            self.task.update_module(self, self.module_)
        if plan.mode != "partial":
            self.module_.made_of = storage.made_of(self)
        net = super()._net_for(plan)
        self.module_ = net.module_
        return net

    def _resolve_schedule(self, plan: FitPlan) -> None:
        super()._resolve_schedule(plan)
        if plan.cuts.n_cut:
            self._tell(plan.cuts)

    # ---- predictions

    def _windows_with_logits(self, inputs: list[Any]) -> Blocks:
        """Sources of a block of inputs, and for each the windows with logits in float64."""
        cuts, on_gpu = Cuts(), devices.is_gpu(self.net_.device)
        parts = text_blocks(inputs, BLOCK_ON_GPU if on_gpu else BLOCK, CHARACTERS)
        encoded = (self._encoded(inputs[part], cuts) for part in parts)
        for sources, windows in ahead(encoded) if on_gpu else encoded:
            yield sources, self._logits_by_row(len(sources), EncodedDataset(windows))
        self._tell(cuts)

    def _encoded(self, inputs: list[Any], cuts: Cuts) -> tuple[list[Any], Windows[Any]]:
        sources = self.task.sources(self, inputs)
        return sources, self.task.encode(self, sources, cuts)

    def _logits_by_row(self, n_rows: int, dataset: EncodedDataset) -> list[Any]:
        windows, logits = dataset.windows, self.net_.logits(dataset)
        ends = np.searchsorted(windows.rows, np.arange(n_rows + 1))
        pairs = [(windows[i], z.astype(np.float64)) for i, z in enumerate(logits)]
        return [pairs[start:end] for start, end in pairwise(ends.tolist())]

    def _outputs_of(self, sources: Any, encoded: EncodedDataset) -> list[Any]:
        return self.task.row_outputs(self, self._logits_by_row(len(sources), encoded))

    def _row_outputs(self, inputs: list[Any]) -> Blocks:
        for sources, rows in self._windows_with_logits(inputs):
            yield sources, self.task.row_outputs(self, rows)

    def _known_inputs(self, X: Data) -> Any:
        """Rows for a fitted estimator, checked against what `fit` saw."""
        self._check_fitted()
        self.task.check_columns(self, X)
        return self.task.inputs(X)

    def _each(self, found: Callable[..., Iterable[Any]], X: Data) -> np.ndarray:
        """An array of what a method of the task gives for each row of X."""
        blocks = self._row_outputs(self._known_inputs(X))
        return object_array([row for block in blocks for row in found(self, *block)])

    def _tell(self, cuts: Cuts) -> None:
        """Warn of texts that were cut."""
        if cuts.n_cut:
            cuts.tell(self.max_length_, getattr(self, "long_texts", "windows"))

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
        if not self.module_.adapted:
            raise ValueError("there is no adapter to merge: fit with adapter='lora'")
        self.module_ = adapters.merge_adapter(self.module_)
        return storage.ready(self, self.history_)

    # ---- files

    def __getstate__(self) -> dict[str, Any]:
        """The module is written once, with the net."""
        state = dict(super().__getstate__())
        if "net_" in state:
            state.pop("module_", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Let the net and the estimator share one module again."""
        super().__setstate__(state)
        if hasattr(self, "net_"):
            self.module_ = self.net_.module_

    @checked
    def save_pretrained(
        self,
        folder: str | Path,
        *,
        metrics: dict[str, float] | None = None,
        card: dict[str, Any] | None = None,
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
            Scores for the model card, such as ``model.evaluate(X_test, y_test)``.
        card : dict or None, default=None
            More of the card's metadata, by the hub's names, such as ``{"language": "en",
            "datasets": "sms_spam", "license": "mit"}``. The license is the backbone's if its
            README.md is on this machine and says one; `metrics` become the ``model-index``.

        Returns
        -------
        Path
            The folder.

        Warns
        -----
        ServingWarning
            If one of the parameters that are not written is set, or if a pipeline of transformers
            cannot join the tags.

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
        return storage.save(self, folder, metrics, card)

    @classmethod
    @checked
    def from_pretrained(
        cls, folder: str | Path, *, device: str = "auto", revision: str | None = None
    ) -> Self:
        """Read an estimator that `save_pretrained` wrote; nothing in the files is executed.

        It predicts as before and can be trained further. `callbacks`, `net_params` and `sampler`
        are None, and ``history_`` holds what JSON can hold of it.

        Parameters
        ----------
        folder : str or Path
            A folder, or the id of a repository on the hub. A folder is read without the network;
            the backbone of an adapter must be there too, or in the hub's cache.
        device : str, default="auto"
            Device to predict on.
        revision : str or None, default=None
            A branch, a tag or a commit of the repository; None is its newest commit.

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the folder holds no estimator of this class, if any file of the model is missing,
            new, or not as it was saved, if weights are NaN, or if an adapter's backbone is not on
            this machine or has other weights.
        """
        return storage.load(cls, hub.local_folder(folder, revision), device)

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
            Of the estimator, such as ``loss="dsc"`` or `revision`. In a classifier `pooling` is
            ``"native"``, and of two classes the model's second is the positive one unless
            `pos_label` names the other.

        Returns
        -------
        estimator

        Warns
        -----
        ServingWarning
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
        state = {name.strip("_"): getattr(self, name) for name in names if hasattr(self, name)}
        if "classes" in state:
            state["classes_dtype"] = state["classes"].dtype.str
        return {**state, "feature_names_in": getattr(self, "feature_names_in_", None)}

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        for name in (*self._saved, *_OPTIONAL):
            key = name.strip("_")
            if name in self._saved or key in state:
                setattr(self, name, np.array(state[key]) if key in _ARRAYS else state[key])
        if np.dtype(state.get("classes_dtype", "O")).kind in "iu":  # JSON has one kind of int
            self.classes_: np.ndarray = np.array(state["classes"], dtype=state["classes_dtype"])
        if "feature_names_in" not in state:  # a folder of before, or a model of transformers
            self._columns_unknown = True
        elif state["feature_names_in"] is not None:
            self.feature_names_in_: np.ndarray = np.array(state["feature_names_in"], dtype=object)
