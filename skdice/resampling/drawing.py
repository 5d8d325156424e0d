"""Resampling as a way to draw batches, without a copy of the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone

from skdice._checks import KINDS, shown
from skdice._compat import get_sampler_tags
from skdice._types import Data
from skdice.inputs.labels import is_indicator, single_labels
from skdice.inputs.rows import as_row_list
from skdice.inputs.sentences import holds_tags
from skdice.resampling.tags import TagSampler


def check_sampler(sampler: Any) -> None:
    """Refuse what cannot draw rows without looking at their values."""
    if not hasattr(sampler, "fit_resample"):
        raise TypeError(
            f"sampler={sampler!r} has no fit_resample: give a sampler object such as "
            "RandomOverSampler()"
        )
    tags = get_sampler_tags(sampler)
    draws = getattr(tags.sampler_tags, "sample_indices", False) and tags.input_tags.string
    draws = draws and getattr(sampler, "draws_rows", True)
    if not draws or getattr(sampler, "shrinkage", None) is not None:
        raise ValueError(
            f"sampler={sampler!r} makes new rows or compares rows, but here rows can only be "
            "drawn: use RandomOverSampler, RandomUnderSampler or a sampler of skdice.resampling. "
            "SMOTE and its kin go into an imblearn pipeline, after TransformerFeatures"
        )


def draw_rows(sampler: Any, y: Any, seed: int) -> np.ndarray:
    """Row numbers that `sampler` draws for the labels, or tag lists, `y`."""
    tagged = holds_tags(y)
    if is_indicator(y):
        y = single_labels(y)
    if tagged and isinstance(sampler, (RandomOverSampler, RandomUnderSampler)):
        raise ValueError(
            f"sampler={sampler!r} draws by one label a row, and a tagged sentence has many: use "
            "TagOverSampler or BackgroundUnderSampler of skdice.resampling"
        )
    if not tagged and isinstance(sampler, TagSampler):
        raise ValueError(
            f"sampler={sampler!r} draws by the tags of a sentence, and here each row has one "
            "label: use RandomOverSampler or RandomUnderSampler"
        )
    drawer = clone(sampler)
    if "random_state" in drawer.get_params():
        drawer.set_params(random_state=seed)
    # A tag sampler reads only lengths from X; the others take a column of row numbers.
    words = [[""] * len(row) if hasattr(row, "__len__") else row for row in y if tagged]
    drawer.fit_resample(words if tagged else np.arange(len(y)).reshape(-1, 1), y)
    return np.asarray(drawer.sample_indices_)


class BalancedBatchSampler:
    """Batches of row numbers, drawn through an imbalanced-learn sampler.

    Give it to a torch `DataLoader` as ``batch_sampler``. Each pass draws new batches; ``len()`` is
    the length of the next pass.

    Parameters
    ----------
    sampler : imbalanced-learn sampler
        One that draws rows: `RandomOverSampler`, `RandomUnderSampler`, or one of this package.
    y : array of shape (n,) or (n, n_labels), or list of lists of str
        Labels, 0/1 rows of several, drawn by the rarest label of each row, or tags for a tag
        sampler.
    batch_size : int, default=32
    random_state : int, default=0

    Raises
    ------
    TypeError, ValueError
        If `sampler` makes new rows or compares rows, or `batch_size` is not an integer of
        at least 1.

    Examples
    --------
    >>> from imblearn.under_sampling import RandomUnderSampler
    >>> from skdice.resampling import BalancedBatchSampler
    >>> batches = BalancedBatchSampler(RandomUnderSampler(), [0] * 90 + [1] * 10, batch_size=8)
    >>> [len(batch) for batch in batches]
    [8, 8, 4]
    """

    def __init__(
        self, sampler: Any, y: Data, *, batch_size: int = 32, random_state: int = 0
    ) -> None:
        check_sampler(sampler)
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("random_state", random_state, 0),
        ):
            if not KINDS["int"].is_satisfied_by(value) or value < least:
                raise ValueError(f"{name}={shown(value)} must be an integer of at least {least}")
        as_row_list("y", y)
        self.sampler = sampler
        self.y = y
        self.batch_size = int(batch_size)
        self.random_state = random_state
        self._epoch = 0
        self._coming: np.ndarray | None = None
        self._rows()  # what cannot be drawn is refused here

    def _rows(self) -> np.ndarray:
        """The rows of the coming pass, drawn once."""
        if self._coming is None:
            seed = int(np.random.default_rng([self.random_state, self._epoch]).integers(2**31 - 1))
            drawn = draw_rows(self.sampler, self.y, seed)
            self._coming = np.random.default_rng(seed).permutation(drawn)
        return self._coming

    def __len__(self) -> int:
        return -(-len(self._rows()) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        rows = self._rows()
        self._epoch += 1
        self._coming = None
        for start in range(0, len(rows), self.batch_size):
            yield rows[start : start + self.batch_size].tolist()
