"""Files with or without labels, of which the inputs are predicted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from skdice.datasets.readers import READERS
from skdice.datasets.row import Reading
from skdice.datasets.source import Source, warn_of_notes


def read_inputs(
    source: Source,
    task: str,
    options: Mapping[str, Any],
    n_texts: int | None = None,
    tags: Collection[str] = (),
) -> Reading:
    """The rows of a file to predict, without y, and its columns.

    `n_texts` are those of a row to classify, where that is known, and `tags` those of a tagger.
    """
    read = READERS[task].inputs(source, options, n_texts, tags)
    warn_of_notes(source, read.notes, len(read.rows))
    return replace(read, rows=[row._replace(y=None) for row in read.rows])
