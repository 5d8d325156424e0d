"""The parameters of a loss: what each may be, and how they are read, set, compared and cloned."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor, nn

from skdice._checks import KINDS, Kind, as_numbers, check_value
from skdice._compat import Interval, InvalidParameterError, StrOptions

# A hyperparameter may be a tensor, so that many values can run at once.
Number = float | Tensor
PerClass = Sequence[float] | np.ndarray | Tensor | None
ClassWeight = PerClass | str | Mapping[Any, float]  # also "balanced", or factors by label
MOST = 1e18  # of any number: 64 bits hold it, and float32 its square


def _is_plain(value: Any) -> bool:
    plain = isinstance(value, Tensor) and not isinstance(value, nn.Parameter)
    return plain and not value.is_nested and value.ndim == 0  # as one of many is, inside vmap


def _are_factors(value: Any) -> bool:
    if isinstance(value, Tensor):  # to look at its values would make a GPU wait
        return value.ndim == 1
    if not isinstance(value, (list, tuple)) and getattr(value, "ndim", 0) != 1:
        return False
    if torch.compiler.is_compiling():  # to look at the values of an array would break the graph
        return True
    try:
        return bool((as_numbers("values", value) >= 0).all())
    except (TypeError, ValueError):
        return False


TENSOR = Kind("a tensor of one number (of a parameter, its detach())", _is_plain)
EACH = "one finite number of at least 0 for each class"
PER_CLASS = [KINDS["None"], Kind(EACH, _are_factors)]
CLASS_WEIGHT = [
    KINDS["None"],
    Kind(
        f"'balanced', a dict of factors of at least 0 by label, or {EACH}",
        lambda value: (
            (isinstance(value, str) and value == "balanced")
            or _are_factors(list(value.values()) if isinstance(value, Mapping) else value)
        ),
    ),
]
BACKGROUND = [KINDS["None"], StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")]


def number(low: float, high: float = MOST, closed: str = "both") -> list[Any]:
    """A number of a range; tensors of one pass, so that many can run at once under vmap."""
    return [Interval(Real, low, high, closed=closed), TENSOR]


def is_above_zero(value: Number) -> bool:
    """Return True if a setting is on, as a tensor is: no branch may look at its values."""
    return isinstance(value, Tensor) or value > 0


class ParametrizedModule(nn.Module):
    """Base of modules whose constructor arguments are read, set, compared and cloned by name."""

    # As in scikit-learn. A parameter that has none here is not checked.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    # What a class knows of its constructor, once.
    _signature: ClassVar[inspect.Signature]
    _names: ClassVar[tuple[str, ...]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "_names" not in cls.__dict__:
            cls._signature = inspect.signature(cls.__init__)
            cls._names = tuple(sorted(list(cls._signature.parameters)[1:]))
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
                parts = "".join(f", and {part}__ with those of {part}" for part in self.parts)
                raise ValueError(
                    f"Invalid parameter {name!r} for {type(self).__name__}: choose a loss that has "
                    f"it, as loss='tversky'. This one has {', '.join(self._names)}{parts}"
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
    def __hash__(self) -> int:
        return id(self)

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
