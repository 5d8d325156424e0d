"""Warnings that name the user's line."""

from __future__ import annotations

import inspect
import warnings

from skdice.exceptions import SkdiceWarning

# Modules whose functions may stand between the user's line and the one that warns.
COMMAND = ("typer", "click", "contextlib")
BETWEEN = ("skdice", "sklearn", "imblearn", "joblib", "optuna", "skorch", "torch", "transformers")


def warn(message: str, category: type[SkdiceWarning]) -> None:
    """Warn at the line that called this package, also through `GridSearchCV` and the like."""
    frame, level, between = inspect.currentframe(), 1, {*BETWEEN, *COMMAND}
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in between:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
