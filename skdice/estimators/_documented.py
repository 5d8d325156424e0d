"""The documentation of the parameters and attributes that estimators share.

Their base classes describe them. A class describes its own, and those by which it means something
of its own.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import TypeVar

from skdice.estimators._net_estimator import NetEstimator
from skdice.estimators.evaluation import FromLogits
from skdice.estimators.transformer import TransformerEstimator

Class = TypeVar("Class", bound=type)
# Parameters that come before those of one class alone.
_FIRST = ("loss", "pos_label", "backbone", "revision", "max_length")


def _entries(doc: str) -> dict[str, str]:
    """From each name that numpydoc describes to its lines."""
    return {m[1]: m[0] for m in re.finditer(r"^(\w+) :.*\n(?: +.*\n)*", doc, re.M)}


def documented(cls: Class) -> Class:
    """Complete the docstring of an estimator by what is shared and by all defaults.

    The signature gets the order of the docstring.
    """
    doc = inspect.cleandoc(cls.__doc__ or "")
    parts = re.split(r"(?m)^((?:Parameters|Attributes)\n-+\n)((?:.+\n)+)", doc)
    if len(parts) == 1:  # `python -OO` removes docstrings
        return cls
    summary, title, parameters, between, title_of_fitted, attributes, rest = parts
    own = _entries(parameters + attributes)
    shared: dict[str, str] = {}
    for base in (TransformerEstimator, NetEstimator, FromLogits):
        if issubclass(cls, base):
            shared |= _entries(inspect.cleandoc(base.__doc__ or ""))
    texts = shared | own
    init = vars(cls)["__init__"]
    itself, *given = inspect.signature(init).parameters.values()
    if lacking := [p.name for p in given if p.name not in texts]:
        raise TypeError(f"{cls.__name__}: describe {lacking} in its docstring or in a base's")
    fields = [field.name for field in dataclasses.fields(cls)]
    of_base = {field.name for field in dataclasses.fields(TransformerEstimator)}
    order = [*_FIRST, *(name for name in own if name not in of_base), *fields]
    given.sort(key=lambda p: order.index(p.name))
    init.__signature__ = inspect.Signature([itself, *given])

    fitted = _entries(attributes)
    fitted |= {k: v for k, v in shared.items() if k.endswith("_") and k not in fitted}
    entries = [_with_default(texts[p.name], p.default) for p in given]
    sections = [summary, title, *entries, between, title_of_fitted, *fitted.values(), rest]
    cls.__doc__ = "".join(sections)
    return cls


def _with_default(entry: str, default: object) -> str:
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return entry.replace("\n", f", default={shown}\n", 1)
