"""The skorch net behind the transformer estimators."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import (
    BatchScoring,
    EpochScoring,
    EpochTimer,
    LRScheduler,
    PassthroughScoring,
    PrintLog,
)
from torch import nn

from skdice.engine.batching import EncodedDataset, LengthBatches, Padder, length_chunks
from skdice.engine.module import parameter_groups
from skdice.engine.schedules import SCHEDULES, schedule_factor

__all__ = [
    "FineTuningNet",
    "check_callbacks",
    "has_bf16",
    "random_state",
    "resolve_device",
    "seeded",
    "set_random_state",
    "targets_of",
]

Inputs = list[dict[str, torch.Tensor]]
Batch = tuple[Inputs, torch.Tensor | None, torch.Tensor | None]


def resolve_device(device: str) -> str:
    """``"auto"`` is CUDA, then Apple's MPS, then the CPU."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def has_bf16(device: str) -> bool:
    """Whether it is a GPU that computes in bfloat16, and not by way of float32."""
    return str(device).startswith("cuda") and torch.cuda.is_bf16_supported(
        including_emulation=False
    )


@contextlib.contextmanager
def seeded(seed: int, device: str) -> Iterator[None]:
    """Seed torch inside the block and give the caller's generators back as they were."""
    where = torch.device(device)
    states = {d: random_state(d) for d in (torch.device("cpu"), where)}
    try:
        # Not torch.manual_seed, which seeds all devices there are.
        torch.default_generator.manual_seed(seed)
        if where.type == "cuda":
            with torch.cuda.device(where):
                torch.cuda.manual_seed(seed)
        elif where.type == "mps":
            torch.mps.manual_seed(seed)
        yield
    finally:
        for d, state in states.items():
            set_random_state(d, state)


def check_callbacks(callbacks: list[Any] | None, net_params: dict[str, Any] | None) -> None:
    """Refuse skorch callbacks that would do nothing here, or fail amid training.

    Raises
    ------
    ValueError
        If one schedules the learning rate, or scores what skorch takes for the data.
    """
    for given in [*(callbacks or []), *((net_params or {}).get("callbacks") or [])]:
        callback = given[1] if isinstance(given, tuple) else given
        kind = callback if isinstance(callback, type) else type(callback)
        if issubclass(kind, LRScheduler):
            raise ValueError(
                f"callbacks holds {kind.__name__}, whose rate the net's own schedule would "
                f"overwrite: choose schedule= of {SCHEDULES}, and warmup="
            )
        if issubclass(kind, (BatchScoring, EpochScoring, PassthroughScoring)) and not (
            # Called with the net and the encoded training data, which it may predict.
            issubclass(kind, EpochScoring)
            and getattr(callback, "on_train", False)
            and not callback.use_caching
            and callable(callback.scoring)
        ):
            raise ValueError(
                f"callbacks holds {kind.__name__}, which cannot read the net's batches: give fit "
                "X_val and y_val where it takes them, or early_stopping=True, and each epoch's "
                "score is its valid_score in history_"
            )


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
    validation_score : callable or None, default=None
        From the net to a score, called after each epoch and recorded as ``valid_score``.
    patience : int or None, default=None
        Epochs without a better ``valid_score`` before training stops; with a number, the best
        epoch's weights come back at the end.
    rows_of_epoch : callable or None, default=None
        From the epoch's number, from 1, to the rows to train on; None is every row once.
    **kwargs
        Of `skorch.NeuralNet`.
    """

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
        validation_score: Callable[[FineTuningNet], float] | None = None,
        patience: int | None = None,
        rows_of_epoch: Callable[[int], np.ndarray] | None = None,
        optimizer: Any = torch.optim.AdamW,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, criterion=criterion, optimizer=optimizer, **kwargs)
        self.padder = padder
        self.gradient_accumulation = gradient_accumulation
        self.max_grad_norm = max_grad_norm
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.precision = precision
        self.shuffle_seed = shuffle_seed
        self.validation_score = validation_score
        self.patience = patience
        self.rows_of_epoch = rows_of_epoch

    def __getstate__(self) -> dict[str, Any]:
        """The module once, where skorch moves it to the machine that loads it."""
        state = super().__getstate__()
        if self.initialized_:
            state.update(module=None, criterion=None)
            state.pop("schedule_", None)  # each fit makes its own
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.initialized_:
            self.module, self.criterion = self.module_, self.criterion_

    @property
    def _default_callbacks(self) -> list[tuple[str, Any]]:
        return [("epoch_timer", EpochTimer()), ("print_log", PrintLog())]

    # ---- optimiser, schedule, precision

    def initialize_optimizer(self, *args: Any, **kwargs: Any) -> FineTuningNet:
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
        self.scaler_ = torch.amp.GradScaler(
            device=torch.device(self.device).type, enabled=self._autocast_dtype() is torch.float16
        )
        return self

    def set_rate(self, lr: float) -> None:
        """Go on at `lr`; groups that have a rate of their own keep it."""
        self.lr = lr
        for group, own in zip(self.optimizer_.param_groups, self.own_rates_, strict=True):
            group["lr"] = group["initial_lr"] = lr if own is None else own

    def _start_schedule(self, n_steps: int) -> None:
        factor = schedule_factor(self.schedule, n_steps, self.warmup)
        self.schedule_ = torch.optim.lr_scheduler.LambdaLR(self.optimizer_, factor)

    def _autocast_dtype(self) -> torch.dtype | None:
        if self.precision == "bf16":
            return torch.bfloat16
        if self.precision == "fp16":
            return torch.float16
        if self.precision == "auto" and str(self.device).startswith("cuda"):
            return torch.bfloat16 if has_bf16(self.device) else torch.float16
        return None

    def _autocast(self) -> Any:
        dtype = self._autocast_dtype()
        if dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(torch.device(self.device).type, dtype=dtype)

    # ---- batches

    def updates(self, dataset: EncodedDataset, epoch: int) -> Iterator[list[Batch]]:
        """The micro-batches of each update, in this epoch's random order."""
        generator = np.random.default_rng([self.shuffle_seed, epoch])
        order = generator.permutation(self._drawn(dataset, epoch))
        lengths, size = dataset.lengths, self.batch_size
        step = size * self.gradient_accumulation
        for start in range(0, len(order), step):
            rows = order[start : start + step]
            parts = [rows[i : i + size] for i in range(0, len(rows), size)]
            yield [self._batch(dataset, part, lengths[part]) for part in parts]

    def _batch(self, dataset: EncodedDataset, rows: np.ndarray, lengths: np.ndarray) -> Batch:
        """Rows as tensors: inputs in groups of similar length, all targets in their order."""
        unit = 128 if torch.device(self.device).type == "cpu" else 8192
        groups = [
            self.padder([dataset[int(i)] for i in rows[chunk]])
            for chunk in length_chunks(lengths, unit)
        ]
        return [group[0] for group in groups], *targets_of(groups)

    def n_updates(self, dataset: EncodedDataset) -> int:
        """Updates in one epoch."""
        n_rows = len(self._drawn(dataset, len(self.history)))
        return -(-n_rows // (self.batch_size * self.gradient_accumulation))

    def _drawn(self, dataset: EncodedDataset, epoch: int) -> np.ndarray:
        """Rows of an epoch; a sampler may repeat some and leave some out."""
        if self.rows_of_epoch is None:
            return np.arange(len(dataset))
        return self.rows_of_epoch(epoch)

    # ---- training

    def fit_loop(
        self, X: EncodedDataset, y: None = None, epochs: int | None = None, **fit_params: Any
    ) -> FineTuningNet:
        epochs = self.max_epochs if epochs is None else epochs
        self._start_schedule(self.n_updates(X) * epochs)
        best: tuple[float, dict[str, torch.Tensor]] | None = None
        stale = 0
        try:
            for _ in range(epochs):
                self.notify("on_epoch_begin", dataset_train=X, dataset_valid=None)
                self.run_single_epoch(X, training=True, prefix="train", step_fn=self.train_step)
                if self.validation_score is not None:
                    score = float(self.validation_score(self))
                    better = best is None or score > best[0]
                    self.history.record("valid_score", score)
                    self.history.record("valid_score_best", better)
                    stale = 0 if better else stale + 1
                    if better and self.patience is not None:
                        best = score, self._trainable_state()
                try:
                    self.notify("on_epoch_end", dataset_train=X, dataset_valid=None)
                except KeyboardInterrupt:
                    break  # how skorch's callbacks, such as EarlyStopping, end a training
                if self.patience is not None and stale >= self.patience:
                    break
        finally:
            # Also after an interrupt: the user keeps the best weights there were.
            if best is not None:
                self.module_.load_state_dict(best[1], strict=False)
        return self

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
        return self

    def run_single_epoch(
        self, iterator: EncodedDataset, training: bool, prefix: str, step_fn: Any, **_: Any
    ) -> None:
        self.history.record("lr", self.schedule_.get_last_lr()[0])  # at the epoch's first update
        losses = []
        for batch in self.updates(iterator, epoch=len(self.history)):
            self.notify("on_batch_begin", batch=batch, training=training)
            step = step_fn(batch)
            losses.append(step["loss"].detach())
            self.notify("on_batch_end", batch=batch, training=training, **step)
        # One transfer an epoch instead of one a step keeps a GPU from waiting.
        self.history.record(f"{prefix}_loss", torch.stack(losses).mean().item())

    def train_step(self, batch: list[Batch], **fit_params: Any) -> dict[str, Any]:
        self._set_training(True)
        self.optimizer_.zero_grad(set_to_none=True)
        if len(batch) == 1:
            inputs, target, weight = batch[0]
            logits = self._logits(inputs)
            loss = self._loss(logits, target, weight)
            self.scaler_.scale(loss).backward()
        else:
            logits, loss = self._accumulate(batch)
        self.update(batch)
        return {"loss": loss.detach(), "y_pred": logits.detach()}

    def update(self, batch: list[Batch]) -> None:
        """Take a step with the gradients that the weights have."""
        parameters = [p for group in self.optimizer_.param_groups for p in group["params"]]
        if self.max_grad_norm is not None or self.callbacks:
            self.scaler_.unscale_(self.optimizer_)
        self.notify(
            "on_grad_computed", named_parameters=list(self.module_.named_parameters()), batch=batch
        )
        if self.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        self.scaler_.step(self.optimizer_)
        self.scaler_.update()
        self.schedule_.step()

    def _accumulate(self, batch: list[Batch]) -> tuple[torch.Tensor, torch.Tensor]:
        """Gradients of the loss over all micro-batches together, in a micro-batch's memory.

        A set-level loss is no sum over micro-batches, so its gradient with respect to all logits
        is taken first, and each micro-batch is then run again, with the same dropout, to carry
        its share of that gradient down.
        """
        device = torch.device(self.device)
        states, parts = [], []
        for inputs, _, _ in batch:
            states.append(random_state(device))
            with torch.no_grad():
                parts.append(self._logits(inputs))
        logits = torch.cat(parts).requires_grad_()
        loss = self._loss(logits, *targets_of(batch))
        (gradient,) = torch.autograd.grad(self.scaler_.scale(loss), logits)
        after = random_state(device)
        shares = gradient.split([len(part) for part in parts])
        for (inputs, _, _), state, share in zip(batch, states, shares, strict=True):
            set_random_state(device, state)
            self._logits(inputs).backward(share)
        set_random_state(device, after)
        return logits.detach(), loss

    def _logits(self, inputs: Inputs, run: Any = None, dim: int = 0) -> torch.Tensor:
        """Logits of groups of inputs, one after the other along `dim`; `run` is the module."""
        run, parts = run or self.module_, []
        with self._autocast():  # once for all groups, so that weights are rounded once
            for group in inputs:
                moved = {k: v.to(self.device, non_blocking=True) for k, v in group.items()}
                parts.append(run(**moved))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

    def _loss(
        self, logits: torch.Tensor, target: torch.Tensor | None, weight: torch.Tensor | None
    ) -> torch.Tensor:
        assert target is not None
        if weight is not None:
            weight = weight.to(self.device)
        return self.criterion_(logits, target.to(self.device), sample_weight=weight)

    def _trainable_state(self) -> dict[str, torch.Tensor]:
        trainable = {name for name, p in self.module_.named_parameters() if p.requires_grad}
        state = self.module_.state_dict()
        return {k: v.detach().clone() for k, v in state.items() if k in trainable}

    # ---- prediction

    @torch.no_grad()
    def logits(self, dataset: EncodedDataset, batch_size: int | None = None) -> list[np.ndarray]:
        """Logits of each window, float32: (n_predictions, n_outputs), or (n_outputs,) pooled."""
        self._set_training(False)
        size = batch_size or max(self.batch_size, 64)
        rows: list[Any] = [None] * len(dataset)
        for batch in LengthBatches(dataset.lengths, size):
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

    def spread(self, dataset: EncodedDataset) -> float:
        """How much the logits of a few examples differ."""
        rows = np.unique(np.linspace(0, len(dataset) - 1, 8).astype(int))
        logits = self.logits(EncodedDataset([dataset.windows[i] for i in rows]))
        if len({row.shape[-1] for row in logits}) > 1:  # an output for each pair of tokens
            logits = [row.reshape(-1, 1) for row in logits]
        return float(np.vstack(logits).std(axis=0).max())


def targets_of(parts: Sequence[tuple[Any, Any, Any]]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Targets and weights of all parts of a batch, one after the other."""
    _, targets, weights = zip(*parts, strict=True)
    return torch.cat(targets), None if weights[0] is None else torch.cat(weights)


def random_state(device: torch.device) -> Any:
    """Where the device's random generator stands."""
    if device.type == "mps":
        return torch.mps.get_rng_state()
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def set_random_state(device: torch.device, state: Any) -> None:
    """Put it back there."""
    if device.type == "mps":
        torch.mps.set_rng_state(state)
    elif device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
