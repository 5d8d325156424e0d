"""Base of every estimator that trains a net: its settings, and the run of a plan."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from skorch import NeuralNet
from skorch.history import History

from skdice._checks import shown
from skdice._compat import Interval, StrOptions
from skdice._fitting import check_number, check_params, draft_of
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.callbacks import check_callbacks
from skdice.engine.checkpoints import Checkpoints, check_folder, digest, parse_interval
from skdice.engine.devices import check_device, seeded, tell_of_load
from skdice.engine.fit import FORMAT
from skdice.engine.fit_plan import Examples, FitPlan, Mode, plan_fit, start_head
from skdice.engine.module import trained_state
from skdice.engine.net import FineTuningNet
from skdice.engine.recipe import SCHEDULES, epochs_for, patience_of, rate_of
from skdice.exceptions import CollapseWarning
from skdice.losses import Loss
from skdice.losses.base import resolve_loss
from skdice.losses.of_estimator import check_given

# A net has collapsed if its outputs differ between examples by less than this share of their
# difference before training: it predicts the same for every example.
COLLAPSED = 0.05
# Parameters that do not change the result of a fit.
NO_MATTER = ("checkpoint_dir", "checkpoint_every", "resume", "device", "verbose")
# Parameters that act on a fitted estimator at once; the others act in `fit`.
INFERENCE_PARAMS = (
    *("batch_size", "device", "precision", "max_length", "stride", "label_all_subwords"),
    *("constrained", "max_question_length", "max_answer_length", "long_texts", "window_pooling"),
)

# What the settings of a net may be, whether an estimator or its `net_params` holds them.
OF_NET: dict[str, list[Any]] = {
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "lr": [Interval(Real, 0, None, closed="neither")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "schedule": [StrOptions(set(SCHEDULES))],
    "warmup": [Interval(Real, 0, 1, closed="both")],
}
OF_TEXT_NET: dict[str, list[Any]] = {
    "gradient_accumulation": [Interval(Integral, 1, None, closed="left")],
    "max_grad_norm": [Interval(Real, 0, None, closed="neither"), None],
    "precision": [StrOptions({"auto", "fp32", "fp16", "bf16"})],
}


@dataclass(kw_only=True, eq=False, repr=False)
class NetEstimator(BaseEstimator):
    """Base of the estimators that train a net.

    A `FitPlan` says what is trained, and this class trains it. A subclass has a `task`, and defines
    ``_make_net`` (from criterion and seed to a net) and ``_row_outputs``.
    """

    task: ClassVar[Any]  # a Task

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [str, Loss],
        **OF_NET,
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "device": [str],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "callbacks": [list, None],
        "net_params": [dict, None],
        "checkpoint_dir": [str, Path, None],
        "checkpoint_every": [Interval(Integral, 1, None, closed="left"), str],
        "resume": [StrOptions({"auto", "never"})],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    loss: str | Loss = "ce_dice"
    max_epochs: int | str
    lr: float | str
    batch_size: int
    weight_decay: float
    schedule: str = "linear"
    warmup: float
    dropout: float
    device: str = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int | str
    callbacks: list[Any] | None = None
    net_params: dict[str, Any] | None = None
    checkpoint_dir: str | Path | None = None
    checkpoint_every: int | str = "60s"
    resume: str = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    net_: FineTuningNet = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    n_iter_: int = field(init=False)
    lr_: float = field(init=False)
    max_epochs_: int = field(init=False)

    def __setattr__(self, name: str, value: Any) -> None:
        # Numpy's integers become Python's: small ones overflow in sums.
        super().__setattr__(name, int(value) if isinstance(value, np.integer) else value)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``loss__alpha`` also works while `loss` is a name."""
        if any(key.startswith("loss__") for key in params):
            self.loss = resolve_loss(params.pop("loss", self.loss))
        return super().set_params(**params)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    # ---- before training

    def _check_params(self, mode: Mode = "fresh") -> None:
        """Refuse bad parameters before anything is loaded or trained."""
        check_given(self.loss)
        self._check_inference_params()
        if self.net_params:
            check_net_params(self.net_params)
        if self.callbacks or self.net_params:
            check_callbacks(self.callbacks, self.net_params)
        if self.checkpoint_dir is not None:
            self._check_checkpoints()
        self.task.check_params(self, mode)

    def _check_checkpoints(self) -> None:
        parse_interval(self.checkpoint_every)
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint_dir={str(self.checkpoint_dir)!r} needs a seed, and random_state is "
                f"{self.random_state!r}: give an int, so that a fit which goes on draws the same "
                "batches"
            )
        if self.callbacks or (self.net_params or {}).get("callbacks"):
            raise ValueError(
                f"checkpoint_dir={str(self.checkpoint_dir)!r} and callbacks: what a callback "
                "remembers is in no checkpoint. Leave out one of the two"
            )
        check_folder(self.checkpoint_dir)

    def _check_inference_params(self) -> None:
        """Refuse bad parameters before a fit or a prediction."""
        check_params(self)
        if check_device(self.device) == "cpu" and getattr(self, "precision", None) == "fp16":
            raise ValueError("precision='fp16' needs a GPU: use 'auto', 'bf16' or 'fp32' on a CPU")

    def _check_fitted(self) -> None:
        """Refuse to predict before `fit`, and let the net obey what `set_params` changed since."""
        check_is_fitted(self)
        if (wanted := self._inference_params()) != self.net_.applied:
            self._check_inference_params()
            given = wanted | (self.net_params or {})
            self.net_.apply_runtime_params(
                given["batch_size"], given["device"], given.get("precision", "fp32")
            )
            self.net_.applied = wanted

    def _inference_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in INFERENCE_PARAMS if hasattr(self, name)}

    # ---- training

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Plan a fit and run it."""
        warm = hasattr(self, "net_") and np.array_equal(getattr(self, "warm_start", False), True)
        mode: Mode = "warm" if warm else "fresh"
        self._check_params(mode)
        return self._run(plan_fit(self, X, y, sample_weight, X_val, y_val, mode=mode))

    def _run(self, plan: FitPlan) -> Self:
        """Train as planned.

        The estimator can be used after an interrupt, with the weights of that moment. After an
        error it is what it was before.
        """
        if self.callbacks or self.net_params:
            check_callbacks(self.callbacks, self.net_params, plan.validation is not None)
        ranks.join()  # this comes first: with a launcher, "cuda" is a GPU for each process
        before, net, weights = self.__dict__, None, None
        draft = draft_of(self)
        draft.__dict__ = plan.fitted
        try:
            draft._resolve_schedule(plan)
            net = draft._net_for(plan)
            if net.verbose:
                tell_of_load(net.device)
            spread = draft._spread(net, plan)
            net.set_training(True)  # from here on, whoever predicts takes a copy of the module
            draft.net_, net.applied = net, draft._inference_params()
            if plan.mode == "partial":  # which trains the weights that there are
                weights = copy.deepcopy(trained_state(before["net_"].module_))
            self.__dict__ = draft.__dict__  # at once, for who predicts meanwhile: see `of_one_fit`
            self._train(net, plan)
            if spread > 0 and not self._spread(net, plan) > COLLAPSED * spread:
                warn(
                    f"the fitted model predicts the same for every example. With lr={self.lr_} the "
                    f"encoder has lost what it knew: try lr={self.lr_ / 10:.1g}, or warmup above "
                    f"{self.warmup}",
                    CollapseWarning,
                )
        except BaseException as error:
            begun = self.__dict__ is draft.__dict__
            if not begun or not isinstance(error, KeyboardInterrupt):
                self.__dict__ = before
                if weights is not None:
                    self.net_.go_back(weights)
            raise
        finally:
            if net is not None:
                net.set_training(False)
        return self

    def _resolve_schedule(self, plan: FitPlan) -> None:
        """Settle the rate and the number of epochs of a fit, and where its head begins."""
        self.max_epochs_ = plan.epochs or epochs_for(self, len(plan.of_an_epoch), plan)
        if plan.rows is not None:
            self.max_epochs_ = min(self.max_epochs_, len(plan.rows))
        self.lr_ = float(rate_of(self, constant=plan.epochs is not None))
        start_head(self, plan)

    def _train(self, net: FineTuningNet, plan: FitPlan) -> None:
        checkpoints, score = self._checkpoints(plan), None
        if plan.validation is not None:
            score = partial(self._validation_score, plan.validation)
        try:
            net.partial_fit(
                plan.dataset,
                epochs=plan.epochs,
                rows=plan.rows and plan.rows[: self.max_epochs_],
                validation_score=score,
                patience=patience_of(self) if self.early_stopping else None,
                checkpoints=checkpoints,
            )
        finally:
            self.history_ = net.epochs()
            self.n_iter_ = len(self.history_)
        if (held := plan.validation) is not None:
            self.task.after_training(self, held, self._row_outputs(held.inputs, tell=False))

    def _validation_score(self, held: Examples) -> float:
        return self.task.validation_score(self, held, self._row_outputs(held.inputs, tell=False))

    def _row_outputs(self, inputs: Any, *, tell: bool = True) -> Iterator[tuple[Any, Any]]:
        """Sources of a block of checked inputs, and what the model gives for each."""
        raise NotImplementedError

    def _checkpoints(self, plan: FitPlan) -> Checkpoints | None:
        """The checkpoints of this fit, found again by a fit with the same data and parameters.

        If several processes train together, the first of them reads and writes the checkpoints.
        """
        if self.checkpoint_dir is None or plan.epochs is not None or ranks.rank() > 0:
            return None
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in NO_MATTER}
        settings |= {"lr": self.lr_, "max_epochs": self.max_epochs_}
        settings["batch_size"] *= ranks.n_processes()
        # Random numbers and the table of used embeddings are of one kind of device.
        settings["device"] = torch.device(self.net_.device).type
        module, criterion = self.net_.module_.state_dict(), dict(plan.criterion.named_buffers())
        data = vars(plan.dataset), plan.validation
        identity = digest(FORMAT, settings, data, module, criterion)
        checkpoints = Checkpoints(self.checkpoint_dir, identity, self.checkpoint_every)
        if self.resume == "never":
            checkpoints.clear()
        return checkpoints

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        """The net for a plan: a new one, or with `partial_fit` one with the present weights."""
        if plan.mode == "partial":
            self._check_fitted()
            net = self.net_.copy_sharing_weights()
            net.criterion_ = plan.criterion.to(net.device)
            net.set_rate(self.lr_)
            return net
        try:
            net = self._make_net(plan.criterion, plan.seed)
            with seeded(plan.seed, net.device):
                net.initialize()
            net.module_.eval()  # until it is trained, predictions need no copy of it
        except (TypeError, ValueError, AttributeError) as error:
            if not self.net_params:
                raise
            raise ValueError(f"net_params={shown(self.net_params)}: {error}") from error
        if plan.mode == "warm":
            net.history = History(self.net_.history)
        return net

    def _net_settings(self, criterion: Any, seed: int, **settings: Any) -> dict[str, Any]:
        """Settings of every net and the estimator's `settings`; `net_params` overrides both."""
        given = {
            name: int(value) if isinstance(value, np.integer) else value
            for name, value in (self.net_params or {}).items()
        }
        return dict(
            criterion=criterion,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            warmup=self.warmup,
            shuffle_seed=seed,
            # A model that was read has had no fit here.
            max_epochs=getattr(self, "max_epochs_", 1),
            lr=getattr(self, "lr_", 1.0),
            batch_size=self.batch_size,
            device=self.device,
            train_split=None,
            callbacks=clone(self.callbacks, safe=False) if self.callbacks else None,
            verbose=int(self.verbose) if ranks.rank() == 0 else 0,
        ) | {**settings, **given}

    def _spread(self, net: FineTuningNet, plan: FitPlan) -> float:
        """Return how far outputs differ between examples; 0 where this is not checked."""
        return 0.0


def check_net_params(net_params: dict[str, Any]) -> None:
    """Refuse settings in `net_params` that a net could not use, such as "auto" for a number."""
    settings = {*signature(FineTuningNet).parameters, *signature(NeuralNet).parameters} - {"kwargs"}
    for name, value in net_params.items():
        # Those of a part, as in `optimizer__betas`, are checked when the part is made.
        if str(name).partition("__")[0] not in settings:
            raise ValueError(
                f"net_params={shown(net_params)}: a net has no setting {name!r}: use those of "
                "skorch's NeuralNet, such as 'optimizer' or 'iterator_train__num_workers'"
            )
        kinds = (OF_NET | OF_TEXT_NET).get(name.removeprefix("optimizer__"), ())
        check_number(f"net_params: {name}", value, kinds)
    optimizer: Any = net_params.get("optimizer", torch.optim.AdamW)
    step = getattr(getattr(optimizer, "func", optimizer), "step", None)
    closure = signature(step).parameters.get("closure") if callable(step) else None
    if closure is not None and closure.default is Parameter.empty:
        raise ValueError(
            f"net_params: optimizer={shown(optimizer)} computes the loss anew within a step, and a "
            "net here makes its steps from gradients: give another, such as torch.optim.AdamW"
        )
    groups = net_params.get("optimizer__param_groups") or ()
    for group in groups if isinstance(groups, (tuple, list)) else [groups]:
        if not (
            isinstance(group, (tuple, list)) and len(group) == 2 and isinstance(group[1], dict)
        ):
            raise ValueError(
                f"net_params: optimizer__param_groups holds {shown(group)}: give pairs of a "
                'pattern and a dict, such as ("head*", {"lr": 1e-3})'
            )
        for name in {"lr", "weight_decay"} & group[1].keys():
            what = f"net_params: optimizer__param_groups, {group[0]!r}, {name}"
            check_number(what, group[1][name], [Interval(Real, 0, None, closed="left"), None])
