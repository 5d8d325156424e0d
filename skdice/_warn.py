"""Warnings that name the user's line."""

from __future__ import annotations

import inspect
import warnings

# Modules whose functions may stand between the user's line and the one that warns.
COMMAND = ("typer", "click", "contextlib")
BETWEEN = ("skdice", "sklearn", "imblearn", "joblib", "optuna", "skorch", "torch", "transformers")


class TruncationWarning(UserWarning):
    """Inputs were longer than the model reads, and part of them was left out.

    The message has their number.

    Examples
    --------
    >>> import warnings
    >>> from skdice.text import TruncationWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TruncationWarning)  # refuse texts that would be cut
    """


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, also through `GridSearchCV` and the like."""
    frame, level, between = inspect.currentframe(), 1, {*BETWEEN, *COMMAND}
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in between:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
