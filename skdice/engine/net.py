"""The skorch net behind the transformer estimators."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import EpochTimer
from torch import nn

from skdice.engine import ranks
from skdice.engine.accumulation import accumulate
from skdice.engine.attention import settle_attention
from skdice.engine.batching import (
    Batch,
    EncodedDataset,
    Inputs,
    Padder,
    ahead,
    length_batches,
    run_cost,
    weightless,
)
from skdice.engine.callbacks import EpochLog, ProgressBar
from skdice.engine.checkpoints import Checkpoints
from skdice.engine.devices import (
    Draws,
    autocast,
    autocast_dtype,
    cpu_gains_by_bf16,
    resolve_device,
    to_device,
)
from skdice.engine.module import parameter_groups
from skdice.engine.packing import first_position
from skdice.engine.progress import (
    Progress,
    check_finite,
    finite_if_all_are,
    restore,
    set_buffer,
    state_of,
    trainable_state,
)
from skdice.engine.schedules import schedule_factor
from skdice.engine.words import CompactWords, compact_words

__all__ = ["FineTuningNet"]


class FineTuningNet(NeuralNet):
    """Fine-tune an `EncoderWithHead` on an `EncodedDataset`.

    What skorch does not do is here: little padding, one update from several micro-batches that
    equals the update from one big batch, autocast, gradient clipping, a schedule stepped with
    each update, and the best epoch's weights restored at the end.

    Parameters
    ----------
    module : EncoderWithHead
    criterion : skdice.losses.Loss
        Prepared loss; called with logits, targets and ``sample_weight``.
    padder : Padder
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
        Train without padding where the architecture can, see `Packing`.
    device : str, default="cpu"
        As in `resolve_device`.
    **kwargs
        Of `skorch.NeuralNet`.
    """

    _words: CompactWords | None = None  # while a fit runs
    _bf16: bool | None = None  # what this fit began with
    _first: int | None = None  # of the positions while a fit runs, if its batches are packed
    _n_processes: int = 1  # that train together while a fit runs
    _draws: Any = None  # `Draws`, while a fit runs
    _auto: bool = False  # whether the device was found by itself

    def __init__(
        self,
        module: nn.Module,
        *,
        criterion: Any,
        padder: Padder,
        gradient_accumulation: int = 1,
        max_grad_norm: float | None = 1.0,
        weight_decay: float = 0.01,
        schedule: str = "linear",
        warmup: float = 0.1,
        precision: str = "auto",
        shuffle_seed: int = 0,
        keep_optimizer: bool = False,
        pack: bool = True,
        optimizer: Any = torch.optim.AdamW,
        device: str = "cpu",
        **kwargs: Any,
    ) -> None:
        found = resolve_device(device)
        super().__init__(module, criterion=criterion, optimizer=optimizer, device=found, **kwargs)
        self._auto = device == "auto"
        self.padder = padder
        self.gradient_accumulation = gradient_accumulation
        self.max_grad_norm = max_grad_norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.precision = precision
        self.shuffle_seed = shuffle_seed
        self.keep_optimizer = keep_optimizer
        self.pack = pack

    def __getstate__(self) -> dict[str, Any]:
        """The module once, and the optimiser, whose state is twice the weights, only if asked."""
        kept = dict(self.__dict__)
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
            if self.optimizer_ is None:
                self.initialize_optimizer()

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        own = [EpochTimer(), ProgressBar(), EpochLog()]
        return list(zip(("epoch_timer", "progress_bar", "print_log"), own, strict=True))

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

    def set_rate(self, lr: float) -> None:
        """Go on at `lr`; groups that have a rate of their own keep it."""
        self.lr = lr
        for group, own in zip(self.optimizer_.param_groups, self.own_rates_, strict=True):
            group["lr"] = group["initial_lr"] = lr if own is None else own

    def _start_schedule(self, n_steps: int, schedule: str, warmup: float) -> None:
        self.n_steps_ = n_steps  # of this fit; 0 where nobody knows
        factor = schedule_factor(schedule, n_steps, warmup)
        self.schedule_ = torch.optim.lr_scheduler.LambdaLR(self.optimizer_, factor)

    # ---- batches

    def updates(
        self, dataset: EncodedDataset, epoch: int, rows: np.ndarray | None = None, start: int = 0
    ) -> Iterator[list[Batch]]:
        """The micro-batches of each update, in this epoch's random order.

        Parameters
        ----------
        dataset : EncodedDataset
        epoch : int
            From 1.
        rows : ndarray of int or None, default=None
            Rows to train on, which a sampler drew; None is every row once.
        start : int, default=0
            Updates of this epoch that were made already.
        """
        for chosen in self.rows_of_updates(dataset, epoch, rows)[start:]:
            own, counts = ranks.own(chosen, self._n_processes)
            batch = self._batches(dataset, own)
            yield batch if counts else weightless(batch)

    def _batches(self, dataset: Any, rows: np.ndarray) -> list[Batch]:
        parts = (rows[i : i + self.batch_size] for i in range(0, len(rows), self.batch_size))
        return [self._batch(dataset, part, dataset.lengths[part]) for part in parts]

    def rows_of_updates(
        self, dataset: Any, epoch: int, rows: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """The rows of each update of an epoch."""
        generator = np.random.default_rng([self.shuffle_seed, epoch])
        order = generator.permutation(len(dataset) if rows is None else rows)
        step = self._rows_of_one()
        return [order[start : start + step] for start in range(0, len(order), step)]

    def _batch(self, dataset: EncodedDataset, rows: np.ndarray, lengths: np.ndarray) -> Batch:
        batch = self.padder.batch(dataset, rows, lengths, run_cost(self.device), self._first)
        if self._words is not None:
            for group in batch[0]:
                group["input_ids"] = self._words.places[group["input_ids"]]
        return batch

    def n_updates(self, n_rows: int) -> int:
        """Updates in one epoch of so many rows."""
        return -(-n_rows // self._rows_of_one())

    def _rows_of_one(self) -> int:
        return self.batch_size * self.gradient_accumulation * self._n_processes

    def fit_loop(
        self,
        X: EncodedDataset,
        y: None = None,
        epochs: int | None = None,
        *,
        rows_of_epoch: Callable[[int], np.ndarray] | None = None,
        validation_score: Callable[[], float] | None = None,
        patience: int | None = None,
        checkpoints: Checkpoints | None = None,
        **fit_params: Any,
    ) -> FineTuningNet:
        """Train for some epochs.

        Parameters
        ----------
        X : EncodedDataset
        y : ignored
        epochs : int or None, default=None
            None is `max_epochs`, with the schedule. A number is one of many calls, of which nobody
            knows how many will follow: the rate stays where it is.
        rows_of_epoch : callable or None, default=None
            From the epoch's number, from 1, to the rows to train on; None is every row once.
        validation_score : callable or None, default=None
            Called after each epoch; its value is recorded as ``valid_score``.
        patience : int or None, default=None
            Epochs without a better ``valid_score`` before training stops; with a number, the best
            epoch's weights come back at the end.
        checkpoints : Checkpoints or None, default=None
            Go on from the last of them, and write others.
        **fit_params : ignored
        """
        drawn = X if rows_of_epoch is None else rows_of_epoch(len(self.history))
        self._n_processes = ranks.join()
        state, bf16 = ranks.start(
            self.module_,
            X.targets,
            None if checkpoints is None else checkpoints.last(),
            self._gains_by_bf16(),
        )
        if state is not None and state["finished"]:
            restore(self, state)
            return self
        if epochs is None:
            epochs = self.max_epochs
            self._words = compact_words(self, X)
            if self._words is not None:
                self.initialize_optimizer()
            self._start_schedule(self.n_updates(len(drawn)) * epochs, self.schedule, self.warmup)
        else:
            self._start_schedule(0, "constant", 0.0)
        self._first = first_position(self.module_) if self.pack else None
        self._draws = Draws(self.shuffle_seed + len(self.history), self.device)
        at = Progress(bf16=bf16)
        try:
            if state is not None:
                at = restore(self, state)
            self._bf16 = at.bf16
            while at.epoch < epochs:
                self.notify("on_epoch_begin", dataset_train=X, dataset_valid=None)
                rows = None if rows_of_epoch is None else rows_of_epoch(len(self.history))
                self.run_epoch(X, rows, at, checkpoints)
                if validation_score is not None:
                    score = float(ranks.share(validation_score()))
                    better = at.note(score)
                    self.history.record("valid_score", score)
                    self.history.record("valid_score_best", better)
                    if better and patience is not None:
                        with self._whole_words():
                            at.best = trainable_state(self.module_)
                try:
                    self.notify("on_epoch_end", dataset_train=X, dataset_valid=None)
                except KeyboardInterrupt:
                    break  # how skorch's callbacks, such as EarlyStopping, end a training
                if patience is not None and at.stale >= patience:
                    break
                at = replace(at, epoch=at.epoch + 1, update=0, losses=[], lr=None)
        finally:
            self._bf16, self._first, self._n_processes, self._draws = None, None, 1, None
            settle_attention(self.module_, self.device)
            # Also after an interrupt: the user keeps the best weights there were.
            if self._words is not None:
                self._words.step_aside()
                self._words = None
                self.initialize_optimizer()
            if at.best is not None:
                self.module_.load_state_dict(at.best, strict=False)
        if checkpoints is not None:
            checkpoints.write(at.total, state_of(self, at, finished=True))
        return self

    def _whole_words(self) -> Any:
        return contextlib.nullcontext() if self._words is None else self._words.whole()

    def partial_fit(
        self, X: EncodedDataset, y: None = None, classes: None = None, **fit_params: Any
    ) -> FineTuningNet:
        """As skorch's, but an interrupt reaches the caller once the net is in order again."""
        if not self.initialized_:
            self.initialize()
        self.notify("on_train_begin", X=X, y=y)
        try:
            self.fit_loop(X, y, **fit_params)
        finally:
            self.notify("on_train_end", X=X, y=y)
            self.optimizer_.zero_grad(set_to_none=True)  # only an update needs them
            if fit_params.get("epochs") is None and not self.keep_optimizer:
                self.optimizer_.state.clear()
        return self

    def run_epoch(
        self,
        dataset: EncodedDataset,
        rows: np.ndarray | None = None,
        at: Progress | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        """One update after the other, over all rows or those given."""
        at = at or Progress()
        at.lr = at.lr or float(self.schedule_.get_last_lr()[0])
        self.history.record("lr", at.lr)
        heard = self.verbose or self.callbacks  # our own callbacks do nothing in silence
        batches = self.updates(dataset, len(self.history), rows, at.update)
        if torch.device(self.device).type != "cpu":
            batches = ahead(batches)
        for batch in batches:
            if heard:
                self.notify("on_batch_begin", batch=batch, training=True)
            if self._n_processes > 1:
                # Each draws dropout of its own, which a fit that goes on can draw again.
                drawn = [self.shuffle_seed, len(self.history), at.update, ranks.rank()]
                seed = np.random.SeedSequence(drawn).generate_state(1)[0]
                self._draws.seed(int(seed))
            step = self.train_step(batch)
            if heard:
                self.notify("on_batch_end", batch=batch, training=True, **step)
            at.losses.append(step["loss"])
            at.update, at.total = at.update + 1, at.total + 1
            check_finite(self, at, dataset, rows)
            if checkpoints is not None and checkpoints.due(at.total):
                checkpoints.write(at.total, state_of(self, at))
        # One transfer an epoch instead of one a step keeps a GPU from waiting.
        losses = torch.stack(at.losses).cpu()
        made = losses[losses.isfinite()]
        self.history.record("train_loss", made.mean().item())
        self.history.record("skipped_updates", len(losses) - len(made))

    def train_step(self, batch: list[Batch], **fit_params: Any) -> dict[str, Any]:
        """Make one update from the micro-batches of `batch`; its loss is NaN if it is skipped."""
        if not self.module_.training:
            self._set_training(True)
        for parameter in self._parameters():
            parameter.grad = None
        remembers = getattr(self.criterion_, "remembers", False)
        memory = dict(self.criterion_.named_buffers()) if remembers else {}
        draws = self._draws or Draws(self.shuffle_seed, self.device)
        on_cpu = torch.device(self.device).type == "cpu"
        packed = self._first is not None
        with draws.used(torch_draws=not on_cpu or self.module_.torch_draws(packed)):
            if len(batch) == 1:
                logits = self._logits(batch[0][0])
                loss = self._loss(logits, *batch[0][1:])
                self.scaler_.scale(loss).backward()
            else:
                logits, loss = accumulate(self, batch, draws)
        loss = loss.detach()
        if self._n_processes > 1:
            ranks.average([loss, *(p.grad for p in self._parameters() if p.grad is not None)])
        bad = self.update(batch, loss)
        if bad is not False:
            bad = torch.as_tensor(bad)
            loss = torch.where(bad, torch.nan, loss)
            for name, before in memory.items():
                now = self.criterion_.get_buffer(name)
                set_buffer(self.criterion_, name, before.where(bad, now))
        return {"loss": loss, "y_pred": logits.detach()}

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
            norm = finite_if_all_are([p.grad for p in self._parameters() if p.grad is not None])
        # A scaler finds infinite gradients by itself, and lowers its scale: no reason to stop.
        whole = loss if scaled else loss + norm
        on_cpu = loss.device.type == "cpu"
        bad: Any = not math.isfinite(whole.item()) if on_cpu else ~whole.isfinite()
        if scaled:
            self.scaler_.step(self.optimizer_)
            self.scaler_.update()
        elif loss.is_cuda and self.optimizer_.defaults.get("fused"):
            self.optimizer_.found_inf = bad.float()  # skips in the kernel: the CPU need not wait
            self.optimizer_.step()
        elif not bad:
            self.optimizer_.step()
            if self._words is not None:
                self._words.note_update(self.optimizer_)
        if scaled or loss.is_cuda or not bad:
            self.schedule_.step()
        return bad

    def _logits(self, inputs: Inputs) -> torch.Tensor:
        """Logits of groups of inputs, one after the other."""
        parts = []
        settle_attention(self.module_, self.device, packed="packing" in inputs[0])
        # Once for all groups, so that weights are rounded once.
        with autocast(self._precision_now(), self.device):
            for group in inputs:
                moved = {k: to_device(v, self.device) for k, v in group.items()}
                parts.append(self.module_(**moved))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _precision_now(self) -> str:
        """The precision of this pass: on a CPU, auto trains in bfloat16 where that is faster.

        It predicts in float32, so that a model gives the same probabilities on every processor.
        """
        if self.precision != "auto" or torch.device(self.device).type != "cpu":
            return self.precision
        if not self.module_.training:
            return "fp32"
        gains = self._gains_by_bf16() if self._bf16 is None else self._bf16
        return "bf16" if gains else "fp32"

    def _gains_by_bf16(self) -> bool:
        config = getattr(getattr(self.module_, "encoder", None), "config", None)
        # In small models casting costs more than it saves.
        return getattr(config, "hidden_size", 0) >= 256 and cpu_gains_by_bf16()

    def _loss(
        self, logits: torch.Tensor, target: torch.Tensor | None, weight: torch.Tensor | None
    ) -> torch.Tensor:
        # Targets and weights were checked with the data, before the first step.
        loss = getattr(self.criterion_, "of_checked", None) or self.criterion_
        target, weight = (to_device(values, self.device) for values in (target, weight))
        return loss(logits, target, sample_weight=weight)

    # ---- prediction

    @torch.no_grad()
    def logits(self, dataset: EncodedDataset, batch_size: int | None = None) -> list[np.ndarray]:
        """Logits of each window, float32: (n_predictions, n_outputs), or (n_outputs,) pooled."""
        with self._whole_words():
            return self._predicted(dataset, batch_size or max(self.batch_size, 64))

    def _predicted(self, dataset: EncodedDataset, size: int) -> list[np.ndarray]:
        self._set_training(False)
        rows: list[Any] = [None] * len(dataset)
        for batch in length_batches(dataset.lengths, size, run_cost(self.device)):
            inputs, _, _ = self.padder([(dataset.windows[i], None, None) for i in batch])
            values = self._logits([inputs]).float().cpu().numpy()
            if "positions" in inputs:
                ends = np.cumsum([dataset.windows[i].n_predictions for i in batch])
                pieces: Sequence[np.ndarray] = np.split(values, ends[:-1])
            else:
                pieces = list(values)
            for i, piece in zip(batch, pieces, strict=True):
                rows[i] = piece
        return rows
