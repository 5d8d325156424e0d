"""The subwords of raw texts, of some texts at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from skdice.text.encoding import BLOCK

CHARACTERS = 1_000_000  # of texts tokenised at a time


def text_blocks(
    texts: Sequence[str] | Sequence[tuple[str, str]],
    most: int = BLOCK,
    characters: int = CHARACTERS,
) -> Iterator[slice]:
    """Slices that cover all texts or pairs: at most so many, and not many more characters."""
    start = size = 0
    for i, text in enumerate(texts):
        size += len(text) if isinstance(text, str) else sum(map(len, text))
        if i + 1 - start == most or size >= characters:
            yield slice(start, i + 1)
            start, size = i + 1, 0
    if start < len(texts):
        yield slice(start, len(texts))


def subwords_of_texts(
    tokenizer: Any, texts: Sequence[str]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ids of each text, shape (n,), and their first and last characters, (n, 2), ends exclusive.

    They have no special tokens.
    """
    for some in text_blocks(texts):
        # Not verbose: it would warn of long texts, which are cut into windows.
        encoded = tokenizer(list(texts[some]), add_special_tokens=False, verbose=False)
        for encoding in encoded.encodings:
            ids = np.array(encoding.ids, dtype=np.int32)
            yield ids, np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
