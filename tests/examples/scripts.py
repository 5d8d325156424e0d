"""Scripts of the examples, which are no package, as modules of a test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

PAPER = Path(__file__).parents[2] / "examples" / "paper"
PEERS = Path(__file__).parents[2] / "examples" / "benchmarks" / "peers"


@contextmanager
def scripts(folder: Path, *names: str) -> Iterator[dict[str, ModuleType]]:
    """Import scripts of a folder by name, and forget them and what they import of it afterwards."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path[:] = before
        for path in folder.glob("*.py"):
            sys.modules.pop(path.stem, None)
