"""From X and y to a `FitPlan`: rows that are read, labels that are learned, a module, a loss."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from torch import nn

from skdice import backbones
from skdice._checks import naming
from skdice._fitting import draft_of
from skdice._types import Data, Model, Rows, Weights
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.recipe import epochs_for
from skdice.exceptions import DataWarning
from skdice.inputs.labels import Labels
from skdice.inputs.rows import row_keys, take
from skdice.losses import Loss
from skdice.losses.base import check_classes, losses_in, resolve_loss
from skdice.resampling.drawing import check_sampler, draw_rows
from skdice.resampling.stratification import held_out_rows
from skdice.text.long_texts import Cuts

# A new model; a trained one with a new optimiser (`warm_start`); a trained one as it stands
# (`partial_fit`).
Mode = Literal["fresh", "warm", "partial"]


@dataclass(frozen=True)
class Examples:
    """Checked rows with their targets and weights."""

    inputs: Any  # as `Task.sources` gives them: a list; or rows of numbers
    targets: Any  # a list or array
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.inputs) if isinstance(self.inputs, list) else self.inputs.shape[0]

    def take(self, rows: np.ndarray) -> Examples:
        """Some of the examples, by position."""
        weights = None if self.weights is None else self.weights[rows]
        targets = self.targets
        targets = targets.take(rows) if isinstance(targets, Labels) else take(targets, rows)
        return Examples(take(self.inputs, rows), targets, weights)


@dataclass(frozen=True)
class Held:
    """A validation set, encoded once for all epochs."""

    examples: Examples
    encoded: Any  # a data set without targets


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """A fit that is ready to run; nothing has been trained yet."""

    dataset: Any  # an EncodedDataset or the like, which gives the batches
    criterion: nn.Module  # the loss, prepared with the counts of the training data
    seed: int
    mode: Mode = "fresh"
    # None means `max_epochs` with the schedule; `partial_fit` gives a number, at a constant rate.
    epochs: int | None = None
    # The rows that a sampler drew for each epoch.
    rows: Sequence[np.ndarray] | None = None
    validation: Held | None = None  # scored after each epoch
    # The texts that the encoder cannot read whole.
    cuts: Cuts = field(default_factory=Cuts)
    # The estimator's attributes once the plan runs, including the untrained module.
    fitted: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def of_an_epoch(self) -> np.ndarray:
        """The rows of the first epoch."""
        return np.arange(len(self.dataset)) if self.rows is None else self.rows[0]


def plan_fit(
    model: Model,
    X: Data,
    y: Data,
    sample_weight: Weights = None,
    X_val: Data | None = None,
    y_val: Data | None = None,
    *,
    mode: Mode = "fresh",
    classes: Rows | None = None,
    epochs: int | None = None,
    weights: bool = True,
) -> FitPlan:
    """Plan a fit of an estimator, on a copy of it, so that a refused fit changes nothing.

    Parameters
    ----------
    model : NetEstimator
    X, y, sample_weight, X_val, y_val
        As in the estimator's ``fit``.
    mode : {"fresh", "warm", "partial"}
    classes : list or None
        The labels that `partial_fit` names.
    epochs : int or None
        Of `partial_fit`, which trains at a constant rate on all rows, without a sampler.
    weights : bool, default=True
        False plans without those of the backbone, to learn how long a fit would be.

    Returns
    -------
    FitPlan
        Nothing is trained yet.
    """
    model, task = draft_of(model), model.task
    check_validation(X_val, y_val)
    # The words of texts are those of the new backbone.
    for name in ("tokenizer_", "positive_") if mode == "fresh" else ():
        model.__dict__.pop(name, None)
    task.check_columns(model, X, reset=mode == "fresh")
    data, held = task.examples(model, X, y, sample_weight), None
    if X_val is not None:
        task.check_columns(model, X_val)
        with naming({"X": "X_val", "y": "y_val"}):
            # Another copy, as `model` must learn from the training data only.
            held = task.examples(draft_of(model), X_val, y_val)
    if data.weights is not None and not data.weights.all():
        data = data.take(np.flatnonzero(data.weights))  # a weight of 0 is no row
    data, held = task.learn(model, data, held, mode, classes)
    seed, draws = draw_seed(model.random_state), None
    if epochs is None:
        data, held = hold_out(model, data, held, seed)
        draws = _draw_epochs(model, task.sampled(model, data), seed, mode)
    task.prepare_training(model, data, held)
    if task.has_classes:
        classes, several = getattr(model, task.outputs), getattr(model, "multilabel_", False)
        check_classes(model.loss, classes, several)
    for name in ("span_scales_", "tuned_for_"):  # they are of other weights
        model.__dict__.pop(name, None)
    if not weights:
        model = without_weights(model)
    elif mode == "fresh":
        task.build(model, seed, data.inputs)
        for name in ("net_", "history_", "n_iter_", "table_"):
            model.__dict__.pop(name, None)
    cuts = Cuts()
    dataset = encode(model, data.inputs, data.targets, data.weights, cuts)
    validation = None
    if held is not None:
        validation = Held(held, encode(model, held.inputs, cuts=cuts))
    drawn = None if draws is None else [dataset.places_of(draw) for draw in draws]
    if mode != "partial":  # whose counts add up over its calls
        model.__dict__.pop("class_counts_", None)
    criterion = task.criterion(model, data, dataset, None if drawn is None else drawn[0])
    return FitPlan(
        dataset=dataset,
        criterion=criterion,
        seed=seed,
        mode=mode,
        epochs=epochs,
        rows=drawn,
        validation=validation,
        cuts=cuts,
        fitted=model.__dict__,
    )


def encode(
    model: Model,
    inputs: Any,
    targets: Any = None,
    weights: np.ndarray | None = None,
    cuts: Cuts | None = None,
) -> Any:
    """Checked inputs in windows, each with its target and the weight of its row."""
    windows = model.task.encode(model, inputs, cuts)
    return model.task.dataset(model, windows, targets, weights)


# ---- without loading weights


def without_weights(model: Model) -> Model:
    """A copy that can encode rows as a fit would; the weights of its backbone are not loaded."""
    blank = draft_of(model)
    blank.task.load_tokenizer(blank)
    encoder = backbones.encoder_without_weights(model.backbone, model.revision)
    blank.module_ = SimpleNamespace(encoder=encoder, adapted=model.adapter is not None)
    return blank


def needs_windows(model: Model, texts: list[Any]) -> bool:
    """Return True if a fit on these texts would read one of them in several windows."""
    blank = without_weights(clone(model))
    return len(blank.task.encode(blank, blank.task.sources(blank, texts))) > len(texts)


def length_of_fit(
    model: Model, X: Data, y: Data, X_val: Data | None = None, y_val: Data | None = None
) -> tuple[int, int]:
    """Rows (windows) of an epoch, and epochs, of a fit of a text estimator on these data."""
    draft = clone(model).set_params(verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warns
        plan = plan_fit(draft, X, y, X_val=X_val, y_val=y_val, weights=False)
    vars(draft).update(plan.fitted)
    n_rows = len(plan.of_an_epoch)
    return n_rows, epochs_for(draft, n_rows, plan)


# ---- rows


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from `random_state`; None draws fresh entropy, not numpy's global generator.

    Processes that train together get the same.
    """
    if random_state is None:
        return int(ranks.share(np.random.SeedSequence().generate_state(1)[0]))
    if isinstance(random_state, np.random.RandomState):
        return int(ranks.share(random_state.randint(2**31 - 1)))
    return int(random_state)


def check_validation(X_val: Data | None, y_val: Data | None) -> None:
    """Refuse one of `X_val` and `y_val` without the other."""
    if (X_val is None) != (y_val is None):
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(f"{missing} is missing: give X_val and y_val together, or neither")


def hold_out(
    model: Model, data: Examples, held: Examples | None, seed: int
) -> tuple[Examples, Examples | None]:
    """Training and validation examples; with `early_stopping` some rows are set aside."""
    if held is not None or not model.early_stopping:
        return data, held
    strata = model.task.strata(model, data)
    kept, rows = split_indices(row_keys(data.inputs), model.validation_fraction, seed, strata)
    return data.take(kept), data.take(rows)


def split_indices(
    keys: Sequence[Hashable],
    fraction: float,
    seed: int,
    strata: Any = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Train and validation indices, stratified where every stratum has two rows or more.

    Rows with equal `keys` stay on one side, and validation holds only one of them: a sampler in
    front of the estimator repeats rows, and what was trained on must not be validated on.
    """
    first: dict[Any, int] = {}
    group = np.array([first.setdefault(key, i) for i, key in enumerate(keys)])
    firsts = np.array(list(first.values()))
    n = len(firsts)
    if n < 2:
        raise ValueError(
            f"validation_fraction={fraction} of {n} distinct rows leaves nothing to train on: "
            "give X_val and y_val, or early_stopping=False"
        )
    size = min(max(1, round(n * fraction)), n - 1)
    if strata is not None:
        strata = np.asarray(strata)[firsts]
        counts = np.unique(strata, return_counts=True)[1] if strata.ndim == 1 else np.array([n])
        if counts.min() < 2 or size < len(counts) or n - size < len(counts):
            warn(
                "the validation split is not stratified, as some class has too few examples: "
                "give X_val and y_val to choose it yourself",
                DataWarning,
            )
            strata = None
    held = firsts[held_out_rows(n, size, seed % 2**32, strata)]
    return np.flatnonzero(~np.isin(group, held)), held


def _draw_epochs(model: Model, y: Rows, seed: int, mode: Mode) -> list[np.ndarray] | None:
    """The rows that `sampler` draws for each epoch; None without a sampler."""
    sampler = getattr(model, "sampler", None)
    # The numbers in the history that the epochs will have.
    first = 1 + (len(model.net_.history) if mode == "warm" else 0)
    rows = draw_epochs(sampler, y, seed, [first])
    if rows is None:
        return None
    others = range(first + 1, first + epochs_for(model, len(rows[0])))
    return rows + (draw_epochs(sampler, y, seed, others) or [])


def draw_epochs(
    sampler: BaseEstimator | None, y: Rows, seed: int, epochs: Iterable[int]
) -> list[np.ndarray] | None:
    """The rows that `sampler` draws for each epoch; None without a sampler.

    All are drawn before anything is loaded. So an impossible strategy is refused first, and the
    number of updates is known.
    """
    if sampler is None:
        return None
    check_sampler(sampler)
    seeds = (np.random.default_rng([seed, epoch]).integers(2**31 - 1) for epoch in epochs)
    return [draw_rows(sampler, y, int(drawn)) for drawn in seeds]


# ---- the loss and the head


def fresh_loss(loss: str | Loss) -> Loss:
    """A new loss that counts over the processes that train together, and no others."""
    fresh: Loss = clone(resolve_loss(loss))
    for part in losses_in(fresh):
        part.all_ranks = ranks.n_processes() > 1
    return fresh


def prepared_loss(model: Model, counts: np.ndarray, n_samples: float, **inputs: Any) -> Loss:
    """The loss, prepared with class counts; those that `model` has of earlier calls add up.

    The counts are kept on `model` as ``class_counts_`` and ``n_samples_seen_``.
    """
    if hasattr(model, "class_counts_"):
        counts = counts + model.class_counts_
        n_samples = n_samples + model.n_samples_seen_
    model.class_counts_, model.n_samples_seen_ = counts, n_samples
    return fresh_loss(model.loss).prepare(counts, n_samples=n_samples, **inputs)


def start_head(model: Model, plan: FitPlan) -> None:
    """Let a new head start at the log-prior of the classes, if its loss gains by it."""
    loss = plan.criterion
    if plan.mode == "fresh" and isinstance(loss, Loss):  # readers' losses have no classes
        model.module_.start_from(loss.start_bias())


# ---- labels


def check_known(
    known: Iterable[Any], held: Iterable[Any], what: str, of: str = "y", name: str = "y_val"
) -> None:
    """Refuse validation labels if training holds none of them: their score would always be 0."""
    known, held = set(known), set(held)
    if held and not known & held:
        raise ValueError(
            f"{name} holds none of the {what} of {of}: it has {sorted(held, key=str)}, and {of} "
            f"has {sorted(known, key=str)}: give both in the same form"
        )
