"""The choice of the positive one of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdice._checks import as_numbers, position
from skdice._fitting import layers
from skdice._types import ArrayLike
from skdice.inputs.rows import as_row_list


def positive_class(classes: ArrayLike, counts: ArrayLike, pos_label: Any = None) -> int:
    """Index of the positive class of a two-class problem.

    `pos_label` if given; else the label 1 (or True) of {0, 1} and {-1, 1}, as is scikit-learn's
    convention; else the class that is rarer by more than chance. Where the counts of two equally
    likely classes could differ so much by chance (by three standard deviations of the binomial
    distribution, that is ``3 * sqrt(n)``) it is the second, as in scikit-learn, so that folds of
    the data seldom differ. Near that bound they may: then give `pos_label`.

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

    Examples
    --------
    >>> from skdice.metrics.decisions.positive import positive_class
    >>> positive_class(["ham", "spam"], [90, 10])
    1
    >>> positive_class(["no", "yes"], [99, 101]), positive_class(["no", "yes"], [50, 150])
    (1, 0)
    """
    names, counts = as_row_list("classes", classes), as_numbers("counts", counts)
    if len(names) != 2 or counts.shape != (2,):
        raise ValueError(f"classes={names!r} and counts={counts.tolist()}: give two of each")
    if pos_label is not None:
        return position("pos_label", pos_label, names, "classes")
    # Labels that were read from a file are the strings "0" and "1".
    if names in ([0, 1], [-1, 1], ["0", "1"], ["-1", "1"]):
        return 1
    return 0 if counts[1] - counts[0] > 3 * np.sqrt(counts.sum()) else 1


def positive_of(estimator: Any, labels: np.ndarray, pos_label: Any = None) -> int:
    """Index of the positive class of a fitted classifier of two classes.

    `pos_label` if given; else the classifier's own, also at the end of a pipeline or in a search;
    else as `positive_class` chooses by the counts of `labels`. Behind a sampler, which makes the
    classes alike, only a positive class that the user set is the classifier's own.
    """
    own = own_positive(estimator) if pos_label is None else None
    return _by_counts(estimator.classes_, labels, pos_label) if own is None else own


def own_positive(estimator: Any) -> int | None:
    """Index of the positive class that a fitted classifier has; None if a sampler chose it."""
    sampled = False
    for part in layers(estimator):
        if hasattr(part, "positive_"):
            chosen = sampled and getattr(part, "pos_label", None) is None
            return None if chosen else int(part.positive_)
        steps = getattr(part, "steps", ())
        sampled = sampled or any(hasattr(step, "fit_resample") for _, step in steps)
    return None


def positive_before_fit(
    estimator: Any, labels: np.ndarray, classes: np.ndarray, pos_label: Any = None
) -> int:
    """Index of the positive class that `positive_of` will give once the classifier is fitted."""
    if pos_label is None:
        pos_label = getattr([*layers(estimator)][-1], "pos_label", None)
    return _by_counts(classes, labels, pos_label)


def _by_counts(classes: np.ndarray, labels: np.ndarray, pos_label: Any) -> int:
    counts = np.array([np.sum(labels == label) for label in classes])
    return positive_class(classes, counts, pos_label)
