"""Tasks: what differs between tagging, entities, classification, reading; one module a task."""

from __future__ import annotations

import importlib
from typing import Any

from skdice._modules import TASK_NAMES
from skdice.tasks._base import Task


def _task_in(module: Any) -> Task:
    """The task that a module defines, beside those that it imports."""
    (found,) = (
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, Task) and cls.__module__ == module.__name__
    )
    task: Task = found()
    return task


# By their names, which are those of their modules.
TASKS: dict[str, Task] = {
    name: _task_in(importlib.import_module(f"skdice.tasks.{name.replace('-', '_')}"))
    for name in TASK_NAMES
}

__all__ = ["TASKS", "Task"]
