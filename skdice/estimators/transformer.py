"""What the text estimators share: a backbone, its net, vectors of the frozen encoder, files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_softmax
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdice import backbones
from skdice._compat import HasMethods, Interval, StrOptions
from skdice.backbones import DEFAULT_BACKBONE
from skdice.engine import adapters
from skdice.engine.batching import EncodedDataset, Padder
from skdice.engine.devices import autocast_dtype, resolve_device, seeded
from skdice.engine.features import run_encoder
from skdice.engine.module import (
    EncoderModule,
    EncoderWithHead,
    TaskModel,
    checkpoint_gradients,
    freeze,
)
from skdice.engine.net import FineTuningNet
from skdice.engine.plan import Examples, FitPlan, Mode
from skdice.estimators._net_estimator import NetEstimator
from skdice.estimators.checks import check_device, check_validation, own_loss
from skdice.losses import Loss
from skdice.resampling.batches import check_sampler, draw_rows
from skdice.text.encoding import Window

__all__ = ["TransformerEstimator"]


@dataclass(kw_only=True, eq=False, repr=False)
class TransformerEstimator(NetEstimator):
    """Base of the text estimators; a subclass adds its task's parameters and steps."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetEstimator._parameter_constraints,
        "backbone": [str, Path],
        "max_length": [Interval(Integral, 4, None, closed="left"), None],
        "gradient_accumulation": [Interval(Integral, 1, None, closed="left")],
        "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
        "frozen": [
            StrOptions({"none", "embeddings", "encoder"}),
            Interval(Integral, 0, None, closed="left"),
        ],
        "adapter": [StrOptions({"lora"}), HasMethods(["to_dict", "save_pretrained"]), None],
        "precision": [StrOptions({"auto", "fp32", "fp16", "bf16"})],
        "gradient_checkpointing": ["boolean"],
        "warm_start": ["boolean"],
    }
    backbone: str = DEFAULT_BACKBONE
    max_length: int | None = None
    max_epochs: int = 3
    lr: float = 1e-4
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
    n_iter_no_change: int = 3
    warm_start: bool = False

    sampler = None  # a parameter of the estimators that can draw rows

    tokenizer_: Any = field(init=False)

    _module: EncoderModule = field(init=False)
    # Examples of each class, and in all, since the last fit: calls of partial_fit add to them.
    _seen: np.ndarray | None = field(init=False)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    # ---- before training

    def _check_params(self, mode: Mode = "fresh") -> None:
        """Refuse bad parameters; a net that goes on needs no `backbone`, which may be gone."""
        super()._check_params()
        if self.sampler is not None:
            check_sampler(self.sampler)
        if self.adapter is not None:
            adapters.peft()
            if self.frozen != "none":
                raise ValueError(
                    f"frozen={self.frozen!r} and adapter={self.adapter!r}: an adapter freezes the "
                    "whole encoder by itself; leave frozen='none'"
                )
        if mode == "fresh":
            backbones.find_backbone(self.backbone)
        if self.precision == "fp16" and check_device(self.device) == "cpu":
            raise ValueError("precision='fp16' needs a GPU: use 'auto', 'bf16' or 'fp32' on a CPU")

    def _mode_of_fit(self) -> Mode:
        return "warm" if self.warm_start and hasattr(self, "net_") else "fresh"

    def _mode_of_partial_fit(self) -> Mode:
        return "partial" if hasattr(self, "net_") else "fresh"

    def _read_all(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any, mode: Mode
    ) -> tuple[Examples, Examples | None]:
        """Checked training and validation examples, after the parameters were checked."""
        self._check_params(mode)
        check_validation(X_val, y_val)
        data = self._read(X, y, sample_weight)
        return data, None if X_val is None else self._read(X_val, y_val)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Examples:
        """The task's inputs and targets, checked."""
        raise NotImplementedError

    def _draw_epochs(self, y: Any, seed: int) -> Callable[[int], np.ndarray] | None:
        """From an epoch's number to the rows that `sampler` draws for it."""
        if self.sampler is None:
            return None

        @lru_cache(maxsize=1)  # the first epoch's rows are also counted and checked
        def rows(epoch: int) -> np.ndarray:
            mixed = np.random.default_rng([seed, epoch]).integers(2**31 - 1)
            return draw_rows(self.sampler, y, int(mixed))

        rows(0)  # a strategy that cannot be is refused before anything is loaded
        return rows

    def _build(self, n_outputs: int, seed: int) -> None:
        """Load tokenizer and encoder, put a new head on them, and let go of the last fit."""
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
        backbones.check_max_length(self.max_length, module.encoder, tokenizer, self.backbone)
        freeze(module, self.frozen)
        checkpoint_gradients(module, self.gradient_checkpointing)
        for name in ("net_", "history_", "n_iter_"):
            self.__dict__.pop(name, None)
        self.tokenizer_, self._module = tokenizer, module

    def _has_task_model(self) -> bool:
        """Whether the head is that of the architecture, which transformers knows."""
        return backbones.task_class(self.task, backbones.load_config(self.backbone)) is not None

    def _assemble(self, encoder: Any, n_outputs: int) -> EncoderModule:
        """The encoder with a head of skdice's own."""
        return EncoderWithHead(encoder, n_outputs, dropout=self.dropout)

    def _max_length(self) -> int:
        return backbones.input_length(self.max_length, self._module.encoder, self.tokenizer_)

    def _encode_windows(self, data: Examples) -> EncodedDataset:
        """Windows with a target for each, for tasks whose windows overlap."""
        windows = self._windows(data.inputs)
        targets = [self._target(window, data.targets[window.row]) for window in windows]
        weights = data.weights
        if weights is not None:
            weights = weights[[window.row for window in windows]]
        return EncodedDataset(windows, targets, weights)

    def _prepared_loss(
        self,
        class_counts: np.ndarray,
        n_samples: float,
        mode: Mode,
        *,
        background: int | None = None,
        multilabel: bool = False,
    ) -> Loss:
        """The loss, told what training holds; what calls of `partial_fit` hold adds up."""
        seen = np.append(class_counts, n_samples)
        if mode == "partial" and (before := getattr(self, "_seen", None)) is not None:
            seen = seen + before
        self._seen = seen
        criterion = own_loss(self.loss).prepare(
            seen[:-1], background=background, multilabel=multilabel, n_samples=seen[-1]
        )
        if mode == "partial":
            criterion.take_memory(self.net_.criterion_)
        return criterion

    # ---- the net

    def _make_padder(self) -> Padder:
        return Padder.of(self.tokenizer_)

    def _make_net(self, criterion: Any, seed: int) -> FineTuningNet:
        own: dict[str, Any] = dict(
            padder=self._make_padder(),
            gradient_accumulation=self.gradient_accumulation,
            max_grad_norm=self.max_grad_norm,
            precision=self.precision,
        )
        return FineTuningNet(self._module, **{**own, **self._net_settings(criterion, seed)})

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        if plan.mode == "warm":  # what was set since
            freeze(self._module, self.frozen)
            checkpoint_gradients(self._module, self.gradient_checkpointing)
            self._module.set_dropout(self.dropout)
        return super()._net_for(plan)

    def _spread(self, plan: FitPlan) -> float:
        # Not with partial_fit, whose calls are many and short.
        if plan.epochs is not None:
            return 0.0
        rows = np.unique(np.linspace(0, len(plan.dataset) - 1, 8).astype(int))
        logits = self.net_.logits(EncodedDataset([plan.dataset.windows[i] for i in rows]))
        if len({row.shape[-1] for row in logits}) > 1:  # an output for each pair of tokens
            logits = [row.reshape(-1, 1) for row in logits]
        return float(np.vstack(logits).std(axis=0).max())

    # ---- predictions

    def _log_probabilities(self, logits: np.ndarray) -> np.ndarray:
        return log_softmax(logits.astype(np.float64), axis=-1)

    @staticmethod
    def _sigmoid(logits: np.ndarray) -> np.ndarray:
        return expit(logits.astype(np.float64))

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _frozen(self, windows: Sequence[Window], pooling: str | None = None) -> list[np.ndarray]:
        """Vectors of windows from the encoder as it stands: pooled, or one for each position."""
        device = resolve_device(self.device)
        return run_encoder(
            self._module.encoder,
            self._make_padder(),
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
        from skdice.estimators.storage import ready

        self._check_fitted()
        if not self._module.adapted:
            raise ValueError("there is no adapter to merge: fit with adapter='lora'")
        self._module = adapters.merge_adapter(self._module)
        return ready(self, self.history_, self.device)

    # ---- files

    def __getstate__(self) -> dict[str, Any]:
        """The module goes with the net, once."""
        state = dict(super().__getstate__())
        if "net_" in state:
            state.pop("_module", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """One module again for the net and the estimator."""
        super().__setstate__(state)
        if hasattr(self, "net_"):
            self._module = self.net_.module_

    def save_pretrained(
        self, folder: str | Path, *, metrics: dict[str, float] | None = None
    ) -> Path:
        """Write the fitted estimator as a model of transformers, and what it lacks as JSON.

        Where the head is the architecture's own (taggers, readers and ``pooling="native"``), the
        folder is read by ``AutoModelFor...``, ``pipeline`` and any server of such models. Other
        heads are read by skdice only: transformers refuses the folder, and ``backbone=folder`` and
        ``AutoModel.from_pretrained(folder / "encoder")`` take the encoder from it. `callbacks`,
        `net_params`, `sampler` and a `random_state` that is no int are not written.

        Parameters
        ----------
        folder : str or Path
            Made if missing. It gets ``config.json``, ``model.safetensors``, the tokenizer's files,
            ``README.md`` (the model card) and ``skdice.json``; each file replaces its old version
            only when it is complete.
        metrics : dict or None, default=None
            Scores for the model card, such as ``{"test F1": 0.471}``.

        Returns
        -------
        Path
            The folder.

        Warns
        -----
        UserWarning
            If one of the parameters that are not written is set.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        TypeError
            If the loss is not one of skdice's own (pickle the estimator instead).
        """
        from skdice.estimators.storage import save

        self._check_fitted()
        return save(self, Path(folder), metrics)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        metrics: dict[str, float] | None = None,
        token: str | None = None,
    ) -> str:
        """Save the fitted estimator and upload it to the Hugging Face hub.

        Parameters
        ----------
        repo_id : str
            Such as ``"ann/town-notes-tagger"``; made if missing.
        private : bool or None, default=None
            Of a repository that is made; None is what the organisation's settings say.
        metrics : dict or None, default=None
            As in `save_pretrained`.
        token : str or None, default=None
            None is the one that ``hf auth login`` stored.

        Returns
        -------
        str
            The address of the commit.

        Raises
        ------
        NotFittedError, TypeError
            As in `save_pretrained`.
        """
        from skdice.estimators.hub import push

        self._check_fitted()
        return push(self, repo_id, private=private, metrics=metrics, token=token)

    @classmethod
    def from_pretrained(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """Read an estimator that `save_pretrained` wrote; nothing in the files is executed.

        It predicts as before, and can be trained on, with `callbacks`, `net_params` and `sampler`
        None. ``history_`` holds what JSON can hold of it.

        Parameters
        ----------
        folder : str or Path
            A folder, or the id of a repository on the hub. With a folder nothing is asked of the
            network.
        device : str, default="auto"
            Where to predict.

        Returns
        -------
        estimator

        Raises
        ------
        ValueError
            If the folder holds no estimator of this class, or files, labels and weights do not fit
            together.
        """
        from skdice.estimators.hub import local_folder
        from skdice.estimators.storage import load

        return load(cls, local_folder(folder), device)

    @classmethod
    def from_transformers(cls, folder: str | Path, *, device: str = "auto", **params: Any) -> Self:
        """A fitted estimator around a model of transformers that others fine-tuned for the task.

        It predicts, is scored and tuned, and can be trained on with another loss by `partial_fit`
        or ``warm_start=True``. Labels come from the model's ``id2label``, sorted as always in
        scikit-learn.

        Parameters
        ----------
        folder : str or Path
            A folder, or the id of a model on the hub.
        device : str, default="auto"
        **params : dict
            Of the estimator, such as ``loss="dsc"``.

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
            If the model is of another task, has missing or surplus weights, or asks for code of its
            own.
        """
        from skdice.estimators.storage import wrap

        return wrap(cls, folder, device, params)

    def _fitted_state(self) -> dict[str, Any]:
        """What `save_pretrained` writes beside parameters and weights."""
        raise NotImplementedError

    def _restore_fitted(self, state: dict[str, Any]) -> None:
        raise NotImplementedError

    def _fitted_of(self, config: Any) -> dict[str, Any]:
        """The same of a model of transformers."""
        raise NotImplementedError
