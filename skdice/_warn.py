"""Warnings that name the user's line."""

from __future__ import annotations

import inspect
import warnings

# Packages whose functions may stand between the user's line and the one that warns.
BETWEEN = ("skdice", "sklearn", "imblearn", "joblib", "optuna", "skorch", "torch", "transformers")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through `GridSearchCV` and the like."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
