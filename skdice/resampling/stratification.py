"""Folds that share out the rows of each label, where a row has several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from skdice._checks import check_value
from skdice._compat import Interval
from skdice.inputs.labels import as_labels


def share_out(labels: np.ndarray, shares: Sequence[float], random_state: Any = None) -> np.ndarray:
    """The part of each row, so that each part has its share of the rows of each label.

    Parameters
    ----------
    labels : array of shape (n, n_labels)
        0 and 1.
    shares : sequence of float
        The share of the rows that each part gets.
    random_state : int, RandomState or None, default=None
        Orders the rows first. None takes them as they come.

    Returns
    -------
    ndarray of int, shape (n,)
        The number of a row's part.

    References
    ----------
    Iterative stratification, algorithm 1 of Sechidis, Tsoumakas and Vlahavas (2011), "On the
    Stratification of Multi-Label Data". Where two parts lack as much of a label, the row goes to
    the one that lacks most of the row's other labels, and then to the one that lacks most rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skdice.resampling.stratification import share_out
    >>> share_out(np.array([[1, 0], [1, 1], [0, 1], [1, 0], [0, 0], [0, 0]]), [0.5, 0.5]).tolist()
    [1, 0, 1, 0, 0, 1]
    """
    n = len(labels)
    order = (
        np.arange(n) if random_state is None else check_random_state(random_state).permutation(n)
    )
    ones, zeros = labels[order] == 1, labels[order] == 0
    # The rarer value of a column is what a part may lack. Rows without any have their own column.
    held = np.where(ones.sum(axis=0) <= zeros.sum(axis=0), ones, zeros)
    held = np.column_stack([held, ~held.any(axis=1)])
    counts = held.sum(axis=0)
    lacked = np.outer(shares, counts)  # rows of each label that a part still lacks
    size = np.asarray(shares) * n
    parts, left = np.full(n, -1), counts.copy()
    while left.any():
        label = np.where(left > 0, left, n + 1).argmin()
        for row in np.flatnonzero(held[:, label] & (parts < 0)):
            its = np.flatnonzero(held[row])
            others = (lacked[:, its] / counts[its]).sum(axis=1)
            keys = np.round([size, others, lacked[:, label]], 9)  # equal shares give exact ties
            part = np.lexsort(-keys)[0]
            parts[row] = part
            lacked[part, its] -= 1
            size[part] -= 1
            left[its] -= 1
    found = np.empty(n, dtype=int)
    found[order] = parts
    return found


def held_out_rows(n: int, size: int, seed: int, strata: Any = None) -> np.ndarray:
    """The numbers of `size` rows of `n`, drawn in proportion to `strata`.

    `strata` is None, a label for each row, or 0/1 rows of several labels, whose parts are about as
    large as asked for.
    """
    if np.ndim(strata) == 2:
        parts = share_out(np.asarray(strata), [1 - size / n, size / n], seed)
        if 0 < parts.sum() < n:
            return np.flatnonzero(parts)
        strata = None  # too few rows to share out
    rows: np.ndarray = train_test_split(
        np.arange(n), test_size=size, random_state=seed, stratify=strata
    )[1]
    return rows


class MultilabelStratifiedKFold:
    """Folds that share out the rows of each label, where a row has several.

    It is to several labels what `sklearn.model_selection.StratifiedKFold` is to one. A label with
    as many rows as folds is in every fold, unless other rare labels of its rows stand against it.
    skdice uses it wherever `cv` is a number and rows have several labels.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, 2 or more.
    random_state : int, RandomState or None, default=None
        Orders the rows before they are shared out. None takes them as they come.

    Raises
    ------
    ValueError
        If `n_splits` is no whole number of at least 2.

    References
    ----------
    Algorithm 1 of Sechidis, Tsoumakas and Vlahavas (2011), "On the Stratification of Multi-Label
    Data".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold
    >>> from skdice.model_selection import MultilabelStratifiedKFold
    >>> y = np.zeros((60, 3), dtype=int)
    >>> y[:30, 0], y[10:16, 1], y[::20, 2] = 1, 1, 1
    >>> [y[test].sum(axis=0).tolist() for _, test in MultilabelStratifiedKFold(3).split(y, y)]
    [[10, 2, 1], [10, 2, 1], [10, 2, 1]]
    >>> [y[test].sum(axis=0).tolist() for _, test in KFold(3).split(y)]
    [[20, 6, 1], [10, 0, 1], [0, 0, 1]]
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = None) -> None:
        check_value("n_splits", n_splits, [Interval(Integral, 2, None, closed="left")])
        self.n_splits, self.random_state = n_splits, random_state

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_splits={self.n_splits}, random_state={self.random_state})"

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : ignored, there for scikit-learn's interface
        """
        return self.n_splits

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the training rows and the held-out rows of each fold.

        Parameters
        ----------
        X : ignored, since y alone says how to split
        y : 0/1 rows of shape (n, n_labels), dense or sparse; a frame of such columns; or a list \
of names for each row
        groups : None
            For scikit-learn's interface. Groups need `sklearn.model_selection.GroupKFold`.

        Yields
        ------
        train, test : ndarray of int

        Raises
        ------
        ValueError
            If y has fewer rows than folds or one label a row, or `groups` are given.
        """
        labels = as_labels(y, missing=True)
        if getattr(y, "shape", None) == (len(labels), 1) and np.isin(labels, [0, 1]).all():
            labels = labels.reshape(-1, 1)  # one label of several that there might be
        if labels.ndim != 2:
            raise ValueError(
                "y has one label a row: StratifiedKFold of scikit-learn splits it, "
                f"{type(self).__name__} is for several"
            )
        if groups is not None:
            raise ValueError(f"{type(self).__name__} keeps no groups together: take GroupKFold")
        n, k = len(labels), self.n_splits
        if k > n:
            raise ValueError(f"n_splits={k} must be a number from 2 to the {n} rows of y")
        parts = share_out(labels, [1 / k] * k, self.random_state)
        for part in range(k):
            yield np.flatnonzero(parts != part), np.flatnonzero(parts == part)
