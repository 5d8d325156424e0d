"""Tasks: what differs between tagging, entities, classification, reading; one module a task."""

from __future__ import annotations

from skdice._names import TASKS as PLACES
from skdice._names import made
from skdice.tasks._base import Task

TASKS: dict[str, Task] = {name: made("tasks", place) for name, place in PLACES.items()}

__all__ = ["TASKS", "Task"]
