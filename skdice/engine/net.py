"""The skorch net behind the transformer estimators."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from skorch.history import History
from torch import nn

from skdice._compat import expect_skipped_steps
from skdice.engine import devices, ranks
from skdice.engine.callbacks import EpochLog, ProgressBar
from skdice.engine.devices import (
    FitRandomState,
    autocast,
    autocast_dtype,
    resolve_device,
    seeded,
    to_device,
)
from skdice.engine.encoded import EncodedDataset
from skdice.engine.fit import Fit, accumulate
from skdice.engine.graphs import SEVERAL, Graphs, flat, give_memory_back
from skdice.engine.layouts import layout_to_predict, layout_to_train
from skdice.engine.layouts.layout import Batch, Inputs, Layout, Padding
from skdice.engine.module import (
    copy_with_same_weights,
    parameter_groups,
    put_back,
    set_buffer,
)
from skdice.engine.parts import settle_attention
from skdice.engine.recipe import schedule_factor

WINDOWS_TO_PREDICT = 64  # at once, if `batch_size` is not more: they need no memory for gradients


class FineTuningNet(NeuralNet):
    """Fine-tune an `EncoderWithHead` on an `EncodedDataset`.

    What skorch does not do is here: little padding, one update from several micro-batches that
    equals the update from one big batch, autocast, gradient clipping and a schedule stepped with
    each update. A `Fit` says which updates are made.

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
    schedule : str, default="linear"
    warmup : float, default=0.1
    precision : {"auto", "fp32", "fp16", "bf16"}, default="auto"
    shuffle_seed : int, default=0
    keep_optimizer : bool, default=False
        Keep the optimiser's state (for AdamW twice the weights) after `fit`, and in a pickle. A
        series of `partial_fit` keeps it anyway while it lasts.
    pack : bool, default=True
        Do without padding where the architecture can, see `Grouped` and `Rows`.
    cuda_graphs : bool, default=True
        Record updates and predictions on a GPU and replay them, see `Graphs`.
    device : str, default="cpu"
        As in `resolve_device`.
    **kwargs
        Of `skorch.NeuralNet`.
    """

    device: str
    fit_: Fit | None = None  # while it runs
    # The copy that predicts while the module is trained; skorch takes a plain module for its own.
    _twin: tuple[Any, ...] = ()
    applied: dict[str, Any] | None = None  # the parameters of an estimator that it predicts by
    _auto: bool = False  # whether the device was found by itself
    _predicting: tuple[Any, Graphs] | None = None  # a module's weights, and its forward passes

    def __init__(
        self,
        module: nn.Module,
        *,
        criterion: Any,
        padding: Padding,
        gradient_accumulation: int = 1,
        max_grad_norm: float | None = 1.0,
        weight_decay: float = 0.01,
        schedule: str = "linear",
        warmup: float = 0.1,
        precision: str = "auto",
        shuffle_seed: int = 0,
        keep_optimizer: bool = False,
        pack: bool = True,
        cuda_graphs: bool = True,
        optimizer: Any = torch.optim.AdamW,
        device: str = "cpu",
        **kwargs: Any,
    ) -> None:
        found = resolve_device(device)
        super().__init__(module, criterion=criterion, optimizer=optimizer, device=found, **kwargs)
        self._auto = device == "auto"
        self.padding = padding
        self.gradient_accumulation = gradient_accumulation
        self.max_grad_norm = max_grad_norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.precision = precision
        self.shuffle_seed = shuffle_seed
        self.keep_optimizer = keep_optimizer
        self.pack = pack
        self.cuda_graphs = cuda_graphs

    def __getstate__(self) -> dict[str, Any]:
        """The module once, and the optimiser, whose state is twice the weights, only if asked."""
        kept = self.__dict__ | {"fit_": None, "_twin": (), "_predicting": None}
        if self._auto and self.device.startswith("cuda"):
            kept["device"] = "auto"  # whoever reads it may have other GPUs
        if self.initialized_:
            kept.update(module=None, criterion=None)
            kept.pop("schedule_", None)  # each fit makes its own
            if not self.keep_optimizer:
                kept["optimizer_"] = None
        net = object.__new__(type(self))  # this one may be predicting meanwhile
        net.__dict__ = kept
        return NeuralNet.__getstate__(net)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state | {"device": resolve_device(state["device"])})
        if self.initialized_:
            self.module, self.criterion = self.module_, self.criterion_
            self.set_training(False)  # whoever wrote it may have been training
            settle_attention(self.module_, self.device)  # what trained on a GPU may be read here
            if self.optimizer_ is None:
                self.initialize_optimizer()

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        shown = [("progress_bar", ProgressBar()), ("print_log", EpochLog())]
        return [("epoch_timer", EpochTimer()), *(shown if self.verbose else [])]

    def copy_sharing_weights(self) -> FineTuningNet:
        """A net with the same weights and optimiser; module, loss and history are its own."""
        net = object.__new__(type(self))
        net.__dict__ = self.__dict__ | {"_twin": (), "_predicting": None}
        net.module = net.module_ = copy_with_same_weights(self.module_)
        net.history = History(self.history)
        return net

    def epochs(self) -> list[dict[str, Any]]:
        """What was recorded of each epoch; of an interrupted one nothing."""
        return [
            {key: value for key, value in epoch.items() if key != "batches"}
            for epoch in self.history
            if "train_loss" in epoch
        ]

    def go_back(self, weights: dict[str, torch.Tensor]) -> None:
        """Take back what a `twin` has trained; the optimiser starts anew."""
        put_back(self.module_, weights)
        self.optimizer_.state.clear()

    # ---- optimiser, schedule, precision

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> FineTuningNet:
        """Make the optimiser, with a group for each kind of parameter."""
        # A warm start moves on with new data and a new schedule, so the optimiser is new too.
        options = self.get_params_for("optimizer")
        options.setdefault("lr", self.lr)
        if self.optimizer is torch.optim.AdamW and not {"fused", "foreach"} & set(options):
            # One kernel for all weights: on a CPU a tenth of the time of torch's own choice.
            options["fused"] = torch.device(self.device).type in ("cpu", "cuda")
        decay = None if "weight_decay" in options else self.weight_decay
        groups = parameter_groups(self.module_, decay, options.pop("param_groups", ()))
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

    def grow(self, odds: Sequence[float], order: np.ndarray) -> None:
        """Add outputs for new classes, as `EncoderModule.grow` does.

        The optimiser keeps what it has averaged, with zeros for what is new.
        """
        before, scaler = self.optimizer_, self.scaler_
        olds = self._parameters()
        with seeded(self.shuffle_seed, self.device):
            self.module_.grow(torch.tensor(odds), torch.from_numpy(order))
        self.initialize_optimizer()
        self.set_rate(self.lr)
        self.scaler_ = scaler
        for old, new in zip(olds, self._parameters(), strict=True):
            values = before.state.get(old, {})
            if old.shape != new.shape:
                tables = {k: v for k, v in values.items() if isinstance(v, torch.Tensor) and v.ndim}
                if any(table.shape != old.shape for table in tables.values()):
                    continue  # of an optimiser that keeps something else for the rows of a weight
                zeros = new.new_zeros(len(new) - len(old), *new.shape[1:])
                grown = {name: torch.cat([v, zeros.to(v)])[order] for name, v in tables.items()}
                values = values | grown
            self.optimizer_.state[new] = values

    def start_schedule(self, n_steps: int, schedule: str, warmup: float) -> None:
        """Begin a schedule of so many updates; 0 where nobody knows how many will follow."""
        self.n_steps_ = n_steps
        factor = schedule_factor(schedule, n_steps, warmup)
        self.schedule_ = torch.optim.lr_scheduler.LambdaLR(self.optimizer_, factor)
        expect_skipped_steps(self.optimizer_)

    # ---- training

    def partial_fit(
        self, X: EncodedDataset, y: None = None, classes: None = None, **fit_params: Any
    ) -> FineTuningNet:
        """Run a `Fit`; an interrupt reaches the caller once the net is in order again.

        Parameters
        ----------
        X : EncodedDataset
        y, classes : ignored
        **fit_params
            Of `Fit`.
        """
        if not self.initialized_:
            self.initialize()
        self.notify("on_train_begin", X=X, y=y)
        fit: Fit | None = None
        try:
            fit = Fit(self, X, **fit_params)
            fit.run()
        finally:
            self.notify("on_train_end", X=X, y=y)
            self.optimizer_.zero_grad(set_to_none=True)  # only an update needs them
            if fit_params.get("epochs") is None and not self.keep_optimizer:
                self.optimizer_.state.clear()
            if fit is not None and fit.recorded:
                give_memory_back()
        return self

    def layout(self, dataset: EncodedDataset) -> Layout | None:
        """The layout of a fit's batches; None in a net that makes its own."""
        return layout_to_train(self, dataset)

    def batches(self, dataset: Any, rows: np.ndarray, layout: Layout | None) -> list[Batch]:
        """Micro-batches of these rows."""
        batches: list[Batch] = dataset.batches(layout, rows, self.batch_size)
        return batches

    def set_training(self, mode: bool) -> None:
        """Let module and loss learn, or not; meanwhile a copy with the same weights predicts."""
        if mode and not self._twin:
            self._twin = (copy_with_same_weights(self.module_).eval(),)
        self.module_.train(mode)
        self.criterion_.train(mode)
        if not mode:
            self._twin = ()

    def train_step(self, batch: list[Batch], **fit_params: Any) -> dict[str, Any]:
        """Make one update from the micro-batches of `batch`; its loss is NaN if it is skipped."""
        if not (self.module_.training and self.criterion_.training):
            self.set_training(True)  # a callback may have changed it
        fit, layout = self.fit_, batch[0][0][0].get("layout")
        draws = FitRandomState(self.shuffle_seed, self.device) if fit is None else fit.draws
        graphs = None if fit is None else fit.graphs
        given = None if graphs is None or graphs.reason else flat(batch)
        if graphs is not None and given is None:
            graphs.reason = graphs.reason or SEVERAL
        torch_draws = self.module_.torch_draws(getattr(layout, "own_attention", False))
        lent = partial(draws.used, torch_draws=torch_draws)
        if graphs is None or given is None:
            loss, logits = self.make_update(batch, draws, lent)
        else:
            with lent():
                loss, logits = graphs(given)
        self.schedule_.step()  # also where an update is skipped: a GPU does not wait to know
        return {"loss": loss, "y_pred": logits}

    def make_update(
        self,
        batch: list[Batch],
        draws: FitRandomState,
        lent: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Loss, gradients and a step of the optimiser, on a GPU without waiting for it.

        The block of `lent`, in which `draws` are torch's, ends before callbacks are called: they
        may wait for another thread that needs them.

        Returns
        -------
        loss, logits : Tensor
            The loss is NaN if the update was skipped.
        """
        for parameter in self._parameters():
            parameter.grad = None
        is_stateful = getattr(self.criterion_, "is_stateful", False)
        memory = dict(self.criterion_.named_buffers()) if is_stateful else {}
        with lent():
            if len(batch) == 1:
                logits = self.of_texts(self.logits_of(batch[0][0]), batch)
                loss = self.loss_of(logits, *batch[0][1:])
                self.scaler_.scale(loss).backward()
            else:
                logits, loss = accumulate(self, batch, draws)
        loss = loss.detach()
        if ranks.n_processes() > 1:
            ranks.average([loss, *(p.grad for p in self._parameters() if p.grad is not None)])
        bad = self.update(batch, loss)
        if bad is not False:
            skipped = torch.as_tensor(bad)
            loss = torch.where(skipped, torch.nan, loss)
            for name, before in memory.items():  # in place, for graphs find it there
                before.copy_(before.where(skipped, self.criterion_.get_buffer(name)))
                set_buffer(self.criterion_, name, before)
        return loss, logits.detach()

    def _parameters(self) -> list[nn.Parameter]:
        return [p for group in self.optimizer_.param_groups for p in group["params"]]

    def update(self, batch: list[Batch], loss: torch.Tensor) -> torch.Tensor | bool:
        """Take a step with the gradients that the weights have, if they and the loss are finite.

        Returns
        -------
        bool, or Tensor of shape () off the CPU
            Whether the update was skipped.
        """
        scaled = self.scaler_.is_enabled()
        if self.max_grad_norm is not None or self.callbacks:
            self.scaler_.unscale_(self.optimizer_)
        if self.callbacks:
            named = list(self.module_.named_parameters())
            self.notify("on_grad_computed", named_parameters=named, batch=batch)
        if self.max_grad_norm is not None:
            norm = torch.nn.utils.clip_grad_norm_(self._parameters(), self.max_grad_norm)
        elif not scaled:
            gradients = [p.grad for p in self._parameters() if p.grad is not None]
            norm = torch.nn.utils.get_total_norm(gradients)
        # A scaler finds infinite gradients by itself, and lowers its scale: no reason to stop.
        whole = loss if scaled else loss + norm
        waits = loss.device.type == "cpu" and not devices.is_gpu(self.device)
        bad: Any = not math.isfinite(whole.item()) if waits else ~whole.isfinite()
        if scaled:
            self.scaler_.step(self.optimizer_)
            self.scaler_.update()
        elif not waits and self.optimizer_.defaults.get("fused"):
            self.optimizer_.found_inf = bad.float()  # skips in the kernel: the CPU need not wait
            self.optimizer_.step()
        elif not bad:
            self.optimizer_.step()
        return bad

    def logits_of(self, inputs: Inputs) -> torch.Tensor:
        """Logits of groups of inputs, one after the other, of the module that is trained."""
        return self.outputs(self.module_, inputs)

    def of_texts(self, outputs: torch.Tensor, batch: list[Batch]) -> torch.Tensor:
        """Logits of texts from the outputs for all of a batch, where texts have windows."""
        windows = batch[0][0][0].get("windows_of_texts")
        return outputs if windows is None else to_device(windows, self.device)(outputs)

    def outputs(self, module: nn.Module, inputs: Inputs) -> torch.Tensor:
        """Return the outputs of a module for the inputs of micro-batches, one after the other."""
        parts = []
        grouped = getattr(inputs[0].get("layout"), "own_attention", False)
        settle_attention(module, self.device, grouped=grouped)
        # Once for all groups, so that weights are rounded once.
        with autocast(self.precision_of(module), self.device):
            for group in inputs:
                given = {k: v for k, v in group.items() if k != "windows_of_texts"}
                parts.append(module(**{k: to_device(v, self.device) for k, v in given.items()}))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def precision_of(self, module: nn.Module) -> str:
        """The precision of a pass: on a CPU, auto trains in bfloat16 where the processor has it.

        It predicts in float32, so that a model gives the same probabilities on every processor.
        """
        if self.precision != "auto" or torch.device(self.device).type != "cpu":
            return self.precision
        if not module.training:
            return "fp32"
        gains = self.gains_by_bf16() if self.fit_ is None else self.fit_.progress.bf16
        return "bf16" if gains else "fp32"

    def gains_by_bf16(self) -> bool:
        """Return True if training of this module gains by what this processor has for bfloat16."""
        return self._is_large() and devices.gains_by_bf16()

    def tell_of_precision(self, bf16: bool) -> None:
        """Print what ``precision="auto"`` trains in on a CPU, and why."""
        if self.precision == "auto" and torch.device(self.device).type == "cpu":
            devices.tell_of_precision(bf16, measured=self._is_large())

    def _is_large(self) -> bool:
        """Return True if casting costs less than a faster product saves."""
        config = getattr(getattr(self.module_, "encoder", None), "config", None)
        return bool(getattr(config, "hidden_size", 0) >= 256)

    def loss_of(
        self, logits: torch.Tensor, target: torch.Tensor | None, weight: torch.Tensor | None
    ) -> torch.Tensor:
        """Return the loss of a batch whose logits are known."""
        target, weight = (to_device(values, self.device) for values in (target, weight))
        loss: torch.Tensor = self.criterion_(logits, target, sample_weight=weight)
        return loss

    # ---- prediction

    def module_to_predict(self) -> nn.Module:
        """The module; while it is in training, its copy in evaluation mode, which shares weights.

        So training is the same whoever predicts meanwhile: a callback, another thread, or the
        validation after an epoch. None of them waits for another.
        """
        for twin in self._twin:
            for name, value in self.module_.named_buffers():  # some modules replace theirs
                set_buffer(twin, name, value)
            return twin
        return self.module_

    @torch.no_grad()
    def logits(self, dataset: EncodedDataset) -> list[np.ndarray]:
        """Logits of each window, float32: (n_predictions, n_outputs), or (n_outputs,) pooled."""
        module, size = self.module_to_predict(), max(self.batch_size, WINDOWS_TO_PREDICT)
        layout = layout_to_predict(module, self.padding, device=self.device, pack=self.pack)
        if devices.is_gpu(self.device):
            forward = self._forward_passes(module, layout)
            return layout.for_each(dataset.windows, size, lambda x: forward(x)[0])
        return layout.for_each(dataset.windows, size, lambda x: self.outputs(module, [x]).float())

    def _forward_passes(self, module: nn.Module, layout: Layout) -> Graphs:
        """The forward passes of the weights as they lie, recorded as long as they lie there."""
        lies = [tensor.data_ptr() for tensor in (*module.parameters(), *module.buffers())]
        settings = self.device, self.precision, layout, *lies
        if self._predicting is None or self._predicting[0] != settings:
            net = weakref.proxy(self)  # so that a net that is dropped gives its memory back at once

            def forward(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor]:
                return (net.outputs(module, [{**inputs, "layout": layout}]).float(),)

            reason = None if self.cuda_graphs else "cuda_graphs is False"
            self._predicting = settings, Graphs(forward, self.device, reason)
        return self._predicting[1]
