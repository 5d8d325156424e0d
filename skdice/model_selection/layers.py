"""Trials of a text estimator as lanes: a head and the top layers of each, trained side by side."""

from __future__ import annotations

import contextlib
import copy
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from skdice.backbones import encoder_layers
from skdice.engine.batching import EncodedDataset
from skdice.engine.devices import random_state, seeded, set_random_state
from skdice.engine.lower import LowerLayers, encoder_inputs
from skdice.engine.module import freeze
from skdice.engine.net import Batch, targets_of
from skdice.model_selection.trials import FOLD, Job, Outcome, has_pruner, is_pruned
from skdice.text.inputs import as_sentences, as_texts

__all__ = ["Cohort", "LayerLanes", "NoLanes", "TopLayers", "run_cohorts", "why_not"]

Ended = tuple[Any, Outcome]  # a trial and what it ran


def why_not(estimator: Any, names: Sequence[str]) -> str | None:
    """Why trials of `estimator` cannot share its lower layers; None if they can."""
    from skdice.estimators import DiceSequenceClassifier, DiceTokenClassifier

    kind = type(estimator)
    if kind not in (DiceSequenceClassifier, DiceTokenClassifier):
        return f"{kind.__name__} is neither DiceSequenceClassifier nor DiceTokenClassifier"
    for name in ("early_stopping", "callbacks", "net_params"):
        if getattr(estimator, name):
            return f"it has {name}={getattr(estimator, name)!r}"
    other = [n for n in names if n not in ("loss", "lr", "weight_decay") and n[:6] != "loss__"]
    return f"{other[0]!r} is searched, which lanes share" if other else None


class NoLanes(ValueError):
    """Lanes of layers are not possible."""


class TopLayers:
    """The rows of a search as the frozen lower layers see them, computed once.

    Parameters
    ----------
    estimator : DiceSequenceClassifier or DiceTokenClassifier
        Unfitted.
    n_layers : int
        Layers that lanes train, from the top.
    X : data

    Attributes
    ----------
    frozen : int
        With it a fit of `estimator` ends where its lane does.
    exact : bool
        Whether that is what `estimator` has.
    what : str
        That stands for fits where it has not.

    Raises
    ------
    NoLanes
        If the backbone has no more layers, or they cannot be trained so.
    """

    def __init__(self, estimator: Any, n_layers: int, X: Any) -> None:
        blank = clone(estimator).set_params(frozen="embeddings")
        blank._check_params()
        blank._build(2, pooling=getattr(blank, "pooling", None), seed=0)
        module = blank._module
        try:
            depth = len(encoder_layers(module.encoder))
        except ValueError as error:
            raise NoLanes(str(error).partition(":")[0]) from error
        if n_layers >= depth:
            raise NoLanes(f"it leaves no layer of the backbone's {depth} to share")
        self.frozen = depth - n_layers
        self.exact = estimator.frozen == self.frozen
        self.what = f"lanes with {n_layers} trained layer{'s' if n_layers > 1 else ''}"
        freeze(module, self.frozen)
        net = blank._make_net(torch.nn.Identity(), 0)
        net.initialize()
        tagging = hasattr(blank, "scheme")
        dataset = blank._encode(as_sentences(X) if tagging else as_texts(X))
        net.spread(dataset)  # some encoders are made anew by the first inputs that they see
        with seeded(0, net.device):
            self.lower = _lower_layers(net, self.frozen, dataset)
        self.lower.remember(dataset, net)

    def model(self, job: Job, params: dict[str, Any]) -> Any:
        """The unfitted estimator of a lane."""
        return job.model(params).set_params(frozen=self.frozen, verbose=0)


class LayerLanes:
    """Fits of the same rows that differ in loss, learning rate and weight decay, side by side.

    Each is an estimator with a net of its own, whose weights are slices of one tensor, so that all
    run forward and backward in one go. It sees the batches and the dropout that its own fit would
    see, and ends where that ends.

    Parameters
    ----------
    models : list of DiceSequenceClassifier or of DiceTokenClassifier
        Unfitted, with the lower layers frozen.
    X, y : data
    fit_params : dict
    lower : LowerLayers
    """

    def __init__(
        self,
        models: Sequence[Any],
        X: Any,
        y: Any,
        fit_params: dict[str, Any],
        lower: LowerLayers,
    ) -> None:
        first, *others = self.models = list(models)
        # All that a fit does before it trains.
        with _held_back(first, "_train") as training:
            first.fit(X, y, **fit_params)
        args, kwargs = training[0]
        first._make_net(torch.nn.Identity(), 0).initialize().spread(args[0])
        lower.put_into(first._module)
        settings = first.get_params(deep=False)
        learnt = {name: value for name, value in vars(first).items() if name not in settings}
        frozen = {id(p): p for p in first._module.parameters() if not p.requires_grad}
        for model in others:
            model._check_params()
            vars(model).update(learnt)
            model._module = copy.deepcopy(first._module, dict(frozen))
        for model in self.models:
            with _held_back(model, "_train_with") as fit:
                model._train(*args, **kwargs)
            (criterion, self.dataset, self.seed), more = fit[0]
            model.net_ = model._make_net(criterion, self.seed).initialize()
            model.net_.rows_of_epoch = more["rows_of_epoch"]
            model.net_._start_schedule(model.net_.n_updates(self.dataset) * model.max_epochs)
        self._generator: Any = None  # where the last epoch left the random numbers
        self._stack()

    @property
    def n_epochs(self) -> int:
        return len(self.models[0].net_.history)

    @property
    def is_done(self) -> bool:
        return self.n_epochs >= int(self.models[0].max_epochs)

    def keep(self, places: Sequence[int]) -> None:
        """Go on with some of the models."""
        self.models = [self.models[i] for i in places]
        self._stack()

    def epoch(self) -> None:
        """Train all models for one epoch."""
        nets = [model.net_ for model in self.models]
        device = torch.device(nets[0].device)
        data = {"dataset_train": self.dataset, "dataset_valid": None}
        with seeded(self.seed, nets[0].device):
            if self._generator is not None:
                set_random_state(device, self._generator)
            for net in nets:
                net.notify("on_epoch_begin", **data)
                net.history.record("lr", net.schedule_.get_last_lr()[0])
                net._set_training(True)
            batches = nets[0].updates(self.dataset, len(nets[0].history))
            losses = torch.stack([self._update(batch) for batch in batches]).mean(0).tolist()
            self._generator = random_state(device)
        for model, loss in zip(self.models, losses, strict=True):
            model.net_.history.record("train_loss", loss)
            model.net_.notify("on_epoch_end", **data)
            model._note_history()

    def _stack(self) -> None:
        """One tensor for each weight of all models, of which theirs are slices."""
        modules = [model.net_.module_ for model in self.models]
        names = [name for name, p in modules[0].named_parameters() if p.requires_grad]
        self.slices = {name: [m.get_parameter(name) for m in modules] for name in names}
        self.weights: dict[str, Tensor] = {}
        for name, slices in self.slices.items():
            whole = torch.stack([slice_.detach() for slice_ in slices])
            self.weights[name] = whole.requires_grad_()
            for slice_, values in zip(slices, whole.detach(), strict=True):
                slice_.data = values

    def _update(self, batch: list[Batch]) -> Tensor:
        """One step of all models; their losses."""
        nets = [model.net_ for model in self.models]
        run = partial(_side_by_side, nets[0].module_, self.weights)
        logits = nets[0]._logits([group for part in batch for group in part[0]], run, dim=1)
        target, weight = targets_of(batch)
        losses = [net._loss(z, target, weight) for net, z in zip(nets, logits, strict=True)]
        # A lane's weights are in its own loss only, so that the sum's gradients are each loss's.
        scaled = [net.scaler_.scale(loss) for net, loss in zip(nets, losses, strict=True)]
        torch.stack(scaled).sum().backward()
        for name, whole in self.weights.items():
            for i, slice_ in enumerate(self.slices[name]):
                slice_.grad = None if whole.grad is None else whole.grad[i]
            whole.grad = None
        for net in nets:
            net.update(batch)
            net.optimizer_.zero_grad(set_to_none=True)
        return torch.stack(losses).detach()


class Cohort:
    """Trials that began together: lanes of the same epochs of one fold after the other.

    Parameters
    ----------
    job : Job
    layers : TopLayers
    trials : list of optuna trials
    chosen : list of dict
        Their parameters.
    """

    def __init__(
        self,
        job: Job,
        layers: TopLayers,
        trials: Sequence[Any],
        chosen: Sequence[dict[str, Any]],
    ) -> None:
        self.job, self.layers = job, layers
        self.trials, self.chosen = list(trials), list(chosen)
        self.outcomes = [Outcome(list(job.scorers)) for _ in chosen]
        for outcome in self.outcomes:
            outcome.screened = not layers.exact
        self.fold = 0
        self.lanes: LayerLanes | None = None
        self.seconds = 0.0  # of this fold, so far

    def __len__(self) -> int:
        return len(self.trials)

    def halves(self) -> list[Cohort]:
        """The same trials from the start, in two cohorts."""
        half = len(self) // 2
        return [
            Cohort(self.job, self.layers, self.trials[part], self.chosen[part])
            for part in (slice(half), slice(half, None))
        ]

    def train(self) -> None:
        """One epoch of this fold."""
        started = time.perf_counter()
        if self.lanes is None:
            models = [self.layers.model(self.job, params) for params in self.chosen]
            X, y, fit_params = self.job.to_fit(self.job.splits[self.fold][0])
            self.lanes = LayerLanes(models, X, y, fit_params, self.layers.lower)
        self.lanes.epoch()
        self.seconds += time.perf_counter() - started

    def judge(self) -> list[Ended]:
        """Score what was trained; the trials that end with it, through with all folds or not."""
        assert self.lanes is not None
        job, fold, n_epochs = self.job, self.fold, self.lanes.n_epochs
        through = self.lanes.is_done
        ends = []
        for i, (model, trial) in enumerate(zip(self.lanes.models, self.trials, strict=True)):
            outcome = self.outcomes[i]
            if through:
                outcome.fit_time.append(self.seconds / len(self))
                ended = job.ends_after(fold, model, outcome, trial)
            else:
                ended = outcome.pruned = self._is_pruned(trial, model, n_epochs - 1)
            if ended or (through and fold + 1 == len(job.splits)):
                ends.append(i)
        found = [(self.trials[i], self.outcomes[i]) for i in ends]
        self._go_on_without(ends, through)
        return found

    def give_up(self, error: Exception) -> list[Ended]:
        """End the only trial, whose training failed."""
        ((trial, outcome),) = zip(self.trials, self.outcomes, strict=True)
        self.job.give_up(outcome, error, self.fold)
        self._go_on_without([0], True)
        return [(trial, outcome)]

    def _is_pruned(self, trial: Any, model: Any, epoch: int) -> bool:
        if not has_pruner(trial):
            return False
        score = self.job.look(model, self.job.splits[self.fold][1])
        return is_pruned(trial, self.fold * FOLD + epoch, score)

    def _go_on_without(self, ended: Sequence[int], through: bool) -> None:
        left = [i for i in range(len(self)) if i not in ended]
        self.trials = [self.trials[i] for i in left]
        self.chosen = [self.chosen[i] for i in left]
        self.outcomes = [self.outcomes[i] for i in left]
        if through or not left:
            self.fold, self.lanes, self.seconds = self.fold + 1, None, 0.0
        elif ended and self.lanes is not None:
            self.lanes.keep(left)


def run_cohorts(
    job: Job,
    layers: TopLayers,
    trials: Sequence[Any],
    chosen: Sequence[dict[str, Any]],
    more: Callable[[int], tuple[list[Any], list[dict[str, Any]]]],
) -> Iterator[Ended]:
    """Run trials as lanes, and others in the place of those that end before the rest.

    Where a cohort fails, it is run again in halves, so that what fails by itself has its error.

    Parameters
    ----------
    job : Job
    layers : TopLayers
    trials, chosen : as in `Cohort`
    more : callable
        From a number to as many trials, or less, and their parameters.

    Yields
    ------
    (trial, outcome)
    """
    n_lanes = len(trials)
    running, waiting = [Cohort(job, layers, trials, chosen)], deque[Cohort]()
    while running:
        cohort = running.pop(0)
        try:
            cohort.train()
        except Exception as error:
            if len(cohort) == 1:
                yield from cohort.give_up(error)
            else:
                halves = cohort.halves()
                if isinstance(error, torch.OutOfMemoryError):
                    n_lanes = len(halves[0])
                waiting.extendleft(reversed(halves))
        else:
            yield from cohort.judge()
            running += [cohort] if len(cohort) else []
        free = n_lanes - sum(map(len, running))
        while waiting and (len(waiting[0]) <= free or not running):
            running.append(waiting.popleft())
            free -= len(running[-1])
        if free > 0 and not waiting and (new := more(free))[0]:
            running.append(Cohort(job, layers, *new))


def _lower_layers(net: Any, n_layers: int, dataset: EncodedDataset) -> LowerLayers:
    """The lowest layers of a net, if what they say can be kept and the others be lanes."""
    module = net.module_
    order = np.argsort(dataset.lengths)
    inputs = encoder_inputs(net, [dataset.windows[i] for i in (order[0], order[-1])])
    kind = type(module.encoder).__name__
    try:
        upper = copy.deepcopy(module)
        lower = LowerLayers(module, n_layers)
        if (why := lower.changes(inputs)) is not None:
            raise NoLanes(f"{why} in {kind}")
        lower.put_into(upper)
        _check_lanes(upper, inputs)
    except NoLanes:
        raise
    except Exception as error:  # of layers that are not as those of others
        raise NoLanes(f"layers of {kind} cannot run side by side: {error!r}") from error
    return lower


def _check_lanes(module: Any, inputs: dict[str, Tensor]) -> None:
    """Refuse layers that say another thing side by side than alone."""
    trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    module.eval()
    places = inputs["attention_mask"].flatten().nonzero()[:, 0]
    inputs = {**inputs, "positions": places}
    with torch.no_grad():
        want = module(**inputs)
        both = {name: torch.stack([p, p]) for name, p in trained.items()}
        found = _side_by_side(module, both, **inputs)
    torch.testing.assert_close(found, torch.stack([want, want]), rtol=1e-2, atol=1e-3)


def _side_by_side(module: Any, weights: dict[str, Tensor], **inputs: Tensor) -> Tensor:
    """What `module` says with each of several weights, all with the dropout of one fit."""

    def of_lane(own: dict[str, Tensor]) -> Tensor:
        found: Tensor = functional_call(module, own, (), inputs)
        return found

    # Fused attention has no form for several weights at once.
    with sdpa_kernel(SDPBackend.MATH):
        found: Tensor = vmap(of_lane, randomness="same")(weights)
    return found


@contextlib.contextmanager
def _held_back(model: Any, name: str) -> Iterator[list[tuple[Any, dict[str, Any]]]]:
    """What a method of `model` is called with, which is not done."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    setattr(model, name, lambda *args, **kwargs: calls.append((args, kwargs)))
    try:
        yield calls
    finally:
        delattr(model, name)
