"""How imbalanced data are: the paper's Table 1."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["Imbalance", "imbalance"]


@dataclass(frozen=True)
class Imbalance:
    """Counts of negatives and positives.

    Attributes
    ----------
    unit : {"tokens", "examples"}
    n_negative, n_positive : int
    background : str or None
        The negative class; None if there is none, and then all are positives.
    counts : dict
        Examples of each class, the most frequent first.
    """

    unit: str
    n_negative: int
    n_positive: int
    background: Any
    counts: dict[Any, int]

    @property
    def ratio(self) -> float:
        """Negatives for each positive."""
        return self.n_negative / self.n_positive if self.n_positive else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """As plain values, the ratio among them."""
        return {**asdict(self), "ratio": self.ratio}


def imbalance(y: Any, *, background: Any = "auto") -> Imbalance:
    """Count negatives and positives, as in Table 1 of Li et al. (2020).

    Parameters
    ----------
    y : list of tag lists, or labels of shape (n,)
    background : label or None, default="auto"
        The negative class. Auto is ``O`` for tags; for two labels, the one that is not 1 of {0, 1},
        and otherwise the more frequent; for more labels, none.

    Returns
    -------
    Imbalance

    Raises
    ------
    ValueError
        If `y` is empty or `background` is not in it.

    Examples
    --------
    >>> from skdice.inspection import imbalance
    >>> imbalance([["O", "O", "O", "B-PER"], ["O"]]).ratio
    4.0
    """
    rows = list(y)
    if not rows:
        raise ValueError("y is empty: give at least one label")
    tagged = not isinstance(rows[0], str) and isinstance(rows[0], (list, tuple, np.ndarray))
    labels = [label for row in rows for label in row] if tagged else rows
    found = Counter(label.item() if isinstance(label, np.generic) else label for label in labels)
    if not found:
        raise ValueError("y holds no label: all of its sentences are empty")
    counts = dict(sorted(found.items(), key=lambda item: (-item[1], str(item[0]))))
    if isinstance(background, str) and background == "auto":
        background = _background(counts, tagged)
    elif background is not None and background not in counts:
        raise ValueError(f"background={background!r} is not among the labels {list(counts)[:20]}")
    negative = counts[background] if background is not None else 0
    total = sum(counts.values())
    return Imbalance(
        "tokens" if tagged else "examples", negative, total - negative, background, counts
    )


def _background(counts: dict[Any, int], tagged: bool) -> Any:
    if tagged:
        return "O" if "O" in counts else None
    if len(counts) != 2:
        return None
    names = {str(label): label for label in counts}
    for negative in ("0", "-1", "False"):
        if negative in names and ("1" in names or "True" in names):
            return names[negative]
    return next(iter(counts))
