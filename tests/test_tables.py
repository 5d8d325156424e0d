"""The tables of losses, tasks and formats hold each module of their folders; nothing scans."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import skdice
from skdice import _names
from skdice.datasets.formats._base import Format, formats
from skdice.losses import LOSSES, Loss
from skdice.tasks import TASKS, Task

ROOT = Path(skdice.__file__).parent
TABLES = {
    "losses": (LOSSES, Loss, {type(loss()) for loss in LOSSES.values()}),
    "tasks": (TASKS, Task, {type(task) for task in TASKS.values()}),
    "datasets/formats": (formats(), Format, {type(form) for form in formats().values()}),
}


@pytest.mark.parametrize("folder", TABLES)
def test_every_named_class_of_a_folder_has_a_line(folder):
    table, base, classes = TABLES[folder]
    assert all(issubclass(cls, base) for cls in classes)
    assert len(classes) == len(table)
    defined = {cls.__module__.rpartition(".")[2] for cls in classes}
    kind = rf"^class \w+\(.*({base.__name__}|{'|'.join(c.__name__ for c in classes)})\):"
    for path in (ROOT / folder).glob("[a-z]*.py"):
        if path.stem in ("numbers", "token_rows"):  # of an estimator alone; a base of tasks
            continue
        if re.search(kind, path.read_text("utf-8"), re.M):
            assert path.stem in defined, f"{path.name} has no line in its table"


def test_names_are_known_before_their_modules_are_loaded():
    assert (*TASKS,) == _names.TASK_NAMES
    assert {*formats()} == {*_names.TOOLS}
    assert all(form.name == name for name, form in formats().items())


def test_nothing_is_found_by_scanning():
    for path in ROOT.rglob("*.py"):
        code = path.read_text("utf-8")
        assert not re.search(r"pkgutil|iter_modules|globals\(\)\.update", code), path


def test_a_module_of_skdice_is_imported_without_the_estimators(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", pytest.fail)
    with pytest.raises(AttributeError, match="no attribute 'backbones'"):
        skdice.__getattr__("backbones")
