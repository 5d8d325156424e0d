"""Private names of other libraries stand in one module, and ours stay in their package."""

from __future__ import annotations

import ast
from pathlib import Path

import skdice

PACKAGE = Path(skdice.__file__).parent


def imports(path):
    """Full names of all that a file imports."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


def private_imports(path):
    """Imports from other packages of modules or names that begin with an underscore."""
    found = []
    for name in imports(path):
        head, *rest = name.split(".")
        if head not in ("skdice", "__future__") and any(part[:1] == "_" for part in rest):
            found.append(name)
    return found


def test_private_imports_are_only_in_compat():
    for path in PACKAGE.rglob("*.py"):
        if path.name != "_compat.py":
            assert not private_imports(path), path


def test_private_names_stay_in_their_package():
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).parts[0]
        for name in imports(path):
            head, *rest = name.split(".")
            if head == "skdice" and rest[0] != own:
                private = [part for part in rest[1:] if part[:1] == "_" and part[:2] != "__"]
                assert not private, f"{path} imports {name}"


def test_compat_says_why_it_takes_each_name():
    lines = (PACKAGE / "_compat.py").read_text().splitlines()
    reason = False
    for line in lines[lines.index("from typing import Any") + 1 :]:
        if line.startswith("__all__"):
            break
        if line.startswith("#"):
            reason = True
        elif line.startswith("from"):
            assert reason, line
        elif not line:
            reason = False
