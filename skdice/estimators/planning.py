"""From X and y to a `FitPlan`: read, learn the labels, set rows aside, build, encode."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice import backbones
from skdice._checks import naming
from skdice.engine import adapters, ranks
from skdice.engine.devices import autocast_dtype, resolve_device, seeded
from skdice.engine.encoded import EncodedDataset
from skdice.engine.layouts.layout import Padding
from skdice.engine.module import (
    EncoderModule,
    TaskModel,
    checkpoint_gradients,
    copy_out_of_file,
    freeze,
)
from skdice.engine.plan import Examples, FitPlan, Mode
from skdice.engine.vectors import run_encoder
from skdice.estimators.checks import check_validation, draw_seed, split_indices
from skdice.estimators.schedule import epochs_for
from skdice.resampling.drawing import check_sampler, draw_rows
from skdice.text.encoding import Window
from skdice.text.long_texts import Cuts

MANY = 1000  # texts; fewer are tokenised at once


def plan_fit(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    X_val: Any = None,
    y_val: Any = None,
    *,
    mode: Mode = "fresh",
    classes: Any = None,
    epochs: int | None = None,
) -> FitPlan:
    """Plan a fit of a text estimator, on a copy of it, so that a refused fit changes nothing.

    Parameters
    ----------
    model : TransformerEstimator
    X, y, sample_weight, X_val, y_val
        As in the estimator's ``fit``.
    mode : {"fresh", "warm", "partial"}
    classes : list or None
        The labels that `partial_fit` names.
    epochs : int or None
        Of `partial_fit`, which trains at a constant rate on all rows, without a sampler.

    Returns
    -------
    FitPlan
        Nothing is trained yet.
    """
    model, task = model._draft(), model.task
    model._check_params(mode)
    check_validation(X_val, y_val)
    if model.verbose and len(X) >= MANY and ranks.rank() == 0:  # all else is said by the net
        print(f"tokenising {len(X):,} texts", flush=True)
    if mode == "fresh":  # the words of texts are those of the new backbone
        for name in ("tokenizer_", "span_scales_", "sharpness_"):
            model.__dict__.pop(name, None)
    data, held = task.examples(model, X, y, sample_weight), None
    if X_val is not None:
        with naming({"X": "X_val", "y": "y_val"}):
            # Another copy, as `model` must learn from the training data only.
            held = task.examples(model._draft(), X_val, y_val)

    data, held = task.learn(model, data, held, mode, classes)
    seed, draws = draw_seed(model.random_state), None
    if epochs is None:
        data, held = hold_out(model, data, held, seed)
        draws = _draw_epochs(model, task.sampled(model, data), seed, mode)
    task.prepare_training(model, data, held, mode)
    for name in ("span_scales_", "tuned_for_"):  # they are of other weights
        model.__dict__.pop(name, None)

    if mode == "fresh":
        build(model, seed)
    cuts = Cuts()
    dataset = encode(model, data.inputs, data.targets, data.weights, cuts)
    if held is not None:
        task.count_cuts(model, held.inputs, cuts)
    model._tell(cuts)
    rows = None if draws is None else [dataset.places_of(drawn) for drawn in draws]
    criterion = task.criterion(model, data, dataset, None if rows is None else rows[0], mode)
    return FitPlan(
        dataset=dataset,
        criterion=criterion,
        seed=seed,
        mode=mode,
        epochs=epochs,
        rows=rows,
        n_positives=task.n_positives(data),
        new_odds=_odds_of_new(model) if mode != "fresh" else (),
        validation=held,
        fitted=model.__dict__,
    )


def encode(
    model: Any,
    inputs: list[Any],
    targets: Any = None,
    weights: np.ndarray | None = None,
    cuts: Cuts | None = None,
) -> EncodedDataset:
    """Checked inputs in windows, each with its target and the weight of its row."""
    windows = model.task.encode(model, inputs, cuts)
    return model.task.dataset(model, windows, targets, weights)


def hold_out(
    model: Any, data: Examples, held: Examples | None, seed: int
) -> tuple[Examples, Examples | None]:
    """Training and validation examples; with `early_stopping` some rows are set aside."""
    if held is not None or not model.early_stopping:
        return data, held
    keys = [tuple(row) if isinstance(row, list) else row for row in data.inputs]
    strata = model.task.strata(model, data)
    kept, rows = split_indices(keys, model.validation_fraction, seed, strata)
    return data.take(kept), data.take(rows)


def build(model: Any, seed: int, n_outputs: int | None = None) -> None:
    """Load tokenizer and encoder, add a new head, and drop the last fit."""
    task, device = model.task, resolve_device(model.device)
    tokenizer = backbones.load_tokenizer(model.backbone)
    n_outputs = task.n_outputs(model) if n_outputs is None else n_outputs
    with seeded(seed, device):
        if task.uses_native_head(model):
            loaded = backbones.load_with_head(model.backbone, task.head, n_outputs)
            module: EncoderModule = TaskModel(loaded, task.head, model.dropout)
        else:
            module = task.assemble(model, backbones.load_encoder(model.backbone), n_outputs)
    with seeded(seed, device):  # the model may have drawn numbers for a head of its own
        if isinstance(module, TaskModel):
            module.reset_output_layer()
        if model.adapter is not None:
            adapters.add_adapter(module, model.adapter)
    freeze(module, model.frozen)
    copy_out_of_file(module)
    checkpoint_gradients(module, model.gradient_checkpointing)
    for name in ("net_", "history_", "n_iter_"):
        model.__dict__.pop(name, None)
    model.tokenizer_, model.module_ = tokenizer, module


def unfitted_copy(model: Any) -> Any:
    """Return a copy with the backbone as it is before fine-tuning, to encode texts with."""
    blank = model._draft()
    build(blank, seed=0, n_outputs=2)
    return blank


def frozen_vectors(
    model: Any, windows: Sequence[Window], pooling: str | None = None
) -> list[np.ndarray]:
    """Vectors of windows from the present encoder: pooled, or one for each position."""
    device = resolve_device(model.device)
    return run_encoder(
        model.module_.encoder,
        Padding.of(model.tokenizer_),
        windows,
        pooling=pooling,
        batch_size=max(model.batch_size, 64),
        device=device,
        dtype=autocast_dtype(model.precision, device),
    )


def length_of_fit(
    model: Any, X: Any, y: Any, X_val: Any = None, y_val: Any = None
) -> tuple[int, int]:
    """Rows (windows) of an epoch, and epochs, of a fit of a text estimator on these data."""
    draft = clone(model).set_params(verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warns
        plan = plan_fit(draft, X, y, X_val=X_val, y_val=y_val)
    vars(draft).update(plan.fitted)
    n_rows = len(plan.dataset if plan.rows is None else plan.rows[0])
    return n_rows, epochs_for(draft, n_rows, plan)


def needs_windows(model: Any, texts: list[Any]) -> bool:
    """Return True if a fit on these texts would read one of them in several windows."""
    return len(model.task.encode(unfitted_copy(model), texts)) > len(texts)


def _odds_of_new(model: Any) -> list[float]:
    """Training examples of each class that the head lacks, for one of all the others."""
    if not hasattr(model, "class_counts_"):
        return []
    old, new = np.split(model.class_counts_, [model.module_.output_layer.out_features])
    odds: list[float] = ((new + 1) / (old.sum() + len(old))).tolist()
    return odds


def _draw_epochs(model: Any, y: Any, seed: int, mode: Mode) -> list[np.ndarray] | None:
    """The rows that `sampler` draws for each epoch; None without a sampler."""
    sampler = getattr(model, "sampler", None)
    # The numbers in the history that the epochs will have.
    first = 1 + (len(model.net_.history) if mode == "warm" else 0)
    rows = draw_epochs(sampler, y, seed, [first])
    if rows is None:
        return None
    others = range(first + 1, first + epochs_for(model, len(rows[0])))
    return rows + (draw_epochs(sampler, y, seed, others) or [])


def draw_epochs(sampler: Any, y: Any, seed: int, epochs: Iterable[int]) -> list[np.ndarray] | None:
    """The rows that `sampler` draws for each epoch; None without a sampler.

    All are drawn before anything is loaded. So an impossible strategy is refused first, and the
    number of updates is known.
    """
    if sampler is None:
        return None
    check_sampler(sampler)
    seeds = (np.random.default_rng([seed, epoch]).integers(2**31 - 1) for epoch in epochs)
    return [draw_rows(sampler, y, int(drawn)) for drawn in seeds]
