"""Random over- and under-sampling of texts and pairs in the containers that users have."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.under_sampling import RandomUnderSampler
from sklearn.utils import check_consistent_length

from skdice._fitting import all_or_nothing, check_params, reading_strategy
from skdice._types import Data, Rows
from skdice.inputs.labels import as_labels, read_labels, single_labels
from skdice.inputs.rows import plain_values, take
from skdice.inputs.sentences import holds_tags
from skdice.inputs.texts import as_texts


class _Texts:
    """Let an imbalanced-learn sampler draw rows of texts through a column of row numbers."""

    @all_or_nothing
    def fit(self, X: Rows, y: Data, **params: Any) -> Self:
        """Check X, y and `sampling_strategy`; `fit_resample` is what draws."""
        check_params(self)
        return super().fit(_numbered(X, y), single_labels(y), **params)  # type: ignore[misc]

    @all_or_nothing
    def fit_resample(self, X: Rows, y: Data, **params: Any) -> tuple[Any, Any]:
        """Draw rows.

        Parameters
        ----------
        X : list of str or of pairs, array of shape (n,), (n, 1) or (n, 2), Series or frame
            A table of numbers, dense or sparse, is drawn from as imbalanced-learn does.
        y : array of shape (n,); or several labels a text, as for `DiceSequenceClassifier`
            A text of several labels is drawn by the rarest that it has. In `sampling_strategy` ""
            (or -1 for 0/1 rows without names) stands for the texts without a label.

        Returns
        -------
        X_resampled, y_resampled
            In containers of the same kinds.
        """
        check_params(self)
        numbered, several = _numbered(X, y), read_labels(y).multilabel
        labels = single_labels(y) if several else y if numbered is X else plain_values(y)
        with reading_strategy(self.sampling_strategy):  # type: ignore[attr-defined]
            drawn = super().fit_resample(numbered, labels, **params)  # type: ignore[misc]
        if numbered is X and not several:
            return drawn
        rows = self.sample_indices_  # type: ignore[attr-defined]
        return take(X, rows), take(y, rows)


def _numbered(X: Any, y: Any) -> Any:
    """Row numbers of shape (n, 1) for texts in lists and 1-D arrays; other tables unchanged."""
    if holds_tags(y) and isinstance(X, (list, tuple)) and len(X) == len(y):
        # Tags are as many as tokens; for texts and pairs they are lists of names.
        tagged = (isinstance(x, list) and len(x) == len(row) for x, row in zip(X, y, strict=True))
        if all(tagged):
            raise ValueError(
                "y[0] is a list of tags: draw tagged sentences with TagOverSampler or "
                "BackgroundUnderSampler"
            )
    check_consistent_length(X, as_labels(y))
    return np.arange(len(as_texts(X))).reshape(-1, 1) if _hold_texts(X) else X


def _hold_texts(X: Any) -> bool:
    """Whether rows are texts or pairs that imbalanced-learn would not draw."""
    rows = X if hasattr(X, "iloc") else plain_values(X)  # imbalanced-learn draws from pandas
    if isinstance(rows, (list, tuple)):
        first = rows[0] if rows and isinstance(rows[0], (list, tuple)) else rows
        return isinstance(next(iter(first), None), str)
    if hasattr(rows, "dtype"):  # a 1-D array or column, or any table of polars
        return (rows is not X or getattr(X, "ndim", 2) == 1) and rows.dtype.kind in "OUT"
    return not hasattr(rows, "dtypes")  # no table: what is refused as texts


class TextOverSampler(_Texts, RandomOverSampler):
    """Repeat texts of the smaller classes, drawn at random.

    imbalanced-learn's `RandomOverSampler`, which refuses 1-D text, for every container that the
    estimators of this package take.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        As in imbalanced-learn; a dict gives the exact number of rows of each class afterwards.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        Rows of X that were taken; the first n are X itself.
    sampling_strategy_ : dict
        Rows to add to each class.

    Examples
    --------
    >>> from skdice.resampling import TextOverSampler
    >>> X, y = ["free prize", "see you", "at lunch"], [1, 0, 0]
    >>> TextOverSampler(random_state=0).fit_resample(X, y)
    (['free prize', 'see you', 'at lunch', 'free prize'], [1, 0, 0, 1])
    """

    _parameter_constraints: dict = {**BaseOverSampler._parameter_constraints}
    _parameter_constraints["random_state"] = ["random_state"]

    shrinkage = None  # the parent's noise is for numbers

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state


class TextUnderSampler(_Texts, RandomUnderSampler):
    """Drop texts of the larger classes, drawn at random.

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        As in imbalanced-learn; a dict gives the exact number of rows of each class afterwards.
    random_state : int, RandomState or None, default=None
    replacement : bool, default=False

    Attributes
    ----------
    sample_indices_ : ndarray of shape (n_new,)
        Rows of X that were kept.
    sampling_strategy_ : dict
        Rows to keep of each class.

    Examples
    --------
    >>> from skdice.resampling import TextUnderSampler
    >>> X, y = ["free prize", "see you", "at lunch"], [1, 0, 0]
    >>> TextUnderSampler(random_state=0).fit_resample(X, y)[1]
    [0, 1]
    """
