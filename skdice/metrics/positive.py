"""Which of two classes is the positive one."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    classes, counts = np.asarray(classes), np.asarray(counts)
    if classes.shape != (2,) or counts.shape != (2,):
        raise ValueError(
            f"classes and counts have shapes {classes.shape} and {counts.shape}: give two of each"
        )
    if pos_label is not None:
        found = np.flatnonzero(classes == pos_label)
        if not len(found):
            pos_label = pos_label.item() if isinstance(pos_label, np.generic) else pos_label
            raise ValueError(f"pos_label={pos_label!r} is not among the classes {classes.tolist()}")
        return int(found[0])
    # Labels that were read from a file are the strings "0" and "1".
    if classes.tolist() in ([0, 1], [-1, 1], ["0", "1"], ["-1", "1"]):
        return 1
    return 0 if counts[0] < counts[1] else 1
