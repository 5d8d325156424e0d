"""Resampling as a way to draw row numbers, without a copy of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from imblearn.over_sampling import RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from sklearn.base import clone

from skdice._compat import get_sampler_tags
from skdice.inputs.labels import holds_tags, is_indicator, single_labels
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
