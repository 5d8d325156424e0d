"""Private names of other libraries stand in one module, and ours stay in their package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import skdice

PACKAGE = Path(skdice.__file__).parent
# Parts of public interfaces: of scikit-learn's estimators, and of named tuples.
PUBLIC = {"_parameter_constraints", "_validate_params"}
PUBLIC |= {"_asdict", "_fields", "_make", "_replace"}
# Users make an objective and never call it: the tuned estimators and the displays of skdice do.
PUBLIC |= {"_asked", "_describe", "_holds", "_in_words", "_least_evidence", "_share", "_value"}


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
        own = folder_of(path)
        for name in imports(path):
            head, *rest = name.split(".")
            if head == "skdice" and rest[0] != own:
                private = list(filter(is_private, rest[1:]))
                assert not private, f"{path} imports {name}"


def folder_of(path):
    """The package that a file of skdice belongs to: a folder, or the file itself."""
    return path.relative_to(PACKAGE).parts[0]


def is_private(name):
    return name[:1] == "_" and name[:2] != "__"


def names_made(tree):
    """Private names that a file gives to functions, classes, attributes and variables."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_private_members_stay_in_their_package():
    """No attribute is read whose private name another package makes, and this one does not."""
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    made = defaultdict(set)
    for path, tree in trees.items():
        made[folder_of(path)] |= set(filter(is_private, names_made(tree)))
    everywhere = set().union(*made.values()) - PUBLIC
    reached = {
        (str(path.relative_to(PACKAGE)), node.attr)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in everywhere - made[folder_of(path)]
    }
    assert not reached, "make these public, or move what uses them"


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
