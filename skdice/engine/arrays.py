"""Large tables of vectors, in memory or in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np

IN_MEMORY = 2**30  # bytes; larger tables are kept in a file
BLOCK = 4096  # rows processed at a time
BLOCK_ON_GPU = 1024  # rows, of which the next are tokenised while it computes


def empty_table(n_rows: int, n_columns: int) -> np.ndarray:
    """An array of float32 to be filled; past 1 GiB in a temporary file, deleted with the array.

    Python's `tempfile` chooses its folder, which ``TMPDIR`` can set.
    """
    shape = n_rows, n_columns
    if 4 * n_rows * n_columns <= IN_MEMORY:
        return np.empty(shape, dtype=np.float32)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def blocks(n_rows: int) -> Iterator[slice]:
    """Slices that cover all rows, some thousand at a time."""
    for start in range(0, n_rows, BLOCK):
        yield slice(start, min(start + BLOCK, n_rows))
