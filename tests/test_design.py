"""docs/design.md against the code: its tree, and the files that it says a fit runs through."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import skdice
from skdice import DiceTokenClassifier

ROOT = Path(skdice.__file__).parent
PAGE = (ROOT.parent / "docs" / "design.md").read_text("utf-8")
TREE = re.search(r"## Where things are.*?```text\nskdice/\n(.*?)```", PAGE, re.S)[1].splitlines()
FIT = re.search(r"## A fit from top to bottom\n(.*?)\n## ", PAGE, re.S)[1]
FILES = sorted(set(re.findall(r"`(skdice/[\w/]+\.py)`", FIT)))
# A name, and the file that it stands in.
NAMED = re.findall(r"`(\w+)` \(`(skdice/[\w/]+\.py)`\)|`(\w+)` in `(skdice/[\w/]+\.py)`", FIT)


def folders_of_the_tree():
    found, above = [], {}
    for line in TREE:
        indent, name = re.match(r"( +)(\w+)/ +\S", line).groups()
        above[len(indent)] = name
        found.append("/".join(above[depth] for depth in sorted(above) if depth <= len(indent)))
    return found


def test_the_tree_has_a_line_for_each_folder():
    folders = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")} - {"."}
    assert sorted(folders_of_the_tree()) == sorted(folders)


def name_of(path):
    """The name of the module in a file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imported_by(path):
    """The modules of skdice that a file imports, also in functions and for annotations alone."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{a.name}" for a in node.names)
            yield from (name if name in MODULES else node.module or "" for name in names)
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names)


def test_no_module_imports_itself_by_way_of_others():
    left = {name: {*imported_by(path)} & set(MODULES) - {name} for name, path in MODULES.items()}
    while free := [name for name, needed in left.items() if not needed & set(left)]:
        for name in free:
            del left[name]
    assert not left  # each of these waits for another of them


def test_a_folder_imports_only_from_the_folders_above_it():
    order = [name for name in folders_of_the_tree() if "/" not in name]
    for name, path in MODULES.items():
        folder, *_ = path.relative_to(ROOT).parts
        for module in imported_by(path) if folder in order else ():
            of = module.split(".")[1] if module.startswith("skdice.") else folder
            if of in order:
                assert order.index(of) <= order.index(folder), f"{name} imports {module}"


@pytest.mark.parametrize("name", ["tags", "inputs", "metrics"])
def test_what_reads_and_scores_needs_numpy_and_scikit_learn_alone(name):
    allowed = {"skdice", "numpy", "scipy", "sklearn"} - ({"sklearn"} if name == "tags" else set())
    for path in (ROOT / name).rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        modules = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        modules |= {a.name for node in nodes if isinstance(node, ast.Import) for a in node.names}
        others = {module.split(".")[0] for module in modules} - set(sys.stdlib_module_names)
        assert others <= allowed, path


@pytest.mark.parametrize("path", FILES)
def test_the_files_of_a_fit_exist_and_define_what_is_named(path):
    tree = ast.parse((ROOT.parent / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
    pairs = [(name or other, file or where) for name, file, other, where in NAMED]
    assert {name for name, file in pairs if file == path} <= defined


def test_a_fit_runs_through_the_files_of_the_page(sentences, tiny_backbone, tmp_path):
    (X, y), entered = sentences, set()

    def note(frame, event, argument):
        entered.add(frame.f_code.co_filename)

    model = DiceTokenClassifier(loss="ce_dice", backbone=tiny_backbone, max_epochs=1)
    model.set_params(random_state=0, checkpoint_dir=tmp_path)
    sys.setprofile(note)
    try:
        model.fit(X, y, X_val=X, y_val=y)
    finally:
        sys.setprofile(None)
    assert len(FILES) > 15
    assert not [path for path in FILES if str(ROOT.parent / path) not in entered]


def test_no_function_stands_twice():
    """What two modules need is imported from one; a body of a short call may be another's."""
    places = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                start = 1 if ast.get_docstring(node) is not None else 0
                body = "\n".join(map(ast.unparse, node.body[start:]))
                if len(body) > 60:
                    places.setdefault(body, []).append(f"{path.relative_to(ROOT)}: {node.name}")
    assert not [found for found in places.values() if len(found) > 1]
