"""Checks and splits that the estimators share."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import get_tags
from skorch import NeuralNet

from skdice._checks import shown
from skdice._compat import Interval, StrOptions
from skdice._fitting import check_number
from skdice._warn import warn
from skdice.engine import ranks
from skdice.engine.devices import resolve_device
from skdice.engine.net import FineTuningNet
from skdice.engine.schedules import SCHEDULES
from skdice.exceptions import ValidationWarning
from skdice.metrics import positive_class
from skdice.metrics.labels import is_missing, read_labels
from skdice.text.inputs import as_rows, as_texts

# What the settings of a net may be, whether the estimator or its `net_params` holds them.
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


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """A seed from `random_state`; None draws fresh entropy, not numpy's global generator.

    Processes that train together get the same.
    """
    if random_state is None:
        return int(ranks.share(np.random.SeedSequence().generate_state(1)[0]))
    if isinstance(random_state, np.random.RandomState):
        return int(ranks.share(random_state.randint(2**31 - 1)))
    return int(random_state)


def check_estimator(estimator: Any) -> None:
    """Refuse bad parameters of an estimator of skdice, as its `fit` would."""
    estimator._check_params()


def check_rows(estimator: Any, X: Any, y: Any = None) -> None:
    """Refuse texts and their targets by the numbers of their rows, before folds have their own.

    Those of estimators of skdice are checked, and texts that are missing for any that reads text.
    """
    part: Any = estimator
    while hasattr(part, "get_params"):  # what reads X, in a search or at the start of a pipeline
        estimator = part
        steps = getattr(part, "steps", None) or getattr(part, "transformer_list", None)
        part = steps[0][1] if steps else getattr(part, "estimator", None)
    if not hasattr(estimator, "__sklearn_tags__") or not get_tags(estimator).input_tags.string:
        return
    task = getattr(estimator, "task", None)
    if task is not None and y is not None:
        task.read(estimator, X, y)
    elif task is not None:
        as_rows(X, "X")  # one at least
        task.inputs(X)
    elif any(map(is_missing, as_rows(X, "X"))):
        as_texts(X)


def check_device(device: str) -> str:
    """The kind of `device` (``"cpu"``, ``"cuda"``, ``"mps"``); refuses what is not there."""
    try:
        parsed = torch.device(resolve_device(device))
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a torch device: use 'auto', 'cpu', 'cuda', 'cuda:0' or 'mps'"
        ) from error
    if parsed.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} asks for CUDA, and there is none: use 'auto'")
    if parsed.type == "cuda" and (parsed.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={device!r} asks for GPU {parsed.index}, and they are numbered from 0 to "
            f"{torch.cuda.device_count() - 1}: use one of these, or 'auto'"
        )
    return parsed.type


def check_validation(X_val: Any, y_val: Any) -> None:
    """Refuse one of `X_val` and `y_val` without the other."""
    if (X_val is None) != (y_val is None):
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(f"{missing} is missing: give X_val and y_val together, or neither")


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


def split_indices(
    keys: Sequence[Any], fraction: float, seed: int, strata: Any = None
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
        counts = np.unique(strata, return_counts=True)[1]
        if counts.min() < 2 or size < len(counts) or n - size < len(counts):
            warn(
                "the validation split is not stratified, as some class has too few examples: "
                "give X_val and y_val to choose it yourself",
                ValidationWarning,
            )
            strata = None
    held = train_test_split(firsts, test_size=size, random_state=seed % 2**32, stratify=strata)[1]
    return np.flatnonzero(~np.isin(group, held)), held


def with_pos_label(estimator: Any, y: Any) -> Any:
    """The estimator with its positive class fixed before a sampler balances the classes."""
    if "pos_label" not in estimator.get_params(deep=False):
        return estimator
    labels = read_labels(y)
    if labels.multilabel or len(labels.classes) != 2:
        return estimator
    classes, counts = np.unique(labels.values, return_counts=True)
    label = classes.tolist()[positive_class(classes, counts, estimator.pos_label)]
    return clone(estimator).set_params(pos_label=label)
