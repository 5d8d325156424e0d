"""The names of plugins, by those of their modules; none is imported."""

from __future__ import annotations

import pkgutil
from pathlib import Path


def _modules(folder: str) -> tuple[str, ...]:
    """The modules in a folder of skdice, without those that begin with an underscore."""
    path = Path(__file__).parent / folder
    names = sorted(module.name for module in pkgutil.iter_modules([str(path)]))
    return tuple(name for name in names if name[0] != "_")


TOOL_MODULES = _modules("datasets/annotations")
TOOLS = tuple(name.replace("_", "-") for name in TOOL_MODULES)
TASK_MODULES = _modules("tasks")
TASK_NAMES = tuple(name.replace("_", "-") for name in TASK_MODULES)
