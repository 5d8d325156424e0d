"""The length and the rate of a fit where the user gives none, and where the head starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from skdice._checks import shown
from skdice._warn import warn
from skdice.backbones import load_config
from skdice.engine import ranks
from skdice.engine.encoded import EncodedDataset
from skdice.engine.plan import FitPlan
from skdice.engine.recipe import choose_epochs, choose_rate, is_adam
from skdice.exceptions import FewRowsWarning
from skdice.losses import Loss


def given(model: Any, *names: str) -> Any:
    """Return what `net_params` has by the first of these names, or the parameter of the last."""
    params = model.net_params or {}
    return next((params[name] for name in names if name in params), getattr(model, names[-1]))


def rows_of_update(model: Any) -> int:
    """Return the rows of one update, over all processes."""
    size = given(model, "batch_size") * given(model, "gradient_accumulation")
    return int(size) * ranks.n_processes()


def epochs_for(model: Any, n_rows: int, plan: FitPlan | None = None) -> int:
    """Return the number of epochs of a fit on so many rows.

    Parameters
    ----------
    model : NetEstimator
    n_rows : int
    plan : FitPlan or None, default=None
        The fit; None is one of a head alone.
    """
    if (epochs := given(model, "max_epochs")) != "auto":
        return int(epochs)
    size = rows_of_update(model)
    if plan is None or not _learns_by_heart(model):
        return choose_epochs(n_rows, size)
    return choose_epochs(n_rows, size, _n_rare(plan), rate_of(model))


def _n_rare(plan: FitPlan) -> int:
    """Return the rows of the rarer of two classes in an epoch; weights of 0 leave rows out."""
    rows = slice(None) if plan.rows is None else plan.rows[0]
    trained = plan.dataset.shares[rows] > 0
    return int(np.bincount(plan.dataset.targets[rows][trained], minlength=2).min())


def _learns_by_heart(model: Any) -> bool:
    """Return True if a fit is one that, made longer, was seen to learn wrong labels by heart.

    Where rows are held out, they tell when to stop.
    """
    module = model.module_
    trains_all = _frozen(model, module.encoder.config) != "encoder" and not module.adapted
    return trains_all and not model.early_stopping and model.task.has_two_classes(model)


def _frozen(model: Any, config: Any) -> Any:
    """Return what is not trained, where all layers are the encoder."""
    layers = getattr(config, "num_hidden_layers", None)
    return "encoder" if model.frozen == layers else model.frozen


def patience_of(model: Any) -> int:
    """Return the epochs without a better score that `early_stopping` waits for."""
    if model.n_iter_no_change == "auto":
        return max(3, model.max_epochs_ // 3)
    return int(model.n_iter_no_change)


def check_optimizer(model: Any) -> None:
    """Refuse ``lr="auto"`` with an optimizer whose rates are not known."""
    optimizer = (model.net_params or {}).get("optimizer", torch.optim.AdamW)
    if given(model, "optimizer__lr", "lr") == "auto" and not is_adam(optimizer):
        raise ValueError(
            f"lr='auto' with net_params: optimizer={shown(optimizer)}: the rates that are "
            "known are those of Adam and its kin; give lr as a number"
        )


def rate_of(model: Any, *, constant: bool = False) -> float:
    """Return the learning rate of a fit; for a search also before one."""
    if (rate := given(model, "optimizer__lr", "lr")) != "auto":
        return float(rate)
    check_optimizer(model)
    module = getattr(model, "module_", None)
    if module is None:  # before a fit
        config, adapted = load_config(str(given(model, "backbone"))), given(model, "adapter")
    else:
        config, adapted = module.encoder.config, module.adapted
    return choose_rate(
        getattr(config, "hidden_size", 768),
        _frozen(model, config),
        kind=config.model_type,
        two_classes=model.task.has_two_classes(model),
        adapted=bool(adapted),
        constant=constant,
    )


def start_head(model: Any, plan: FitPlan) -> None:
    """Let a new head start at the log-prior of the classes, if its loss gains by it."""
    loss = plan.criterion
    if plan.mode == "fresh" and isinstance(loss, Loss):  # readers' losses have no classes
        model.module_.start_from(loss.start_bias())


def warn_of_few_rows(plan: FitPlan) -> None:
    """Warn of a fit on one or two rows, or on one positive example."""
    loss = plan.criterion
    places = np.arange(len(plan.dataset)) if plan.rows is None else plan.rows[0]
    what = {1: "one row", 2: "two rows"}.get(len(plan.dataset.rows_of(places)))
    n_positives: Any = plan.n_positives
    if isinstance(loss, Loss) and loss.background_ is not None:
        n_positives = loss.class_counts_.sum() - loss.class_counts_[loss.background_]
    if what is None and n_positives == 1:
        what = "one positive example"
    if what is not None:
        warn(
            f"training has {what}: the model learns little more than that by heart. It takes "
            "some dozens to learn what they have in common",
            FewRowsWarning,
        )


def spread_of_logits(net: Any, dataset: EncodedDataset) -> float:
    """Return how far the outputs of some examples are apart."""
    # The shorter rows tell as much in less time.
    shorter = np.argsort(dataset.lengths, kind="stable")[: len(dataset) // 2 + 4]
    rows = np.unique(shorter[np.linspace(0, len(shorter) - 1, 8).astype(int)])
    logits = net.logits(EncodedDataset([dataset.windows[i] for i in rows]))
    if len({row.shape[-1] for row in logits}) > 1:  # an output for each pair of tokens
        logits = [row.reshape(-1, 1) for row in logits]
    return float(np.vstack(logits).std(axis=0).max())
