"""A torch module with the parameters of a scikit-learn estimator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from torch import Tensor, nn

from skdice._checks import check_value
from skdice._compat import InvalidParameterError
from skdice.losses._constraints import TENSOR


class ParametrizedModule(nn.Module):
    """Base of modules whose constructor arguments are read, set, compared and cloned by name."""

    # As in scikit-learn. A parameter that has none here is not checked.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    # What a class knows of its constructor, once.
    _signature: ClassVar[inspect.Signature]
    _names: ClassVar[tuple[str, ...]]
    _numbers: ClassVar[tuple[str, ...]]  # parameters that may be a tensor of one number

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "_names" not in cls.__dict__:
            cls._signature = inspect.signature(cls.__init__)
            cls._names = tuple(sorted(list(cls._signature.parameters)[1:]))
            rules = cls._parameter_constraints
            cls._numbers = tuple(name for name in cls._names if TENSOR in rules.get(name, ()))
        self = super().__new__(cls)
        nn.Module.__init__(self)  # before a dataclass assigns to it
        # Before torch takes a module that is given as a number for a part of this one.
        cls._check_each(cls._signature.bind_partial(self, *args, **kwargs).arguments)
        return self

    def __post_init__(self) -> None:
        self._check()

    @classmethod
    def _check_each(cls, params: Mapping[str, Any]) -> None:
        """Refuse values that a parameter may not have."""
        for name, value in params.items():
            if name in cls._parameter_constraints:
                check_value(name, value, cls._parameter_constraints[name], InvalidParameterError)

    def _check(self) -> None:
        """Refuse parameters that do not go together."""

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
        self._check_each(of_self)
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
