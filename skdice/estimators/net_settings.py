"""What the settings of a net may be, whether an estimator or its `net_params` holds them."""

from __future__ import annotations

from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any

import torch
from skorch import NeuralNet

from skdice._checks import shown
from skdice._compat import Interval, StrOptions
from skdice._fitting import check_number
from skdice.engine.net import FineTuningNet
from skdice.engine.recipe import SCHEDULES

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
