"""Long texts of a few characters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skdice.text import long_texts, subwords, words


@contextmanager
def pieces_of(size: int) -> Iterator[None]:
    """Let texts of more characters than this be tokenised piece by piece."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (subwords, words, long_texts):
            patch.setattr(module, "PIECE", size)
        yield
