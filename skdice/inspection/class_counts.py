"""How often each class is true, predicted and right in each row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer

# Of each row its classes, or its spans, of which the class comes first.
Items = list[list[tuple[Any, ...]]]


def row_counts(true: Items, pred: Items) -> tuple[list[str], Any]:
    """The classes, and their counts in each row.

    The counts are a sparse matrix of shape (n_rows, 3 * n_classes): hits of all classes, then
    predictions, then true occurrences.
    """
    hits = [(Counter(t) & Counter(p)).elements() for t, p in zip(true, pred, strict=True)]
    counts = [[Counter(item[0] for item in row) for row in part] for part in (hits, pred, true)]
    vectorizer = DictVectorizer(dtype=np.int64).fit([row for part in counts for row in part])
    blocks = [vectorizer.transform(part) for part in counts]
    return vectorizer.feature_names_, sparse.hstack(blocks, format="csr")


def summed(counts: Any) -> np.ndarray:
    """Counts of `row_counts` over all rows, of shape (3, n_classes)."""
    return np.asarray(counts.sum(axis=0)).reshape(3, -1)
