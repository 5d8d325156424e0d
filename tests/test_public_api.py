"""Public names and their signatures, held to a table: a change of one is a line of the table."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

TABLE = Path(__file__).with_name("public_api.txt")
API = Path(__file__).parent.parent / "docs" / "api.md"
ADVICE = (
    "The public interface differs from tests/public_api.txt. If you mean it, edit the lines below "
    "by hand in that file (- is what it has, + is what it should have), and say it in CHANGELOG.md."
)


def line_of(name: str, thing: object) -> str:
    """A name with its parameters and defaults, without annotations."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return name
    parameters = inspect.signature(thing).parameters.values()
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in parameters]
    return f"{name}{inspect.Signature(plain)}"


def public_lines() -> set[str]:
    """A line for each name that docs/api.md lists; a second name of a thing names the first."""
    lines, first = set(), {}
    page = API.read_text("utf-8")
    for package, names in re.findall(r"currentmodule:: (\S+)\n(.*?)```", page, re.S):
        module = importlib.import_module(package)
        for name in re.findall(r"^   (\w+)$", names, re.M):
            thing, full = getattr(module, name), f"{package}.{name}"
            known = first.setdefault(id(thing), full)
            lines.add(line_of(full, thing) if known == full else f"{full} = {known}")
    return lines


def test_public_names_and_signatures_are_those_of_the_table():
    table = {line for line in TABLE.read_text("utf-8").splitlines() if line and line[0] != "#"}
    found = public_lines()
    changes = [f"- {line}" for line in table - found] + [f"+ {line}" for line in found - table]
    changes.sort(key=lambda change: change[2:])
    assert not changes, "\n".join([ADVICE, *changes])
