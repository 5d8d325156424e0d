"""A part of the rows held out to test on."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from skdice.resampling.stratification import held_out_rows
from skdice.tasks.files import files_of


def rows_to_test(task: Any, X: Any, y: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the rows to train on, and of a fifth of the rows to test on.

    Each label has its share of both parts, and questions on one context are in one of them.
    """
    rows, files = np.arange(len(y)), files_of(task)
    if (groups := files.groups(X)) is not None:
        splitter = GroupShuffleSplit(1, test_size=0.2, random_state=seed)
        return next(splitter.split(rows, groups=groups))
    strata = files.split_strata(y)
    if strata is not None and strata.ndim == 1 and 1 in np.unique(strata, return_counts=True)[1]:
        raise ValueError("a label has one row only: give --test (X_test), or leave that row out")
    held = held_out_rows(len(rows), -(-len(rows) // 5), seed, strata)
    return np.delete(rows, held), held
