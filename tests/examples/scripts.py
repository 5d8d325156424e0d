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


def write_messages(folder: Path, n: int) -> Path:
    """Write messages as SMS Spam has them, one in four of them spam; return the folder."""
    rows = [f"{'spam' if i % 4 == 0 else 'ham'}\tmessage {i} of many" for i in range(n)]
    (folder / "sms_spam").mkdir()
    (folder / "sms_spam" / "SMSSpamCollection").write_text("\n".join(rows))
    return folder


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
