"""The skorch net behind the estimators: skorch's own loop, and what it lacks."""

from __future__ import annotations

import copy
import math
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EarlyStopping, EpochTimer, LRScheduler, PrintLog, ProgressBar
from skorch.history import History
from torch import nn
from torch.utils.data import Dataset

from skdice._checks import counted
from skdice.engine import devices, ranks
from skdice.engine.accumulation import accumulate
from skdice.engine.ahead import ahead
from skdice.engine.callbacks import Schedule
from skdice.engine.checkpoints import Checkpoints
from skdice.engine.devices import (
    autocast,
    autocast_dtype,
    bf16_gain,
    resolve_device,
    seed_generators,
    seeded,
    to_device,
)
from skdice.engine.encoded import ByUpdate, EncodedDataset, Update, Updates
from skdice.engine.graphs import Graphs, Recorded, recorded_updates
from skdice.engine.layouts import layout_to_predict, layout_to_train
from skdice.engine.layouts.layout import Layout, Padding
from skdice.engine.module import split_by_decay
from skdice.engine.parts import settle_attention
from skdice.engine.used_embeddings import training_used_embeddings

WINDOWS_TO_PREDICT = 64  # at once, if `batch_size` is not more: they need no memory for gradients
LEAST_GAIN = 1.2  # by bfloat16, from which precision="auto" trains in it on a CPU
MOST_SKIPPED = 10  # updates at the end of an epoch that end a fit


def _shows_bars() -> bool:
    """Return True in a terminal or notebook, and not where a log file is written."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


class FineTuningNet(NeuralNet):
    """Fine-tune an `EncoderWithHead` on an `EncodedDataset`, in skorch's loop.

    What skorch does not do is here: little padding, one update from several micro-batches that
    equals the update from one big batch, autocast, gradient clipping, a schedule stepped with each
    update, and no wait for a GPU.

    Parameters
    ----------
    module : EncoderWithHead
    criterion : skdice.losses.Loss
        Prepared loss; called with logits, targets and ``sample_weight``.
    padding : Padding
    gradient_accumulation : int, default=1
        Micro-batches of `batch_size` in one update.
    max_grad_norm : float or None, default=1.0
    weight_decay : float, default=0.01
        Of weight matrices. ``optimizer__weight_decay`` is for all parameters.
    schedule : str, default="linear"
        With `warmup`, the rate at each update. An `LRScheduler` among `callbacks` takes its place.
    warmup : float, default=0.1
    precision : {"auto", "fp32", "fp16", "bf16"}, default="auto"
    shuffle_seed : int, default=0
    pack : bool, default=True
        Do without padding where the architecture can, see `Grouped` and `Rows`. May change.
    cuda_graphs : bool, default=True
        Record updates and predictions on a GPU and replay them, see `Graphs`. May change.
    device : str, default="cpu"
        As in `resolve_device`.
    **kwargs
        Of `skorch.NeuralNet`.
    """

    device: str
    applied: dict[str, Any] | None = None  # the parameters of an estimator that it predicts by
    _auto: bool = False  # whether the device was found by itself
    _predicting: tuple[Any, Graphs] | None = None  # a module's weights, and its forward passes
    # Of the fit that runs.
    n_updates_: int = 0  # of all its epochs; 0 where nobody knows how many will follow
    done_: int = 0  # updates made so far
    first_epoch_: int = 0  # epochs of earlier fits in the history
    losses_: list[torch.Tensor]  # of this epoch's updates; NaN where one was skipped
    bf16_: bool = False  # whether precision="auto" trains in bfloat16
    stopped_: bool = False  # whether a callback ended it early
    lr_of_epoch_: float | None = None  # at the epoch's first update
    recorded_: Recorded | None = None  # its updates, on a GPU
    draws_: Sequence[np.ndarray] | None = None  # the rows of each epoch, as a sampler drew them
    valid_: Dataset | None = None  # the validation set

    def __init__(
        self,
        module: nn.Module,
        *,
        criterion: nn.Module,
        padding: Padding,
        gradient_accumulation: int = 1,
        max_grad_norm: float | None = 1.0,
        weight_decay: float = 0.01,
        schedule: str = "linear",
        warmup: float = 0.1,
        precision: str = "auto",
        shuffle_seed: int = 0,
        pack: bool = True,
        cuda_graphs: bool = True,
        optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
        device: str = "cpu",
        train_split: Callable[..., Any] | None = None,
        use_caching: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            module,
            criterion=criterion,
            optimizer=optimizer,
            device=resolve_device(device),
            train_split=train_split,
            use_caching=use_caching,
            **kwargs,
        )
        self._auto = device == "auto"
        self.padding = padding
        self.gradient_accumulation = gradient_accumulation
        self.max_grad_norm = max_grad_norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.precision = precision
        self.shuffle_seed = shuffle_seed
        self.pack = pack
        self.cuda_graphs = cuda_graphs

    def __getstate__(self) -> dict[str, Any]:
        """The module once, and no optimiser, whose state is twice the weights."""
        kept = self.__dict__ | {"_predicting": None}
        if self._auto and self.device.startswith("cuda"):
            kept["device"] = "auto"  # whoever reads it may have other GPUs
        if self.initialized_:
            kept.update(module=None, criterion=None, optimizer_=None)
        net = object.__new__(type(self))  # this one may be predicting meanwhile
        net.__dict__ = kept
        return NeuralNet.__getstate__(net)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"device": resolve_device(state["device"])})
        if self.initialized_:
            self.module, self.criterion = self.module_, self.criterion_
            self._set_training(False)
            settle_attention(self.module_, self.device)  # what trained on a GPU may be read here
            self.initialize_optimizer()

    # ---- callbacks

    @property
    def stops(self) -> list[EarlyStopping]:
        """The callbacks that end a fit early."""
        return [c for _, c in self.callbacks_ if isinstance(c, EarlyStopping)]

    @property
    def schedule_(self) -> Any:
        """torch's scheduler of the fit that runs."""
        return next(c.lr_scheduler_ for _, c in self.callbacks_ if isinstance(c, LRScheduler))

    @property
    def has_ended(self) -> bool:
        """Whether the fit made all its epochs, or was stopped by a callback for that."""
        return self.stopped_ or len(self.epochs()) - self.first_epoch_ == self.max_epochs

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        given = [c[1] if isinstance(c, (tuple, list)) else c for c in self.callbacks or []]
        kinds = [c if isinstance(c, type) else type(c) for c in given]
        found: list[tuple[str, Any]] = [("epoch_timer", EpochTimer())]
        if not any(issubclass(kind, LRScheduler) for kind in kinds):
            found.append(("schedule", Schedule()))
        if self.verbose:
            bar = [("progress_bar", ProgressBar("count"))] if _shows_bars() else []
            found += [*bar, ("print_log", PrintLog("eager"))]
        return found

    def initialize_callbacks(self) -> FineTuningNet:
        """As in skorch, with those that end a fit behind all that record its last epoch."""
        super().initialize_callbacks()
        last = Checkpoints, EarlyStopping
        self.callbacks_.sort(key=lambda named: [isinstance(named[1], kind) for kind in last])
        return self

    def epochs(self) -> list[dict[str, Any]]:
        """What was recorded of each epoch; of an interrupted one nothing."""
        return [
            {key: value for key, value in epoch.items() if key != "batches"}
            for epoch in self.history
            if "train_loss" in epoch
        ]

    # ---- optimiser, precision

    def initialize_optimizer(self, triggered_directly: bool | None = None) -> FineTuningNet:
        """Make the optimiser, with a group for each kind of parameter."""
        trained = [(n, p) for n, p in self.module_.named_parameters() if p.requires_grad]
        (groups,), options = self.get_params_for_optimizer("optimizer", trained)
        if self.optimizer is torch.optim.AdamW and not {"fused", "foreach"} & set(options):
            # One kernel for all weights: on a CPU a tenth of the time of torch's own choice.
            options["fused"] = torch.device(self.device).type in ("cpu", "cuda")
        groups = groups[::-1]  # what no pattern names comes first: the history has its rate
        if "weight_decay" not in options:
            groups = split_by_decay(groups, self.weight_decay)
        self.own_rates_ = [group.get("lr") for group in groups]
        self.optimizer_ = self.optimizer(groups, **options)
        scales = autocast_dtype(self.precision, self.device) is torch.float16
        self.scaler_ = torch.amp.GradScaler(torch.device(self.device).type, enabled=scales)
        return self

    def apply_runtime_params(self, batch_size: int, device: str, precision: str) -> None:
        """Go on in batches of this size, on this device and in this precision."""
        before = self.device, self.scaler_.is_enabled()
        self.batch_size, self.precision, self._auto = batch_size, precision, device == "auto"
        self.device = resolve_device(device)
        self.module_.to(self.device)
        self.criterion_.to(self.device)
        if before != (self.device, autocast_dtype(precision, self.device) is torch.float16):
            self.initialize_optimizer()  # whose moments are on the device, as is the loss scale

    def set_rate(self, lr: float) -> None:
        """Go on at `lr`; groups that have a rate of their own keep it."""
        self.lr = lr
        for group, own in zip(self.optimizer_.param_groups, self.own_rates_, strict=True):
            group["lr"] = group["initial_lr"] = lr if own is None else own

    def copied(self) -> FineTuningNet:
        """A net to train on: this one stays as it is. Weights that are not trained are shared."""
        shared = {id(p): p for p in self.module_.parameters() if not p.requires_grad}
        net = object.__new__(type(self))
        names = ("module_", "optimizer_", "scaler_")
        own = copy.deepcopy([getattr(self, name) for name in names], shared)
        net.__dict__ = self.__dict__ | dict(zip(names, own, strict=True))
        net.__dict__ |= {"module": net.module_, "_predicting": None}
        net.history = History(self.history)
        return net

    def _parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer_.param_groups for p in group["params"]]

    def precision_of(self, module: nn.Module) -> str:
        """The precision of a pass: on a CPU, auto trains in bfloat16 where the processor gains.

        It predicts in float32, so that a model gives the same probabilities on every processor.
        """
        if self.precision != "auto" or torch.device(self.device).type != "cpu":
            return self.precision
        return "bf16" if module.training and self.bf16_ else "fp32"

    def gain(self) -> float | None:
        """The speed of bfloat16 in that of float32 here; None where precision="auto" asks not."""
        config = getattr(getattr(self.module_, "encoder", None), "config", None)
        # In small models casting costs more than it saves.
        large = getattr(config, "hidden_size", 0) >= 256
        on_cpu = torch.device(self.device).type == "cpu"
        return bf16_gain() if on_cpu and self.precision == "auto" and large else None

    # ---- training: the loop is skorch's `fit_loop`

    def partial_fit(
        self,
        X: EncodedDataset,
        y: None = None,
        classes: None = None,
        *,
        epochs: int | None = None,
        draws: Sequence[np.ndarray] | None = None,
        valid: Dataset | None = None,
        **fit_params: object,
    ) -> FineTuningNet:
        """As in skorch, but that Ctrl-C reaches the caller, and that ``on_train_end`` always runs.

        Parameters
        ----------
        X : EncodedDataset
        y, classes : ignored
        epochs : int or None, default=None
            None is `max_epochs`, with the schedule. A number is one of many calls, of which nobody
            knows how many will follow: the rate stays where it is, and the optimiser is kept.
        draws : list of ndarray of int, or None, default=None
            The rows that each epoch trains on, as a sampler drew them; None is every row once.
        valid : Dataset or None, default=None
            The validation set that callbacks get.
        """
        if not self.initialized_:
            self.initialize()
        X = self.get_dataset(X, y)
        n_epochs = self.max_epochs if epochs is None else epochs
        self.draws_, self.valid_ = draws, valid
        self.first_epoch_, self.done_, self.stopped_ = len(self.history), 0, False
        self.losses_, self.lr_of_epoch_ = [], None
        self.n_updates_ = 0 if epochs else Updates(self, len(X)).count(n_epochs)
        ranks.start(self.module_, X.targets)
        self.bf16_ = ranks.share((self.gain() or 0) >= LEAST_GAIN)
        with (
            seeded(self.shuffle_seed + self.first_epoch_, self.device),
            training_used_embeddings(self, X) if epochs is None else nullcontext(),
        ):
            try:
                self.notify("on_train_begin", X=X, y=y)
                # Those of a checkpoint are done.
                n_epochs -= n_epochs if self.stopped_ else len(self.history) - self.first_epoch_
                on_gpu = devices.is_gpu(self.device)
                with recorded_updates(self, self.layout(X)) if on_gpu else nullcontext():
                    self.fit_loop(X, y, epochs=n_epochs, **fit_params)
            except KeyboardInterrupt:
                self.stopped_ = any(stop.misses_ == stop.patience for stop in self.stops)
                if not self.stopped_:
                    raise
            finally:
                self.notify("on_train_end", X=X, y=y)
                self.draws_ = self.valid_ = None  # a net holds no data
                self.losses_ = []
        self._set_training(False)
        self.optimizer_.zero_grad(set_to_none=True)  # only an update needs them
        if epochs is None:
            self.optimizer_.state.clear()
        settle_attention(self.module_, self.device)
        return self

    def on_train_begin(self, net: NeuralNet, **kwargs: object) -> None:
        """Say how long the fit will be."""
        if not self.verbose or not self.n_updates_:
            return
        size = self.rows_of_update()
        epochs, updates = counted(self.max_epochs, "epoch"), counted(self.n_updates_, "update")
        print(f"lr {self.lr:g}, {epochs}, {updates}, batches of {size}", flush=True)
        if (gain := self.gain()) is not None:
            kind = "bf16" if self.bf16_ else "fp32"
            print(f"{kind}: bf16 multiplies at {gain:.2g} times the speed of fp32 here", flush=True)

    def get_split_datasets(
        self, X: EncodedDataset, y: None = None, **fit_params: object
    ) -> tuple[EncodedDataset, Dataset | None]:
        """The training data, and the validation set that `partial_fit` was given."""
        return X, self.valid_

    def get_iterator(self, dataset: EncodedDataset, training: bool = False) -> Iterable[Update]:
        """A loader of updates, of which a layout makes the batches."""
        which = "iterator_train" if training else "iterator_valid"
        settings = {
            "batch_size": None,
            "sampler": Updates(self, len(dataset)),
            "generator": torch.Generator(),  # so that the loader draws nothing from the fit's own
        }
        given = self.get_params_for(which)
        given.pop("batch_size", None)  # see `rows_of_batch`
        by_update = ByUpdate(dataset, self.layout(dataset), self.rows_of_batch())
        return getattr(self, which)(by_update, **(settings | given))

    def rows_of_batch(self) -> int:
        """The number of rows that are computed at once."""
        size: int = getattr(self, "iterator_train__batch_size", self.batch_size)
        return size

    def rows_of_update(self) -> int:
        """The number of rows of an update, over all processes."""
        return self.rows_of_batch() * self.gradient_accumulation * ranks.n_processes()

    def layout(self, dataset: EncodedDataset) -> Layout | None:
        """The layout of a fit's batches; None where the data set makes its own."""
        return layout_to_train(self, dataset)

    def run_single_epoch(
        self,
        iterator: Iterable[Update],
        training: bool,
        prefix: str,
        step_fn: Callable[..., Any],
        **fit_params: object,
    ) -> None:
        """As in skorch, but that losses are read once an epoch: a GPU would wait for each.

        A validation set is scored by `ValidationScore`, and has no loss.
        """
        if not training:
            return
        self.lr_of_epoch_ = self.lr_of_epoch_ or float(self.optimizer_.param_groups[0]["lr"])
        self.history.record("lr", self.lr_of_epoch_)
        on_cpu = torch.device(self.device).type == "cpu"
        batch: Update | None = None  # stays, if a checkpoint holds the epoch's last update
        for batch in iterator if on_cpu else ahead(iterator):
            self.notify("on_batch_begin", batch=batch, training=True)
            step = step_fn(batch, **fit_params)
            self.losses_.append(step["loss"])
            self.done_ += 1
            self.history.record_batch("train_batch_size", len(batch))
            if on_cpu:
                self.history.record_batch("train_loss", step["loss"].item())
            self.notify("on_batch_end", batch=batch, training=True, **step)
        losses = torch.stack(self.losses_).cpu()
        made = losses[losses.isfinite()]
        if not losses[-MOST_SKIPPED:].isfinite().any():
            rows = [] if batch is None else batch.rows.tolist()
            raise ValueError(
                f"the last {len(losses[-MOST_SKIPPED:])} updates were skipped, as the loss or "
                f"gradients were not finite: look at the training rows {rows} of the last batch, "
                f"counted without held-out rows, and try a lower lr than {self.lr} or "
                f"precision='fp32', not {self.precision!r}"
            )
        self.history.record("train_batch_count", len(losses))
        self.history.record("train_loss", made.mean().item())
        self.history.record("skipped_updates", len(losses) - len(made))
        if self.recorded_ is not None and self.recorded_.graphs.reason:
            self.recorded_.tell()
        self.losses_, self.lr_of_epoch_ = [], None

    def train_step(self, batch: Update, **fit_params: object) -> dict[str, Any]:
        """Make one update; its loss is NaN if it is skipped."""
        self._set_training(True)
        if ranks.n_processes() > 1:
            # Each draws dropout of its own, which a fit that goes on can draw again.
            drawn = [self.shuffle_seed, len(self.history), len(self.losses_), ranks.rank()]
            seed_generators(int(np.random.SeedSequence(drawn).generate_state(1)[0]), self.device)
        step = self.inner_step if self.recorded_ is None else self.recorded_
        loss, logits = step(batch)
        return {"loss": loss, "y_pred": logits}

    def inner_step(self, batch: Update) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss, gradients and a step of the optimiser, on a GPU without waiting for it.

        This is what a graph replays.

        Returns
        -------
        loss, logits : Tensor
            The loss is NaN if the update was skipped.
        """
        self.optimizer_.zero_grad(set_to_none=True)
        if len(batch.parts) == 1:
            logits = self.infer(batch)
            loss = self.get_loss(logits, batch.target, batch)
            self.scaler_.scale(loss).backward()
        else:
            logits, loss = accumulate(self, batch)
        loss, parameters = loss.detach(), self._parameters()
        if ranks.n_processes() > 1:
            ranks.average([loss, *(p.grad for p in parameters if p.grad is not None)])
        scaled = self.scaler_.is_enabled()
        if scaled:
            self.scaler_.unscale_(self.optimizer_)
        if self.callbacks:
            named = list(self.module_.named_parameters())
            self.notify("on_grad_computed", named_parameters=named, batch=batch, training=True)
        norm = nn.utils.clip_grad_norm_(parameters, self.max_grad_norm or math.inf)
        # A scaler finds infinite gradients itself, and lowers its scale.
        finite = (loss if scaled else loss + norm).isfinite()
        waits = loss.device.type == "cpu" and not devices.is_gpu(self.device)
        if scaled:
            self.scaler_.step(self.optimizer_)
            self.scaler_.update()
        elif not waits and self.optimizer_.defaults.get("fused"):
            self.optimizer_.found_inf = (~finite).float()  # skips in the kernel: nobody waits
            self.optimizer_.step()
        elif finite:
            self.optimizer_.step()
        return torch.where(finite, loss, torch.nan), logits.detach()

    def infer(self, x: Update, **fit_params: object) -> torch.Tensor:
        """Logits of all that an update reads; of texts, where these have several windows."""
        outputs = [self.outputs(part.groups) for part in x.parts]
        return x.of_texts(torch.cat(outputs) if len(outputs) > 1 else outputs[0], self.device)

    def outputs(self, groups: Sequence[Mapping[str, Any]]) -> torch.Tensor:
        """The outputs of the module for groups of inputs, one after the other."""
        own_attention = getattr(groups[0].get("layout"), "own_attention", False)
        settle_attention(self.module_, self.device, grouped=own_attention)
        # Once for all groups, so that weights are rounded once.
        with autocast(self.precision_of(self.module_), self.device):
            parts = [
                self.module_(**{k: to_device(v, self.device) for k, v in group.items()})
                for group in groups
            ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def get_loss(
        self, y_pred: torch.Tensor, y_true: torch.Tensor | None, X: Update, training: bool = False
    ) -> torch.Tensor:
        """The loss of an update whose logits are known."""
        target, weight = (to_device(values, self.device) for values in (y_true, X.weight))
        return self.criterion_(y_pred, target, sample_weight=weight)

    # ---- prediction

    @torch.no_grad()
    def logits(self, dataset: EncodedDataset) -> list[np.ndarray]:
        """Logits of each window, float32: (n_predictions, n_outputs), or (n_outputs,) pooled."""
        self._set_training(False)
        size = max(self.batch_size, WINDOWS_TO_PREDICT)
        layout = layout_to_predict(self.module_, self.padding, device=self.device, pack=self.pack)
        if devices.is_gpu(self.device):
            forward = self._forward_passes(layout)
            return layout.for_each(dataset.windows, size, lambda x: forward(x)[0])
        return layout.for_each(dataset.windows, size, lambda x: self.outputs([x]).float())

    def _forward_passes(self, layout: Layout) -> Graphs:
        """The forward passes of the weights as they lie, recorded as long as they lie there."""
        tensors = (*self.module_.parameters(), *self.module_.buffers())
        settings = self.device, self.precision, layout, *(t.data_ptr() for t in tensors)
        if self._predicting is None or self._predicting[0] != settings:
            net = weakref.proxy(self)  # so that a net that is dropped gives its memory back at once

            def forward(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor]:
                return (net.outputs([{**inputs, "layout": layout}]).float(),)

            reason = None if self.cuda_graphs else "cuda_graphs is False"
            self._predicting = settings, Graphs(forward, self.device, reason)
        return self._predicting[1]

    def forward_iter(
        self, X: Any, training: bool = False, device: str = "cpu"
    ) -> Iterator[torch.Tensor]:
        """The logits of all windows of a data set, or of an update, for skorch's ``predict``."""
        if isinstance(X, Update):  # as `BatchScoring` has it
            yield self.evaluation_step(X)
            return
        dataset = self.get_dataset(X)
        found = self.logits(dataset)
        if len(found):
            yield torch.from_numpy((np.concatenate if dataset.of_words else np.stack)(found))

    def _get_predict_nonlinearity(self) -> Any:
        """What makes probabilities of logits, as the loss reads them, unless the user has said."""
        if self.predict_nonlinearity != "auto":
            return super()._get_predict_nonlinearity()
        several = getattr(self.criterion_, "is_multilabel", False)
        return torch.sigmoid if several else partial(torch.softmax, dim=-1)
