"""Hostile values, and what a parameter may be."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

# Made anew for each call, since some can be used up or changed.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "inf": lambda: float("inf"),
    "nan": lambda: float("nan"),
    "str_": lambda: np.str_("unknown"),
    "datetime": lambda: datetime(2020, 1, 1),
    "empty str": lambda: "",
    "unknown": lambda: "unknown",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"\xff",
    "absent path": lambda: Path("/proc/nowhere/at/all"),
    "object": lambda: object(),
    "class": lambda: Path,
    "[]": lambda: [],
    "{}": lambda: {},
    "dict": lambda: {"unknown": object()},
    "[None]": lambda: [None],
    "[-1]": lambda: [-1],
    "ragged": lambda: [[1], [2, [3]], []],
    "generator": lambda: (i for i in range(3)),
    "0-d array": lambda: np.array(3),
    "nan array": lambda: np.full((6, 2), np.nan),
    "frame": lambda: pd.DataFrame({"a": [1, None], "b": ["x", pd.NA]}),
    "nan tensor": lambda: torch.full((6,), float("nan")),
}

# ---- what is legal


SIGNED = {
    "token_column", "tag_column", "layer", "ignore_index", "null_threshold", "n_jobs",
    "label_column",
}  # fmt: skip
# Numbers for which infinity has a meaning.
MAY_BE_INFINITE = {"max_grad_norm", "error_score", "null_threshold"}
# What a user may set to NaN; a result is then NaN as well. Whether tensors of a network hold NaN
# is not looked at: reading them from a GPU would make every step wait, and torch gives NaN, too.
MAY_BE_NAN = {"error_score", "logits", "outputs"}
PATHS = {"path", "folder", "checkpoint_dir", "backbone", "storage"}


@dataclass
class Domain:
    """What a parameter may be, from its annotation, its default and its line in the docstring."""

    name: str
    annotation: str
    default: Any
    text: str

    @property
    def types(self) -> set[str]:
        parts = re.split(r"\s*\|\s*(?![^\[]*\])", self.annotation)
        return {part.split("[")[0].strip() for part in parts}

    @property
    def choices(self) -> set[str] | None:
        """Strings that the docstring lists, if these are all that it takes."""
        listed = re.match(r"(\{[^}]*\})(?: or None)?(?:,|$)", self.text)
        return set(re.findall(r'"([^"]*)"', listed[1])) if listed else None

    def forbids(self, value: Any) -> bool:
        """Whether a value is plainly not legal. Unsure means no."""
        types, name = self.types, self.name
        if self.text.startswith("ignored"):  # scikit-learn asks for `y` where nothing reads it
            return False
        if value is None:
            return not (types & {"None", "Any", "PerClass", "Weights"} or self.default is None) or (
                self.default is inspect.Parameter.empty and name in ROWS
            )
        if name in ROWS:
            return _no_rows(value)
        if name in PATHS or "Path" in types:
            return not isinstance(value, (str, Path)) or not str(value) or "\0" in str(value)
        simple = types - {"None"}
        if not simple <= {"int", "float", "bool", "str", "Number"}:
            return False
        return not any(getattr(self, f"_{kind.lower()}")(value) for kind in simple)

    def _bool(self, value: Any) -> bool:
        return isinstance(value, (bool, np.bool_)) or (
            isinstance(value, (int, np.integer)) and value in (0, 1)
        )

    def _int(self, value: Any) -> bool:
        whole = isinstance(value, (int, np.integer, bool, np.bool_))
        return whole and (value >= 0 or self.name in SIGNED)

    def _float(self, value: Any) -> bool:
        if not isinstance(value, (int, float, np.integer, np.floating, np.bool_)):
            return False
        if value != value:
            return self.name in MAY_BE_NAN
        if abs(value) == float("inf") and self.name not in MAY_BE_INFINITE:
            return False
        return bool(value >= 0) or self.name in SIGNED | MAY_BE_INFINITE

    def _number(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) or self._float(value)

    def _str(self, value: Any) -> bool:
        return isinstance(value, str) and (self.choices is None or value in self.choices)


ROWS = {"X", "y", "y_true", "y_pred", "tags", "X_test", "y_test", "X_val", "y_val", "y_proba"}


def _no_rows(value: Any) -> bool:
    """Whether a value holds no rows at all: no container, or one without an order."""
    if isinstance(value, (str, bytes, dict, set, type, nn.Module)):
        return True
    return not hasattr(value, "__iter__") or np.ndim(getattr(value, "shape", (1,))) == 0
