"""Tasks: what differs between tagging, entities, classification, reading; one file a task."""

from skdice.tasks.base import Task
from skdice.tasks.classification import Classification
from skdice.tasks.entities import Entities
from skdice.tasks.mrc import MRC
from skdice.tasks.reading import Reading
from skdice.tasks.tagging import Tagging

TASKS: dict[str, Task] = {
    task.name: task for task in (Tagging(), Classification(), Reading(), MRC(), Entities())
}

__all__ = ["TASKS", "Task"]
