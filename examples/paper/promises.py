"""How many held-out positives a promise needs, from the bound itself, for `docs/need.md`.

python promises.py
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
from pages import replaced

from skdice.metrics import PrecisionAtRecall

PAGE = Path(__file__).parents[2] / "docs" / "need.md"
SHARES = (0.8, 0.9, 0.95, 0.99)
MISSED = {0: "none missed", 1: "one", 2: "two", 5: "five"}


def fewest(share: float, missed: int) -> int:
    """Positives of which so many may be missed, if the share is to hold for new ones."""
    bound = PrecisionAtRecall(share)
    for n in count(missed + 1):
        (sure,) = bound.sure(np.array([n - missed]), np.array([n]), share, [1 - bound.confidence])
        if sure[0]:
            return n
    raise AssertionError


def lines() -> Iterator[str]:
    """The table."""
    yield f"| recall or precision | {' | '.join(MISSED.values())} |"
    yield "|---:" * (len(MISSED) + 1) + "|"
    for share in SHARES:
        cells = (f"{fewest(share, missed):,}" for missed in MISSED)
        yield f"| {share:.2f} | {' | '.join(cells)} |"


if __name__ == "__main__":
    made = replaced(PAGE.read_text(), "labels for a promise", "\n".join(lines()), "promises.py")
    PAGE.write_text(made)
