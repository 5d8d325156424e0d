"""Ready search spaces for the losses' own parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skdice.losses import Loss, TverskyLoss, resolve_loss
from skdice.model_selection.study import import_optuna

__all__ = ["OneMinus", "Space", "as_spaces", "check_space", "cloned", "loss_space", "suggest"]

Space = dict[str, Any]


@dataclass(frozen=True)
class OneMinus:
    """A parameter that is one minus another, so that their sum stays one.

    Parameters
    ----------
    name : str
        The other parameter, as in ``loss__alpha``.
    """

    name: str

    def __call__(self, params: Mapping[str, Any]) -> float:
        return 1.0 - params[self.name]


def loss_space(loss: str, *, tied: bool = True, prefix: str = "") -> Space:
    """What is worth searching of a loss, with the loss itself.

    Parameters
    ----------
    loss : {"ce", "weighted_ce", "focal", "dice", "tversky", "dsc", "ce_dice"}
    tied : bool, default=True
        Search Tversky's alpha with beta = 1 - alpha, as in the paper's Table 10; False searches
        both.
    prefix : str, default=""
        Put before every name, as in ``"diceclassifier__"`` for a step of a pipeline.

    Returns
    -------
    dict
        For ``LossSearchCV(param_distributions=...)``; a list of such dicts searches several
        losses.

    Raises
    ------
    ValueError
        If there is no such loss.

    Examples
    --------
    >>> from skdice.model_selection import loss_space
    >>> sorted(loss_space("tversky"))
    ['loss', 'loss__alpha', 'loss__beta']
    """
    resolve_loss(loss)
    FloatDistribution = import_optuna().distributions.FloatDistribution
    alpha = FloatDistribution(0.1, 0.9)
    spaces: dict[str, Space] = {
        "ce": {"loss__label_smoothing": FloatDistribution(0.0, 0.2)},
        "weighted_ce": {"loss__K": FloatDistribution(1.0, 20.0, log=True)},
        "focal": {"loss__gamma": FloatDistribution(0.0, 5.0)},
        "dice": {"loss__smooth": FloatDistribution(0.01, 10.0, log=True)},
        "tversky": {
            "loss__alpha": alpha,
            "loss__beta": OneMinus(f"{prefix}loss__alpha") if tied else alpha,
        },
        "dsc": {
            "loss__exponent": FloatDistribution(0.0, 0.5),
            "loss__smooth": FloatDistribution(0.01, 10.0, log=True),
        },
        "ce_dice": {"loss__weight": FloatDistribution(0.0, 1.0)},
    }
    space = {"loss": [loss], **spaces[loss]}
    return {f"{prefix}{name}": values for name, values in space.items()}


def as_spaces(param_distributions: Any, estimator: Any) -> list[Space]:
    """The search space as a list of dicts.

    Raises
    ------
    TypeError, ValueError
        If it is empty, or an entry is no distribution.
    """
    if param_distributions is None:
        loss = getattr(estimator, "loss", None)
        names = [loss] if isinstance(loss, str) else []
        if not names:
            raise ValueError(
                "param_distributions=None takes the space of the estimator's loss, which must be "
                f"a name and is {loss!r}: give param_distributions, such as loss_space('tversky')"
            )
        return [loss_space(names[0])]
    given = (
        [param_distributions] if isinstance(param_distributions, Mapping) else param_distributions
    )
    if not isinstance(given, Sequence) or not all(isinstance(space, Mapping) for space in given):
        raise TypeError(
            f"param_distributions={param_distributions!r} must be a dict from parameter to a "
            "distribution, or a list of such dicts"
        )
    spaces = [dict(space) for space in given]
    if not spaces or not all(spaces):
        raise ValueError("param_distributions is empty: name at least one parameter to search")
    for space in spaces:
        for name, values in space.items():
            _check_values(name, values)
    return spaces


def _check_values(name: str, values: Any) -> None:
    if isinstance(values, import_optuna().distributions.BaseDistribution) or callable(values):
        return
    if isinstance(values, (list, tuple, np.ndarray)) and len(values):
        return
    raise ValueError(
        f"param_distributions[{name!r}]={values!r} must be an Optuna distribution such as "
        "FloatDistribution(0.1, 0.9), a list of choices, or a function of the other parameters"
    )


def suggest(trial: Any, spaces: list[Space]) -> dict[str, Any]:
    """Parameters of one trial."""
    which = trial.suggest_categorical("space", list(range(len(spaces)))) if len(spaces) > 1 else 0
    space = spaces[which]
    params: dict[str, Any] = {}
    for name, values in space.items():
        # The same name may have another range in another space.
        label = name if len(spaces) == 1 else f"{which}:{name}"
        if isinstance(values, (list, tuple, np.ndarray)):
            i = trial.suggest_categorical(label, list(range(len(values)))) if len(values) > 1 else 0
            params[name] = values[i]
        elif not callable(values):
            params[name] = trial._suggest(label, values)
    for name, values in space.items():
        if callable(values) and not isinstance(values, (list, tuple, np.ndarray)):
            params[name] = values(params)
    return params


def check_space(estimator: Any, spaces: list[Space]) -> None:
    """Refuse parameters that the estimator does not have, and spaces that cannot matter.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    import optuna

    for space in spaces:
        trial = optuna.trial.FixedTrial(
            {name: _middle(values) for name, values in space.items() if not callable(values)}
        )
        params = suggest(_Choices(trial), [space])
        try:
            model = clone(estimator).set_params(**cloned(params))
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"param_distributions cannot be set on {estimator!r}: {error}"
            ) from error
        _refuse_degenerate(model, space)


class _Choices:
    """A `FixedTrial` whose categorical choices are always the first."""

    def __init__(self, trial: Any) -> None:
        self.trial = trial

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return choices[0]

    def _suggest(self, name: str, distribution: Any) -> Any:
        return self.trial._suggest(name, distribution)


def _middle(values: Any) -> Any:
    if isinstance(values, (list, tuple, np.ndarray)):
        return 0
    if hasattr(values, "choices"):
        return values.choices[0]
    return values.low if isinstance(values.low, int) else (values.low + values.high) / 2


def cloned(params: Mapping[str, Any]) -> dict[str, Any]:
    """Values of which none is shared between models."""
    return {name: clone(value, safe=False) for name, value in params.items()}


def _refuse_degenerate(model: Any, space: Space) -> None:
    held = model.get_params(deep=True)
    for name, loss in held.items():
        owner, _, last = name.rpartition("__")
        kinds = getattr(held.get(owner, model), "_parameter_constraints", {}).get(last, ())
        # Other estimators have losses, too, of other names.
        if isinstance(loss, str) and isinstance(kinds, list) and Loss in kinds:
            loss = resolve_loss(loss)
        searched = f"{name}__alpha" in space or f"{name}__beta" in space
        if searched and isinstance(loss, TverskyLoss):
            pooled = loss.aggregation == "pooled" and loss.background is None
            if pooled:
                raise ValueError(
                    f"{name}__alpha and {name}__beta cannot matter with {loss!r}: pooled over all "
                    "classes of a softmax, false positives are as many as false negatives, so "
                    "that only alpha + beta counts. Use background='auto' or aggregation='class'"
                )
