"""Which of two classes is the positive one."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdice._checks import as_numbers, as_row_list, position

__all__ = ["positive_class"]


def positive_class(classes: np.ndarray, counts: np.ndarray, pos_label: Any = None) -> int:
    """Index of the positive class of a two-class problem.

    `pos_label` if given; else the label 1 (or True) of {0, 1} and {-1, 1}, as is scikit-learn's
    convention; else the rarer class of the training labels.

    Parameters
    ----------
    classes : ndarray of shape (2,)
    counts : ndarray of int, shape (2,)
        Training examples of each.
    pos_label : label or None, default=None

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there are not two classes and two counts, or `pos_label` is none of the classes.
    """
    names, counts = as_row_list("classes", classes), as_numbers("counts", counts)
    if len(names) != 2 or counts.shape != (2,):
        raise ValueError(f"classes={names!r} and counts={counts.tolist()}: give two of each")
    if pos_label is not None:
        return position("pos_label", pos_label, names, "classes")
    # Labels that were read from a file are the strings "0" and "1".
    if names in ([0, 1], [-1, 1], ["0", "1"], ["-1", "1"]):
        return 1
    return 0 if counts[0] < counts[1] else 1
