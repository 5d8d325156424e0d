"""The state of a running fit: how to store it, go on from it, and when to stop."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from skorch.history import History

# Of what `state_of` gives. A fit begins anew where there are checkpoints of another format only.
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


def state_of(fit: Any, *, finished: bool = False) -> dict[str, Any]:
    """All that a fit needs to go on; of a finished fit, its results."""
    net = fit.net
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
        "random": fit.draws.states(),
        "progress": vars(fit.progress),
    }


def restore(fit: Any, state: dict[str, Any]) -> None:
    """Bring a fit to the point at which `state` was taken."""
    net = fit.net
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
    fit.draws.set_states(state["random"])
    fit.progress = Progress(**state["progress"])
    fit.progress.losses = [loss.to(net.device) for loss in fit.progress.losses]
    fit.progress.bad = torch.as_tensor(fit.progress.bad, device=net.device)


def trained_state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights that are trained, and buffers, each once; not copies."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    return {**{n: p.detach() for n, p in trained.items()}, **dict(module.named_buffers())}


@torch.no_grad()
def put_back(module: torch.nn.Module, state: dict[str, torch.Tensor]) -> None:
    """Give a module the values of an earlier `trained_state`."""
    own = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    for name, value in state.items():
        own[name].copy_(value)


def set_buffer(module: torch.nn.Module, name: str, value: torch.Tensor) -> None:
    """Replace a buffer by its dotted name."""
    owner, _, buffer = name.rpartition(".")
    setattr(module.get_submodule(owner), buffer, value)


def finite_if_all_are(gradients: list[torch.Tensor]) -> torch.Tensor:
    """A number that is finite if all gradients are."""
    if len(gradients) > 8:
        return torch.nn.utils.get_total_norm(gradients)
    # For a few gradients this takes a quarter of the time.
    return torch.stack([gradient.sum() for gradient in gradients]).sum()


def count_skipped(fit: Any) -> None:
    """Count the last update, if it was skipped; stop the fit after too many in a row."""
    progress = fit.progress
    loss = progress.losses[-1]
    if loss.device.type == "cpu":
        progress.bad = 0 if math.isfinite(loss.item()) else progress.bad + 1
    else:
        progress.bad = torch.where(loss.isfinite(), 0, progress.bad + 1)
        # Checked rarely: reading the value waits until the GPU has finished all queued work.
        if progress.update % 50:
            return
    check_skipped(fit)


def check_skipped(fit: Any) -> None:
    """Raise after `MOST_SKIPPED` skipped updates in a row, naming the rows of the last batch."""
    progress, net, dataset = fit.progress, fit.net, fit.dataset
    if progress.bad < MOST_SKIPPED:
        return
    chosen = fit.rows_of_updates(len(net.history))[progress.update - 1]
    if hasattr(dataset, "rows_of"):
        chosen = dataset.rows_of(chosen)
    raise ValueError(
        f"{int(progress.bad)} updates in a row were skipped, as the loss or gradients were not "
        f"finite: look at the training rows {chosen.tolist()} of the last batch (counted without "
        f"held-out rows), and try a lower lr than {net.lr} or precision='fp32', now "
        f"{net.precision!r}"
    )
