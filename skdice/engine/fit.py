"""A fit while it runs: its epochs and updates, and what it keeps beside the net."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from skorch.callbacks import EarlyStopping
from skorch.history import History

from skdice.engine import devices, ranks
from skdice.engine.ahead import ahead
from skdice.engine.checkpoints import Checkpoints
from skdice.engine.devices import FitRandomState
from skdice.engine.graphs import graphs_of_updates, rates_on_device
from skdice.engine.layouts.layout import Batch, targets_of, weightless
from skdice.engine.module import put_back, set_buffer, trained_state
from skdice.engine.parts import settle_attention
from skdice.engine.used_embeddings import UsedEmbeddings, train_used_embeddings, train_whole_table

# Of what `Fit.state` gives. A fit begins anew where there are checkpoints of another format only.
FORMAT = 2
# Skipped updates in a row that end a fit.
MOST_SKIPPED = 10


@dataclass
class Progress:
    """The progress of a fit."""

    epoch: int = 0  # epochs done
    update: int = 0  # updates done in this epoch
    total: int = 0  # updates done in the fit
    losses: list[torch.Tensor] = field(default_factory=list)  # of this epoch's updates
    lr: float | None = None  # at the epoch's first update
    bad: Any = 0  # skipped updates in a row; a tensor on a GPU
    bf16: bool = False  # whether precision="auto" trains in bfloat16
    best_score: float | None = None  # the best epoch's score on the validation set
    best: dict[str, torch.Tensor] | None = None  # its weights
    stale: int = 0  # epochs since

    def note(self, score: float) -> bool:
        """Count in the score of one more epoch; whether it is the best."""
        better = self.best_score is None or score > self.best_score
        self.stale = 0 if better else self.stale + 1
        self.best_score = score if better else self.best_score
        return better


@dataclass(eq=False)
class Fit:
    """Train a net for some epochs.

    Parameters
    ----------
    net : FineTuningNet
    dataset : EncodedDataset
    epochs : int or None, default=None
        None is the net's `max_epochs`, with its schedule. A number is one of many calls, of which
        nobody knows how many will follow: the rate stays where it is.
    rows : list of ndarray of int, or None, default=None
        The rows that each epoch trains on, as a sampler drew them; None is every row once.
    validation_score : callable or None, default=None
        Called after each epoch; its value is recorded as ``valid_score``.
    patience : int or None, default=None
        Epochs without a better ``valid_score`` before training stops; with a number, the best
        epoch's weights come back at the end.
    checkpoints : Checkpoints or None, default=None
        Go on from the last of them, and write others.
    """

    net: Any
    dataset: Any
    epochs: int | None = None
    rows: Sequence[np.ndarray] | None = None
    validation_score: Callable[[], float] | None = None
    patience: int | None = None
    checkpoints: Checkpoints | None = None

    def __post_init__(self) -> None:
        net = self.net
        self.progress = Progress()
        self.draws = FitRandomState(net.shuffle_seed + len(net.history), net.device)
        self.n_processes = ranks.join()
        self.layout = net.layout(self.dataset)
        self.graphs = graphs_of_updates(net, self) if devices.is_gpu(net.device) else None
        self.embeddings: UsedEmbeddings | None = None
        self.recorded = False  # whether there were graphs

    def run(self) -> None:
        """Train all epochs; also after an interrupt, the net has the best weights there were."""
        net = self.net
        last = None if self.checkpoints is None else self.checkpoints.last()
        state, self.progress.bf16 = ranks.start(
            net.module_, self.dataset.targets, last, net.gains_by_bf16()
        )
        if state is not None and state["finished"]:
            self.restore(state)
            net.set_training(False)
            if net.verbose:
                print("this fit was finished before: the result is in checkpoint_dir", flush=True)
            return
        try:
            net.fit_ = self
            net.set_training(True)
            if self.epochs is None:
                self.embeddings = train_used_embeddings(net, self.dataset)
                net.start_schedule(self._n_updates(), net.schedule, net.warmup)
            else:
                net.start_schedule(0, "constant", 0.0)
            if state is not None:
                self.restore(state)
            if net.verbose:
                net.tell_of_precision(self.progress.bf16)
            n_epochs = net.max_epochs if self.epochs is None else self.epochs
            with nullcontext() if self.graphs is None else rates_on_device(net.optimizer_):
                while self.progress.epoch < n_epochs and self.epoch():
                    self.progress = replace(
                        self.progress, epoch=self.progress.epoch + 1, update=0, losses=[], lr=None
                    )
        finally:
            self.recorded = self.graphs is not None and self.graphs.recorded
            self.graphs = None  # which hold memory of the GPU
            net.fit_ = None
            if self.progress.best is not None:
                put_back(net.module_, self.progress.best)
            if self.embeddings is not None:
                train_whole_table(net, self.embeddings)
            settle_attention(net.module_, net.device)
            net.set_training(False)
        if self.checkpoints is not None:
            # Its number puts it behind the one that the last update may have written.
            self.checkpoints.write(self.progress.total + 1, self.state(finished=True))

    def epoch(self) -> bool:
        """Make the updates of one epoch, and score it; whether another may follow."""
        net, progress = self.net, self.progress
        net.notify("on_epoch_begin", dataset_train=self.dataset, dataset_valid=None)
        progress.lr = progress.lr or float(net.schedule_.get_last_lr()[0])
        net.history.record("lr", progress.lr)
        net.history.record("peak_lr", float(net.lr))
        net.history.record("max_epochs", int(self.epochs or net.max_epochs))
        batches = self.batches(len(net.history), progress.update)
        if torch.device(net.device).type != "cpu":
            batches = ahead(batches)
        for batch in batches:
            self.update(batch)
        # One transfer an epoch instead of one a step keeps a GPU from waiting.
        losses = torch.stack(progress.losses).cpu()
        self.check_skipped()  # an epoch on a GPU may be shorter than what lies between two checks
        made = losses[losses.isfinite()]
        net.history.record("train_loss", made.mean().item())
        net.history.record("skipped_updates", len(losses) - len(made))
        if self.graphs is not None and self.graphs.reason:
            net.history.record("eager", self.graphs.reason)
            if net.verbose and (progress.epoch == 0 or "eager" not in net.history[-2]):
                print(f"updates are not recorded as CUDA graphs: {self.graphs.reason}", flush=True)
        if self.validation_score is not None:
            score = float(ranks.share(self.validation_score()))
            better = progress.note(score)
            if better and self.patience is not None:
                progress.best = copy.deepcopy(trained_state(net.module_))
            net.history.record("valid_score", score)
            net.history.record("valid_score_best", better)
        try:
            net.notify("on_epoch_end", dataset_train=self.dataset, dataset_valid=None)
        except KeyboardInterrupt:
            # skorch's EarlyStopping raises it, too, and has counted up to its patience by then.
            stops = [c for _, c in net.callbacks_ if isinstance(c, EarlyStopping)]
            if not any(callback.misses_ == callback.patience for callback in stops):
                raise
            return False
        return self.patience is None or progress.stale < self.patience

    def update(self, batch: list[Batch]) -> None:
        """Make one update from its micro-batches."""
        net, progress = self.net, self.progress
        net.notify("on_batch_begin", batch=batch, training=True)
        if self.n_processes > 1:
            # Each draws dropout of its own, which a fit that goes on can draw again.
            drawn = [net.shuffle_seed, len(net.history), progress.update, ranks.rank()]
            seed = np.random.SeedSequence(drawn).generate_state(1)[0]
            self.draws.seed(int(seed))
        step = net.train_step(batch)
        progress.losses.append(step["loss"])
        progress.update, progress.total = progress.update + 1, progress.total + 1
        net.notify("on_batch_end", batch=batch, training=True, **step)
        self.count_skipped()
        if self.checkpoints is not None and self.checkpoints.due(progress.total):
            self.checkpoints.write(progress.total, self.state())

    # ---- batches

    def batches(self, epoch: int, start: int = 0) -> Iterator[list[Batch]]:
        """The micro-batches of each update, in this epoch's random order.

        Parameters
        ----------
        epoch : int
            Its number in the net's history, from 1.
        start : int, default=0
            Updates of this epoch that were made already.
        """
        for chosen in self.rows_of_updates(epoch)[start:]:
            rows, counts = ranks.rows_of_rank(chosen, self.n_processes)
            batches = self.net.batches(self.dataset, rows, self.layout)
            yield batches if counts else weightless(batches)

    def rows_of_updates(self, epoch: int) -> list[np.ndarray]:
        """The rows of each update of an epoch."""
        rows = None if self.rows is None else self.rows[self.progress.epoch]
        generator = np.random.default_rng([self.net.shuffle_seed, epoch])
        order = generator.permutation(len(self.dataset) if rows is None else rows)
        return np.split(order, np.arange(self.rows_of_one(), len(order), self.rows_of_one()))

    def _n_updates(self) -> int:
        """Updates of all epochs."""
        epochs = self.rows or [self.dataset] * self.net.max_epochs
        return sum(-(-len(rows) // self.rows_of_one()) for rows in epochs)

    def rows_of_one(self) -> int:
        """The number of rows of an update, over all processes."""
        return self.net.batch_size * self.net.gradient_accumulation * self.n_processes

    # ---- updates that are skipped

    def count_skipped(self) -> None:
        """Count the last update, if it was skipped; stop after too many in a row."""
        progress = self.progress
        loss = progress.losses[-1]
        if loss.device.type == "cpu":
            progress.bad = 0 if math.isfinite(loss.item()) else progress.bad + 1
        else:
            progress.bad = torch.where(loss.isfinite(), 0, progress.bad + 1)
            # Checked rarely: reading the value waits until the GPU has finished all queued work.
            if progress.update % 50:
                return
        self.check_skipped()

    def check_skipped(self) -> None:
        """Raise after `MOST_SKIPPED` skipped updates in a row; name the rows of the last batch."""
        progress, net, dataset = self.progress, self.net, self.dataset
        if progress.bad < MOST_SKIPPED:
            return
        chosen = self.rows_of_updates(len(net.history))[progress.update - 1]
        if hasattr(dataset, "rows_of"):
            chosen = dataset.rows_of(chosen)
        raise ValueError(
            f"{int(progress.bad)} updates in a row were skipped, as the loss or gradients were "
            f"not finite: look at the training rows {chosen.tolist()} of the last batch, counted "
            f"without held-out rows, and try a lower lr than {net.lr} or precision='fp32', not "
            f"{net.precision!r}"
        )

    # ---- checkpoints

    def state(self, *, finished: bool = False) -> dict[str, Any]:
        """All that the fit needs to go on; of a finished fit, its results."""
        net = self.net
        state = {
            "finished": finished,
            "module": trained_state(net.module_),
            "criterion": dict(net.criterion_.named_buffers()),
            "history": [
                {key: value for key, value in epoch.items() if key != "batches"}
                for epoch in net.history.to_list()
            ],
        }
        if finished:
            return state
        return state | {
            "optimizer": net.optimizer_.state_dict(),
            "schedule": {k: v for k, v in net.schedule_.state_dict().items() if k != "lr_lambdas"},
            "scaler": net.scaler_.state_dict(),
            "random": self.draws.states(),
            "progress": vars(self.progress),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back, or on, to the point at which `state` was taken."""
        net = self.net
        put_back(net.module_, state["module"])
        for name, value in state["criterion"].items():
            set_buffer(net.criterion_, name, value.to(net.device))
        # The epoch that was interrupted is opened again.
        epochs = state["history"] if state["finished"] else state["history"][:-1]
        net.history = History({"batches": [], **epoch} for epoch in epochs)
        if state["finished"]:
            return
        net.optimizer_.load_state_dict(state["optimizer"])
        net.schedule_.load_state_dict(
            state["schedule"] | {"lr_lambdas": [None] * len(net.optimizer_.param_groups)}
        )
        net.scaler_.load_state_dict(state["scaler"])
        self.draws.set_states(state["random"])
        self.progress = Progress(**state["progress"])
        self.progress.losses = [loss.to(net.device) for loss in self.progress.losses]
        self.progress.bad = torch.as_tensor(self.progress.bad, device=net.device)


def accumulate(
    net: Any, batch: Sequence[Batch], draws: FitRandomState
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of the loss over all micro-batches together, in a micro-batch's memory.

    They equal those of one big batch. A set-level loss is no sum over micro-batches, so its
    gradient with respect to all logits is taken first, and each micro-batch is then run again, with
    the same dropout, to carry its share of that gradient down.

    Returns
    -------
    logits, loss : Tensor
    """
    states, parts = [], []
    for inputs, _, _ in batch:
        states.append(draws.states())
        with torch.no_grad():
            parts.append(net.logits_of(inputs))
    outputs = torch.cat(parts).requires_grad_()
    logits = net.of_texts(outputs, batch)
    loss = net.loss_of(logits, *targets_of(batch))
    (gradient,) = torch.autograd.grad(net.scaler_.scale(loss), outputs)
    after = draws.states()
    shares = gradient.split([len(part) for part in parts])
    for (inputs, _, _), state, share in zip(batch, states, shares, strict=True):
        draws.set_states(state)
        net.logits_of(inputs).backward(share)
    draws.set_states(after)
    return logits.detach(), loss
