"""How many held-out positives a promise needs, from the bound itself, for `docs/need.md`.

python promises.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pages import replaced
from scipy.stats import hypergeom

PAGE = Path(__file__).parents[2] / "docs" / "need.md"
SHARES = (0.8, 0.9, 0.95, 0.99)
MISSED = {0: "none missed", 1: "one", 2: "two", 5: "five"}


def sure(n: int, missed: int, share: float, confidence: float = 0.95) -> bool:
    """Whether n positives, of which some are missed, promise a share of n / 2 new ones.

    If the new ones just failed, a draw of n from all would hold so many hits with at most the
    probability 1 - `confidence`: the bound of `PrecisionAtRecall`, at one threshold.
    """
    hits, new = n - missed, math.ceil(n / 2)
    failing = max(math.ceil(share * new - 1e-9) - 1, 0)  # hits among the new
    return bool(hypergeom.sf(hits - 1, n + new, hits + failing, n) <= 1 - confidence)


def fewest(share: float, missed: int) -> int:
    """Positives of which so many may be missed, if the share is to hold for new ones."""
    return next(n for n in count(missed + 1) if sure(n, missed, share))


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
