"""Losses by name."""

from __future__ import annotations

from typing import Any

LOSSES: dict[str, type[Any]] = {}  # filled by `Loss.__init_subclass__`


def register(cls: type[Any]) -> None:
    """Let a loss be given by its `name`. Defining a class again, as in a notebook, replaces it."""
    name, package = cls.name, __name__.rpartition(".")[0]
    if not (isinstance(name, str) and name):
        raise TypeError(f"{cls.__name__}.name={name!r} must be a string, which loss= can be given")
    taken = LOSSES.get(name)
    if taken is not None and taken.__module__.startswith(package):
        raise ValueError(
            f"{cls.__name__}.name={name!r} is the name of {taken.__name__}: choose another"
        )
    LOSSES[name] = cls
