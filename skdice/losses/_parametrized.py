"""A torch module with the parameters of a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from torch import Tensor, nn

from skdice._checks import Kinds, check_arguments, check_choice, kinds_of
from skdice.losses._parameters import (
    LOSS_KINDS,
    check_background,
    check_number,
    check_per_class,
)


class ParametrizedModule(nn.Module):
    """Base of modules whose constructor arguments are read, set, compared and cloned by name."""

    # Lowest and highest values of numbers, and the values of strings, by parameter.
    bounds: ClassVar[dict[str, tuple[float, float]]] = {}
    choices: ClassVar[dict[str, tuple[str, ...]]] = {}

    # What a class knows of its constructor, once.
    _signature: ClassVar[inspect.Signature]
    _kinds: ClassVar[dict[str, Kinds]]
    _names: ClassVar[tuple[str, ...]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "_names" not in cls.__dict__:
            cls._signature = inspect.signature(cls.__init__)
            cls._kinds = kinds_of(cls.__init__, LOSS_KINDS)
            cls._names = tuple(sorted(list(cls._signature.parameters)[1:]))
        self = super().__new__(cls)
        nn.Module.__init__(self)  # before a dataclass assigns to it
        # Before torch takes a module that is given as a number for a part of this one.
        cls._check_kinds(cls._signature.bind_partial(self, *args, **kwargs).arguments)
        return self

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def _check_kinds(cls, params: Mapping[str, Any]) -> None:
        check_background(params.get("background"))
        check_arguments(cls._kinds, params)

    def _check(self) -> None:
        """Refuse wrong parameters."""
        for name, (low, high) in self.bounds.items():
            check_number(name, getattr(self, name), low, high)
        for name, choices in self.choices.items():
            check_choice(name, getattr(self, name), choices)
        check_per_class("class_weight", getattr(self, "class_weight", None))
        check_background(getattr(self, "background", None))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name, with those of its `parts` if `deep`."""
        params = {name: getattr(self, name) for name in self._names}
        if deep:
            for name, part in self.parts.items():
                params.update({f"{name}__{key}": v for key, v in part.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments, or those of a part as in ``second__smooth``.

        Values that are refused leave the loss as it was.
        """
        of_self: dict[str, Any] = {}
        of_parts: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            part, _, key = name.partition("__")
            if key and part in self.parts:
                of_parts.setdefault(part, {})[key] = value
            elif name in self._names:
                of_self[name] = self.resolve_part(name, value) if name in self.parts else value
            else:
                raise ValueError(
                    f"Invalid parameter {name!r} for {type(self).__name__}: it has "
                    f"{sorted(self.get_params())}"
                )
        self._check_kinds(of_self)
        for loss in (clone(self), self):  # a copy first, which refuses wrong values
            for name, value in of_self.items():
                setattr(loss, name, value)
            for name, values in of_parts.items():
                loss.parts[name].set_params(**values)
            loss._check()
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        """Return True if both are of one class with the same parameters."""
        if type(other) is not type(self):
            return NotImplemented
        theirs = other.get_params(deep=False)
        return all(_same(mine, theirs[n]) for n, mine in self.get_params(deep=False).items())

    # torch keeps modules in sets, where each is itself.
    __hash__ = nn.Module.__hash__

    def __sklearn_clone__(self) -> Self:
        parts = {name: clone(part) for name, part in self.parts.items()}
        return type(self)(**{**self.get_params(deep=False), **parts})

    @property
    def parts(self) -> dict[str, Any]:
        """The modules of this kind that it consists of, by parameter."""
        return {}

    def resolve_part(self, name: str, value: Any) -> Any:
        """A part from what is given for it, such as a name."""
        return value


def _same(one: Any, other: Any) -> bool:
    arrays = (Tensor, np.ndarray)
    if isinstance(one, arrays) or isinstance(other, arrays):
        same = type(one) is type(other) and one.shape == other.shape
        return same and bool((one == other).all())
    return one is other or bool(one == other)
