"""Ready search spaces for the losses' own parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from skdice.losses import Loss, TverskyLoss, resolve_loss

__all__ = [
    "OneMinus",
    "Space",
    "all_params",
    "as_spaces",
    "check_space",
    "cloned",
    "import_optuna",
    "loss_space",
    "plain_params",
    "suggest",
]

Space = dict[str, Any]


def import_optuna() -> ModuleType:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("searches need Optuna: pip install 'skdice[search]'") from error
    return optuna


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
            params[name] = _suggest_value(trial, label, values)
    return _completed(space, params)


def _suggest_value(trial: Any, name: str, values: Any) -> Any:
    distributions = import_optuna().distributions
    if isinstance(values, distributions.CategoricalDistribution):
        return trial.suggest_categorical(name, values.choices)
    whole = isinstance(values, distributions.IntDistribution)
    ask = trial.suggest_int if whole else trial.suggest_float
    return ask(name, values.low, values.high, step=values.step, log=values.log)


def all_params(trial: Any, spaces: list[Space], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a trial that has run; `plain` are those that the study keeps as they are.

    A function of the space may return another value when it is called again.
    """
    from optuna.trial import FixedTrial

    return {**(suggest(FixedTrial(trial.params), spaces) if spaces else {}), **plain}


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a trial's parameters that any storage keeps as they are."""
    values = {n: v.item() if isinstance(v, np.generic) else v for n, v in params.items()}
    return {n: v for n, v in values.items() if isinstance(v, (bool, int, float, str, type(None)))}


def _completed(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters with those that are functions of them."""
    params = dict(params)
    for name, values in space.items():
        if callable(values):
            try:
                params[name] = values(params)
            except Exception as error:
                raise ValueError(
                    f"param_distributions[{name!r}]={values!r} cannot be had from {params!r} "
                    f"({type(error).__name__}: {error}): a function gets the parameters that its "
                    "own dict searches, by their full names, and those of functions before it"
                ) from error
    return params


def check_space(estimator: Any, spaces: list[Space]) -> list[Loss]:
    """Refuse values that the estimator does not take, and spaces that cannot matter.

    Every choice and both ends of every range are tried beside the first choices and the middles of
    the others; losses, backgrounds and aggregations in all combinations.

    Returns
    -------
    list of Loss
        What trials may train with, parts of compound losses included.

    Raises
    ------
    ValueError
        Naming the parameter.
    """
    found: list[Loss] = []
    for space in spaces:
        for params in _settings(space):
            params = _completed(space, params)
            try:
                losses = _checked_losses(clone(estimator).set_params(**cloned(params)))
            except (ValueError, TypeError, AttributeError) as error:
                hints = [
                    f"; what not every {name} has takes a list of dicts, one for each {name}"
                    for name, values in space.items()
                    if any(other.startswith(f"{name}__") for other in space)
                    and len(_tried(values)) > 1
                ]
                raise ValueError(
                    f"param_distributions holds {params!r}, which cannot be set on {estimator!r}: "
                    f"{error}{''.join(hints[:1])}"
                ) from error
            for name, loss in losses.items():
                _refuse_degenerate(name, loss, space)
            found += losses.values()
    return found


def _settings(space: Space) -> Iterator[dict[str, Any]]:
    """What to try of a space, without its functions."""
    tried = {name: _tried(values) for name, values in space.items() if not callable(values)}
    usual = {name: values[0] for name, values in tried.items()}
    together = [name for name in tried if _last(name) in ("loss", "background", "aggregation")]
    for chosen in product(*(tried[name] for name in together)):
        yield {**usual, **dict(zip(together, chosen, strict=True))}
    for name in tried:
        if name not in together:
            yield from ({**usual, name: value} for value in tried[name][1:])


def _tried(values: Any) -> list[Any]:
    """Every choice, or the middle and the ends of a range; first what stands beside the others."""
    if callable(values):
        return []
    if hasattr(values, "low"):
        low, high = values.low, values.high
        return [low if isinstance(low, int) else (low + high) / 2, low, high]
    return list(getattr(values, "choices", values))


def _last(name: str) -> str:
    return name.rpartition("__")[2]


def cloned(params: Mapping[str, Any]) -> dict[str, Any]:
    """Values of which none is shared between models."""
    return {name: clone(value, safe=False) for name, value in params.items()}


def _checked_losses(model: Any) -> dict[str, Loss]:
    """The losses in an estimator by their parameters' names.

    Values that skdice's estimators would refuse in ``fit`` are refused; others are not looked at.
    """
    held = model.get_params(deep=True)
    for part in (model, *held.values()):
        if isinstance(part, BaseEstimator) and any(
            cls.__module__.startswith("skdice.") for cls in type(part).__mro__
        ):
            part._validate_params()
    losses: dict[str, Loss] = {}
    for name, loss in held.items():
        owner, _, last = name.rpartition("__")
        kinds = getattr(held.get(owner, model), "_parameter_constraints", {}).get(last, ())
        # Other estimators have losses, too, of other names.
        if isinstance(loss, str) and isinstance(kinds, list) and Loss in kinds:
            loss = resolve_loss(loss)
        if isinstance(loss, Loss):
            losses[name] = loss
    return losses


def _refuse_degenerate(name: str, loss: Loss, space: Space) -> None:
    searched = f"{name}__alpha" in space or f"{name}__beta" in space
    if searched and isinstance(loss, TverskyLoss):
        pooled = loss.aggregation == "pooled" and loss.background is None
        if pooled:
            raise ValueError(
                f"{name}__alpha and {name}__beta cannot matter with {loss!r}: pooled over all "
                "classes of a softmax, false positives are as many as false negatives, so "
                "that only alpha + beta counts. Use background='auto' or aggregation='class'"
            )
