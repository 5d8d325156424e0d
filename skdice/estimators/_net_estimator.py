"""Base of every estimator that trains a net: its settings, and the run of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from skorch.callbacks import EarlyStopping
from skorch.history import History
from torch import nn

from skdice._checks import shown
from skdice._compat import Interval, StrOptions
from skdice._digest import digest
from skdice._fitting import check_params, draft_of
from skdice._types import Data, Weights
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.callbacks import (
    AfterEpoch,
    Predicted,
    ValidationScore,
    begin_anew,
    check_callbacks,
)
from skdice.engine.checkpoints import FORMAT, Checkpoints, make_folder
from skdice.engine.devices import check_device, resolve_device, seeded
from skdice.engine.fit_plan import FitPlan, Held, Mode, plan_fit, start_head
from skdice.engine.net import FineTuningNet
from skdice.engine.recipe import SCHEDULES, epochs_for, patience_of, rate_of
from skdice.exceptions import CollapseWarning
from skdice.losses import Loss
from skdice.losses.base import check_given, resolve_loss

# What takes the place of a parameter by the name of another library.
PARAMETERS = {
    "learning_rate": "did you mean lr?",
    "num_train_epochs": "did you mean max_epochs?",
    "epochs": "did you mean max_epochs?",
    "per_device_train_batch_size": "did you mean batch_size?",
    "model_name": "did you mean backbone?",
    "class_weight": "give it to the loss, as loss=CrossEntropyLoss(class_weight=...)",
}
# Parameters that do not change the result of a fit.
NO_MATTER = ("checkpoint_dir", "checkpoint_every", "device", "verbose")
# Settings of a net that `net_params` may not hold.
OF_ESTIMATOR = {"module", "criterion", "callbacks", "train_split", "warm_start", "compile"}
# Parameters that act on a fitted estimator at once; the others act in `fit`.
INFERENCE_PARAMS = (
    *("batch_size", "device", "precision", "max_length", "stride", "constrained"),
    *("max_question_length", "max_answer_length", "long_texts", "window_pooling"),
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


class OldNames(BaseEstimator):
    """Refuses parameters by the names that others have for them, and says what to give."""

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """An object whose constructor has not run yet; the signature is that of ``__init__``."""
        cls._refuse_old_names(params)
        return super().__new__(cls)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as in scikit-learn."""
        self._refuse_old_names(params)
        return super().set_params(**params)

    @classmethod
    def _refuse_old_names(cls, names: Iterable[str]) -> None:
        for name in names:
            if name in PARAMETERS and name not in cls._get_param_names():
                raise TypeError(f"{cls.__name__} has no {name!r}: {PARAMETERS[name]}")


@dataclass(kw_only=True, eq=False, repr=False)
class NetEstimator(OldNames):
    """Base of the estimators that train a net.

    A `FitPlan` says what is trained, and this class trains it. A subclass has a `task`, and defines
    ``_make_net`` (from criterion and seed to a net) and ``_row_outputs``.

    Parameters
    ----------
    loss : str or Loss
        One of `skdice.losses.LOSS_NAMES`, such as ``"ce"``, ``"dsc"`` or ``"ce_dice"``, or a loss
        object such as ``TverskyLoss(alpha=0.3, beta=0.7)``.
    weight_decay : float
        Weight decay of the weight matrices. Biases and normalisation weights have none.
    schedule : {"linear", "constant", "cosine"}
        How the learning rate changes after warm-up. A skorch `LRScheduler` among `callbacks` takes
        the place of `schedule` and `warmup`.
    warmup : float
        Share of the updates in which the learning rate rises.
    device : str
        ``"auto"`` is CUDA, of several GPUs one for each process, else MPS, else the CPU.
    validation_fraction : float
        Share of the rows held out by `early_stopping` if `fit` gets no validation data.
    callbacks : list of skorch callbacks or None
        Callbacks for the skorch net, which they get as `net`; the estimator is complete only after
        the fit. ``EarlyStopping`` needs ``monitor="valid_score"`` and ``lower_is_better=False``,
        ``Checkpoint`` needs ``monitor="valid_score_best"``: a fit records no ``valid_loss``.
        ``EpochScoring`` and ``BatchScoring`` take a function ``(net, X, y)`` of encoded rows; a
        scoring by name is refused.
    checkpoint_dir : str, Path or None
        Folder for checkpoints. A fit that was interrupted or killed goes on from the last one when
        `fit` is called again with the same data and parameters, and ends with the same weights.
        Each fit has one file. Delete the folder to begin anew, or once `fit` has returned.
        Needs an int `random_state` and no `callbacks`.
    checkpoint_every : float
        Seconds between two checkpoints; 0 writes one after each update. Each epoch writes one too.
    random_state : int, RandomState or None
        Seeds the head, dropout and batches; the caller's generators are left alone.

    Attributes
    ----------
    net_ : FineTuningNet
        The trained skorch net.
    history_ : list of dict
        An epoch's ``train_loss``, ``lr``, ``dur`` (seconds) and, with validation, ``valid_score``.
    n_iter_ : int
        Epochs trained.
    lr_ : float
        The peak learning rate of the last fit.
    max_epochs_ : int
        The number of epochs that it was to make.
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
        "checkpoint_every": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    loss: str | Loss = "ce_dice"
    max_epochs: int | str
    lr: float | str
    batch_size: int | str
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
    checkpoint_every: float = 60.0
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

    def _check_params(self, mode: Mode = "fresh", validated: bool = True) -> None:
        """Refuse bad parameters before anything is loaded or trained.

        What callbacks need is known of a fit: it is `validated` if it has a validation set.
        """
        if self.loss is None or callable(self.loss):  # torch's, or a class: say what to give
            check_given(self.loss)
        check_params(self)
        check_given(self.loss)
        self._check_device()
        if of_estimator := OF_ESTIMATOR & set(self.net_params or ()):
            raise ValueError(
                f"net_params holds {sorted(of_estimator)}, which the estimator has itself: a loss, "
                "callbacks, early_stopping or X_val, warm_start; and CUDA graphs in place of "
                "torch.compile, which would compile for each shape of a batch"
            )
        check_callbacks(self.callbacks, validated)
        if self.checkpoint_dir is not None:
            self._check_checkpoints()
        self.task.check_params(self, mode)

    def _check_checkpoints(self) -> None:
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                f"checkpoint_dir={str(self.checkpoint_dir)!r} needs a seed, and random_state is "
                f"{self.random_state!r}: give an int, so that a fit which goes on draws the same "
                "batches"
            )
        if self.callbacks:
            raise ValueError(
                f"checkpoint_dir={str(self.checkpoint_dir)!r} and callbacks: what a callback "
                "remembers is in no checkpoint. Leave out one of the two"
            )
        make_folder(self.checkpoint_dir)

    def _check_device(self) -> None:
        """Refuse what is no device here, and a precision that it does not have."""
        if check_device(self.device) == "cpu" and getattr(self, "precision", None) == "fp16":
            raise ValueError("precision='fp16' needs a GPU: use 'auto', 'bf16' or 'fp32' on a CPU")

    def _check_fitted(self) -> None:
        """Refuse to predict before `fit`, and let the net obey what `set_params` changed since."""
        check_is_fitted(self)
        if (wanted := self._inference_params()) != self.net_.applied:
            check_params(self, INFERENCE_PARAMS)
            self._check_device()
            given = wanted | (self.net_params or {})
            self.net_.apply_runtime_params(
                given["batch_size"], given["device"], given.get("precision", "fp32")
            )
            self.net_.applied = wanted

    def _inference_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in INFERENCE_PARAMS if hasattr(self, name)}

    # ---- training

    def _fit(
        self,
        X: Data,
        y: Data,
        sample_weight: Weights,
        X_val: Data | None = None,
        y_val: Data | None = None,
    ) -> Self:
        """Plan a fit and run it."""
        warm = hasattr(self, "net_") and np.array_equal(getattr(self, "warm_start", False), True)
        mode: Mode = "warm" if warm else "fresh"
        self._check_params(mode, X_val is not None or np.array_equal(self.early_stopping, True))
        return self._run(plan_fit(self, X, y, sample_weight, X_val, y_val, mode=mode))

    def _run(self, plan: FitPlan) -> Self:
        """Train as planned, on a draft that takes this object's place once it is trained.

        After an interrupt the estimator has the weights of that moment, as in skorch; after an
        error it is what it was before.
        """
        ranks.join()  # this comes first: with a launcher, "cuda" is a GPU for each process
        draft = draft_of(self)
        draft.__dict__ = plan.fitted
        draft._resolve_schedule(plan)
        draft.net_ = draft._net_for(plan)
        draft.net_.applied = draft._inference_params()
        try:
            draft._train(plan)
        except KeyboardInterrupt:
            self.__dict__ = draft.__dict__
            raise
        self.__dict__ = draft.__dict__
        return self

    def _resolve_schedule(self, plan: FitPlan) -> None:
        """Settle the rate and the number of epochs of a fit, and where its head begins."""
        self.max_epochs_ = plan.epochs or epochs_for(self, len(plan.of_an_epoch), plan)
        if plan.rows is not None:
            self.max_epochs_ = min(self.max_epochs_, len(plan.rows))
        self.lr_ = float(rate_of(self, constant=plan.epochs is not None))
        start_head(self, plan)

    def _train(self, plan: FitPlan) -> None:
        """Run the net's fit, and note what it predicted."""
        net, held = self.net_, plan.validation
        for _, callback in net.callbacks_:
            if isinstance(callback, AfterEpoch):
                callback.model = self
        draws = plan.rows and plan.rows[: self.max_epochs_]
        valid = None if held is None else held.encoded
        try:
            net.partial_fit(plan.dataset, epochs=plan.epochs, draws=draws, valid=valid)
        finally:
            for stop in net.stops:
                stop.best_model_weights_ = None  # the module has them
            self.history_ = net.epochs()
            self.n_iter_ = len(self.history_)
        if held is not None:
            self.task.after_training(self, held.examples, self._outputs_of_held(held))
        if plan.epochs is None:
            self._tell_of_nothing_found()

    def _callbacks_of(self, plan: FitPlan) -> list[Any]:
        """The user's callbacks, and those of the estimator."""
        of_user = clone(self.callbacks, safe=False) if self.callbacks else []
        found = [("predicted", Predicted(self.task.named(self)))]
        if (held := plan.validation) is not None:
            found.append(("valid_score", ValidationScore(partial(self._score_of_held, held))))
        if held is not None and self.early_stopping:
            stop = EarlyStopping(
                "valid_score",
                patience=patience_of(self),
                lower_is_better=False,
                threshold=0.0,
                load_best=True,
            )
            found.append(("early_stopping", stop))
        if self.checkpoint_dir is not None and plan.epochs is None:
            identity = self._identity(plan)
            checkpoints = Checkpoints(self.checkpoint_dir, identity, self.checkpoint_every)
            found.append(("checkpoints", checkpoints))
        return [*found, *of_user]

    def _score_of_held(self, held: Held) -> float:
        blocks = self._outputs_of_held(held)
        return self.task.validation_score(self, held.examples, blocks)

    def _outputs_of_held(self, held: Held) -> Iterator[tuple[Any, Any]]:
        yield held.examples.inputs, self._outputs_of(held.examples.inputs, held.encoded)

    def _outputs_of(self, sources: Any, encoded: Any) -> Any:
        """What the model gives for each row of encoded inputs."""
        raise NotImplementedError

    def _tell_of_nothing_found(self) -> None:
        """Warn if the outputs of the last epoch name one class only."""
        seen = dict(self.net_.callbacks_)["predicted"].seen_
        nothing = None if seen is None else self.task.nothing_found(self, seen)
        if nothing is not None:
            updates = self.net_.done_
            warn(
                f"the fitted model {nothing}, in the last epoch. After {updates} updates at "
                f"lr={self.lr_:g}: train longer (max_epochs), or at another lr. Where positives "
                "are rare, another decision may find some: BiasTunedClassifier or BiasTunedTagger "
                "tunes it, and readers have null_threshold or tune_threshold",
                CollapseWarning,
            )

    def _identity(self, plan: FitPlan) -> str:
        """A digest by which a fit with the same data and parameters finds its checkpoints."""
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in NO_MATTER}
        settings |= {"lr": self.lr_, "max_epochs": self.max_epochs_}
        settings["batch_size"] *= ranks.n_processes()
        # Random numbers and the table of used embeddings are of one kind of device.
        settings["device"] = torch.device(resolve_device(self.device)).type
        data = vars(plan.dataset), plan.validation and plan.validation.examples
        module, criterion = plan.fitted["module_"].state_dict(), plan.criterion
        return digest(FORMAT, settings, data, module, dict(criterion.named_buffers()))

    def _net_for(self, plan: FitPlan) -> FineTuningNet:
        """The net for a plan: a new one, or with `partial_fit` a copy of the one there is."""
        if plan.mode == "partial":
            self._check_fitted()
            net = self.net_.copied()
            net.criterion_ = plan.criterion.to(net.device)
            net.callbacks = self._callbacks_of(plan)  # as they are now, and none of a whole fit
            net.initialize_callbacks()
            net.set_rate(self.lr_)
            return net
        try:
            net = self._make_net(plan.criterion, plan.seed, self._callbacks_of(plan))
            with seeded(plan.seed, net.device):
                net.initialize()
        except (TypeError, ValueError, AttributeError) as error:
            if not self.net_params:
                raise
            raise ValueError(f"net_params={shown(self.net_params)}: {error}") from error
        if plan.mode == "warm":
            net.history = History(self.net_.history)
            for _, callback in net.callbacks_:
                begin_anew(callback)
        return net

    def _net_settings(
        self, criterion: nn.Module, seed: int, callbacks: list[Any] | None, **settings: Any
    ) -> dict[str, Any]:
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
            callbacks=callbacks,
            verbose=int(self.verbose) if ranks.rank() == 0 else 0,
        ) | {**settings, **given}
