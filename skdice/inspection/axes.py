"""Axes to draw on, and texts on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdice._checks import printable, shown


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
    return given_axes("ax", ax)[0]


def given_axes(name: str, axes: Any) -> list[Any]:
    """The axes of matplotlib, one or any array of them, as a list."""
    from matplotlib.axes import Axes

    flat = np.asarray(axes, dtype=object).ravel().tolist()
    if not flat or not all(isinstance(ax, Axes) for ax in flat):
        raise TypeError(f"{name}={shown(axes)} must hold axes of matplotlib")
    return flat


def label_of(text: Any) -> str:
    """A text for a chart, in which matplotlib finds no formula and no control character."""
    return printable(str(text)).replace("$", r"\$")
