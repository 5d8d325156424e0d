"""What the text estimators choose for a fit: rate, epochs, patience, the start of the head."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import clone

from skdice._checks import shown
from skdice._compat import StrOptions
from skdice._warn import warn
from skdice.backbones import load_config
from skdice.engine import ranks
from skdice.engine.module import EncoderModule
from skdice.engine.plan import FitPlan
from skdice.engine.recipe import choose_epochs, choose_rate, is_adam
from skdice.estimators._net_estimator import NetEstimator
from skdice.losses import Loss


@dataclass(kw_only=True, eq=False, repr=False)
class Chosen(NetEstimator):
    """Base of the estimators whose rate and number of epochs may be ``"auto"``."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetEstimator._parameter_constraints,
        **{
            name: [*NetEstimator._parameter_constraints[name], StrOptions({"auto"})]
            for name in ("max_epochs", "lr", "n_iter_no_change")
        },
    }

    max_epochs: int | str = "auto"
    lr: float | str = "auto"
    n_iter_no_change: int | str = "auto"

    _module: EncoderModule = field(init=False)

    def _check_params(self) -> None:
        super()._check_params()
        if self._given("optimizer__lr", "lr") == "auto":
            self._check_optimizer()

    def _check_optimizer(self) -> None:
        optimizer = (self.net_params or {}).get("optimizer", torch.optim.AdamW)
        if not is_adam(optimizer):
            raise ValueError(
                f"lr='auto' with net_params: optimizer={shown(optimizer)}: the rates that are "
                "known are those of Adam and its kin; give lr as a number"
            )

    def _resolve_schedule(self, plan: FitPlan) -> None:
        super()._resolve_schedule(plan)
        loss = plan.criterion
        if plan.mode == "fresh" and isinstance(loss, Loss):  # readers' losses have no classes
            self._module.start_from(loss.start_bias())
        if plan.epochs is not None:  # one of many calls
            return
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
                "some dozens to learn what they have in common"
            )

    def _epochs_for(self, n_rows: int) -> int:
        if self._given("max_epochs") != "auto":
            return super()._epochs_for(n_rows)
        return choose_epochs(n_rows, self._rows_of_update())

    def _rows_of_update(self) -> int:
        """Rows of one update, over all processes."""
        size = self._given("batch_size") * self._given("gradient_accumulation")
        return int(size) * ranks.n_processes()

    def _n_rows(self, X: Any, y: Any, X_val: Any, y_val: Any) -> int:
        """Rows (windows) of one epoch of a fit on these data."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit warns
            plan = clone(self)._prepare(X, y, None, X_val, y_val, mode="fresh")
        return len(plan.dataset if plan.rows is None else plan.rows[0])

    def _rate(self, *, constant: bool) -> float:
        if self._given("optimizer__lr", "lr") != "auto":
            return super()._rate(constant=constant)
        self._check_optimizer()  # here for a search, whose range is around this rate
        module: Any = getattr(self, "_module", None)
        if module is None:  # before a fit
            config, adapted = load_config(str(self._given("backbone"))), self._given("adapter")
        else:
            config, adapted = module.encoder.config, module.adapted
        frozen = self.frozen
        if frozen == getattr(config, "num_hidden_layers", None):
            frozen = "encoder"  # all layers are
        return choose_rate(
            getattr(config, "hidden_size", 768),
            frozen,
            kind=config.model_type,
            two_classes=self._has_two_classes(),
            adapted=bool(adapted),
            constant=constant,
        )

    def _has_two_classes(self) -> bool:
        """Whether each text has one of two labels."""
        return False

    def _patience(self) -> int:
        if self.n_iter_no_change == "auto":
            return max(3, self.max_epochs_ // 3)
        return super()._patience()


def rate_of(estimator: Any) -> float:
    """The peak rate that an estimator has or would choose, once its parameters are checked."""
    estimator = clone(estimator)
    estimator._check_params()
    return float(estimator._rate(constant=False))
