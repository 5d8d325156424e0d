"""Axes to draw on, and the curves that two displays share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["axes_or_new", "draw_scores", "pyplot"]


def pyplot() -> Any:
    """matplotlib's pyplot, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'skdice[plot]'") from error
    return plt


def axes_or_new(ax: Any, width: float, height: float) -> Any:
    """The given axes; None makes a new figure of this size, in inches."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=(width, height), layout="constrained")
    return ax


def draw_scores(ax: Any, x: Any, scores: Mapping[str, Any], best: float, usual: float) -> None:
    """Precision, recall and F1 against a setting, with its best and its usual value marked."""
    for (name, values), style in zip(scores.items(), ("--", ":", "-"), strict=True):
        ax.plot(x, values, style, label=name)
    ax.axvline(usual, color="#999999", linewidth=1)
    ax.plot(best, max(scores["F1"]), "o", color="black", fillstyle="none", markersize=9)
    ax.set_ylim(0, 1.03)
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8)
