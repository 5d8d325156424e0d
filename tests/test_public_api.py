"""Public names and their signatures, held to a table: a change of one is a line of the table.

`python tests/test_public_api.py` writes the table.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from skdice import exceptions
from skdice.metrics.decisions.bounds import Promise

TABLE = Path(__file__).with_name("public_api.txt")
API = Path(__file__).parent.parent / "docs" / "api.md"
HEAD = """\
# The public names (docs/api.md) with parameters and defaults, their methods and properties, what
# they return, and the warnings: a line each. `python tests/test_public_api.py` writes this file.
# A change is told in CHANGELOG.md.
"""
RETURNED = {"skdice.metrics.Promise": Promise}  # by public names, which do not list it


def line_of(name: str, thing: object) -> str:
    """A name with its parameters and defaults, without annotations."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return name
    parameters = inspect.signature(thing).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return f"{name}{inspect.Signature(plain)}"


def methods_of(name: str, cls: type, public: set[int]) -> Iterator[str]:
    """A line for each public method and property of skdice that no other public class lists."""
    for base in reversed(cls.__mro__):
        listed = base is not cls and id(base) in public
        if listed or not base.__module__.startswith("skdice"):
            continue
        for key in vars(base):
            thing = inspect.getattr_static(cls, key)
            if key.startswith("_") or inspect.isclass(thing):
                continue
            if isinstance(thing, property):
                yield f"{name}.{key}"
            elif hasattr(thing, "__get__"):  # a method of any kind
                bound = getattr(cls, key, None)  # None where scikit-learn's `available_if` hides it
                yield line_of(f"{name}.{key}", bound) if callable(bound) else f"{name}.{key}"


def public_lines() -> set[str]:
    """A line for each public name; a second name of a thing names the first."""
    lines, first = set(), {}
    page = API.read_text("utf-8")
    named = [
        (f"{package}.{name}", getattr(importlib.import_module(package), name))
        for package, names in re.findall(r"currentmodule:: (\S+)\n(.*?)```", page, re.S)
        for name in re.findall(r"^   (\w+)$", names, re.M)
    ]
    public = {id(thing) for _, thing in named}
    for full, thing in [*named, *RETURNED.items()]:
        known = first.setdefault(id(thing), full)
        lines.add(line_of(full, thing) if known == full else f"{full} = {known}")
        if inspect.isclass(thing) and known == full:
            lines.update(methods_of(full, thing, public))
    for name, thing in vars(exceptions).items():
        if inspect.isclass(thing) and thing.__module__ == exceptions.__name__:
            bases = ", ".join(base.__name__ for base in thing.__bases__)
            lines.add(f"skdice.exceptions.{name}({bases})")
    return lines


def test_public_names_and_signatures_are_those_of_the_table():
    table = {line for line in TABLE.read_text("utf-8").splitlines() if line and line[0] != "#"}
    found = public_lines()
    changes = [f"- {line}" for line in table - found] + [f"+ {line}" for line in found - table]
    changes.sort(key=lambda change: change[2:])
    advice = "tests/public_api.txt differs: if you mean it, run `python tests/test_public_api.py`"
    assert not changes, "\n".join([advice, *changes])


if __name__ == "__main__":
    TABLE.write_text(HEAD + "".join(f"{line}\n" for line in sorted(public_lines())), "utf-8")
