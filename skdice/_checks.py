"""Arguments of public functions: what their annotations promise, and how messages show them."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

Checked = TypeVar("Checked", bound=Callable[..., Any])

# Control characters, halves of a surrogate pair, and marks that turn the direction of text.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""A text that a terminal or a chart can show: escape sequences and the like are spelled out.

    Examples
    --------
    >>> from skdice._checks import printable
    >>> print(printable("red \x1b[31m text"))
    red \x1b[31m text
    """
    return _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shown(value: Any) -> str:
    """A short form of any value, for a message."""
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except Exception:  # an object may do anything in its repr
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def _is_path(value: Any) -> bool:
    try:
        text = os.fsencode(value)
    except (TypeError, UnicodeError):
        return False
    return not isinstance(value, bytes) and text != b"" and b"\0" not in text


def is_number(value: Any) -> bool:
    """Return True for a real number that a float holds, and not for True or False."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and float(value) is not None
    except OverflowError:  # an integer that no float holds
        return False


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple, range)) or (
        hasattr(value, "__array__") and getattr(value, "shape", None) not in (None, ())
    )


class Kind(NamedTuple):
    """A constraint with the interface of scikit-learn's: its name in messages and its test."""

    what: str
    is_satisfied_by: Callable[[Any], bool]

    def __str__(self) -> str:
        return self.what


# Parts of an annotation.
Kinds = dict[str, Kind]
KINDS: Kinds = {
    "None": Kind("None", lambda value: value is None),
    "bool": Kind("True or False", lambda value: isinstance(value, (bool, np.bool_))),
    "int": Kind("an integer", lambda v: isinstance(v, Integral) and not isinstance(v, bool)),
    "float": Kind("a number", is_number),
    "Path": Kind("a path", _is_path),
    "str": Kind("a string", lambda value: isinstance(value, str)),
    "Sequence": Kind("a list", _is_sequence),
    "Iterable": Kind(
        "a list", lambda v: isinstance(v, Iterable) and not isinstance(v, (str, bytes))
    ),
    "dict": Kind("a dict", lambda value: isinstance(value, Mapping)),
    "Callable": Kind("a function", callable),
}
_ALIASES = {"list": "Sequence", "tuple": "Sequence", "Mapping": "dict"}


def checked(function: Checked) -> Checked:
    """Refuse arguments that are not what the annotations say, by name and before any work.

    Numbers, strings, flags, paths, lists, dicts and functions are checked, in any union such as
    ``int | None``. A parameter whose annotation holds anything else, such as `Any`, is left to the
    function. Of a class, the arguments of its constructor are checked.
    """
    if isinstance(function, type):
        function.__init__ = checked(function.__init__)  # type: ignore[misc]
        return function
    signature, wanted = inspect.signature(function), kinds_of(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        check_arguments(wanted, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def kinds_of(function: Callable[..., Any]) -> dict[str, Kinds]:
    """The kinds of each parameter whose annotation is a union of known ones."""
    kinds = {}
    for name, parameter in inspect.signature(function).parameters.items():
        parts = re.split(r" \| (?![^\[]*\])", str(parameter.annotation))
        parts = [_ALIASES.get(part.split("[")[0], part.split("[")[0]) for part in parts]
        if set(parts) <= set(KINDS) and parameter.kind is not parameter.VAR_KEYWORD:
            kinds[name] = {p: KINDS[p] for p in parts if p != "str" or "Path" not in parts}
    return kinds


def check_arguments(kinds: Mapping[str, Kinds], arguments: Mapping[str, Any]) -> None:
    """Refuse the first argument that is of none of its kinds."""
    for name, value in arguments.items():
        if name in kinds:
            bad_path = "Path" in kinds[name] and isinstance(value, (str, os.PathLike))
            error = ValueError if bad_path else TypeError
            check_value(name, value, kinds[name].values(), error)


def check_value(
    name: str, value: Any, rules: Collection[Any], error: type[Exception] = ValueError
) -> None:
    """Refuse a value that satisfies none of `rules`: scikit-learn's constraints, or kinds.

    A range, which alone has ends that are `closed`, takes True for no number.
    """
    flag = isinstance(value, bool)
    if not any(r.is_satisfied_by(value) for r in rules if not (flag and hasattr(r, "closed"))):
        raise error(f"{name}={shown(value)} must be {' or '.join(map(str, rules))}")


def check_unmasked(name: str, values: Any) -> None:
    """Refuse a masked array with a masked value, which would be read as if it were none."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        first = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        raise ValueError(
            f"{name}[{', '.join(map(str, first))}] is masked: drop such rows, or fill the array, "
            f"as in {name}.filled(0)"
        )


def as_numbers(name: str, values: Any, n_dims: int = 1) -> np.ndarray:
    """Finite numbers as a float array of this many dimensions."""
    check_unmasked(name, values)
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "USmM":  # numpy would read the digits of a string
            raise TypeError
        numbers = numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"{name}={shown(values)} must hold numbers") from None
    if numbers.ndim != n_dims or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name}={shown(values)} must be an array of finite numbers with {n_dims} dimension(s)"
        )
    return numbers


def same_length(names: Sequence[str], values: Sequence[Any]) -> list[np.ndarray]:
    """Arrays of shape (n,), all with the same n."""
    arrays = [as_numbers(*entry) for entry in zip(names, values, strict=True)]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(
            f"{', '.join(names)} must have the same length of 1 or more, and have "
            f"{[len(array) for array in arrays]}"
        )
    return arrays


def counted(n: int, noun: str) -> str:
    """A number with its noun, as in "1 row" and "2,000 rows"."""
    plural = {"class": "classes", "entity": "entities"}.get(noun, f"{noun}s")
    return f"{n:,} {noun if n == 1 else plural}"


def check_lengths(what: str = "rows", /, **values: Sized) -> None:
    """Refuse two lists that differ in length; `what` is the name of their entries."""
    (one, n), (other, m) = ((name, len(rows)) for name, rows in values.items())
    if n != m:
        held = counted(n, what.removesuffix("s"))
        raise ValueError(f"{one} holds {held} and {other} {m}: they must match")


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> None:
    """Refuse what is not one of `choices`, which are strings or None."""
    if not (value is None or isinstance(value, str)) or value not in choices:
        raise ValueError(f"{name}={shown(value)} must be one of {tuple(choices)}")


def check_range(low: int, high: int | None = None, /, **values: Any) -> None:
    """Refuse a number outside a range, whose ends belong to it."""
    for name, value in values.items():
        if not (low <= value and (high is None or value <= high)):
            wanted = f"at least {low}" if high is None else f"from {low} to {high:,}"
            raise ValueError(f"{name}={shown(value)} must be {wanted}")


def position(name: str, value: Any, options: list[Any], what: str) -> int:
    """The index of a value among `options`, whatever it is."""
    try:
        return options.index(value)
    except (ValueError, TypeError):  # not there, or an array that equals nothing and everything
        raise ValueError(f"{name}={shown(value)} is not among the {what} {options[:20]}") from None


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Give the parameters in a refusal the names that the caller has for them, as ``X_val``.

    What stands in quotes is the user's, and stays: a token may be "X", as a tag of UD is.
    """
    quoted = r"""(?<!\w)'(?:[^'\\]|\\.)*'|(?<!\w)"(?:[^"\\]|\\.)*\""""
    pattern = rf"{quoted}|\b({'|'.join(names)})\b"
    try:
        yield
    except (TypeError, ValueError) as error:
        text = re.sub(pattern, lambda m: names[m[1]] if m[1] else m[0], str(error))
        raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from error


def check_has(name: str, value: Any, *attributes: str) -> None:
    """Refuse a class, and an object without these attributes."""
    missing = [attribute for attribute in attributes if not hasattr(value, attribute)]
    if missing or isinstance(value, type):
        lacks = f"has no {missing[0]}" if missing else "is a class, and not an object of it"
        raise TypeError(f"{name}={shown(value)} {lacks}")
