"""Search spaces: of the losses' own parameters, their suggestions, and checks of all spaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from skdice._checks import checked, shown
from skdice.losses import LOSSES, Loss
from skdice.losses.base import check_given, resolve_loss
from skdice.losses.search_ranges import OneMinus

Space = dict[str, Any]


def import_optuna() -> ModuleType:
    """Optuna, or an error that says how to get it."""
    try:
        import optuna
    except ImportError as error:
        raise ImportError("searches need Optuna: pip install 'skdice[search]'") from error
    return optuna


@checked
def loss_space(loss: str, *, prefix: str = "") -> Space:
    """The search space of a loss, with the loss itself.

    Tversky's beta is 1 - alpha, as in the paper's Table 10.

    Parameters
    ----------
    loss : str
        A name of `skdice.losses.LOSSES`.
    prefix : str, default=""
        Put before every name, as in ``"diceclassifier__"`` for a step of a pipeline.

    Returns
    -------
    dict
        For ``LossSearchCV(param_distributions=...)``, or one of a list of dicts.

    Examples
    --------
    >>> from skdice.model_selection import loss_space
    >>> sorted(loss_space("tversky"))
    ['loss', 'loss__alpha', 'loss__beta']
    """
    resolve_loss(loss)
    FloatDistribution = import_optuna().distributions.FloatDistribution
    space: Space = {f"{prefix}loss": [loss]}
    for name, given in LOSSES[loss].search_space().items():
        if isinstance(given, OneMinus):
            space[f"{prefix}loss__{name}"] = OneMinus(f"{prefix}loss__{given.name}")
        else:
            space[f"{prefix}loss__{name}"] = FloatDistribution(given.low, given.high, log=given.log)
    return space


def as_spaces(param_distributions: Any) -> list[Space]:
    """The search space as a list of dicts; refuses an empty space and bad distributions."""
    one = isinstance(param_distributions, Mapping)
    spaces = [param_distributions] if one else list(param_distributions)
    if not spaces or not all(isinstance(space, Mapping) and space for space in spaces):
        raise ValueError(
            f"param_distributions={shown(param_distributions)} is empty, or holds what is no dict "
            "or an empty one: give a dict from parameter to a distribution, or a list of such dicts"
        )
    for name, values in chain.from_iterable(space.items() for space in spaces):
        choices = isinstance(values, (list, tuple, np.ndarray)) and len(values)
        distribution = import_optuna().distributions.BaseDistribution
        if not (choices or callable(values) or isinstance(values, distribution)):
            raise ValueError(
                f"param_distributions[{name!r}]={values!r} must be an Optuna distribution such as "
                "FloatDistribution(0.1, 0.9), a list of choices, or a function of other parameters"
            )
    return [dict(space) for space in spaces]


def suggest(trial: Any, spaces: Sequence[Space]) -> dict[str, Any]:
    """Parameters of one trial."""
    which = trial.suggest_categorical("space", list(range(len(spaces)))) if len(spaces) > 1 else 0
    params: dict[str, Any] = {}
    for name, values in spaces[which].items():
        # The same name may have another range in another space.
        label = name if len(spaces) == 1 else f"{which}:{name}"
        if isinstance(values, (list, tuple, np.ndarray)):
            i = trial.suggest_categorical(label, list(range(len(values)))) if len(values) > 1 else 0
            params[name] = values[i]
        elif hasattr(values, "choices"):
            params[name] = trial.suggest_categorical(label, values.choices)
        elif not callable(values):
            ask = trial.suggest_int if isinstance(values.low, int) else trial.suggest_float
            params[name] = ask(label, values.low, values.high, step=values.step, log=values.log)
    return _completed(spaces[which], params)


def with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """An unfitted estimator with these parameters, which no other one holds."""
    own = {name: clone(value, safe=False) for name, value in params.items()}
    return clone(estimator).set_params(**own)


def _completed(space: Space, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with those that are functions of them added."""
    for name, values in space.items():
        if not callable(values):
            continue
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
    """The losses that trials may use; refuses values that cannot be set."""
    possible: list[Loss] = []
    for space in spaces:
        for params in _settings(space):
            params = _completed(space, params)
            try:
                possible += _checked_losses(with_params(estimator, params))
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
    return possible


def _settings(space: Space) -> ParameterGrid:
    """Settings to try, without functions; all combinations of what may not go together."""
    tried = {name: _tried(values) for name, values in space.items() if not callable(values)}
    usual = {name: values[:1] for name, values in tried.items()}
    combined = ("loss", "average", "surrogate")
    together = {n: values for n, values in tried.items() if n.rpartition("__")[2] in combined}
    others = {n: values[1:] for n, values in tried.items() if n not in together and values[1:]}
    return ParameterGrid(
        [{**usual, **together}, *({**usual, name: values} for name, values in others.items())]
    )


def _tried(values: Any) -> list[Any]:
    """Every choice, or the middle and the ends of a range; the first is used beside others."""
    if callable(values):
        return []
    if hasattr(values, "low"):
        low, high = values.low, values.high
        return [low if isinstance(low, int) else (low + high) / 2, low, high]
    return list(getattr(values, "choices", values))


def _checked_losses(model: Any) -> list[Loss]:
    """The losses in an estimator; the parameters of estimators of skdice are checked."""
    losses: list[Loss] = []
    for part in (model, *model.get_params(deep=True).values()):
        if isinstance(part, Loss):
            losses.append(part)
        elif hasattr(part, "task") and not isinstance(part, type):  # an estimator of skdice
            part._validate_params()
            if hasattr(part, "loss"):
                losses.append(check_given(part.loss))
    return losses
