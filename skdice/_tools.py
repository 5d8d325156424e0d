"""The formats of annotation tools, by the names of their modules; none is imported."""

from __future__ import annotations

import pkgutil
from pathlib import Path

FOLDER = Path(__file__).parent / "datasets" / "annotations"
MODULES = sorted(m.name for m in pkgutil.iter_modules([str(FOLDER)]) if m.name[0] != "_")
TOOLS = tuple(name.replace("_", "-") for name in MODULES)
