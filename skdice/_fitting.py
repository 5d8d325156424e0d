"""Checks before a fit, and what others find of it meanwhile and after it failed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

from skdice._checks import check_value, shown
from skdice._compat import Interval, StrOptions, validate_parameter_constraints

HOLDERS = ("best_estimator_", "estimator_", "estimator")  # in this order, as far as fitted
Method = TypeVar("Method", bound=Callable[..., Any])


def draft_of(estimator: Any) -> Any:
    """A copy with the attributes of this moment, which are then its own."""
    draft = object.__new__(type(estimator))
    draft.__dict__.update(estimator.__dict__)
    return draft


def all_or_nothing(method: Method, of: type[BaseException] = BaseException) -> Method:
    """Let a method change all attributes of its object at its end; none if it raises `of`."""

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        draft = draft_of(self)
        try:
            found = method(draft, *args, **kwargs)
        except of:
            raise
        except BaseException:
            self.__dict__ = draft.__dict__
            raise
        self.__dict__ = draft.__dict__
        return self if found is draft else found

    return cast(Method, whole)


@contextmanager
def reading_strategy(strategy: Any) -> Iterator[None]:
    """Name the function that gives imbalanced-learn something other than a dict of counts."""
    try:
        yield
    except AttributeError as error:
        if not callable(strategy):
            raise
        raise TypeError(
            f"sampling_strategy={shown(strategy)} must return a dict from class to count"
        ) from error


def check_params(estimator: Any, names: Collection[str] | None = None) -> None:
    """scikit-learn's check of parameters, or of some of them; True is no number."""
    given = estimator.get_params(deep=False)
    chosen = given if names is None else {name: given[name] for name in names if name in given}
    rules = estimator._parameter_constraints
    for name, value in chosen.items():
        numbers = [kind for kind in rules.get(name, ()) if isinstance(kind, (Interval, StrOptions))]
        if isinstance(value, bool) and numbers:
            check_value(name, value, numbers)
    validate_parameter_constraints(
        {name: rules[name] for name in chosen if name in rules}, chosen, type(estimator).__name__
    )


def layers(estimator: Any) -> Iterator[Any]:
    """An estimator, and the ones that it holds, each inside the one before."""
    while estimator is not None:
        yield estimator
        inner = (getattr(estimator, name, None) for name in HOLDERS)
        last = getattr(estimator, "steps", [(None, None)])[-1][1]
        estimator = next((part for part in (last, *inner) if hasattr(part, "get_params")), None)
